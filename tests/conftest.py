# SPDX-License-Identifier: Apache-2.0
"""Options and fixtures of all tests."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.support.backend import LOAD_TIMEOUT, Backend, installed_backend
from tests.support.gpu import gpus
from tests.support.models import LINEAR, write_model
from tritonserver_jax.releases import DEFAULT_RELEASE
from tritonserver_jax.server import TritonServer

ROOT = Path(__file__).resolve().parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    """What to test."""
    parser.addoption(
        "--backend-dist",
        type=Path,
        default=ROOT / "dist",
        help="folder with the artifacts, one folder for each release (default: dist)",
    )
    parser.addoption(
        "--release",
        default=DEFAULT_RELEASE,
        help=f"release to run the integration tests on (default: {DEFAULT_RELEASE})",
    )
    parser.addoption(
        "--environment",
        type=Path,
        default=None,
        help="Python environment of the backend, made before (default: one is made for this run)",
    )
    parser.addoption(
        "--gpu-environment",
        type=Path,
        default=None,
        help="Python environment of the backend with JAX's GPU plugin, for the tests that need a "
        "GPU (default: the one that is installed with the artifact)",
    )
    parser.addoption(
        "--record-golden",
        type=Path,
        default=None,
        help="folder to write a server's answers to, instead of comparing them: ./ci/nox -s golden",
    )
    parser.addoption(
        "--server-env",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="variable to set for every server that is started; may be repeated",
    )
    parser.addoption(
        "--fuzz-examples",
        type=int,
        help="how many random requests to send per test; other ones at each run",
    )
    parser.addoption(
        "--thorough",
        action="store_true",
        help="run the tests of images that take minutes as well",
    )
    parser.addoption(
        "--soak",
        action="store_true",
        help="run the tests of memory with 200,000 requests and 50 reloads, for some minutes",
    )


@pytest.fixture(scope="session")
def shared_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for all workers of this test run."""
    base = tmp_path_factory.getbasetemp()
    # With pytest-xdist each worker has a folder of its own in one that they share.
    return base.parent if base.name.startswith("popen-") else base


@pytest.fixture(scope="session")
def backend_of(pytestconfig: pytest.Config, shared_directory: Path) -> Callable[[str], Backend]:
    """The installed backend of a release."""
    dist: Path = pytestconfig.getoption("--backend-dist")
    release: str = pytestconfig.getoption("--release")
    environment: Path | None = pytestconfig.getoption("--environment")
    settings: list[str] = pytestconfig.getoption("--server-env")
    variables = dict(setting.split("=", 1) for setting in settings)

    def backend(name: str) -> Backend:
        installed = installed_backend(
            dist.resolve(), name, release, shared_directory, environment=environment
        )
        return dataclasses.replace(installed, variables=variables)

    return backend


@pytest.fixture(scope="session")
def backend(pytestconfig: pytest.Config, backend_of: Callable[[str], Backend]) -> Backend:
    """The installed backend of the release under test."""
    return backend_of(pytestconfig.getoption("--release"))


@pytest.fixture(scope="session")
def gpu_backend(pytestconfig: pytest.Config, backend: Backend) -> Backend:
    """The installed backend with an environment that has a GPU; skips where there is none."""
    given: Path | None = pytestconfig.getoption("--gpu-environment")
    environment = backend.environment if given is None else given.resolve()
    if not gpus(environment):
        pytest.skip(f"JAX has no GPU in {environment}")
    return dataclasses.replace(backend, environment=environment)


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model repository of `server`; each test uses names of its own in it."""
    return tmp_path_factory.mktemp("repository")


@pytest.fixture(scope="session")
def server(backend: Backend, repository: Path) -> Iterator[TritonServer]:
    """One server for many tests, which load their models into it; `bystander` is always there."""
    write_model(
        repository,
        "bystander",
        LINEAR,
        params={"w": np.ones((4, 3), np.float32), "b": np.zeros(3, np.float32)},
    )
    with backend.server(repository, explicit=True) as running:
        running.wait_live(LOAD_TIMEOUT)
        running.load_model("bystander")
        yield running
