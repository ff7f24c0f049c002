# SPDX-License-Identifier: Apache-2.0
"""An artifact of small parts: packing, installing and checking do not depend on what is packed."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from ci.build import build_sdist, build_wheel
from ci.package import package
from ci.python_artifacts import package_python
from tests.support.artifacts import compile_library
from tritonserver_jax.releases import DEFAULT_RELEASE, find_release

EPOCH = 1_700_000_000


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("libraries")
    names = ("libtriton_jax.so", "libtriton_jax_python.so")
    return [compile_library(folder / name) for name in names]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel") / "out")


@pytest.fixture(scope="session")
def tarball(
    tmp_path_factory: pytest.TempPathFactory, libraries: Sequence[Path], wheel: Path
) -> Path:
    return package(
        find_release(DEFAULT_RELEASE),
        libraries=libraries,
        wheel=wheel,
        output=tmp_path_factory.mktemp("dist") / DEFAULT_RELEASE,
        source_date_epoch=EPOCH,
    )


@pytest.fixture(scope="session")
def python_dist(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """The folder with the wheel and the sdist."""
    sdist = build_sdist(tmp_path_factory.mktemp("sdist") / "out")
    output = tmp_path_factory.mktemp("dist") / "python"
    package_python(wheel, sdist, output=output, source_date_epoch=EPOCH)
    return output


@pytest.fixture
def unpacked(tmp_path: Path, tarball: Path) -> Path:
    """The folder ``jax`` of a tarball that was unpacked as the README says."""
    folder = tmp_path / "unpacked"
    folder.mkdir()
    subprocess.run(["tar", "-xzf", tarball, "-C", folder], check=True)
    return folder / "jax"


@pytest.fixture
def backends(tmp_path: Path) -> Path:
    """A server's backend directory."""
    folder = tmp_path / "tritonserver" / "backends"
    folder.mkdir(parents=True)
    return folder
