# SPDX-License-Identifier: Apache-2.0
"""The same image by another builder and by another build; and what engineers build in."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from ci import images
from ci.artifacts import DIST
from ci.base_image import make_base_image, stand_in_name
from ci.image_plan import ImagePlan
from ci.process import ROOT, run
from tests.support.containers import SOMEBODY, running
from tritonserver_jax import __version__
from tritonserver_jax.artifacts.layout import tarball_name

pytestmark = [pytest.mark.integration, pytest.mark.thorough, pytest.mark.timeout(1800)]


@pytest.fixture
def name(engine: docker.DockerClient) -> Iterator[str]:
    """A name for an image that goes away afterwards."""
    name = f"tritonserver-jax-test:{uuid.uuid4().hex[:8]}"
    yield name
    for image in engine.images.list(name=name):
        engine.images.remove(str(image.id), force=True)


def test_two_builds_have_the_same_layers(
    engine: docker.DockerClient, image: str, plan: ImagePlan, name: str
) -> None:
    again = images.build(plan, tags=[name], cache=False)
    first, second = (engine.images.get(one).attrs["RootFS"]["Layers"] for one in (image, again))
    assert first == second


def test_buildah_builds_an_image_that_serves(
    engine: docker.DockerClient, plan: ImagePlan, models: Path, tmp_path: Path, name: str
) -> None:
    images.build_tools("buildah")
    run(["buildah", "pull", "--quiet", f"docker-archive:{make_base_image(plan.release)}"])
    base = stand_in_name(plan.release)
    ours = plan.on(f"localhost/{base}", python=plan.python_minor, digest=plan.base_digest)
    images.build(ours, builder="buildah", tags=[name])
    try:
        archive = tmp_path / "image.tar"
        run(["buildah", "push", "--quiet", name, f"docker-archive:{archive}:{name}"])
    finally:
        run(["buildah", "rmi", "--force", name, f"localhost/{base}"])
    with archive.open("rb") as file:
        engine.images.load(file)
    config = engine.images.get(name).attrs["Config"]
    assert config["User"] == "triton-server"
    assert config["Healthcheck"]["Test"][1].endswith("/health_check.py")
    options = {"user": SOMEBODY, "read_only": True, "tmpfs": {"/tmp": ""}}
    with running(engine, name, models, **options) as server:
        server.wait_health()
        assert server.stop() == 0


def test_the_artifact_is_compiled_in_the_image_of_its_release(
    engine: docker.DockerClient, plan: ImagePlan, tmp_path: Path
) -> None:
    images.build_artifacts(plan, tmp_path)
    tarball = tmp_path / plan.release.release / tarball_name(__version__, plan.release.release)
    assert tarball.is_file()
    listed = {path.name for path in (DIST / plan.release.release).iterdir()}
    assert {path.name for path in tarball.parent.iterdir()} == listed


def test_engineers_build_in_an_image_with_the_tools(
    engine: docker.DockerClient, plan: ImagePlan, name: str, tmp_path: Path
) -> None:
    images.build(plan, target="build-environment", tags=[name])
    # What is in the checkout, without what a build leaves there.
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    source = tmp_path / "source"
    for path in listed.stdout.decode().split("\0")[:-1]:
        if (ROOT / path).is_file():
            (source / path).parent.mkdir(parents=True, exist_ok=True)
            (source / path).write_bytes((ROOT / path).read_bytes())
            (source / path).chmod((ROOT / path).stat().st_mode)
    variables, volumes = {}, {str(source): {"bind": "/workspace", "mode": "rw"}}
    if (authorities := images.certificates()) is not None:
        volumes[str(authorities)] = {"bind": "/tmp/ca.crt", "mode": "ro"}
        variables = {"PIP_CERT": "/tmp/ca.crt", "SSL_CERT_FILE": "/tmp/ca.crt"}
    output = engine.containers.run(
        name,
        ["./ci/nox", "-s", f"build-{plan.release.release}"],
        remove=True,
        stderr=True,
        volumes=volumes,
        environment=variables,
    ).decode("utf-8", "replace")
    assert f"Session build-{plan.release.release} was successful" in output
    assert "TRITON_SDK_DIR" in output or "triton_c_api_check" in output, output
