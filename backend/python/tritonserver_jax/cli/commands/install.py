# SPDX-License-Identifier: Apache-2.0
"""``install``: an artifact into a server's backend directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from tritonserver_jax.cli.command import CommandFailedError, Output, command, next_step_of
from tritonserver_jax.cli.options import (
    Artifact,
    PublicKey,
    ReleaseOption,
    check_backends,
    check_python,
    check_release,
)
from tritonserver_jax.findings import Finding, failure

#: How the scripts begin what they say of something that is there already.
_DONE = ("already installed", "up to date")


@command(
    (
        "install dist/24.10 --backends /opt/tritonserver/backends --with-env",
        "Install the artifact in a folder, and make its Python environment",
    ),
    (
        "install tritonserver-jax-0.1.0-triton24.10-linux-x86_64.tar.gz --backends DIR --check",
        "Only say whether it can be installed",
    ),
)
def install(
    out: Output,
    backends: Annotated[
        Path,
        typer.Option(
            help="The server's backend directory: /opt/tritonserver/backends in a release image.",
            metavar="DIR",
        ),
    ],
    artifact: Annotated[str | None, Artifact] = None,
    with_env: Annotated[
        bool, typer.Option("--with-env", help="Also make the Python environment there.")
    ] = False,
    python: Annotated[
        str | None,
        typer.Option(help="The Python for it; default: the first suitable one.", metavar="PATH"),
    ] = None,
    release: Annotated[
        str | None, ReleaseOption("The release that the artifact has to be for.")
    ] = None,
    key: Annotated[Path | None, PublicKey] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only check whether it can be installed.")
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Replace another build; install into another release's server."
        ),
    ] = False,
) -> None:
    """Install the backend into a server's backend directory.

    Everything is checked first: that the artifact is what was released, the server's release and
    API, the machine's C library, Python with its shared library and a lock, the room on the disk,
    and what is there already. Then it is installed whole: when a step fails, what was there before
    is put back.
    """
    from tritonserver_jax import installation

    check_backends(backends)
    check_release(release)
    check_python(python)
    tarball = installation.find_artifact(
        artifact, release, named_by="as an argument", say=out.progress
    )
    found = out.findings(installation.check_artifact(tarball, release=release, public_key=key))
    _stop_if_bad(out, found)
    with installation.unpacked(tarball) as unpacked:

        def checks() -> Iterator[Finding]:
            yield from installation.check_server(unpacked, backends.resolve().parent, force=force)
            yield from installation.check_libraries(unpacked)

        found += out.findings(checks())
        _stop_if_bad(out, found)
        found += out.findings(
            installation.check_scripts(
                unpacked, backends, environment=with_env, python=python, force=force
            )
        )
        _stop_if_bad(out, found)
        out.result(
            artifact=str(tarball),
            project_version=unpacked.project_version,
            release=unpacked.release,
            backend=str(backends / "jax"),
        )
        # What an interrupted installation has left there, the script puts in order.
        if _is_there(found, with_env=with_env) and not any(backends.glob(".jax.*")):
            out.line(f"nothing to do: {unpacked.describe()} is in {backends / 'jax'} already")
            return
        if check:
            out.line(f"{unpacked.describe()} can be installed in {backends / 'jax'}")
            return
        installed = installation.install_artifact(
            unpacked,
            backends,
            environment=with_env,
            python=python,
            force=force,
            say=out.progress,
        )
        out.line(f"installed: {unpacked.describe()} in {installed}")


def _is_there(found: list[Finding], *, with_env: bool) -> bool:
    """Whether what the scripts found is all that is to be installed."""
    done = {one.name for one in found if one.detail.startswith(_DONE)}
    return done >= ({"backend", "environment"} if with_env else {"backend"})


def _stop_if_bad(out: Output, found: list[Finding]) -> None:
    out.result(checks=[one.as_json() for one in found])
    if (bad := failure(found)) is not None:
        said = "; nothing was installed"
        why = bad.detail.removesuffix(said)
        message, remedy = (why, bad.remedy) if bad.remedy else next_step_of(why)
        brief = f"nothing was installed: {bad.name} is not well, see above"
        raise CommandFailedError(f"{message}{said}", remedy, brief=brief)
