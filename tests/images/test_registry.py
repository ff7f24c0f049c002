# SPDX-License-Identifier: Apache-2.0
"""Through a registry and back: what is pulled by its digest is what was built."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from ci import images
from ci.image_plan import ImagePlan
from ci.local_services import LocalServices, local_services
from tests.support.containers import running

pytestmark = [pytest.mark.integration, pytest.mark.thorough, pytest.mark.timeout(1800)]


@pytest.fixture
def services(tmp_path: Path) -> Iterator[LocalServices]:
    """Services on this machine, a registry with a password among them."""
    with local_services(tmp_path / "services") as services:
        yield services


def test_what_is_pulled_by_digest_is_what_was_pushed(
    engine: docker.DockerClient, image: str, plan: ImagePlan, services: LocalServices, models: Path
) -> None:
    repository = services.variables["CI_REGISTRY_IMAGE"]
    password = services.registry_password
    built = engine.images.get(image)
    digest = images.push(engine, image, repository, plan.tags, password=password)
    for tag in plan.tags:
        engine.images.remove(f"{repository}:{tag}", noprune=True)
    pulled = images.pull(engine, repository, digest, password=password)
    got = engine.images.get(pulled)
    assert got.labels == built.labels
    assert got.id == built.id
    # A second push of the same image changes nothing.
    assert images.push(engine, image, repository, plan.tags, password=password) == digest
    with running(engine, pulled, models) as server:
        server.wait_health()
        assert server.stop() == 0
    for name in (pulled, *(f"{repository}:{tag}" for tag in plan.tags)):
        engine.images.remove(name, noprune=True)
