# SPDX-License-Identifier: Apache-2.0
"""Options that several commands have, so that they are the same everywhere."""

from __future__ import annotations

from typing import Any, Final

import typer

from tritonserver_jax.variables import ARTIFACT

__all__ = ["Artifact", "ArtifactOption", "PublicKey"]

_ARTIFACT_HELP: Final = (
    "The artifact: a tritonserver-jax-*.tar.gz, a folder that holds one, or a URL that ends in "
    f"#sha256= and its hash. Default: ${ARTIFACT}, else what is in ./dist."
)

#: An artifact as an argument.
Artifact: Final[Any] = typer.Argument(metavar="ARTIFACT", help=_ARTIFACT_HELP, show_default=False)

#: An artifact as an option.
ArtifactOption: Final[Any] = typer.Option(
    "--artifact", metavar="ARTIFACT", help=_ARTIFACT_HELP, show_default=False
)

#: The key that has to have signed something.
PublicKey: Final[Any] = typer.Option(
    help="A PEM file with the public key that has to have signed it.",
    metavar="FILE",
    exists=True,
    dir_okay=False,
)
