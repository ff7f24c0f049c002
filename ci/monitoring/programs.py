# SPDX-License-Identifier: Apache-2.0
"""The programs of Prometheus, as Debian packs them: found or installed, started and stopped."""

from __future__ import annotations

import contextlib
import http.client
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ci.monitoring.files import BLACKBOX
from ci.service import running_service
from ci.toolchain import Requirement, ensure
from tritonserver_jax.server.ports import HOST, PortReservation

__all__ = [
    "ProgramError",
    "blackbox_exporter",
    "program_of",
    "prometheus_server",
    "promtool",
]

_BLACKBOX: Final = "prometheus-blackbox-exporter"


class ProgramError(RuntimeError):
    """A program could not be started, or found fault with what it was given."""


def program_of(name: str, package: str) -> str:
    """Return the path of a program; the package that has it is installed if need be.

    Raises:
        ToolchainError: It is not there, and cannot be installed.
    """
    ensure([Requirement(name, "any", package, lambda: shutil.which(name))])
    return shutil.which(name) or name


def promtool(*words: str | Path, cwd: Path) -> str:
    """Run promtool, and return what it said.

    Raises:
        ProgramError: It found fault with what it was given.
        ToolchainError: It is not there, and cannot be installed.
    """
    command = [program_of("promtool", "prometheus"), *map(str, words)]
    done = subprocess.run(command, cwd=cwd, check=False, capture_output=True, text=True)
    said = f"{done.stdout}{done.stderr}"
    if done.returncode != 0:
        raise ProgramError(f"promtool {' '.join(command[1:])}: status {done.returncode}:\n{said}")
    return said


def _running(
    command: list[str], address: str, ready: str, folder: Path
) -> contextlib.AbstractContextManager[subprocess.Popen[bytes]]:
    return running_service(
        command,
        lambda: _answers(address, ready),
        folder / f"{Path(command[0]).name}.log",
        error=ProgramError,
        cwd=folder,
    )


def _answers(address: str, path: str) -> bool:
    connection = http.client.HTTPConnection(address, timeout=2)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


@contextlib.contextmanager
def prometheus_server(config: Path, folder: Path) -> Iterator[str]:
    """A Prometheus while it runs; gives its address.

    Args:
        config: What it reads.
        folder: Where it keeps its data and its log.
    """
    with PortReservation(1) as port:
        address = f"{HOST}:{port.ports[0]}"
        command = [
            program_of("prometheus", "prometheus"),
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={address}",
            "--log.level=warn",
        ]
        with _running(command, address, "/-/ready", folder):
            yield address


@contextlib.contextmanager
def blackbox_exporter(folder: Path) -> Iterator[str]:
    """A blackbox exporter with our configuration, while it runs; gives its address."""
    with PortReservation(1) as port:
        address = f"{HOST}:{port.ports[0]}"
        command = [
            program_of(_BLACKBOX, _BLACKBOX),
            f"--config.file={BLACKBOX}",
            f"--web.listen-address={address}",
        ]
        with _running(command, address, "/-/healthy", folder):
            yield address
