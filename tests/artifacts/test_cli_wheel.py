# SPDX-License-Identifier: Apache-2.0
"""The real wheel in a fresh environment of the lock: the command is there, and every help works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ci.locks import lock_path
from tritonserver_jax import __version__
from tritonserver_jax.cli.app import find_commands

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
#: What the command line itself needs; the rest of the lock is for models, and is large.
NEEDED = (
    "annotated-doc",
    "markdown-it-py",
    "mdurl",
    "pygments",
    "rich",
    "shellingham",
    "typer",
    "typing-extensions",
)


def of_lock(*names: str) -> str:
    """Return the entries of some distributions, with their hashes."""
    text = lock_path(PYTHON).read_text(encoding="utf-8")
    entries = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)
    return "".join(one for one in entries if one.split("==", 1)[0] in names)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """The command in an environment that has what the lock says, and no JAX."""
    folder = tmp_path_factory.mktemp("environment")
    uv = os.environ.get("UV") or shutil.which("uv")
    assert uv, "uv: expected on PATH or in $UV; ./ci/nox brings it"
    requirements = folder / "requirements.txt"
    requirements.write_text(of_lock(*NEEDED), encoding="utf-8")
    python = folder / "env" / "bin" / "python"
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, folder / "env"], check=True)
    install = [uv, "pip", "install", "-q", "--no-deps", "--python", str(python)]
    subprocess.run([*install, "--require-hashes", "-r", requirements], cwd=folder, check=True)
    subprocess.run([*install, "--no-cache", wheel], cwd=folder, check=True)
    return folder / "env" / "bin" / "tritonserver-jax"


def run(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [program, *arguments],
        cwd=program.parent,
        env={**clean, "NO_COLOR": "1", "COLUMNS": "120"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_every_command_has_help_without_jax(installed: Path) -> None:
    assert run(installed, "--version").stdout.startswith(f"tritonserver-jax {__version__} ")
    for one in find_commands():
        done = run(installed, one.name, "--help")
        assert done.returncode == 0, done.stderr
        assert f"Usage: tritonserver-jax {one.name}" in done.stdout
        assert one.name in run(installed, "--help").stdout


def test_the_doctor_and_verify_work_without_jax(
    installed: Path, tarball: Path, tmp_path: Path
) -> None:
    done = run(installed, "verify", str(tarball), "--release", "24.10")
    assert done.returncode == 0, done.stderr
    assert "verified: " in done.stdout
    done = run(installed, "doctor", "--backends", str(tmp_path))
    assert done.returncode == 1
    assert f"ok   program: tritonserver-jax {__version__}" in done.stdout
    assert "fail backend: " in done.stdout


def test_without_an_artifact_it_says_where_to_get_one(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "models" / "a").mkdir(parents=True)
    done = run(installed, "serve", str(tmp_path / "models"), "--release", "24.10")
    assert done.returncode == 1
    assert "the compiled backend is in an artifact" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 2  # the next step is the second
