# SPDX-License-Identifier: Apache-2.0
"""``doctor``: everything that serving needs on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tritonserver_jax.cli.command import CommandFailedError, Output, UsageError, command
from tritonserver_jax.cli.options import check_backends
from tritonserver_jax.findings import Status


@command(
    ("doctor", "Look at this machine, and at the installation that is found"),
    ("doctor --backends /opt/tritonserver/backends", "Look at a certain installation"),
    ("doctor --json", "The same for machines"),
)
def doctor(
    out: Output,
    backends: Annotated[
        Path | None,
        typer.Option(
            help="The backend directory to look at. Default: the one that this program is "
            "installed in, the image's, or the one of `serve`.",
            metavar="DIR",
        ),
    ] = None,
    env: Annotated[
        Path | None,
        typer.Option(help="The Python environment. Default: jax/env there.", metavar="DIR"),
    ] = None,
    timeout: Annotated[
        float, typer.Option(help="Seconds for JAX to say which devices it has.", min=1)
    ] = 60,
) -> None:
    """Say what is well on this machine, what is not, and what to do.

    It looks at the program, the machine, the server with its release and API, the installed
    backend, its Python environment with JAX and the devices, the disk and Triton's ports. Nothing
    is changed. It ends with 1 when something would keep models from being served.
    """
    from tritonserver_jax.diagnosis import diagnose, find_place

    if backends is not None:
        check_backends(backends)
    if env is not None and not env.is_dir():
        raise UsageError(
            f"--env: expected a folder, found none: {env}",
            "leave it out for jax/env in the backend directory",
        )
    place = find_place(backends, env)
    found = out.findings(diagnose(place, timeout=timeout))
    out.result(
        backends=None if place.backends is None else str(place.backends),
        checks=[one.as_json() for one in found],
    )
    bad = [one for one in found if one.status is Status.FAIL]
    if bad:
        names = ", ".join(dict.fromkeys(one.name for one in bad))
        raise CommandFailedError(f"{len(bad)} of {len(found)} are not well: {names}")
    warned = sum(one.status is Status.WARN for one in found)
    out.line(f"{len(found)} looked at, {warned} to think about" if warned else "all is well")
