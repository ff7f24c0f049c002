# SPDX-License-Identifier: Apache-2.0
"""What a load has to know of a model, from its complete configuration."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["largest_output", "without_shape"]


def largest_output(config: Mapping[str, Any], rows: int) -> int | None:
    """Return the bytes of the largest output, or None where the configuration does not say.

    Args:
        config: The complete configuration.
        rows: Of each request.
    """
    sizes = []
    for one in config.get("output", ()):
        dims = [int(dim) for dim in one["dims"]]
        bits = re.search(r"\d+$", str(one["data_type"]))
        if min(dims, default=1) < 0 or one["data_type"] == "TYPE_STRING":
            return None
        sizes.append(rows * math.prod(dims) * (int(bits[0]) // 8 if bits else 1))
    return max(sizes, default=None)


def without_shape(config: Mapping[str, Any], shapes: Mapping[str, Sequence[int]]) -> str:
    """Say which input needs a shape, and was given none; nothing where all is known.

    Args:
        config: The complete configuration.
        shapes: What was given, by input.
    """
    for one in config.get("input", ()):
        varies = any(int(dim) < 0 for dim in one["dims"])
        if varies and one["name"] not in shapes:
            return (
                f"input '{one['name']}' has dims {one['dims']}: expected a shape to send, got "
                f"none; give --shape {one['name']}:… with one size for each of them"
            )
    return ""
