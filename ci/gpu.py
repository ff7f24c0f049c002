# SPDX-License-Identifier: Apache-2.0
"""Runs the tests that need a GPU, on a machine that has one.

``python -m ci.gpu`` makes the artifact of a release, an environment with JAX's plugin for CUDA from
the hashed lock, and runs the tests marked ``gpu``; arguments after ``--`` go to pytest. Where no
GPU is found it fails: every test would be skipped.

On a machine without a network, ``--no-build`` takes the artifact from ``dist``, and ``--packages-of
PYTHON`` a JAX that is there already, with all that it needs. The server comes from the cache, which
``TRITONSERVER_JAX_CACHE`` may name.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

from ci.artifacts import ARTIFACT_ERRORS, make_artifacts
from ci.installation import InstallationError, install_artifact
from ci.locks import ACCELERATORS
from ci.process import ROOT, fail, run
from tests.support.gpu import gpus
from tritonserver_jax.releases import DEFAULT_RELEASE

#: Where the environment and the installed backend are kept between runs.
SCRATCH = ROOT / "build" / "gpu"

_ABOUT_PYTHON = (
    "import json, sys, sysconfig; print(json.dumps({"
    "'base': sys._base_executable, 'minor': sys.version_info[1], "
    "'packages': [sysconfig.get_path('purelib'), sysconfig.get_path('platlib')]}))"
)


class GpuError(RuntimeError):
    """The tests cannot be run here."""


def environment_from_lock(installed: Path, accelerator: str) -> Path:
    """Makes an environment with a plugin for CUDA, as an operator does.

    Args:
        installed: The installed backend.
        accelerator: Which plugin: one of `ACCELERATORS`.
    """
    environment = SCRATCH / f"env-{accelerator}"
    minor = sys.version_info[1]
    lock = installed / "locks" / f"requirements-{accelerator}-py3{minor}.txt"
    if not lock.is_file():
        lock = ROOT / "packaging" / "locks" / lock.name
    script = installed / "scripts" / "setup_env.sh"
    run(
        [
            *("bash", script, "--env", environment),
            *("--python", sys.executable, "--requirements", lock),
        ]
    )
    return environment


def environment_from_packages(installed: Path, python: str) -> Path:
    """Makes an environment from the packages of a Python that has JAX; nothing is downloaded.

    Args:
        installed: The installed backend, whose wheel goes into it.
        python: That Python.

    Raises:
        GpuError: It is no Python.
        CommandError: It makes no environment.
    """
    asked = subprocess.run(
        [python, "-I", "-c", _ABOUT_PYTHON], capture_output=True, text=True, check=False
    )
    if asked.returncode != 0:
        raise GpuError(f"{python} does not run: {asked.stderr.strip()}")
    about = json.loads(asked.stdout)
    environment = SCRATCH / "env-packages"
    run([about["base"], "-m", "venv", "--clear", "--without-pip", environment])
    packages = environment / "lib" / f"python3.{about['minor']}" / "site-packages"
    (packages / "gpu.pth").write_text("\n".join(about["packages"]) + "\n", encoding="utf-8")
    for wheel in (installed / "wheel").glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(packages)
    return environment


def run_gpu_tests(
    release: str,
    accelerator: str,
    *,
    packages_of: str | None = None,
    build: bool = True,
    arguments: Sequence[str] = (),
) -> None:
    """Prepares what the tests need, and runs them.

    Args:
        release: On whose server.
        accelerator: Which of JAX's plugins to install.
        packages_of: A Python whose packages are used instead.
        build: Whether to make the artifact; otherwise it is in ``dist`` already.
        arguments: For pytest.

    Raises:
        GpuError: JAX finds no GPU in the environment.
        CommandError: A command failed, pytest among them.
    """
    dist = ROOT / "dist"
    if build:
        tarball = make_artifacts([release])[release]
    else:
        found = sorted((dist / release).glob("*.tar.gz"))
        if not found:
            raise GpuError(f"no artifact in {dist / release}: bring one, or leave out --no-build")
        tarball = found[-1]
    shutil.rmtree(SCRATCH / "backends", ignore_errors=True)
    installed = install_artifact(tarball, SCRATCH / "backends", environment=False)
    if packages_of is None:
        environment = environment_from_lock(installed, accelerator)
    else:
        environment = environment_from_packages(installed, packages_of)
    kinds = gpus(environment)
    if not kinds:
        raise GpuError(
            f"JAX finds no GPU in {environment}; ask it why: {environment}/bin/python -c "
            "'import jax; print(jax.devices(\"gpu\"))'"
        )
    print(f"GPUs: {', '.join(kinds)}", flush=True)
    run(
        [
            *(sys.executable, "-m", "pytest", "tests/integration", "-m", "gpu"),
            *(f"--backend-dist={dist}", f"--release={release}"),
            *(f"--environment={environment}", *arguments),
        ]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tests on one release."""
    parser = argparse.ArgumentParser(prog="python -m ci.gpu", description=__doc__)
    parser.add_argument("--release", default=DEFAULT_RELEASE)
    parser.add_argument(
        "--accelerator",
        choices=ACCELERATORS,
        default=ACCELERATORS[0],
        help="JAX's plugin: a driver from 580 on takes cuda13, an older one cuda12 "
        f"(default: {ACCELERATORS[0]})",
    )
    parser.add_argument("--packages-of", metavar="PYTHON", help="use its JAX; download nothing")
    parser.add_argument("--no-build", action="store_true", help="take the artifact from dist")
    words = sys.argv[1:] if arguments is None else list(arguments)
    split = words.index("--") if "--" in words else len(words)
    options = parser.parse_args(words[:split])
    try:
        run_gpu_tests(
            options.release,
            options.accelerator,
            packages_of=options.packages_of,
            build=not options.no_build,
            arguments=words[split + 1 :],
        )
    except (*ARTIFACT_ERRORS, InstallationError, GpuError) as error:
        return fail(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
