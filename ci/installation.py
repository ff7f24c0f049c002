# SPDX-License-Identifier: Apache-2.0
"""Installs an artifact as an operator does: unpacks the tarball, and runs its install.sh.

Whatever serves a model here (the health session, the demo, the tests) goes this way, so what is
shipped is what is used: `tritonserver_jax.installation`, and the scripts of the artifact.
"""

from __future__ import annotations

from pathlib import Path

from tritonserver_jax import installation
from tritonserver_jax.installation import InstallationError

__all__ = ["InstallationError", "install_artifact"]


def install_artifact(
    tarball: Path, backends: Path, *, environment: bool = True, replace: bool = False
) -> Path:
    """Installs an artifact into a backend directory, and shows what its scripts say.

    Args:
        tarball: The artifact.
        backends: The backend directory of a server; made when it is not there.
        environment: Whether to make the Python environment as well; its packages are
            downloaded, or taken from the cache of uv.
        replace: Whether another build may be there, and is replaced.

    Returns:
        What the server finds there: ``<backends>/jax``.

    Raises:
        InstallationError: The file is no tarball, does not have the script, or that failed.
    """
    backends.mkdir(parents=True, exist_ok=True)
    with installation.unpacked(tarball) as artifact:
        return installation.install_artifact(
            artifact,
            backends,
            environment=environment,
            force=replace,
            say=lambda line: print(line, flush=True),
        )
