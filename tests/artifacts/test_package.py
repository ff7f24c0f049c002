# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import gzip
import hashlib
import json
import re
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from ci.locks import ACCELERATORS
from ci.package import PackageError, package, tarball_name
from ci.process import ROOT
from tests.artifacts.conftest import EPOCH
from tritonserver_jax import __version__
from tritonserver_jax.releases import DEFAULT_RELEASE, find_release

PYTHONS = ("311", "312", "313", "314")
CONTENT = sorted(
    [
        "jax/BUILD_INFO.json",
        "jax/LICENSE",
        "jax/SHA256SUMS",
        "jax/config.pbtxt",
        "jax/lib/libtriton_jax.so",
        "jax/lib/libtriton_jax_python.so",
        *(
            f"jax/locks/requirements-{name}-py{python}.txt"
            for name in ("cpu", *ACCELERATORS)
            for python in PYTHONS
        ),
        "jax/scripts/health_check.py",
        "jax/scripts/install.sh",
        "jax/scripts/setup_env.sh",
        f"jax/wheel/tritonserver_jax-{__version__}-py3-none-any.whl",
    ]
)


def test_it_holds_what_an_operator_needs_and_nothing_else(tarball: Path) -> None:
    with tarfile.open(tarball) as archive:
        names = archive.getnames()
        files = [member.name for member in archive if member.isfile()]
    assert files == CONTENT
    assert names == sorted(names)
    assert not [name for name in names if name.endswith("model.py")]


def test_members_belong_to_nobody_and_have_fixed_modes_and_times(tarball: Path) -> None:
    with tarfile.open(tarball) as archive:
        for member in archive:
            assert (member.uid, member.gid, member.uname, member.gname) == (0, 0, "", "")
            assert member.mtime == EPOCH
            program = member.isdir() or "/lib/" in member.name or "/scripts/" in member.name
            assert member.mode == (0o755 if program else 0o644), member.name
            assert member.isdir() or member.isfile()
    head = tarball.read_bytes()[:10]
    assert head[3] == 0, "no name in the gzip header"
    assert head[4:8] == b"\0\0\0\0", "no time in the gzip header"
    gzip.decompress(tarball.read_bytes())


def test_the_same_inputs_give_the_same_bytes(
    tarball: Path, libraries: Sequence[Path], wheel: Path, tmp_path: Path
) -> None:
    # Copies have other owners, modes and times, and come in another order.
    copies = [Path(shutil.copy(path, tmp_path)) for path in reversed(libraries)]
    for copy in copies:
        copy.chmod(0o600)
    again = package(
        find_release(DEFAULT_RELEASE),
        libraries=copies,
        wheel=wheel,
        output=tmp_path / "elsewhere",
        source_date_epoch=EPOCH,
    )
    made = {path.name: path.read_bytes() for path in again.parent.iterdir()}
    assert made == {path.name: path.read_bytes() for path in tarball.parent.iterdir()}


def test_the_checksums_hold_inside_and_beside(tarball: Path, unpacked: Path) -> None:
    for folder in (unpacked, tarball.parent):
        subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=folder, check=True)
    listed = {line[66:] for line in (unpacked / "SHA256SUMS").read_text().splitlines()}
    files = {str(p.relative_to(unpacked)) for p in unpacked.rglob("*") if p.is_file()}
    assert listed == files - {"SHA256SUMS"}


def test_build_info_says_what_was_built(unpacked: Path) -> None:
    text = (unpacked / "BUILD_INFO.json").read_text()
    info = json.loads(text)
    assert info["project_version"] == __version__
    assert (info["release"], info["server_version"]) == ("24.10", "2.51.0")
    assert (info["backend_api_needed"], info["backend_api_of_release"]) == ("1.12", "1.19")
    assert info["pythons"] == ["3.11", "3.12", "3.13", "3.14"]
    assert set(info["jax"]) == set(info["pythons"])
    assert info["source_date_epoch"] == EPOCH
    assert info["compiler"].startswith("GCC: ")
    assert info["architecture"] == "x86_64"
    commit = info["source_commit"]
    assert commit is None or re.fullmatch(r"[0-9a-f]{40}(-modified)?", commit)
    assert str(ROOT) not in text


def test_artifacts_json_names_the_tarball(tarball: Path) -> None:
    listing = json.loads((tarball.parent / "artifacts.json").read_text())
    (entry,) = [one for one in listing["artifacts"] if one["kind"] == "tarball"]
    content = tarball.read_bytes()
    assert entry["name"] == tarball.name == tarball_name(find_release("24.10"))
    assert entry["name"] == f"tritonserver-jax-{__version__}-triton24.10-linux-x86_64.tar.gz"
    assert entry["size"] == len(content)
    assert entry["sha256"] == hashlib.sha256(content).hexdigest()


def test_a_release_of_unknown_api_level_is_packed_as_unknown(
    libraries: Sequence[Path], wheel: Path, tmp_path: Path
) -> None:
    release = find_release("26.08")
    made = package(
        release, libraries=libraries, wheel=wheel, output=tmp_path, source_date_epoch=EPOCH
    )
    with tarfile.open(made) as archive:
        member = archive.extractfile("jax/BUILD_INFO.json")
        assert member is not None
        info = json.loads(member.read())
    assert info["release"] == "26.08"
    assert info["backend_api_of_release"] is None


def test_an_older_tarball_does_not_stay_beside_the_new_one(
    libraries: Sequence[Path], wheel: Path, tmp_path: Path
) -> None:
    old = "tritonserver-jax-0.0.1-triton24.10-linux-x86_64.tar.gz"
    for name in (old, f"{old}.cdx.json", "SHA256SUMS.sig", "provenance.intoto.jsonl"):
        (tmp_path / name).write_bytes(b"old")
    release = find_release("24.10")
    made = package(
        release, libraries=libraries, wheel=wheel, output=tmp_path, source_date_epoch=EPOCH
    )
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        *("SHA256SUMS", "artifacts.json", "provenance.json", made.name, f"{made.name}.cdx.json")
    ]


def test_what_is_not_fit_to_be_shipped_is_refused(
    libraries: Sequence[Path], wheel: Path, tmp_path: Path
) -> None:
    release = find_release("24.10")

    def refused(libraries: Sequence[Path], wheel: Path, said: str) -> None:
        with pytest.raises(PackageError, match=said):
            package(
                release,
                libraries=libraries,
                wheel=wheel,
                output=tmp_path / "out",
                source_date_epoch=EPOCH,
            )
        assert not (tmp_path / "out").exists()

    other = tmp_path / "tritonserver_jax-9.9.9-py3-none-any.whl"
    shutil.copy(wheel, other)
    refused(libraries, other, "wheel: expected tritonserver_jax-.*got tritonserver_jax-9")
    refused(libraries[1:], wheel, r"expected libtriton_jax\.so among them, got ")
    absent = tmp_path / "absent" / "libtriton_jax.so"
    refused([absent], wheel, "absent/libtriton_jax.so: cannot be read")
    text = tmp_path / "libtriton_jax.so"
    text.write_text("not a library")
    refused([text], wheel, "expected a 64-bit x86_64 ELF library")
    text.write_bytes(libraries[0].read_bytes() + str(ROOT / "backend").encode())
    refused([text], wheel, "holds the path of the checkout")
