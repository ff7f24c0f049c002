# SPDX-License-Identifier: Apache-2.0
"""Testing what was built elsewhere: a tarball or a library takes the place of the artifacts."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from ci.integration import artifacts_of
from ci.package import tarball_name
from tritonserver_jax.releases import find_release

RELEASES = ("23.10", "24.10")


def library_of(tarball: Path, name: str) -> bytes:
    with tarfile.open(tarball) as archive:
        member = archive.extractfile(f"jax/lib/{name}")
        assert member is not None
        return member.read()


@pytest.mark.parametrize("kind", ["tarball", "folder", "library"])
def test_what_is_given_is_what_is_tested(tarball: Path, tmp_path: Path, kind: str) -> None:
    given = tarball.parent if kind == "folder" else tarball
    if kind == "library":
        for name in ("libtriton_jax.so", "libtriton_jax_python.so"):
            (tmp_path / name).write_bytes(library_of(tarball, name))
        given = tmp_path / "libtriton_jax.so"
    with artifacts_of(given, RELEASES) as dist:
        for name in RELEASES:
            made = dist / name / tarball_name(find_release(name))
            for library in ("libtriton_jax.so", "libtriton_jax_python.so"):
                assert library_of(made, library) == library_of(tarball, library)
    assert not dist.exists()
