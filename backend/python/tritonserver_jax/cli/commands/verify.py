# SPDX-License-Identifier: Apache-2.0
"""``verify``: whether an artifact, a folder of them or a backend is what was released."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tritonserver_jax.cli.command import CommandFailedError, Output, UsageError, command
from tritonserver_jax.cli.options import PublicKey, ReleaseOption, check_release


@command(
    ("verify dist/24.10 --release 24.10", "Verify a folder of artifacts: every file, and no other"),
    (
        "verify tritonserver-jax-0.1.0-triton24.10-linux-x86_64.tar.gz --key project.pub",
        "Verify one artifact, and that the project signed it",
    ),
    ("verify /opt/tritonserver/backends/jax", "Verify an installed backend"),
)
def verify(
    out: Output,
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH",
            help="An artifact (tarball, wheel, sdist), a folder of artifacts, or an installed "
            "backend.",
            show_default=False,
        ),
    ],
    release: Annotated[str | None, ReleaseOption("The release that it has to be for.")] = None,
    key: Annotated[Path | None, PublicKey] = None,
    sha256: Annotated[
        str | None,
        typer.Option(help="The SHA-256 that one artifact has to have.", metavar="HASH"),
    ] = None,
    tarball: Annotated[
        Path | None,
        typer.Option(
            help="The artifact that an installed backend has to be of.",
            metavar="FILE",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
) -> None:
    """Verify that something is what was released.

    Checksums, contents, the bill of materials, the provenance and, with a key, the signature are
    compared with each other; what could not be checked is said. Nothing of it is run. It ends with
    1 and the reason when something is wrong, and with 2 when there is nothing to verify.
    """
    from tritonserver_jax.artifacts import (
        VerificationError,
        verify_artifact,
        verify_directory,
        verify_installation,
    )
    from tritonserver_jax.installation.checks import report_findings

    if not path.exists():
        raise UsageError(
            f"{path}: expected an artifact, a folder of them or an installed backend, found "
            "nothing there",
            "check the path; an installed backend is the folder jax/ in the backend directory",
        )
    check_release(release)
    signed = False
    try:
        if path.is_file():
            _refuse(sha256=None, tarball=tarball)
            report = verify_artifact(path, release=release, public_key=key, sha256=sha256)
        elif (path / "libtriton_jax.so").exists() or (path / "BUILD_INFO.json").exists():
            _refuse(sha256=sha256, tarball=None)
            if key is not None:
                if tarball is None:
                    raise UsageError(
                        "--key: expected together with --tarball, for an installed backend",
                        "the tarball is what is signed",
                    )
                signed = verify_artifact(tarball, release=release, public_key=key).signed
            report = verify_installation(path, release=release, tarball=tarball)
        else:
            _refuse(sha256=sha256, tarball=tarball)
            _refuse_folder_of_folders(path)
            report = verify_directory(path, release=release, public_key=key)
    except VerificationError as error:
        problems = [
            {"file": one.file, "expected": one.expected, "got": one.got, "remedy": one.remedy}
            for one in error.problems
        ]
        for one in error.problems[1:]:
            out.line(f"also: {one}")
        first = error.problems[0]
        raise CommandFailedError(
            f"{first.file}: expected {first.expected}, got {first.got}",
            first.remedy,
            result={"verified": False, "problems": problems},
        ) from error
    out.findings(report_findings(report))
    signed = signed or report.signed
    out.result(verified=True, **{**report.as_json(), "signed": signed})
    which = "" if report.release is None else f" for release {report.release}"
    said = "signed by the key" if signed else "no signature was checked"
    out.line(f"verified: {path} is tritonserver-jax {report.project_version}{which}; {said}")


def _refuse(*, sha256: str | None, tarball: Path | None) -> None:
    """Refuse options that are for something else than what is verified."""
    if sha256 is not None:
        raise UsageError(
            "--sha256: expected with one artifact, got a folder", "name one of the files in it"
        )
    if tarball is not None:
        raise UsageError(
            "--tarball: expected with an installed backend, got something else",
            "name the folder jax/ in the backend directory, or leave --tarball out",
        )


def _refuse_folder_of_folders(path: Path) -> None:
    """Refuse what only holds folders of artifacts, as ``dist`` does."""
    if (path / "SHA256SUMS").exists():
        return
    below = sorted(one.parent.name for one in path.glob("*/SHA256SUMS"))
    if below:
        raise UsageError(
            f"{path}: expected a folder of artifacts, found folders of them: {', '.join(below)}",
            f"name one of them, such as {path / below[0]}",
        )
