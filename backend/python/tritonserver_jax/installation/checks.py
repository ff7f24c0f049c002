# SPDX-License-Identifier: Apache-2.0
"""Whether an artifact is whole, and fits a server and this machine."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path

from tritonserver_jax.artifacts import Report, VerificationError, verify_artifact
from tritonserver_jax.elf import ElfError, newest, read_elf
from tritonserver_jax.findings import Finding, Status
from tritonserver_jax.installation.install import Unpacked
from tritonserver_jax.releases import MINIMUM_BACKEND_API
from tritonserver_jax.server.facts import ServerFacts, server_facts

__all__ = ["check_artifact", "check_libraries", "check_server", "machine_glibc", "report_findings"]

_PREFIXES = ("TRITONBACKEND_", "TRITONSERVER_")


def report_findings(report: Report) -> list[Finding]:
    """Return what was verified, and what could not be, as findings."""
    status = {"ok": Status.OK, "not checked": Status.NOTE}
    return [Finding(check.name, status[check.status], check.detail) for check in report.checks]


def check_artifact(
    tarball: Path, *, release: str | None = None, public_key: Path | None = None
) -> list[Finding]:
    """Verify an artifact, and what lies beside it.

    Args:
        tarball: The file.
        release: The release that it has to be for; any when not given.
        public_key: What it has to be signed by; not looked at when not given.
    """
    try:
        report = verify_artifact(tarball, release=release, public_key=public_key)
    except VerificationError as error:
        return [
            Finding(
                "artifact",
                Status.FAIL,
                f"{one.file}: expected {one.expected}, got {one.got}",
                one.remedy,
            )
            for one in error.problems
        ]
    found = report_findings(report)
    left = [one.name for one in found if one.status is Status.NOTE]
    said = f"{tarball.name} is whole"
    if left:
        said += f" (not checked: {', '.join(dict.fromkeys(left))}; verify says why)"
    return [Finding("artifact", Status.OK, said)]


def check_server(
    artifact: Unpacked,
    root: Path,
    *,
    force: bool = False,
    env: Mapping[str, str] | None = None,
) -> list[Finding]:
    """Look at the server: its release, and its functions.

    Args:
        artifact: What is to be installed.
        root: The folder that holds its ``bin`` and ``backends``.
        force: Whether another release will do; a function that is missing never does.
        env: The environment in which a release image says what it is, by default this one's.
    """
    try:
        facts = server_facts(root, env)
    except OSError as error:
        return [Finding("server", Status.FAIL, f"{error.filename}: {error.strerror}")]
    found = [_release(artifact, facts, force=force)]
    found += _functions(artifact, facts)
    return found


def _release(artifact: Unpacked, facts: ServerFacts, *, force: bool) -> Finding:
    if facts.server_version is None and not facts.releases:
        return Finding(
            "release", Status.NOTE, f"nothing says which release the server is ({facts.trouble})"
        )
    if facts.server_version is not None:
        fits = facts.server_version == artifact.server_version
    else:
        fits = artifact.release in {one.release for one in facts.releases}
    said = f"the artifact is for release {artifact.release}, the server is {facts.describe()}"
    if fits:
        return Finding("release", Status.OK, said)
    remedy = "take the artifact of the server's release"
    if force:
        return Finding("release", Status.WARN, said, remedy)
    return Finding("release", Status.FAIL, said, f"{remedy}, or use --force")


def _functions(artifact: Unpacked, facts: ServerFacts) -> list[Finding]:
    if not facts.functions:
        return [
            Finding("API", Status.NOTE, f"the server's functions are not known: {facts.trouble}")
        ]
    try:
        needed = {
            name
            for library in artifact.libraries
            for name in read_elf(library).required
            if name.startswith(_PREFIXES)
        }
    except (ElfError, OSError) as error:
        return [Finding("API", Status.FAIL, str(error), "download the artifact again")]
    missing = sorted(needed - facts.functions)
    level = facts.backend_api
    if missing:
        has = "" if level is None else f" (backend API {level})"
        return [
            Finding(
                "API",
                Status.FAIL,
                f"the backend needs {', '.join(missing)} (backend API {MINIMUM_BACKEND_API}), "
                f"which {facts.library}{has} does not have",
                "take a newer server",
            )
        ]
    return [
        Finding(
            "API",
            Status.OK,
            f"the server has all {len(needed)} functions that the backend needs"
            + ("" if level is None else f"; backend API {level}, needed {MINIMUM_BACKEND_API}"),
        )
    ]


def machine_glibc() -> tuple[int, ...] | None:
    """Return the version of this machine's glibc; None where there is another C library."""
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    except (OSError, ValueError):
        return None
    if name != "glibc":
        return None
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def check_libraries(artifact: Unpacked) -> list[Finding]:
    """Compare this machine with what the compiled backend needs of it."""
    machine = platform.machine()
    if machine != "x86_64":
        return [
            Finding(
                "machine",
                Status.FAIL,
                f"the backend is for x86_64, this machine is {machine}",
                "install it on an x86_64 machine",
            )
        ]
    try:
        versions = [
            (found, library.name)
            for library in artifact.libraries
            if (found := newest(read_elf(library).versions, "GLIBC")) is not None
        ]
    except (ElfError, OSError) as error:
        return [Finding("glibc", Status.FAIL, str(error), "download the artifact again")]
    has = machine_glibc()
    needed, library = max(versions, default=((), ""))
    if has is None:
        detail = "this machine has another C library than glibc"
        return [Finding("glibc", Status.FAIL, detail, "use a release image, or glibc")]
    if not needed or needed <= has:
        said = f"this machine has {_dotted(has)}, {library or 'the backend'} needs "
        return [Finding("glibc", Status.OK, said + (_dotted(needed) or "none of it"))]
    return [
        Finding(
            "glibc",
            Status.FAIL,
            f"{library} needs glibc {_dotted(needed)}, this machine has {_dotted(has)}",
            "use a newer system, or the release's image",
        )
    ]


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
