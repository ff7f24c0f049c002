# SPDX-License-Identifier: Apache-2.0
"""Archives made to do harm are refused, and leave nothing behind."""

from __future__ import annotations

import gzip
import resource
import struct
import tarfile
import time
import zipfile
from pathlib import Path

import pytest

from tests.support.artifacts import TarMember, bomb, entry, read_members, write_tar
from tritonserver_jax.artifacts import VerificationError, unpack_tarball
from tritonserver_jax.artifacts.archives import (
    MAXIMUM_BYTES,
    MAXIMUM_MEMBERS,
    read_tar,
    read_wheel,
)


def both_refuse(path: Path, said: str) -> None:
    """What reads and what unpacks look at members in the same way."""
    with pytest.raises(VerificationError, match=said):
        read_tar(path)
    target = path.parent / "target"
    with pytest.raises(VerificationError, match=said):
        unpack_tarball(path, target)
    assert list(target.iterdir()) == []


@pytest.mark.parametrize(
    ("member", "said"),
    [
        (entry("../outside", b"x"), r"'\.\./outside': expected a path inside jax/"),
        (entry("jax/../../outside", b"x"), "expected a path inside jax/"),
        (entry("/tmp/outside", b"x"), "expected a path inside jax/"),
        (entry("other/file", b"x"), "'other/file': expected a path inside jax/"),
        (entry("jaxx", b"x"), "expected a path inside jax/"),
        (entry("jax/a\nb", b"x"), "expected a path inside jax/"),
        (entry("jax/a\\b", b"x"), "expected a path inside jax/"),
        (entry("jax//b", b"x"), "expected a path inside jax/"),
        (
            entry("jax/link", type=tarfile.SYMTYPE, linkname="/etc"),
            "'jax/link': expected a plain file or a folder",
        ),
        (
            entry("jax/hard", type=tarfile.LNKTYPE, linkname="jax/a"),
            "'jax/hard': expected a plain file or a folder",
        ),
        (entry("jax/null", type=tarfile.CHRTYPE), "expected a plain file or a folder"),
        (entry("jax/fifo", type=tarfile.FIFOTYPE), "expected a plain file or a folder"),
        (entry("jax/root", b"x", mode=0o4755), "expected an ordinary mode, got 4755"),
        (entry("jax/a", b"y"), "'jax/a': expected it once, got it twice"),
    ],
)
def test_a_member_that_reaches_out_is_refused(tmp_path: Path, member: TarMember, said: str) -> None:
    path = write_tar(tmp_path / "a.tar.gz", [entry("jax/a", b"x"), member])
    both_refuse(path, said)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.tar.gz", "target"]


def test_a_link_cannot_be_written_through(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    link = entry("jax/way", type=tarfile.SYMTYPE, linkname=str(outside))
    path = write_tar(tmp_path / "a.tar.gz", [link, entry("jax/way/file", b"x")])
    both_refuse(path, "'jax/way': expected a plain file or a folder")
    assert list(outside.iterdir()) == []


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar.gz", [entry("jax/a", b"x"), entry("jax/a/b", b"x")])
    with pytest.raises(OSError, match="a"):
        unpack_tarball(path, tmp_path / "target")
    assert list((tmp_path / "target").iterdir()) == []


@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.99, 0.9999])
def test_a_truncated_tarball_is_refused(tarball: Path, tmp_path: Path, part: float) -> None:
    content = tarball.read_bytes()
    path = tmp_path / tarball.name
    path.write_bytes(content[: int(len(content) * part)])
    both_refuse(path, "expected a whole archive, got a damaged one")


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tar.gz"
    for content in (b"text", gzip.compress(b"text" * 1000), gzip.compress(b"")):
        path.write_bytes(content)
        both_refuse(path, "expected a whole archive, got a damaged one")


def test_damage_in_the_middle_is_refused(tarball: Path, tmp_path: Path) -> None:
    content = bytearray(tarball.read_bytes())
    path = tmp_path / tarball.name
    for position in range(20, len(content), len(content) // 20):
        damaged = content.copy()
        damaged[position] ^= 0x10
        path.write_bytes(damaged)
        with pytest.raises(VerificationError):
            read_tar(path)


def test_data_after_the_end_is_refused(tarball: Path, tmp_path: Path) -> None:
    path = tmp_path / tarball.name
    path.write_bytes(tarball.read_bytes() + gzip.compress(b"hidden"))
    both_refuse(path, "expected nothing after the archive's end, got more data")
    path.write_bytes(tarball.read_bytes() + b"hidden")
    both_refuse(path, "expected a whole archive, got a damaged one")


def test_a_bomb_is_given_up_before_it_unpacks(tmp_path: Path) -> None:
    path = bomb(tmp_path / "a.tar.gz", 4 * MAXIMUM_BYTES)
    assert path.stat().st_size < 8 * 1024 * 1024
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.monotonic()
    both_refuse(path, "expected at most 256 MiB unpacked, got more")
    assert time.monotonic() - begin < 20
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 64 * 1024, "KiB: it is read in pieces"


def test_a_sparse_file_is_refused(tmp_path: Path) -> None:
    # An old GNU sparse member: no data at all, and a terabyte of it when it is read.
    info = tarfile.TarInfo("jax/sparse")
    info.type = tarfile.GNUTYPE_SPARSE
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[386:398] = b"00000000000\0"
    header[398:410] = b"00000000000\0"
    header[483:495] = b"\x80" + (1 << 40).to_bytes(11, "big")
    header[148:156] = b"        "
    header[148:156] = f"{sum(header):06o}\0 ".encode()
    path = tmp_path / "a.tar.gz"
    path.write_bytes(gzip.compress(bytes(header) + bytes(1024)))
    both_refuse(path, "expected a plain file or a folder|expected a whole archive")


def test_a_huge_header_is_refused(tmp_path: Path) -> None:
    info = tarfile.TarInfo("jax/long")
    info.type = tarfile.XHDTYPE
    info.size = 4 * MAXIMUM_BYTES
    path = tmp_path / "a.tar.gz"
    with gzip.open(path, "wb", compresslevel=1) as packed:
        packed.write(info.tobuf(tarfile.GNU_FORMAT))
        for _ in range(4 * MAXIMUM_BYTES // (1024 * 1024)):
            packed.write(bytes(1024 * 1024))
    both_refuse(path, "expected at most 256 MiB unpacked|expected a whole archive")


def test_countless_members_are_refused(tmp_path: Path) -> None:
    members = [entry(f"jax/{number}") for number in range(MAXIMUM_MEMBERS + 1)]
    both_refuse(write_tar(tmp_path / "a.tar.gz", members), "expected at most 5000 members")


def test_a_whole_tarball_is_unpacked_as_it_is(tarball: Path, tmp_path: Path) -> None:
    folder = unpack_tarball(tarball, tmp_path)
    files = {
        f"jax/{path.relative_to(folder)}": (path.read_bytes(), path.stat().st_mode & 0o777)
        for path in folder.rglob("*")
        if path.is_file()
    }
    expected = {
        name: (content, facts["mode"])
        for name, content, facts in read_members(tarball)
        if facts["type"] == tarfile.REGTYPE
    }
    assert files == expected
    with pytest.raises(FileExistsError):
        unpack_tarball(tarball, tmp_path)
    assert folder.is_dir(), "what was there is left alone"


def test_a_wheel_that_is_a_bomb_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.whl"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("zeros", "w") as stream,
    ):
        for _ in range(MAXIMUM_BYTES // (1024 * 1024) + 1):
            stream.write(bytes(1024 * 1024))
    with pytest.raises(VerificationError, match="expected at most 256 MiB unpacked"):
        read_wheel(path)


def test_a_wheel_that_lies_about_a_size_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(10_000_000))
    content = path.read_bytes().replace(struct.pack("<L", 10_000_000), struct.pack("<L", 10))
    path.write_bytes(content)
    with pytest.raises(VerificationError, match="expected a whole archive"):
        read_wheel(path)


def test_a_wheel_with_a_link_or_a_file_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.whl"
    link = zipfile.ZipInfo("link")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(VerificationError, match="'link': expected a plain file"):
        read_wheel(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", "1")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("a", "2")
    with pytest.raises(VerificationError, match="'a': expected it once, got it twice"):
        read_wheel(path)
