# SPDX-License-Identifier: Apache-2.0
"""What an operator does with an image: adds the backend to another, watches it, writes its bill."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import tarfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest
import yaml

from ci import images, toolchain
from ci.artifacts import DIST
from ci.image_plan import DOCKER, ImagePlan
from ci.monitoring.files import CONFIG, RULES
from ci.monitoring.programs import program_of
from ci.toolchain import Requirement
from tests.support.containers import HTTP, running
from tritonserver_jax import __version__
from tritonserver_jax.artifacts.layout import tarball_name

pytestmark = [pytest.mark.integration, pytest.mark.thorough, pytest.mark.timeout(1800)]

DOCS = (DOCKER.parent.parent / "docs" / "images.md").read_text(encoding="utf-8")


def dockerfile_of(title: str) -> str:
    """The Dockerfile in a section of the documentation."""
    section = DOCS[DOCS.index(f"## {title}") :]
    return section.split("```dockerfile\n", 1)[1].split("```", 1)[0]


def build_context(files: dict[str, bytes]) -> io.BytesIO:
    """A tar file that an engine builds from."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    buffer.seek(0)
    return buffer


@pytest.fixture
def built(engine: docker.DockerClient) -> Iterator[Any]:
    """Builds an image that goes away afterwards, by the builder that all engines have."""
    made: list[str] = []

    def build(files: dict[str, bytes], **arguments: str) -> str:
        image, _ = engine.images.build(
            fileobj=build_context(files), custom_context=True, buildargs=arguments, rm=True
        )
        made.append(str(image.id))
        return made[-1]

    yield build
    for identifier in made:
        engine.images.remove(identifier, force=True)


def test_the_backend_is_copied_from_our_image_into_another(
    engine: docker.DockerClient, image: str, plan: ImagePlan, built: Any, models: Path
) -> None:
    text = dockerfile_of("Into an image that you have").replace("tritonserver-jax:24.10", image)
    text = text.replace("nvcr.io/nvidia/tritonserver:24.10-py3", plan.base_image)
    other = built({"Dockerfile": text.encode()})
    with running(
        engine, other, models, command=["tritonserver", "--model-repository=/models"]
    ) as s:
        deadline = time.monotonic() + 120
        while s.run(f"{DOCKER_BACKEND}/scripts/health_check.py")[0] != 0:
            assert time.monotonic() < deadline, s.log()
            time.sleep(1)
        assert s.stop() == 0


DOCKER_BACKEND = "/opt/tritonserver/backends/jax"


def test_the_tarball_is_installed_into_another_image(
    engine: docker.DockerClient, plan: ImagePlan, built: Any, models: Path
) -> None:
    name = tarball_name(__version__, plan.release.release)
    text = dockerfile_of("From the tarball")
    text = text.replace("nvcr.io/nvidia/tritonserver:25.06-py3", plan.base_image)
    text = text.replace(tarball_name(__version__, "25.06"), name)
    files = {name: (DIST / plan.release.release / name).read_bytes()}
    if (authorities := images.certificates()) is not None:
        # Only this test's machine may need it.
        files["ca.crt"] = authorities.read_bytes()
        text = text.replace("RUN ", "COPY ca.crt /tmp/\nENV PIP_CERT=/tmp/ca.crt\nRUN ", 1)
    other = built({**files, "Dockerfile": text.encode()})
    with running(
        engine, other, models, command=["tritonserver", "--model-repository=/models"]
    ) as s:
        deadline = time.monotonic() + 120
        while s.run(f"{DOCKER_BACKEND}/scripts/health_check.py")[0] != 0:
            assert time.monotonic() < deadline, s.log()
            time.sleep(1)
        assert s.stop() == 0


def test_a_model_that_fails_makes_the_container_unhealthy(
    engine: docker.DockerClient, image: str, tmp_path: Path
) -> None:
    (tmp_path / "wrong" / "1").mkdir(parents=True)
    (tmp_path / "wrong" / "config.pbtxt").write_text('backend: "jax"\n')
    (tmp_path / "wrong" / "1" / "model.py").write_text("raise ValueError('no weights')\n")
    for path in [tmp_path, *list(tmp_path.parents)[:2]]:
        path.chmod(0o755)
    command = ["tritonserver", "--model-repository=/models", "--exit-on-error=false"]
    # The same check, asked more often: long enough for the server to answer, and no longer.
    test = engine.images.get(image).attrs["Config"]["Healthcheck"]["Test"]
    second = 1_000_000_000
    health = {"test": test, "interval": second, "start_period": 20 * second, "retries": 3}
    with running(engine, image, tmp_path, command=command, healthcheck=health) as server:
        server.wait_health("unhealthy")
        assert "no weights" in server.log()


def test_the_bill_of_materials_names_what_is_in_it_and_is_the_same_twice(
    image: str, tmp_path: Path
) -> None:
    for name in ("first", "second"):
        images.write_sbom(image, tmp_path / name)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
    content = json.loads((tmp_path / "first").read_text())
    named = {(part["name"], part.get("version")) for part in content["components"]}
    names = {name for name, _ in named}
    assert ("tritonserver-jax", __version__) in named
    assert {"jax", "jaxlib", "flax", "numpy", "libc6"} <= names


def test_compose_understands_what_is_written(models: Path) -> None:
    def find() -> str | None:
        return shutil.which("docker-compose")

    toolchain.ensure([Requirement("docker-compose", "any", "docker-compose", find)])
    command = ["docker-compose", "--file", str(DOCKER / "compose.yaml"), "config"]
    environment = {**os.environ, "MODELS": str(models)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"{models}:/models:ro" in done.stdout


def test_compose_starts_a_server_and_a_prometheus_that_reads_its_metrics(
    engine: docker.DockerClient, image: str, models: Path, built: Any
) -> None:
    """What compose.yaml says, done by the engine's API: compose itself is not on every machine."""
    services = yaml.safe_load((DOCKER / "compose.yaml").read_text())["services"]
    server = services["tritonserver"]
    assert set(server["volumes"][0].split(":")) >= {"/models", "ro"}
    network = engine.networks.create("tritonserver-jax-test")
    program = Path(program_of("prometheus", "prometheus"))
    try:
        options = {
            "command": server["command"],
            "read_only": server["read_only"],
            "tmpfs": dict.fromkeys(server["tmpfs"], ""),
            "cap_drop": server["cap_drop"],
            "security_opt": server["security_opt"],
            "shm_size": server["shm_size"],
            "user": "1000:1000",
            "network": network.name,
            "name": "tritonserver",
        }
        with running(engine, image, models, **options) as triton:
            triton.wait_health()
            volumes = {
                str(program): {"bind": "/prometheus-bin", "mode": "ro"},
                **{
                    str(path): {"bind": f"/etc/prometheus/{path.name}", "mode": "ro"}
                    for path in (CONFIG, RULES)
                },
            }
            command = ["/prometheus-bin", *services["prometheus"]["command"]]
            # The binary of Debian, in the system that it was made for: the stand-in's.
            with running(
                engine,
                image,
                command=command,
                volumes=volumes,
                network=network.name,
                ports={"9090/tcp": ("127.0.0.1", None)},
                tmpfs={"/prometheus": "mode=1777"},
                read_only=True,
            ) as prometheus:
                address = prometheus.address("9090/tcp")
                query = f"http://{address}/api/v1/query?query=nv_inference_request_success"
                deadline = time.monotonic() + 60
                found: list[Any] = []
                while not found:
                    assert time.monotonic() < deadline, prometheus.log()
                    time.sleep(1)
                    try:
                        with urllib.request.urlopen(query, timeout=5) as answer:
                            found = json.load(answer)["data"]["result"]
                    except OSError:
                        continue
                assert {one["metric"]["model"] for one in found} == {"digits"}
            assert HTTP in triton.container.attrs["NetworkSettings"]["Ports"]
            assert triton.stop() == 0
    finally:
        network.remove()
