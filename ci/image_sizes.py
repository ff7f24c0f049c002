# SPDX-License-Identifier: Apache-2.0
"""How large images are: what was measured, kept for the table in ``docs/images.md``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ci.process import ROOT

__all__ = ["RecordedSize", "Size", "record_size", "recorded_sizes"]

SIZES: Final = ROOT / "packaging" / "docker" / "sizes.json"


@dataclass(frozen=True, slots=True)
class Size:
    """How large an image is, in bytes.

    Attributes:
        image: All of it.
        base: What it was made from.
    """

    image: int
    base: int

    @property
    def added(self) -> int:
        """What our layers add."""
        return self.image - self.base


@dataclass(frozen=True, slots=True)
class RecordedSize:
    """One measurement: of the image with this tag, made from this base."""

    tag: str
    base: str
    size: Size


def recorded_sizes(path: Path = SIZES) -> list[RecordedSize]:
    """Return what was measured last of each image, sorted by tag."""
    if not path.is_file():
        return []
    content = json.loads(path.read_text(encoding="utf-8"))
    return [
        RecordedSize(tag, one["base"], Size(one["image_bytes"], one["base_bytes"]))
        for tag, one in sorted(content.items())
    ]


def record_size(tag: str, base: str, size: Size, path: Path = SIZES) -> None:
    """Keep a measurement.

    Args:
        tag: Of the image.
        base: The name of its base; what comes before the last slash is left out.
        size: What was measured.
        path: Where measurements are kept.
    """
    known = {one.tag: one for one in recorded_sizes(path)}
    known[tag] = RecordedSize(tag, base.rsplit("/", 1)[-1].partition(":")[0], size)
    content = {
        one.tag: {"base": one.base, "base_bytes": one.size.base, "image_bytes": one.size.image}
        for one in known.values()
    }
    path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")
