# SPDX-License-Identifier: Apache-2.0
"""A server as the chart describes it, run by Docker, and ended as a kubelet ends a pod."""

from __future__ import annotations

import contextlib
import http.client
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import docker
import requests
from docker.models.containers import Container

from ci.docker_engine import connect

__all__ = ["Ended", "Pod", "PodError", "Probe", "ServerSpec", "read_spec"]

_UNITS: Final = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}
_SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108  where it is in the container
_MODELS: Final = "models"


class PodError(RuntimeError):
    """The chart says what this does not understand, or a server did not do what it should."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A question over HTTP.

    Attributes:
        path: What is asked for.
        port: The port in the container.
        period: Seconds between two questions.
        failures: How many wrong answers in a row count.
    """

    path: str
    port: int
    period: float
    failures: int


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """What the rendered chart says of a server.

    Attributes:
        arguments: For the image's entrypoint.
        startup: Until this has been answered, nothing else is asked.
        readiness: Whether it is to get requests.
        pre_stop: The command that is run in the container before it is told to end.
        grace_seconds: How long that and its end may take.
        options: How Docker is to run it.
        models_path: Where the model repository is mounted.
    """

    arguments: tuple[str, ...]
    startup: Probe
    readiness: Probe
    pre_stop: tuple[str, ...]
    grace_seconds: int
    options: Mapping[str, Any]
    models_path: str


def read_spec(objects: Iterable[Mapping[str, Any]]) -> ServerSpec:
    """Find the server in what the chart was rendered to.

    Args:
        objects: All that was rendered.

    Raises:
        PodError: There is none, or it is described in a way that is not understood here.
    """
    deployments = [one for one in objects if one["kind"] == "Deployment"]
    if len(deployments) != 1:
        raise PodError(f"expected one Deployment of the chart, got {len(deployments)}")
    pod = deployments[0]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    try:
        return ServerSpec(
            arguments=tuple(container["args"]),
            startup=_probe(container, "startupProbe"),
            readiness=_probe(container, "readinessProbe"),
            pre_stop=tuple(container["lifecycle"]["preStop"]["exec"]["command"]),
            grace_seconds=int(pod["terminationGracePeriodSeconds"]),
            options=_options(pod, container),
            models_path=_mounts(container)[_MODELS],
        )
    except KeyError as error:
        raise PodError(f"the chart's server: expected {error.args[0]}, found none") from error


def _probe(container: Mapping[str, Any], name: str) -> Probe:
    probe = container[name]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    return Probe(
        probe["httpGet"]["path"],
        ports[probe["httpGet"]["port"]],
        probe["periodSeconds"],
        probe["failureThreshold"],
    )


def _mounts(container: Mapping[str, Any]) -> dict[str, str]:
    return {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}


def _options(pod: Mapping[str, Any], container: Mapping[str, Any]) -> dict[str, Any]:
    """What Docker calls the pod's security and its empty folders."""
    whole, own = pod["securityContext"], container["securityContext"]
    mounts = _mounts(container)
    empty = {
        mounts[volume["name"]]: _bytes(volume["emptyDir"]["sizeLimit"])
        for volume in pod["volumes"]
        if "emptyDir" in volume
    }
    shared = empty.pop(_SHARED_MEMORY)
    return {
        "user": f"{whole['runAsUser']}:{whole['runAsGroup']}",
        "read_only": own["readOnlyRootFilesystem"],
        "cap_drop": own["capabilities"]["drop"],
        "security_opt": [] if own["allowPrivilegeEscalation"] else ["no-new-privileges:true"],
        "shm_size": shared,
        "tmpfs": {path: f"size={size},mode=1777" for path, size in empty.items()},
    }


def _bytes(quantity: str) -> int:
    match = re.fullmatch(r"(\d+)(Ki|Mi|Gi|Ti)", quantity)
    if match is None:
        raise PodError(f"expected a size like 256Mi, got {quantity!r}")
    return int(match[1]) * _UNITS[match[2]]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a server ended.

    Attributes:
        status: Its exit status.
        seconds: From the beginning of the preStop hook to the end of the process.
        killed: Whether the grace period was over, and it had to be killed.
    """

    status: int
    seconds: float
    killed: bool


class Pod:
    """A server, from its start to its end.

    Args:
        client: Of the engine.
        image: The image.
        spec: What the chart says.
        models: The model repository on this machine.
    """

    def __init__(
        self, client: docker.DockerClient, image: str, spec: ServerSpec, models: Path
    ) -> None:
        volumes = {str(models): {"bind": spec.models_path, "mode": "ro"}}
        self.spec = spec
        self._container: Container = client.containers.run(
            image, list(spec.arguments), detach=True, volumes=volumes, **spec.options
        )
        self._container.reload()
        networks = self._container.attrs["NetworkSettings"]["Networks"]
        self.address = str(next(iter(networks.values()))["IPAddress"])

    def wait_ready(self) -> float:
        """Wait as a kubelet does, and return how many seconds it took.

        Raises:
            PodError: The server ended, or the startup probe's patience did.
        """
        begin = time.monotonic()
        for probe in (self.spec.startup, self.spec.readiness):
            left = probe.failures
            while not self._answers(probe):
                left -= 1
                if left <= 0 and probe is self.spec.startup:
                    raise PodError(f"the server has not started:\n{self.log()}")
                self._container.reload()
                if self._container.status != "running":
                    raise PodError(f"the server ended while it started:\n{self.log()}")
                # A cluster asks once a period; nothing is shown by waiting longer than need be.
                time.sleep(min(probe.period, 0.5))
        return time.monotonic() - begin

    def _answers(self, probe: Probe) -> bool:
        connection = http.client.HTTPConnection(self.address, probe.port, timeout=5)
        with contextlib.closing(connection):
            try:
                connection.request("GET", probe.path)
                return connection.getresponse().status == 200
            except (OSError, http.client.HTTPException):
                return False

    def delete(self, *, pre_stop: bool = True) -> Ended:
        """End it as a kubelet does: the preStop hook, SIGTERM, and SIGKILL when time is up.

        May be called from another thread than the one that started it.

        Args:
            pre_stop: Whether to run the hook.
        """
        begin = time.monotonic()
        with contextlib.closing(connect()) as client:
            container = client.containers.get(str(self._container.id))
            if pre_stop:
                status, said = container.exec_run(list(self.spec.pre_stop))
                if status != 0:
                    raise PodError(f"preStop ended with {status}: {said!r}")
            container.kill("SIGTERM")
            left = self.spec.grace_seconds - (time.monotonic() - begin)
            killed = False
            try:
                result = container.wait(timeout=max(left, 1))
            except requests.exceptions.RequestException:
                killed = True
                container.kill("SIGKILL")
                result = container.wait()
        return Ended(int(result["StatusCode"]), time.monotonic() - begin, killed)

    def log(self) -> str:
        """The end of what it has written."""
        return str(self._container.logs(tail=40).decode("utf-8", "replace"))

    def remove(self) -> None:
        """Take it away, whatever it is doing."""
        self._container.remove(force=True, v=True)
