# SPDX-License-Identifier: Apache-2.0
"""Artifacts carry the wheel that they are given, byte for byte, or none is made."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from ci import artifacts
from ci.artifacts import make_artifacts
from ci.build import Libraries
from ci.package import PackageError
from tests.support.artifacts import flip
from tritonserver_jax import __version__
from tritonserver_jax.artifacts.layout import wheel_name
from tritonserver_jax.releases import DEFAULT_RELEASE


def test_the_wheel_is_the_given_one(
    python_dist: Path, libraries: Sequence[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is packed beside the wheel does not matter, and a minute of compiling would.
    monkeypatch.setattr(artifacts, "build_backend", lambda: Libraries(*libraries))
    monkeypatch.setattr(artifacts, "check_libraries", lambda *_: None)
    made = make_artifacts([DEFAULT_RELEASE], output=tmp_path, python_dist=python_dist)
    name = wheel_name(__version__)
    with tarfile.open(made[DEFAULT_RELEASE]) as archive:
        member = archive.extractfile(f"jax/wheel/{name}")
        assert member is not None
        content = member.read()
    assert (
        hashlib.sha256(content).digest()
        == hashlib.sha256((python_dist / name).read_bytes()).digest()
    )


def test_a_folder_that_is_not_whole_is_refused(python_dist: Path, tmp_path: Path) -> None:
    with pytest.raises(PackageError, match=r"--wheel .*absent: .*package-python"):
        make_artifacts([DEFAULT_RELEASE], output=tmp_path, python_dist=tmp_path / "absent")
    wheel = python_dist / wheel_name(__version__)
    before = wheel.read_bytes()
    flip(wheel, 1000)
    try:
        with pytest.raises(PackageError, match=r"expected SHA-256 .*package-python"):
            make_artifacts([DEFAULT_RELEASE], output=tmp_path, python_dist=python_dist)
    finally:
        wheel.write_bytes(before)
