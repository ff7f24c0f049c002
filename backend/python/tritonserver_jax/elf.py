# SPDX-License-Identifier: Apache-2.0
"""What a shared library or a program offers and needs, read from its file and never loaded.

Only what questions about installations take: dynamic symbols, the versions of other libraries'
symbols, and the libraries that it is linked to. It needs no binutils, which servers do not have,
and runs nothing of the file.
"""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["ElfError", "ElfFile", "newest", "read_elf"]

_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_DYNAMIC: Final = struct.Struct("<qQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_VERSION_NEEDED: Final = struct.Struct("<HHIII")
_VERSION_AUXILIARY: Final = struct.Struct("<IHHII")

_X86_64: Final = 62
_SECTION_DYNAMIC: Final = 6
_SECTION_DYNAMIC_SYMBOLS: Final = 11
_SECTION_VERSIONS_NEEDED: Final = 0x6FFFFFFE
_TAG_NEEDED: Final = 1
_TAG_RPATH: Final = 15
_TAG_RUNPATH: Final = 29


class ElfError(ValueError):
    """A file is no 64-bit x86_64 ELF file, or is damaged."""


@dataclass(frozen=True, slots=True)
class ElfFile:
    """The dynamic part of a library or program.

    Attributes:
        path: The file.
        exported: Names of the symbols that it gives to others.
        required: Names of the symbols that it needs from others.
        versions: Versions of others' symbols that it needs, such as ``GLIBC_2.34``.
        libraries: The libraries that it is linked to.
        search_path: Where those are looked for, with ``$ORIGIN`` filled in.
    """

    path: Path
    exported: frozenset[str]
    required: frozenset[str]
    versions: frozenset[str]
    libraries: tuple[str, ...]
    search_path: tuple[Path, ...]

    def find_library(self, prefix: str) -> Path | None:
        """Return a library that this one is linked to, by the beginning of its name.

        The loader's search in system folders is not repeated: what a server is delivered with lies
        in its search path.
        """
        for name in self.libraries:
            if not name.startswith(prefix):
                continue
            for folder in self.search_path:
                if (folder / name).is_file():
                    return (folder / name).resolve()
        return None


def newest(versions: frozenset[str], name: str) -> tuple[int, ...] | None:
    """Return the newest version of one library among symbol versions: of ``"GLIBC"``, (2, 34)."""
    pattern = re.compile(rf"{re.escape(name)}_(\d+(?:\.\d+)*)")
    found = [match for match in map(pattern.fullmatch, versions) if match]
    return max((tuple(map(int, match[1].split("."))) for match in found), default=None)


def read_elf(path: Path) -> ElfFile:
    """Read the dynamic part of a file.

    Raises:
        ElfError: It is no 64-bit x86_64 ELF file, or is damaged.
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        try:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:  # an empty file cannot be mapped
            raise ElfError(f"{path}: expected an ELF file, got an empty one") from None
    with data:
        try:
            return _read(path, data)
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            raise ElfError(f"{path}: expected a whole ELF file, got a damaged one") from error


def _read(path: Path, data: mmap.mmap) -> ElfFile:
    if data[:6] != b"\x7fELF\x02\x01":
        raise ElfError(f"{path}: expected a 64-bit ELF file, got another file")
    header = _HEADER.unpack_from(data)
    if header[2] != _X86_64:
        raise ElfError(f"{path}: expected one for x86_64, got machine {header[2]}")
    section_offset, section_size, section_count = header[6], header[11], header[12]
    sections = [
        _SECTION.unpack_from(data, section_offset + number * section_size)
        for number in range(section_count)
    ]

    def text(section: int, offset: int) -> str:
        start = sections[section][4] + offset
        end = data.find(b"\0", start)
        if end < 0:
            raise IndexError
        return data[start:end].decode()

    exported: set[str] = set()
    required: set[str] = set()
    versions: set[str] = set()
    libraries: list[str] = []
    folders: list[str] = []
    for section in sections:
        kind, offset, size, strings = section[1], section[4], section[5], section[6]
        if kind == _SECTION_DYNAMIC_SYMBOLS:
            for entry in range(offset, offset + size, _SYMBOL.size):
                name, info, _, defined_in, _, _ = _SYMBOL.unpack_from(data, entry)
                if name and info >> 4 != 0:  # local ones are nobody else's
                    (exported if defined_in else required).add(text(strings, name))
        elif kind == _SECTION_VERSIONS_NEEDED:
            versions.update(text(strings, name) for name in _versions(data, offset, section[7]))
        elif kind == _SECTION_DYNAMIC:
            for entry in range(offset, offset + size, _DYNAMIC.size):
                tag, value = _DYNAMIC.unpack_from(data, entry)
                if tag == 0:
                    break
                if tag == _TAG_NEEDED:
                    libraries.append(text(strings, value))
                elif tag in (_TAG_RPATH, _TAG_RUNPATH):
                    folders += text(strings, value).split(":")
    origin = str(path.resolve().parent)
    filled = [re.sub(r"\$ORIGIN|\$\{ORIGIN\}", lambda _: origin, one) for one in folders if one]
    return ElfFile(
        path=path,
        exported=frozenset(exported),
        required=frozenset(required),
        versions=frozenset(versions),
        libraries=tuple(libraries),
        search_path=tuple(map(Path, filled)),
    )


def _versions(data: mmap.mmap, offset: int, count: int) -> Iterator[int]:
    """Where the names of the needed versions are in the string table."""
    for _ in range(count):
        _, auxiliaries, _, auxiliary, following = _VERSION_NEEDED.unpack_from(data, offset)
        inner = offset + auxiliary
        for _ in range(auxiliaries):
            _, _, _, name, following_inner = _VERSION_AUXILIARY.unpack_from(data, inner)
            yield name
            inner += following_inner
        offset += following
