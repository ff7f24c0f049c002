# SPDX-License-Identifier: Apache-2.0
"""Shows that an artifact is fit for use: installs it, serves ``add_sub``, runs its health check.

``python -m ci.health 24.10`` builds, packs, installs into an empty backend directory, starts a
stock tritonserver of the release, and runs the ``health_check.py`` that lies beside the backend.
With ``--backend PATH`` it takes what was built elsewhere, as `ci.integration` does.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ci.artifacts import ARTIFACT_ERRORS
from ci.installation import InstallationError, install_artifact
from ci.integration import GivenBackendError, artifacts_of
from ci.package import tarball_name
from ci.process import ROOT, fail, run
from tritonserver_jax.releases import DEFAULT_RELEASE, find_release
from tritonserver_jax.server import ServerError, TritonServer, obtain_server

#: The smallest model: what is wrong then is wrong with the backend.
MODEL = "add_sub"
#: For the server to import JAX and compile the model on a slow machine.
READY_TIMEOUT = 120


def check_health(name: str, backend: Path | None = None) -> None:
    """Installs and serves the artifact of a release, and runs the health check on it.

    Args:
        name: The release.
        backend: What to take instead of building; see `ci.integration.artifacts_of`.

    Raises:
        GivenBackendError: What was given is no backend of ours.
        CommandError: The installation or the health check failed; the output says at what.
        ServerError: The server could not be had, did not start, or did not load the model.
    """
    release = find_release(name)
    distribution = obtain_server(release)
    with (
        artifacts_of(backend, [name]) as dist,
        tempfile.TemporaryDirectory(prefix="tritonserver-jax-") as scratch,
    ):
        tarball = dist / name / tarball_name(release)
        installed = install_artifact(tarball, Path(scratch, "backends"))
        repository = Path(scratch, "models")
        model = ROOT / "examples" / MODEL
        shutil.copytree(model, repository / MODEL, ignore=shutil.ignore_patterns("__pycache__"))
        server = TritonServer(distribution, [repository], backend_directory=installed.parent)
        with server:
            server.wait_model(MODEL, timeout=READY_TIMEOUT)
            script = installed / "scripts" / "health_check.py"
            run([sys.executable, script, "--url", server.http_url, "--model", MODEL])


def main(arguments: Sequence[str] | None = None) -> int:
    """Checks one release."""
    parser = argparse.ArgumentParser(prog="python -m ci.health", description=__doc__)
    parser.add_argument("release", nargs="?", default=DEFAULT_RELEASE)
    parser.add_argument(
        "--backend", type=Path, help="a tarball, its folder or a libtriton_jax.so to take"
    )
    options = parser.parse_args(arguments)
    try:
        check_health(options.release, options.backend)
    except (*ARTIFACT_ERRORS, GivenBackendError, InstallationError, ServerError) as error:
        return fail(error)
    print(f"health: the artifact of {options.release} is well")
    return 0


if __name__ == "__main__":
    sys.exit(main())
