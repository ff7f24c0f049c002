# SPDX-License-Identifier: Apache-2.0
"""Installs an artifact as an operator does: unpacks the tarball, and runs its install.sh.

Whatever serves a model here (the health session, the demo, the tests) goes this way, so the
scripts that are shipped are the scripts that are used.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from ci.process import run
from tritonserver_jax.artifacts import VerificationError, unpack_tarball


class InstallationError(RuntimeError):
    """A tarball is not one of ours."""


def install_artifact(tarball: Path, backends: Path, *, environment: bool = True) -> Path:
    """Installs an artifact into a backend directory.

    Args:
        tarball: The artifact.
        backends: The backend directory of a server; made when it is not there.
        environment: Whether to make the Python environment as well; its packages are
            downloaded, or taken from the cache of uv.

    Returns:
        What the server finds there: ``<backends>/jax``.

    Raises:
        InstallationError: The file is no tarball, or does not have the script.
        CommandError: The script failed; it says why.
    """
    backends.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="tritonserver-jax-") as scratch:
        try:
            unpacked = unpack_tarball(tarball, Path(scratch))
        except (OSError, VerificationError) as error:
            raise InstallationError(f"cannot unpack {tarball}: {error}") from error
        script = unpacked / "scripts" / "install.sh"
        if not script.is_file():
            raise InstallationError(
                f"{tarball}: expected jax/scripts/install.sh in it, found none; "
                "make it with ./ci/nox -s package-<release>"
            )
        options = ["--with-env"] if environment else []
        run(["bash", script, "--backends", backends, *options])
    return backends / "jax"
