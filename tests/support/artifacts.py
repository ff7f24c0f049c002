# SPDX-License-Identifier: Apache-2.0
"""Making artifacts that are not as they should be."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tritonserver_jax.artifacts import layout
from tritonserver_jax.artifacts.checksums import format_checksums, sha256_of

#: A member of a tar: its name, what it holds, and what else is to be said of it.
TarMember = tuple[str, bytes, dict[str, Any]]


def compile_library(path: Path) -> Path:
    """Make a real, small shared library."""
    source = path.with_suffix(".c")
    source.write_text(f"int made_for_{path.stem}(void) {{ return 7; }}\n")
    command = ["gcc", "-shared", "-fPIC", "-o", path.name, source.name]
    subprocess.run(command, cwd=path.parent, check=True)
    return path


def entry(name: str, content: bytes = b"", **attributes: Any) -> TarMember:
    """A member of a tar; attributes are those of `tarfile.TarInfo`."""
    return name, content, attributes


def write_tar(path: Path, members: Sequence[TarMember]) -> Path:
    """Write a tarball of exactly these members, however odd they are."""
    with tarfile.open(path, "w:gz", format=tarfile.GNU_FORMAT) as archive:
        for name, content, attributes in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            info.mode = 0o644
            for key, value in attributes.items():
                setattr(info, key, value)
            archive.addfile(info, io.BytesIO(content))
    return path


def read_members(path: Path) -> list[TarMember]:
    """Every member of a tarball."""
    members = []
    with tarfile.open(path) as archive:
        for member in archive:
            stream = archive.extractfile(member) if member.isfile() else None
            content = stream.read() if stream else b""
            members.append(entry(member.name, content, mode=member.mode, type=member.type))
    return members


def changed_tar(path: Path, change: Callable[[list[TarMember]], list[TarMember]]) -> None:
    """Replace a tarball by one with other members."""
    write_tar(path, change(read_members(path)))


def flip(path: Path, position: int) -> None:
    """Change one bit of a file."""
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def change_json(path: Path, change: Callable[[Any], None]) -> None:
    """Change a JSON file."""
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value, indent=2) + "\n")


def describe_again(folder: Path) -> None:
    """Make artifacts.json and SHA256SUMS agree with the files, as one would who forges them."""

    def adjust(listing: Any) -> None:
        listing["artifacts"] = [
            {
                **one,
                "size": (folder / one["name"]).stat().st_size,
                "sha256": sha256_of(folder / one["name"]),
            }
            for one in listing["artifacts"]
            if (folder / one["name"]).exists()
        ]

    change_json(folder / layout.LISTING, adjust)
    sum_again(folder)


def sum_again(folder: Path) -> None:
    """Make SHA256SUMS agree with the files of artifacts.json."""
    listing = json.loads((folder / layout.LISTING).read_text())
    names = [layout.LISTING, *(one["name"] for one in listing["artifacts"])]
    digests = {name: sha256_of(folder / name) for name in names}
    (folder / layout.CHECKSUMS).write_bytes(format_checksums(digests))


def bomb(path: Path, size: int) -> Path:
    """Write a small file that unpacks to a tarball with one member of so many zeros."""
    info = tarfile.TarInfo("jax/zeros")
    info.size = size
    with gzip.open(path, "wb", compresslevel=1) as packed:
        packed.write(info.tobuf(tarfile.GNU_FORMAT))
        block = bytes(1024 * 1024)
        for _ in range(size // len(block)):
            packed.write(block)
    return path
