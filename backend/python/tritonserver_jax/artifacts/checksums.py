# SPDX-License-Identifier: Apache-2.0
"""``SHA256SUMS``: what ``sha256sum --check`` reads, read strictly."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from tritonserver_jax.artifacts.errors import Problem, VerificationError

__all__ = ["format_checksums", "is_plain_path", "parse_checksums", "sha256_of"]

_LINE = re.compile(r"([0-9a-f]{64})  (.+)")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f\\]")


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_plain_path(name: str) -> bool:
    """Say whether a name is a relative path that stays inside its folder, and can be printed."""
    path = PurePosixPath(name)
    return (
        str(path) == name != "."
        and not path.is_absolute()
        and ".." not in path.parts
        and not _UNPRINTABLE.search(name)
    )


def format_checksums(digests: Mapping[str, str]) -> bytes:
    """Return the content of a ``SHA256SUMS``: a line for each name, sorted.

    Args:
        digests: The SHA-256 of each name.
    """
    return "".join(f"{digests[name]}  {name}\n" for name in sorted(digests)).encode()


def parse_checksums(content: bytes, where: str) -> dict[str, str]:
    """Read a ``SHA256SUMS``.

    Args:
        content: The file.
        where: What to call it in an error.

    Returns:
        The SHA-256 of each name.

    Raises:
        VerificationError: A line is none of ``sha256sum``, names a file twice, or names one
            outside of the folder.
    """
    remedy = "download it again"

    def wrong(number: int, expected: str, got: str) -> VerificationError:
        return VerificationError(Problem(f"{where}: line {number}", expected, got, remedy))

    try:
        lines = content.decode().splitlines()
    except UnicodeDecodeError as error:
        raise VerificationError(Problem(where, "UTF-8", f"something else ({error})", remedy)) from (
            error
        )
    digests: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise wrong(number, '"<64 hexadecimal digits>  <name>"', repr(line[:120]))
        digest, name = match.groups()
        if not is_plain_path(name):
            raise wrong(number, "a path inside the folder", repr(name[:120]))
        if name in digests:
            raise wrong(number, "each file once", f"{name} again")
        digests[name] = digest
    if not digests:
        raise VerificationError(Problem(where, "a line for each file", "an empty file", remedy))
    return digests
