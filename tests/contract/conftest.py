# SPDX-License-Identifier: Apache-2.0
"""The packaged libraries."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from ci.package import tarball_name
from tests.support.api_host import host
from tritonserver_jax.releases import DEFAULT_RELEASE, find_release


@pytest.fixture(scope="session")
def libraries(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the libraries, as they are in the tarball."""
    dist: Path = pytestconfig.getoption("--backend-dist")
    folder = tmp_path_factory.mktemp("libraries")
    with tarfile.open(dist / DEFAULT_RELEASE / tarball_name(find_release(DEFAULT_RELEASE))) as tar:
        for name in ("libtriton_jax.so", "libtriton_jax_python.so"):
            member = tar.extractfile(f"jax/lib/{name}")
            assert member is not None
            (folder / name).write_bytes(member.read())
    return folder


@pytest.fixture(scope="session")
def api_host(libraries: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A process with the C API of a server; see `tests.support.api_host`."""
    return host(libraries / "libtriton_jax.so", tmp_path_factory.mktemp("host"))
