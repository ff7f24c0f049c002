# SPDX-License-Identifier: Apache-2.0
"""An engine, and an image made from the artifact under test, on the stand-in of its base."""

from __future__ import annotations

import importlib
import uuid
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from ci import images
from ci.docker_engine import docker_engine
from ci.image_plan import CPU, NAME, ImagePlan
from tritonserver_jax.releases import find_release

train = importlib.import_module("examples.digits.train")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what takes minutes, unless it is asked for: the session `images` does."""
    if config.getoption("--thorough"):
        return
    left_out = [item for item in items if item.get_closest_marker("thorough")]
    if left_out:
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="session")
def engine() -> Iterator[docker.DockerClient]:
    """A Docker engine, started when there is none; without one these tests fail."""
    with docker_engine() as client:
        yield client


@pytest.fixture(scope="session")
def plan(engine: docker.DockerClient, pytestconfig: pytest.Config) -> ImagePlan:
    """The `cpu` image of the release under test, on the stand-in of its base."""
    release = find_release(pytestconfig.getoption("--release"))
    with images.prepared(engine, release, CPU, stand_in=True) as prepared:
        return prepared


@pytest.fixture(scope="session")
def image(engine: docker.DockerClient, plan: ImagePlan) -> Iterator[str]:
    """The image, built by BuildKit from `dist/<release>`.

    By a name of its own: another run on the same engine takes those that it gets as well.
    """
    name = f"{NAME}:test-{uuid.uuid4().hex}"
    yield images.build(plan, tags=[name, *(f"{NAME}:{tag}" for tag in plan.tags)])
    engine.images.remove(name, noprune=True)


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the trained `digits`, which anybody can read."""
    repository = tmp_path_factory.mktemp("models")
    assert train.main(["--output", str(repository / "digits")]) == 0
    for path in [repository, *repository.rglob("*"), *list(repository.parents)[:2]]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    return repository
