# SPDX-License-Identifier: Apache-2.0
"""Through a registry and back: what is pulled by its digest is what was built."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from ci import images, toolchain
from ci.image_plan import ImagePlan
from ci.toolchain import Requirement
from tests.support.containers import running

pytestmark = [pytest.mark.integration, pytest.mark.thorough, pytest.mark.timeout(1800)]

CONFIG = """\
version: 0.1
storage:
  filesystem:
    rootdirectory: {folder}
http:
  addr: 127.0.0.1:{port}
"""


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[str]:
    """A registry on this machine."""
    toolchain.ensure(
        [Requirement("registry", "any", "docker-registry", lambda: shutil.which("docker-registry"))]
    )
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    config = tmp_path / "registry.yml"
    config.write_text(CONFIG.format(folder=tmp_path / "registry", port=port))
    with (tmp_path / "registry.log").open("wb") as log:
        process = subprocess.Popen(
            ["docker-registry", "serve", str(config)], stdout=log, stderr=subprocess.STDOUT
        )
    try:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def test_what_is_pulled_by_digest_is_what_was_pushed(
    engine: docker.DockerClient, image: str, plan: ImagePlan, registry: str, models: Path
) -> None:
    repository = f"{registry}/team/tritonserver-jax"
    built = engine.images.get(image)
    digest = images.push(engine, image, repository, plan.tags)
    for tag in plan.tags:
        engine.images.remove(f"{repository}:{tag}", noprune=True)
    pulled = images.pull(engine, repository, digest)
    got = engine.images.get(pulled)
    assert got.labels == built.labels
    assert got.id == built.id
    # A second push of the same image changes nothing.
    assert images.push(engine, image, repository, plan.tags) == digest
    with running(engine, pulled, models) as server:
        server.wait_health()
        assert server.stop() == 0
    for name in (pulled, *(f"{repository}:{tag}" for tag in plan.tags)):
        engine.images.remove(name, noprune=True)
