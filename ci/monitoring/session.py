# SPDX-License-Identifier: Apache-2.0
"""Tries rules, alerts and dashboard with a real Prometheus on a real server.

``python -m ci.monitoring.session`` makes the artifact and runs the tests in ``tests/monitoring``;
``--report`` also draws ``docs/images/dashboard.svg``, from a site that was watched for two minutes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ci.artifacts import ARTIFACT_ERRORS, make_artifacts
from ci.installation import InstallationError, install_artifact
from ci.monitoring.picture import draw
from ci.monitoring.programs import ProgramError
from ci.monitoring.prometheus import QueryError
from ci.monitoring.site import DIGITS, SERVER_ARGS, watched, write_models
from ci.monitoring.traffic import ORDINARY, Traffic, TrafficError
from ci.process import ROOT, CommandError, fail, run
from tritonserver_jax.releases import DEFAULT_RELEASE, find_release
from tritonserver_jax.server import ServerError, TritonServer, obtain_server

PICTURE: Final = ROOT / "docs" / "images" / "dashboard.svg"
_LOAD_SECONDS: Final = 180.0
_WATCH_SECONDS: Final = 120.0


def report(release: str, tarball: Path) -> None:
    """Serve, send requests, watch, and draw the dashboard.

    Args:
        release: The release to serve on.
        tarball: The artifact.
    """
    distribution = obtain_server(find_release(release))
    with tempfile.TemporaryDirectory(prefix="tritonserver-jax-") as scratch:
        folder = Path(scratch)
        installed = install_artifact(tarball, folder / "backends")
        repository = folder / "models"
        repository.mkdir()
        write_models(repository, [one.name for one in ORDINARY if one.name != DIGITS])
        cache = folder / "cache"
        cache.mkdir()
        server = TritonServer(
            distribution,
            [repository],
            backend_directory=installed.parent,
            extra_args=[*SERVER_ARGS, f"--backend-config=jax,compile-cache={cache}"],
        )
        with server:
            server.wait_live(_LOAD_SECONDS)
            with watched(server, folder / "prometheus") as prometheus:
                start = time.time()
                with Traffic(server, ORDINARY):
                    time.sleep(_WATCH_SECONDS)
                    draw(prometheus, PICTURE, start=start + 5, end=time.time())
    print(f"wrote {PICTURE.relative_to(ROOT)}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="./ci/nox -s monitoring --", description=__doc__)
    parser.add_argument("--report", action="store_true", help="also draw docs/images/dashboard.svg")
    options, words = parser.parse_known_args(arguments)
    try:
        tarball = make_artifacts([DEFAULT_RELEASE])[DEFAULT_RELEASE]
        run([sys.executable, "-m", "pytest", "tests/monitoring", "--backend-dist=dist", *words])
        if options.report:
            report(DEFAULT_RELEASE, tarball)
    except (
        *ARTIFACT_ERRORS,
        CommandError,
        InstallationError,
        ProgramError,
        QueryError,
        ServerError,
        TrafficError,
    ) as error:
        return fail(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
