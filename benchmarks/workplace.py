# SPDX-License-Identifier: Apache-2.0
"""What every competitor needs, made once: the installed backend, its environment, a server."""

from __future__ import annotations

import os
import shutil
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from ci.artifacts import make_artifacts
from ci.build import build_targets
from ci.installation import install_artifact
from ci.process import ROOT, run
from tritonserver_jax.artifacts.checksums import sha256_of
from tritonserver_jax.releases import DEFAULT_RELEASE, find_release
from tritonserver_jax.server import ServerDistribution, obtain_server
from tritonserver_jax.tuning.perf_analyzer import PerfAnalyzer, obtain_perf_analyzer

#: Everything that the benchmark makes is below it.
DIRECTORY = ROOT / "build" / "bench"


@dataclass(frozen=True)
class Workplace:
    """What the competitors are made from.

    Attributes:
        directory: For model repositories and results.
        distribution: The tritonserver.
        backends: The backend directory with this backend.
        environment: The Python environment of it; the python backend uses the same.
        copy_only: The backend directory with the copy-only backend.
        perf_analyzer: The load generator.
        pytriton: The environment of PyTriton; made when it is first needed.
    """

    directory: Path
    distribution: ServerDistribution
    backends: Path
    environment: Path
    copy_only: Path
    perf_analyzer: PerfAnalyzer
    pytriton: Path = DIRECTORY / "pytriton"

    @property
    def site_packages(self) -> Path:
        """Where the packages of the environment are."""
        return next(self.environment.glob("lib/python3.*/site-packages"))

    def python_variables(self) -> dict[str, str]:
        """Variables under which another program finds those packages, and the competitors' code."""
        libpython = str(sysconfig.get_config_var("LIBDIR"))
        given = os.environ.get("LD_LIBRARY_PATH")
        return {
            "PYTHONPATH": os.pathsep.join([str(self.site_packages), str(ROOT)]),
            "LD_LIBRARY_PATH": os.pathsep.join([libpython, *([given] if given else [])]),
        }


def prepare(release: str = DEFAULT_RELEASE, *, tarball: Path | None = None) -> Workplace:
    """Build, pack and install the backend, and get what it is compared with.

    Args:
        release: The release to measure on.
        tarball: An artifact to measure; by default one is made from the source.
    """
    artifact = tarball or make_artifacts([release])[release]
    digest = sha256_of(artifact)[:16]
    backends = DIRECTORY / "installed" / digest
    if not (backends / "jax" / "libtriton_jax.so").is_file():
        shutil.rmtree(backends.parent, ignore_errors=True)
        install_artifact(artifact, backends, environment=False)
    environment = DIRECTORY / "environment"
    # It is kept over builds of the backend: this says "up to date", or makes it so.
    run(["bash", backends / "jax" / "scripts" / "setup_env.sh", "--env", environment])
    build = build_targets(
        "triton_copy_only", preset="release", options=["-DTRITON_JAX_BENCHMARKS=ON"]
    )
    return Workplace(
        directory=DIRECTORY,
        distribution=obtain_server(find_release(release)),
        backends=backends,
        environment=environment,
        copy_only=build / "copy_only" / "backends",
        perf_analyzer=obtain_perf_analyzer(),
    )
