# SPDX-License-Identifier: Apache-2.0
"""Containers of our images, controlled by the engine's API."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import numpy as np
import tritonclient.http as triton_http
from docker.models.containers import Container

#: For JAX to be imported and the models to be compiled, and for Docker to ask a second time.
HEALTHY_SECONDS = 180
STOP_SECONDS = 60
_LOG_LINES = 30
HTTP = "8000/tcp"
#: No user of the image, of no group of it: what Kubernetes and OpenShift like to choose.
SOMEBODY = "12345:54321"


@dataclass(frozen=True)
class Running:
    """A container that runs."""

    container: Container

    def state(self) -> Mapping[str, Any]:
        """What the engine says of it now."""
        self.container.reload()
        state: Mapping[str, Any] = self.container.attrs["State"]
        return state

    def address(self, port: str = HTTP) -> str:
        """Where a port of it is reached."""
        self.container.reload()
        bound = self.container.attrs["NetworkSettings"]["Ports"][port][0]
        return f"127.0.0.1:{bound['HostPort']}"

    def log(self) -> str:
        """The end of what it has written."""
        text = self.container.logs(tail=_LOG_LINES).decode("utf-8", "replace")
        checks = self.state().get("Health", {}).get("Log") or []
        said = "".join(f"health check: {check['Output']}" for check in checks[-1:])
        return f"{text}\n{said}"

    def wait_health(self, wanted: str = "healthy", seconds: float = HEALTHY_SECONDS) -> None:
        """Wait until the health check of the image says so."""
        deadline = time.monotonic() + seconds
        while (state := self.state())["Health"]["Status"] != wanted:
            assert state["Running"], f"ended with {state['ExitCode']}:\n{self.log()}"
            assert time.monotonic() < deadline, (
                f"expected {wanted} within {seconds:g} s, got {state['Health']['Status']}:\n"
                + self.log()
            )
            time.sleep(0.5)

    def infer(self, model: str, inputs: Mapping[str, np.ndarray[Any, Any]], output: str) -> Any:
        """Ask a model that takes FP32."""
        with triton_http.InferenceServerClient(self.address(), network_timeout=60) as client:
            wanted = []
            for name, value in inputs.items():
                wanted.append(triton_http.InferInput(name, value.shape, "FP32"))
                wanted[-1].set_data_from_numpy(value)
            return client.infer(model, wanted).as_numpy(output)

    def run(self, *command: str) -> tuple[int, str]:
        """Run a program in it; its exit status and what it said."""
        code, output = self.container.exec_run(list(command))
        assert code is not None
        assert isinstance(output, bytes)
        return code, output.decode("utf-8", "replace")

    def stop(self) -> int:
        """Stop it as `docker stop` does; the exit status of the server."""
        self.container.stop(timeout=STOP_SECONDS)
        return int(self.container.wait()["StatusCode"])


@contextlib.contextmanager
def running(
    client: docker.DockerClient, image: str, models: Path | None = None, **options: Any
) -> Iterator[Running]:
    """Run an image for a while, with a model repository that it can only read."""
    volumes = {} if models is None else {str(models): {"bind": "/models", "mode": "ro"}}
    given = {"ports": {HTTP: ("127.0.0.1", None)}, "volumes": volumes, **options}
    container = client.containers.run(image, detach=True, **given)
    try:
        yield Running(container)
    finally:
        container.remove(force=True, v=True)


def program(client: docker.DockerClient, image: str, *command: str, **options: Any) -> str:
    """Run a program of an image, and return what it prints; it has to end well."""
    output = client.containers.run(image, list(command), remove=True, stderr=True, **options)
    return str(output.decode("utf-8", "replace"))
