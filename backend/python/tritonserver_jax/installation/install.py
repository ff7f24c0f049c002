# SPDX-License-Identifier: Apache-2.0
"""Unpacks an artifact beside nothing that matters, and runs the scripts that it carries."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tritonserver_jax.artifacts import VerificationError, unpack_tarball
from tritonserver_jax.findings import Finding, Status
from tritonserver_jax.installation.errors import InstallationError

__all__ = ["Unpacked", "check_scripts", "install_artifact", "run_script", "unpacked"]

#: How the scripts begin the line that says why they failed.
_ERROR: Final = re.compile(r"[\w.]+\.sh: (?:error: )?")
#: How long a script that is to end may take to put things back.
_END_SECONDS: Final = 30


@dataclass(frozen=True, slots=True)
class Unpacked:
    """An unpacked artifact.

    Attributes:
        root: The folder ``jax``.
        project_version: Of the backend in it.
        release: What it is for.
        server_version: Of that release.
    """

    root: Path
    project_version: str
    release: str
    server_version: str

    @property
    def libraries(self) -> list[Path]:
        """The compiled backend."""
        return sorted((self.root / "lib").glob("*.so"))

    def describe(self) -> str:
        """Return which artifact it is, in words."""
        return f"tritonserver-jax {self.project_version} for release {self.release}"


@contextlib.contextmanager
def unpacked(tarball: Path) -> Iterator[Unpacked]:
    """Unpack an artifact for as long as the ``with`` statement lasts.

    Raises:
        InstallationError: It is no artifact of this project.
        VerificationError: It is damaged, or holds what must not be unpacked.
    """
    with tempfile.TemporaryDirectory(prefix="tritonserver-jax-") as scratch:
        try:
            root = unpack_tarball(tarball, Path(scratch))
        except VerificationError as error:
            raise InstallationError(f"cannot unpack {tarball}: {error}") from error
        except OSError as error:
            raise InstallationError(
                f"cannot unpack {tarball} into {scratch}: {error.strerror or error}"
            ) from error
        script = root / "scripts" / "install.sh"
        if not script.is_file():
            raise InstallationError(
                f"{tarball}: expected jax/scripts/install.sh in it, found none; take the "
                "tritonserver-jax-*.tar.gz of a release"
            )
        try:
            info = json.loads((root / "BUILD_INFO.json").read_text(encoding="utf-8"))
            said = [str(info[key]) for key in ("project_version", "release", "server_version")]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InstallationError(
                f"{tarball}: its BUILD_INFO.json does not say what it is ({error!r}); download it "
                "again"
            ) from error
        yield Unpacked(root, *said)


def run_script(
    script: Path, *arguments: str | Path, say: Callable[[str], None] = lambda _: None
) -> None:
    """Run one of an artifact's scripts, and end it when this process is told to end.

    Args:
        script: The script.
        *arguments: Its options.
        say: Told each line that it prints.

    Raises:
        InstallationError: It failed; the message is the script's own.
    """
    command = ["bash", str(script), *map(str, arguments)]
    try:
        # A group of its own: a signal has to reach what the script has started, too.
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise InstallationError(f"bash: cannot be started: {error.strerror}") from error
    lines: list[str] = []
    try:
        assert process.stdout is not None  # noqa: S101  piped above
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            say(lines[-1])
        status = process.wait()
    except BaseException:
        _end(process)
        raise
    if status != 0:
        raise InstallationError(_why(script, status, lines))


def _end(process: subprocess.Popen[str]) -> None:
    """End a script and what it started; the script puts back what it has moved."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.communicate(timeout=_END_SECONDS)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def _why(script: Path, status: int, lines: Sequence[str]) -> str:
    """Return a script's own words: its errors with the lines that go on after each."""
    said: list[str] = []
    going_on = False
    for line in lines:
        match = _ERROR.match(line)
        if match:
            said.append(line[match.end() :])
        elif going_on and line.startswith(" "):
            said.append(line)
        going_on = match is not None or (going_on and line.startswith(" "))
    if said:
        return "\n".join(said)
    tail = "\n".join(lines[-10:]) or "it printed nothing"
    return f"{script.name} ended with status {status}:\n{tail}"


def _options(
    backends: Path, *, environment: bool, python: str | None, force: bool
) -> list[str | Path]:
    return [
        *("--backends", backends),
        *(["--with-env"] if environment else []),
        *(["--python", python] if python is not None else []),
        *(["--force"] if force else []),
    ]


def check_scripts(
    artifact: Unpacked,
    backends: Path,
    *,
    environment: bool = True,
    python: str | None = None,
    force: bool = False,
) -> list[Finding]:
    """Ask the artifact's own scripts whether it can be installed; nothing is changed.

    They look at the release that the server says it is, what is there already, the room on the
    disk, and for the environment at Python, its shared library and its lock.

    Args:
        artifact: What to install.
        backends: The server's backend directory.
        environment: Whether the Python environment is to be made too.
        python: The Python for it; by default the first suitable one.
        force: Whether another build may be replaced, and another release's server be used.
    """
    said: list[str] = []
    options = _options(backends, environment=environment, python=python, force=force)
    script = artifact.root / "scripts" / "install.sh"
    try:
        run_script(script, *options, "--check", say=said.append)
    except InstallationError as error:
        return [Finding("install.sh", Status.FAIL, str(error))]
    found = []
    for line in said:
        words = line.removeprefix("==> ")
        if line.startswith("==> "):
            environment_line = words.startswith(("can be made", "up to date"))
            name = "environment" if environment_line else "backend"
            found.append(Finding(name, Status.OK, words))
        elif "warning: " in line:
            found.append(Finding("release", Status.WARN, line.partition("warning: ")[2]))
    return found


def install_artifact(
    artifact: Unpacked,
    backends: Path,
    *,
    environment: bool = True,
    python: str | None = None,
    force: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> Path:
    """Install an artifact; after a failure the backend from before is there, or none.

    Args:
        artifact: What to install.
        backends: The server's backend directory.
        environment: Whether to make the Python environment too; its packages are downloaded.
        python: The Python for it; by default the first suitable one.
        force: Whether to replace another build, or what else is there.
        say: Told each line that the scripts print.

    Returns:
        What the server finds there: ``<backends>/jax``.

    Raises:
        InstallationError: A script refused or failed; the message is its own.
    """
    options = _options(backends, environment=environment, python=python, force=force)
    run_script(artifact.root / "scripts" / "install.sh", *options, say=say)
    return backends / "jax"
