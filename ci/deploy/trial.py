# SPDX-License-Identifier: Apache-2.0
"""Serves the example `add_sub` from something published, and asks it for an answer."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import docker
from docker.models.containers import Container

from ci.deploy.errors import DeployError
from ci.process import ROOT, run

__all__ = ["ask_add_sub", "try_image"]

_MODEL: Final = "add_sub"
_HTTP, _GRPC = "8000/tcp", "8001/tcp"
#: For the server to import JAX and compile the model on a slow machine.
READY_SECONDS: Final = 300
_STOP_SECONDS: Final = 30
_LOG_LINES: Final = 30


@contextlib.contextmanager
def model_repository() -> Iterator[Path]:
    """Give a model repository with the example, which any user can read."""
    with tempfile.TemporaryDirectory(prefix="tritonserver-jax-") as scratch:
        repository = Path(scratch)
        model = ROOT / "examples" / _MODEL
        shutil.copytree(model, repository / _MODEL, ignore=shutil.ignore_patterns("__pycache__"))
        for path in (repository, *repository.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        yield repository


def ask_add_sub(http: str, grpc: str) -> None:
    """Ask the example by both protocols; its client compares the answers.

    Raises:
        CommandError: An answer is wrong, or there is none.
    """
    client = ROOT / "examples" / _MODEL / "client.py"
    run([sys.executable, client, "--url", http, "--grpc-url", grpc])


def try_image(client: docker.DockerClient, image: str) -> None:
    """Serve the example from an image as an operator does, and ask it.

    Args:
        client: Of an engine that has the image.
        image: Its name.

    Raises:
        DeployError: It does not become healthy, or does not end as it should.
        CommandError: An answer is wrong, or there is none.
    """
    with model_repository() as repository:
        options: dict[str, Any] = {
            # Any port of this machine; the types of docker-py do not know that.
            "ports": {_HTTP: ("127.0.0.1", None), _GRPC: ("127.0.0.1", None)},
            "volumes": {str(repository): {"bind": "/models", "mode": "ro"}},
            "tmpfs": {"/tmp": ""},  # noqa: S108 # in the container
        }
        container = client.containers.run(image, detach=True, read_only=True, **options)
        try:
            _wait_healthy(container, image)
            ask_add_sub(_address(container, _HTTP), _address(container, _GRPC))
            container.stop(timeout=_STOP_SECONDS)
            code = int(container.wait()["StatusCode"])
            if code != 0:
                raise DeployError(f"{image}: expected it to end with 0, got {code}")
        finally:
            container.remove(force=True, v=True)


def _wait_healthy(container: Container, image: str) -> None:
    """Wait until the health check of the image says that server and model are ready."""
    deadline = time.monotonic() + READY_SECONDS
    while True:
        container.reload()
        state = container.attrs["State"]
        if state.get("Health", {}).get("Status") == "healthy":
            return
        if not state["Running"] or time.monotonic() > deadline:
            log = container.logs(tail=_LOG_LINES).decode("utf-8", "replace")
            ended = "" if state["Running"] else f", it ended with {state['ExitCode']}"
            raise DeployError(
                f"{image}: expected a healthy server within {READY_SECONDS} s{ended}; it said:\n"
                f"{log}\nmove its moving tag back: ./ci/nox -s rollback (docs/releasing.md)"
            )
        time.sleep(0.5)


def _address(container: Container, port: str) -> str:
    container.reload()
    bound = container.attrs["NetworkSettings"]["Ports"][port][0]
    return f"127.0.0.1:{bound['HostPort']}"
