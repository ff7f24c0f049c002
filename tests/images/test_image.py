# SPDX-License-Identifier: Apache-2.0
"""An image of ours as an operator gets it: what it says of itself, what is in it, how it serves."""

from __future__ import annotations

import importlib
import json
import os
import re
from pathlib import Path

import docker
import pytest

from ci import images
from ci.build import source_date_epoch
from ci.image_plan import ImagePlan
from ci.process import capture
from ci.provenance import source_commit
from tests.support.containers import SOMEBODY, program, running

data = importlib.import_module("examples.digits.data")
reference = importlib.import_module("examples.digits.reference")

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

BACKEND = "/opt/tritonserver/backends/jax"


def test_it_says_what_it_is(engine: docker.DockerClient, image: str, plan: ImagePlan) -> None:
    attributes = engine.images.get(image).attrs
    config = attributes["Config"]
    base = engine.images.get(plan.base_image).attrs["Config"]
    assert config["Labels"] == plan.labels(source_commit() or "", source_date_epoch())
    assert config["Labels"]["org.opencontainers.image.base.name"] == plan.base_image
    assert config["Labels"]["org.opencontainers.image.base.digest"].startswith("sha256:")
    assert config["User"] == "triton-server"
    assert config["Entrypoint"] == base["Entrypoint"]
    assert config["WorkingDir"] == base["WorkingDir"]
    assert config["Env"] == base["Env"]
    assert config["Healthcheck"]["Test"][1].endswith("/health_check.py")
    # The base's layers as they are, and two of ours at most.
    layers, below = (
        a["RootFS"]["Layers"] for a in (attributes, engine.images.get(plan.base_image).attrs)
    )
    assert layers[: len(below)] == below
    assert len(layers) - len(below) <= 2


def test_it_adds_no_more_than_it_may(
    engine: docker.DockerClient, image: str, plan: ImagePlan
) -> None:
    measured = images.size(engine, image, plan.base_image)
    print(f"{image}: {measured.added / 1e6:.0f} MB added to {measured.base / 1e6:.0f} MB")
    images.check_size(plan, measured)


def local_addresses() -> set[str]:
    """Hosts which this machine's installers are set to, and which nobody else has."""
    settings = [
        capture(["python3", "-m", "pip", "config", "list"]) or "",
        *(value for name, value in os.environ.items() if re.match(r"(PIP|UV)_", name)),
        *(value for name, value in os.environ.items() if name.lower().endswith("_proxy")),
    ]
    hosts = {
        host for text in settings for host in re.findall(r"://(?:[^@/\s']*@)?([^/:\s']+)", text)
    }
    public = {"pypi.org", "files.pythonhosted.org", "localhost", "127.0.0.1", ""}
    return {host for host in hosts - public if "." in host}


def test_it_has_no_tools_and_nothing_of_the_machine_that_built_it(
    engine: docker.DockerClient, image: str, plan: ImagePlan
) -> None:
    tools = "cc c++ g++ gcc cmake ninja strip uv"
    script = (
        f"for name in {tools}; do command -v $name; done; shopt -s nullglob; echo /opt/* /tmp/*"
    )
    found = program(engine, image, "bash", "-c", script).split()
    assert found == ["/opt/nvidia", "/opt/tritonserver"]

    history = json.dumps(engine.images.get(image).history())
    config = json.dumps(engine.images.get(image).attrs)
    for host in local_addresses():
        assert host not in history + config
        searched = ["grep", "--recursive", "--files-with-matches", "--fixed-strings", "--", host]
        script = " ".join([*searched, BACKEND, "|| true"])
        assert program(engine, image, "bash", "-c", script) == ""
    # Build arguments are in the history: what is declared, and no more.
    given = set(re.findall(r"\|\d+((?: \w+=[^ ]*)+) /bin/sh", history))
    names = {pair.split("=")[0] for text in given for pair in text.split()}
    assert names <= {*plan.arguments(), *plan.source_arguments("", 0)}


def test_what_is_installed_is_what_the_tests_used(
    engine: docker.DockerClient, image: str, plan: ImagePlan
) -> None:
    script = f"cd {BACKEND} && sha256sum --check --strict --quiet SHA256SUMS && cat BUILD_INFO.json"
    built = json.loads(program(engine, image, "bash", "-c", script))
    assert built["release"] == plan.release.release
    marker = json.loads(program(engine, image, "cat", f"{BACKEND}/env/.tritonserver-jax.json"))
    assert marker["python"] == plan.python
    assert marker["requirements"] == {}


def test_it_serves_digits_to_anybody_from_a_root_that_is_read_only(
    engine: docker.DockerClient, image: str, models: Path
) -> None:
    held_out = data.held_out()
    expected = reference.predict(models / "digits" / "1", held_out.images[:64])["LOGITS"]
    options = {"user": SOMEBODY, "read_only": True, "tmpfs": {"/tmp": "size=64m"}}
    options |= {"cap_drop": ["ALL"], "security_opt": ["no-new-privileges"]}
    with running(engine, image, models, **options) as server:
        server.wait_health()
        logits = server.infer("digits", {"IMAGE": held_out.images[:64]}, "LOGITS")
        assert abs(logits - expected).max() <= 1e-5
        code, said = server.run(f"{BACKEND}/scripts/health_check.py", "--json")
        assert (code, json.loads(said)["ok"]) == (0, True), said
        changed = [str(entry["Path"]) for entry in server.container.diff() or []]
        assert [path for path in changed if not path.startswith(("/models", "/tmp"))] == []
        assert server.stop() == 0, server.log()
