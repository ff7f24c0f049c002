# SPDX-License-Identifier: Apache-2.0
"""A Docker engine: the one that answers, else one that is installed and started here.

Images are never skipped for want of an engine. Where there is none and none can be had, the error
says what to do. ``python -m ci.docker_engine`` shows what was found, and starts what is missing.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import docker
from docker.errors import DockerException

from ci import toolchain
from ci.process import CommandError, capture, fail, run
from ci.service import running_service
from ci.toolchain import Requirement, ToolchainError

__all__ = ["EngineError", "buildkit_client", "connect", "docker_engine"]

SOCKET: Final = Path("/var/run/docker.sock")
START_SECONDS: Final = 60
STOP_SECONDS: Final = 30


class EngineError(RuntimeError):
    """There is no Docker engine, and none can be started from here."""


def connect() -> docker.DockerClient:
    """Return a client of the engine that ``$DOCKER_HOST`` names, or of this machine's.

    Raises:
        EngineError: None answers.
    """
    where = os.environ.get("DOCKER_HOST") or f"unix://{SOCKET}"
    try:
        client = docker.from_env(timeout=600)
        client.ping()
    except (DockerException, OSError) as error:
        raise EngineError(f"{where}: expected a Docker engine, got: {error}") from error
    return client


@contextlib.contextmanager
def docker_engine() -> Iterator[docker.DockerClient]:
    """Give an engine for a while; one that was started for this is stopped afterwards.

    Raises:
        EngineError: None answers, and none can be started.
    """
    try:
        client = connect()
    except EngineError as error:
        _refuse_what_only_a_person_can_mend(error)
    else:
        with contextlib.closing(client):
            yield client
        return
    with _started() as client:
        yield client


def _refuse_what_only_a_person_can_mend(error: EngineError) -> None:
    if os.environ.get("DOCKER_HOST"):
        raise EngineError(
            f"{error}; start that engine, or unset DOCKER_HOST to use one of this machine"
        ) from error
    if os.geteuid() != 0:
        # There may well be one that this user must not speak to.
        remedy = (
            f"it is there, and {SOCKET} is closed to you: join its group (sudo usermod -aG docker "
            "$USER, then log in again)"
            if SOCKET.exists() and not os.access(SOCKET, os.W_OK)
            else "start one (sudo systemctl start docker), or install one first "
            "(Debian, Ubuntu: sudo apt-get install docker.io)"
        )
        raise EngineError(f"{error}; {remedy}, or run this as root") from error


def _find(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def _client() -> Requirement:
    return Requirement("Docker client", "any", "docker.io", lambda: _find("docker"))


@contextlib.contextmanager
def _started() -> Iterator[docker.DockerClient]:
    try:
        toolchain.ensure(
            [
                Requirement("Docker engine", "any", "docker.io", lambda: _find("dockerd")),
                _client(),
            ]
        )
    except ToolchainError as error:
        raise EngineError(f"there is no Docker engine; {error}") from error
    daemon = _find("dockerd") or "dockerd"
    with tempfile.TemporaryDirectory(prefix="tritonserver-jax-") as scratch:
        log = Path(scratch, "dockerd.log")
        print(f"$ {daemon}  # no engine answered", flush=True)
        with (
            running_service(
                [daemon],
                _answers,
                log,
                error=EngineError,
                remedy="in a container it needs --privileged, or set DOCKER_HOST to an engine "
                "elsewhere",
                group=True,
                start_seconds=START_SECONDS,
                stop_seconds=STOP_SECONDS,
            ),
            contextlib.closing(connect()) as client,
        ):
            yield client


def _answers() -> bool:
    try:
        connect().close()
    except EngineError:
        return False
    return True


def buildkit_client() -> list[str]:
    """Return a command that builds with BuildKit: what ``docker build`` is on this machine.

    Clients from 23 on need a plugin of their own for it, buildx, and older ones do it themselves.

    Raises:
        EngineError: There is no client that can.
    """
    # Where an engine answers from elsewhere, nothing has needed a client yet.
    with contextlib.suppress(ToolchainError):
        toolchain.ensure([_client()])
    tried = []
    for folder in dict.fromkeys([*os.environ.get("PATH", "").split(os.pathsep), "/usr/bin"]):
        client = Path(folder, "docker")
        if not os.access(client, os.X_OK) or str(client) in tried:
            continue
        tried.append(str(client))
        version = toolchain.parse_version(capture([client, "--version"]) or "")
        if version is None:
            continue
        if version < (23,) or capture([client, "buildx", "version"]) is not None:
            return [str(client), "build"]
    raise EngineError(
        f"BuildKit: expected a docker client that has it, got {', '.join(tried) or 'none'}; "
        + (
            "install buildx beside it (docker-buildx-plugin, or docker-buildx), or build with "
            "--builder buildah"
            if tried
            else "apt-get install docker.io"
        )
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Show the engine and the client; with ``--run``, keep the engine while a command runs."""
    parser = argparse.ArgumentParser(prog="python -m ci.docker_engine", description=__doc__)
    parser.add_argument("--run", nargs=argparse.REMAINDER, default=[], metavar="COMMAND")
    options = parser.parse_args(arguments)
    try:
        with docker_engine() as client:
            print(
                f"engine: {client.version()['Version']}, data in {client.info()['DockerRootDir']}"
            )
            print(f"BuildKit: {' '.join(buildkit_client())}")
            if options.run:
                run(options.run)
    except (EngineError, CommandError) as error:
        return fail(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
