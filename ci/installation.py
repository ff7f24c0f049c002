# SPDX-License-Identifier: Apache-2.0
"""Installs an artifact as an operator does: unpacks the tarball, and runs its install.sh.

Whatever serves a model here (the health session, the demo, the tests) goes this way, so the
scripts that are shipped are the scripts that are used.
"""

from __future__ import annotations

import tarfile
import tempfile
from pathlib import Path, PurePosixPath

from ci.process import run


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
            _unpack(tarball, Path(scratch))
        except (OSError, tarfile.TarError) as error:
            raise InstallationError(f"cannot unpack {tarball}: {error}") from error
        script = Path(scratch, "jax", "scripts", "install.sh")
        if not script.is_file():
            raise InstallationError(
                f"{tarball}: expected jax/scripts/install.sh in it, found none; "
                "make it with ./ci/nox -s package-<release>"
            )
        options = ["--with-env"] if environment else []
        run(["bash", script, "--backends", backends, *options])
    return backends / "jax"


def _unpack(tarball: Path, directory: Path) -> None:
    """Unpacks plain files and directories, and refuses everything else.

    Python's own ``filter="data"`` came with 3.11.4, and Debian 12 has 3.11.2.
    """
    with tarfile.open(tarball) as archive:
        for member in archive.getmembers():
            path = PurePosixPath(member.name)
            plain = member.isfile() or member.isdir()
            if not plain or path.is_absolute() or ".." in path.parts:
                raise tarfile.TarError(f"{member.name!r} is no plain file inside the tarball")
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(directory)  # noqa: S202 # every member was looked at
