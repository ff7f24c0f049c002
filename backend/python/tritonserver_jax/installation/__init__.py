# SPDX-License-Identifier: Apache-2.0
"""Installs an artifact into a server's backend directory.

* `find_artifact`: where it is, whether it is named, downloaded or lies in ``dist``.
* `check_artifact`, `check_server`, `check_libraries`, `check_scripts`: whether it can be installed.
* `install_artifact`: installs it, by the ``install.sh`` that it carries.

The shell script does the work, because an operator without Python packages needs it; this adds what
a shell cannot look at, and turns the script's errors into exceptions.
"""

from tritonserver_jax.installation.checks import check_artifact, check_libraries, check_server
from tritonserver_jax.installation.errors import ArtifactNotFoundError, InstallationError
from tritonserver_jax.installation.install import (
    Unpacked,
    check_scripts,
    install_artifact,
    run_script,
    unpacked,
)
from tritonserver_jax.installation.source import find_artifact

__all__ = [
    "ArtifactNotFoundError",
    "InstallationError",
    "Unpacked",
    "check_artifact",
    "check_libraries",
    "check_scripts",
    "check_server",
    "find_artifact",
    "install_artifact",
    "run_script",
    "unpacked",
]
