# SPDX-License-Identifier: Apache-2.0
"""Tarballs whose bytes follow from their contents: sorted, of nobody, of one time."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

__all__ = ["DATA", "PROGRAM", "Packed", "tar_gz"]

PROGRAM: Final = 0o755
DATA: Final = 0o644


@dataclass(frozen=True, slots=True)
class Packed:
    """A file that is packed.

    Attributes:
        content: Its bytes.
        mode: Its permissions.
    """

    content: bytes
    mode: int = DATA


def tar_gz(files: Mapping[str, Packed], epoch: int) -> bytes:
    """Pack files, and the folders that they are in.

    Args:
        files: By path.
        epoch: The time of each, in seconds since 1970.
    """
    folders = {str(parent) for name in files for parent in PurePosixPath(name).parents} - {"."}
    buffer = io.BytesIO()
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=buffer, compresslevel=9, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for name in sorted([*folders, *files]):
            entry = tarfile.TarInfo(name)
            entry.mtime = epoch  # and uid, gid 0 without names, which is TarInfo's beginning
            file = files.get(name)
            if file is None:
                entry.type = tarfile.DIRTYPE
                entry.mode = PROGRAM
                archive.addfile(entry)
            else:
                entry.mode = file.mode
                entry.size = len(file.content)
                archive.addfile(entry, io.BytesIO(file.content))
    return buffer.getvalue()
