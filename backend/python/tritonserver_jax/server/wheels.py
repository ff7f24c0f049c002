# SPDX-License-Identifier: Apache-2.0
"""Wheels from the Python package index, kept in a cache that several processes share."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tritonserver_jax.releases import ServerWheel
from tritonserver_jax.server.errors import ServerError

__all__ = ["download_wheel", "locked", "pip_command"]

_LOG = logging.getLogger(__name__)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock that the kernel gives back however this process ends."""
    with path.open("a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def download_wheel(wheel: ServerWheel, target: Path) -> Path:
    """Download a wheel with pip, which takes it only when its hash is the expected one.

    Args:
        wheel: The wheel.
        target: The folder to make and put it in.

    Raises:
        ServerError: There is no pip, or it could not download that very file.
    """
    target.mkdir()
    requirement = target / "requirements.txt"
    requirement.write_text(
        f"{wheel.package}=={wheel.version} --hash=sha256:{wheel.sha256}\n", encoding="utf-8"
    )
    with tempfile.TemporaryDirectory() as scratch:
        command = [
            *pip_command(Path(scratch)),
            *("download", "--disable-pip-version-check", "--no-input", "--progress-bar=off"),
            *("--no-deps", "--only-binary=:all:", "--require-hashes"),
            *("--dest", str(target), "--requirement", str(requirement)),
        ]
        _LOG.info("downloading %s", wheel.wheel)
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
    path = target / wheel.wheel
    if done.returncode != 0 or not path.is_file():
        tail = "\n".join(done.stdout.splitlines()[-15:])
        hint = (
            f"the index has a file with another hash than the expected ({wheel.sha256}): do not "
            "use it before you know why"
            if "DO NOT MATCH THE HASHES" in done.stdout
            else "check the network and pip's settings (pip config list), then try again"
        )
        raise ServerError(
            f"{wheel.wheel}: pip could not download it (exit {done.returncode}); {hint}.\n"
            f"What pip said:\n{tail}"
        )
    return path


def pip_command(scratch: Path) -> list[str]:
    """Return a command that runs pip: environments made by uv have none of their own.

    Args:
        scratch: An empty folder, where an environment with pip can be made; it is needed as long
            as the command is used.

    Raises:
        ServerError: There is no pip to be had.
    """
    base = str(getattr(sys, "_base_executable", None) or sys.executable)
    for python in dict.fromkeys([sys.executable, base]):
        if _runs([python, "-m", "pip", "--version"]):
            return [python, "-m", "pip"]
    if _runs([base, "-m", "venv", str(scratch / "venv")]):
        return [str(scratch / "venv" / "bin" / "python"), "-m", "pip"]
    if uv := os.environ.get("UV") or shutil.which("uv"):
        run = [uv, "run", "--quiet", "--no-project", "--isolated", "--python", sys.executable]
        return [*run, "--with", "pip", "python", "-m", "pip"]
    raise ServerError(
        f"pip: expected in {sys.executable}, in {base}, by ensurepip or through uv; found none; "
        "install one: apt-get install python3-pip"
    )


def _runs(command: list[str]) -> bool:
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0
