# SPDX-License-Identifier: Apache-2.0
"""A version of small parts, and real services to publish it to."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
import tenacity

from ci import selection
from ci.docker_engine import docker_engine
from ci.local_services import LocalServices, local_services
from tests.support.release import CHANGELOG, COMMIT, Factory, Images, Job, sign
from tritonserver_jax import __version__
from tritonserver_jax.releases import DEFAULT_RELEASE


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask again at once."""
    monkeypatch.setattr("ci.deploy.retries.WAIT", tenacity.wait_none())


@pytest.fixture(autouse=True)
def a_clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where these tests run in a pipeline, its variables are none of theirs."""
    for name in list(os.environ):
        if name.startswith(("CI_", "TWINE_", "TRITON_", "TRITONSERVER_JAX_SIGN")):
            monkeypatch.delenv(name)
    monkeypatch.delenv("TRITONSERVER_JAX_PUBLIC_KEY_FILE", raising=False)


@pytest.fixture(scope="session")
def engine() -> Iterator[docker.DockerClient]:
    """A Docker engine, started when there is none; without one these tests fail."""
    with docker_engine() as client:
        yield client


@pytest.fixture(scope="session")
def factory(tmp_path_factory: pytest.TempPathFactory) -> Factory:
    return Factory(tmp_path_factory.mktemp("parts"))


@pytest.fixture(scope="session")
def made(factory: Factory, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Artifacts that nobody has signed; to be copied."""
    return factory.make(tmp_path_factory.mktemp("made") / "dist")


@pytest.fixture
def dist(made: Path, tmp_path: Path) -> Path:
    """A copy of them."""
    return Path(shutil.copytree(made, tmp_path / "dist"))


@pytest.fixture
def images(engine: docker.DockerClient, monkeypatch: pytest.MonkeyPatch) -> Iterator[Images]:
    made = Images(engine, f"deploy-test-{uuid.uuid4().hex[:8]}")
    monkeypatch.setattr("ci.deploy.images.NAME", made.name)
    yield made
    made.remove()


@pytest.fixture
def services(tmp_path: Path) -> Iterator[LocalServices]:
    """Services to which nothing was published."""
    with local_services(tmp_path / "services") as running:
        yield running


@pytest.fixture
def job(
    dist: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Job:
    """A job that has no passwords, and finds nothing to complain about."""
    monkeypatch.setattr("ci.deploy.__main__.source_commit", lambda: COMMIT)
    monkeypatch.setenv("CI_COMMIT_TAG", f"v{__version__}")
    monkeypatch.setenv(selection.RELEASES, DEFAULT_RELEASE)
    monkeypatch.setenv(selection.VARIANTS, "cpu")
    changelog = tmp_path / "CHANGELOG.md"
    changelog.write_text(CHANGELOG)
    return Job(dist, changelog, monkeypatch, capfd)


@pytest.fixture
def publishing(job: Job, services: LocalServices, images: Images) -> Job:
    """A job that may publish: it has signed artifacts, an image, and the passwords."""
    for name, value in services.variables.items():
        job.set(name, value)
    sign(job.dist, services)
    for image in job.plan().images:
        images.make(image)
    return job
