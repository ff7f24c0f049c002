# SPDX-License-Identifier: Apache-2.0
"""Reading archives that may be hostile: tarballs, sdists and wheels.

Nothing is trusted before it was looked at. A member is a plain file or a folder, inside the one
folder of the archive, named once; and an archive that would unpack to more than `MAXIMUM_BYTES`
is given up while it is read, so that a few kilobytes cannot fill a memory or a disk.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from gzip import GzipFile
from pathlib import Path
from typing import IO, Any, Final

from tritonserver_jax.artifacts.checksums import is_plain_path
from tritonserver_jax.artifacts.errors import Problem, VerificationError
from tritonserver_jax.artifacts.layout import TOP

__all__ = [
    "MAXIMUM_BYTES",
    "MAXIMUM_MEMBERS",
    "Member",
    "read_tar",
    "read_wheel",
    "unpack_tarball",
]

#: More than any artifact of ours unpacks to, by far.
MAXIMUM_BYTES: Final = 256 * 1024 * 1024
#: More than any artifact of ours has.
MAXIMUM_MEMBERS: Final = 5_000

_CHUNK: Final = 1024 * 1024
_AGAIN: Final = "download it again, and do not unpack this one"


@dataclass(frozen=True, slots=True)
class Member:
    """One file of an archive.

    Attributes:
        size: Its bytes.
        sha256: Their SHA-256.
        executable: Whether its mode says so.
        content: The bytes, when the reader wanted them.
    """

    size: int
    sha256: str
    executable: bool
    content: bytes | None = None


class _Bounded(io.RawIOBase):
    """A stream that refuses to give more than so many bytes."""

    def __init__(self, stream: IO[bytes] | GzipFile, where: str) -> None:
        super().__init__()
        self._stream = stream
        self._where = where
        self._left = MAXIMUM_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        # One more than is left: to see the difference between "just enough" and "too much".
        data = self._stream.read(min(len(buffer), self._left + 1))
        if len(data) > self._left:
            raise _too_much(self._where)
        self._left -= len(data)
        buffer[: len(data)] = data
        return len(data)


def _too_much(where: str) -> VerificationError:
    limit = f"at most {MAXIMUM_BYTES // 1024 // 1024} MiB unpacked"
    return VerificationError(Problem(where, limit, "more", _AGAIN))


@contextmanager
def _damage_named(path: Path) -> Iterator[None]:
    """Turn what the standard library says of a damaged archive into our error."""
    try:
        yield
    except (EOFError, tarfile.TarError, zipfile.BadZipFile, zlib.error) as error:
        raise _damaged(path, error) from error
    except OSError as error:
        if error.errno is not None:  # the disk's, and not of gzip.BadGzipFile
            raise
        raise _damaged(path, error) from error
    except (NotImplementedError, UnicodeError, ValueError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> VerificationError:
    said = str(error) or type(error).__name__
    return VerificationError(
        Problem(path.name, "a whole archive", f"a damaged one ({said})", "download it again")
    )


def _members(path: Path, top: str) -> Iterator[tuple[str, tarfile.TarInfo, IO[bytes] | None]]:
    """Go through a compressed tar, every member looked at; the top folder is left out of names."""
    seen: set[str] = set()
    with (
        path.open("rb") as file,
        GzipFile(fileobj=file, mode="rb") as unpacked,
        io.BufferedReader(_Bounded(unpacked, path.name), _CHUNK) as stream,
    ):
        # "r|" never seeks, so that all bytes pass the bound, and each only once.
        with tarfile.open(fileobj=stream, mode="r|", bufsize=tarfile.BLOCKSIZE) as archive:
            for member in archive:
                name = member.name
                where = f"{path.name}: {name!r}"
                if not is_plain_path(name) or name.split("/")[0] != top:
                    raise VerificationError(
                        Problem(where, f"a path inside {top}/", "another one", _AGAIN)
                    )
                # A sparse file unpacks to more than is read, past the bound.
                if member.issparse() or not (member.isreg() or member.isdir()):
                    raise VerificationError(
                        Problem(where, "a plain file or a folder", "something else", _AGAIN)
                    )
                if member.mode & 0o7000:
                    raise VerificationError(
                        Problem(where, "an ordinary mode", f"{member.mode:04o}", _AGAIN)
                    )
                if name in seen:
                    raise VerificationError(Problem(where, "it once", "it twice", _AGAIN))
                seen.add(name)
                if len(seen) > MAXIMUM_MEMBERS:
                    limit = f"at most {MAXIMUM_MEMBERS} members"
                    raise VerificationError(Problem(path.name, limit, "more", _AGAIN))
                content = archive.extractfile(member) if member.isreg() else None
                yield name[len(top) + 1 :], member, content
        # To the end: that is where gzip has its own checksum, and where something may be hidden.
        while rest := stream.read(_CHUNK):
            if rest.strip(b"\0"):
                raise VerificationError(
                    Problem(path.name, "nothing after the archive's end", "more data", _AGAIN)
                )


def read_tar(
    path: Path, top: str = TOP, *, keep: Callable[[str], bool] = lambda _: False
) -> dict[str, Member]:
    """Read a ``.tar.gz`` whose members are all in one folder.

    Args:
        path: The file.
        top: That folder.
        keep: Says of a name whether its content is wanted.

    Returns:
        Every file by its name in that folder.

    Raises:
        VerificationError: It is damaged, or holds what no artifact of ours does.
        OSError: It cannot be read.
    """
    members = {}
    with _damage_named(path):
        for name, entry, stream in _members(path, top):
            if stream is not None:
                executable = bool(entry.mode & 0o100)
                members[name] = _read(stream, executable=executable, keep=keep(name))
    return members


def _read(stream: IO[bytes], *, executable: bool, keep: bool) -> Member:
    digest = hashlib.sha256()
    kept: list[bytes] = []
    size = 0
    while chunk := stream.read(_CHUNK):
        digest.update(chunk)
        size += len(chunk)
        if keep:
            kept.append(chunk)
    return Member(size, digest.hexdigest(), executable, b"".join(kept) if keep else None)


def unpack_tarball(tarball: Path, directory: Path) -> Path:
    """Unpack a tarball of ours; after a failure nothing of it is there.

    Args:
        tarball: The file; whether it is the one that was released is for
            `tritonserver_jax.artifacts.verify_artifact` to say.
        directory: Where to make the folder ``jax``, which must not be there yet.

    Returns:
        That folder.

    Raises:
        VerificationError: It is damaged, or holds what no artifact of ours does.
        OSError: It cannot be read, or there is no room.
    """
    folder = directory / TOP
    folder.mkdir(parents=True)
    try:
        with _damage_named(tarball):
            for name, entry, stream in _members(tarball, TOP):
                _write(folder / name, entry, stream)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder


def _write(path: Path, entry: tarfile.TarInfo, stream: IO[bytes] | None) -> None:
    if stream is None:
        path.mkdir(parents=True, exist_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        shutil.copyfileobj(stream, file, _CHUNK)
    path.chmod(0o755 if entry.mode & 0o100 else 0o644)
    os.utime(path, (entry.mtime, entry.mtime))


def read_wheel(
    path: Path, *, keep: Callable[[str], bool] = lambda _: False
) -> tuple[dict[str, Member], dict[str, str]]:
    """Read a wheel, and the SHA-256 of its files which its ``RECORD`` has.

    Args:
        path: The file.
        keep: Says of a name whether its content is wanted.

    Returns:
        Every file by its name, and every SHA-256 of ``RECORD`` by the name.

    Raises:
        VerificationError: It is damaged, or holds what no wheel of ours does.
        OSError: It cannot be read.
    """
    members: dict[str, Member] = {}
    total = 0
    with _damage_named(path), zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            where = f"{path.name}: {entry.filename!r}"
            if not is_plain_path(entry.filename):
                raise VerificationError(Problem(where, "a path inside it", "another one", _AGAIN))
            if entry.filename in members:
                raise VerificationError(Problem(where, "it once", "it twice", _AGAIN))
            kind = entry.external_attr >> 16 & 0o170000
            if kind not in (0, 0o100000):
                raise VerificationError(Problem(where, "a plain file", "something else", _AGAIN))
            total += entry.file_size  # zipfile itself never gives more than that
            if total > MAXIMUM_BYTES:
                raise _too_much(path.name)
            if len(members) >= MAXIMUM_MEMBERS:
                limit = f"at most {MAXIMUM_MEMBERS} members"
                raise VerificationError(Problem(path.name, limit, "more", _AGAIN))
            with archive.open(entry) as stream:
                is_record = entry.filename.endswith(".dist-info/RECORD")
                members[entry.filename] = _read(
                    stream,
                    executable=bool(entry.external_attr >> 16 & 0o100),
                    keep=keep(entry.filename) or is_record,
                )
    return members, _record(path, members)


def _record(path: Path, members: dict[str, Member]) -> dict[str, str]:
    """Return the digests of a wheel's RECORD, which names all files and itself without one."""
    records = [name for name in members if name.endswith(".dist-info/RECORD")]
    if len(records) != 1:
        raise VerificationError(
            Problem(path.name, "one .dist-info/RECORD", str(len(records)), "download it again")
        )
    digests = {}
    with _damage_named(path):
        text = (members[records[0]].content or b"").decode()
        for name, digest, _ in csv.reader(io.StringIO(text)):
            if name == records[0]:
                continue
            algorithm, _, encoded = digest.partition("=")
            if algorithm != "sha256":
                raise ValueError(f"RECORD: expected sha256=… for {name}, got {digest!r}")
            padded = encoded + "=" * (-len(encoded) % 4)
            digests[name] = base64.urlsafe_b64decode(padded).hex()
    return digests
