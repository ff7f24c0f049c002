# SPDX-License-Identifier: Apache-2.0
"""What was found when something was verified, and who it says it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from tritonserver_jax.artifacts.errors import Problem, VerificationError

__all__ = [
    "Check",
    "Findings",
    "Identity",
    "Report",
    "adopt",
    "build_info",
    "check_release",
    "json_object",
    "optional_text_of",
    "text_of",
]

_AGAIN: Final = "download it again"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: What, as in ``checksums``.
        status: ``ok``, or ``not checked`` when there was nothing to check it with.
        detail: What was found, or what is missing.
    """

    name: str
    status: Literal["ok", "not checked"]
    detail: str


@dataclass(frozen=True, slots=True)
class Report:
    """What was verified. That there is one means that nothing was wrong.

    Attributes:
        path: What was looked at.
        kind: ``directory``, ``tarball``, ``wheel``, ``sdist`` or ``installation``.
        project_version: Of this project.
        release: The Triton release that it is for; None of a wheel and an sdist.
        server_version: Of that release.
        source_commit: What it was built from; None where nothing says so.
        checks: In the order in which they were made.
    """

    path: Path
    kind: str
    project_version: str
    release: str | None
    server_version: str | None
    source_commit: str | None
    checks: tuple[Check, ...]

    @property
    def signed(self) -> bool:
        """Whether a signature was checked, and is by the key that was given."""
        return any(check.name == "signature" and check.status == "ok" for check in self.checks)

    def as_json(self) -> dict[str, object]:
        """Return it in JSON's types."""
        return {
            "path": str(self.path),
            "kind": self.kind,
            "project_version": self.project_version,
            "release": self.release,
            "server_version": self.server_version,
            "source_commit": self.source_commit,
            "signed": self.signed,
            "checks": [
                {"name": one.name, "status": one.status, "detail": one.detail}
                for one in self.checks
            ],
        }


@dataclass(slots=True)
class Identity:
    """What is said about an artifact, in whichever place it is said first."""

    project_version: str | None = None
    release: str | None = None
    server_version: str | None = None
    source_commit: str | None = None


@dataclass(slots=True)
class Findings:
    """What was found so far."""

    identity: Identity = field(default_factory=Identity)
    checks: list[Check] = field(default_factory=list)

    def ok(self, name: str, detail: str) -> None:
        """Note what is as it should be."""
        self.checks.append(Check(name, "ok", detail))

    def unchecked(self, name: str, detail: str) -> None:
        """Note what there was nothing to check with."""
        self.checks.append(Check(name, "not checked", detail))

    def report(self, path: Path, kind: str) -> Report:
        """Return what is told to the person."""
        found = self.identity
        return Report(
            path=path,
            kind=kind,
            project_version=found.project_version or "unknown",
            release=found.release,
            server_version=found.server_version,
            source_commit=found.source_commit,
            checks=tuple(self.checks),
        )


def adopt(identity: Identity, other: Identity, where: str) -> None:
    """Take over what another place says, and refuse a contradiction."""
    for key in ("project_version", "release", "server_version", "source_commit"):
        known, said = getattr(identity, key), getattr(other, key)
        if known is None:
            setattr(identity, key, said)
        elif said is not None and said != known:
            name = key.replace("_", " ")
            raise VerificationError(
                Problem(where, f"{name} {known}", said, "download all of one release again")
            )


def check_release(asked: str | None, identity: Identity, where: str) -> None:
    """Refuse another release than the one that was asked for."""
    if asked is None or identity.release == asked:
        return
    if identity.release is None:
        raise VerificationError(
            Problem(
                where,
                f"an artifact for release {asked}",
                "a Python distribution, which serves every release",
                "ask for no release, or name the tarball",
            )
        )
    raise VerificationError(
        Problem(
            where,
            f"an artifact for release {asked}",
            f"one for release {identity.release}",
            f"download the one whose name has triton{asked}",
        )
    )


def json_object(content: bytes, where: str, remedy: str = _AGAIN) -> dict[str, Any]:
    """Read a JSON object."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise VerificationError(
            Problem(where, "JSON", f"something else ({error})", remedy)
        ) from error
    if not isinstance(value, dict):
        raise VerificationError(Problem(where, "a JSON object", type(value).__name__, remedy))
    return value


def text_of(values: Mapping[str, Any], key: str, where: str) -> str:
    """Return a text that has to be there."""
    value = values.get(key)
    if not isinstance(value, str) or not value:
        raise VerificationError(Problem(f"{where}: {key}", "a text", repr(value), _AGAIN))
    return value


def optional_text_of(values: Mapping[str, Any], key: str, where: str) -> str | None:
    """Return a text, or None where there is none."""
    return None if values.get(key) is None else text_of(values, key, where)


def build_info(content: bytes, where: str, remedy: str) -> Identity:
    """Read a BUILD_INFO.json."""
    values = json_object(content, where, remedy)
    return Identity(
        project_version=text_of(values, "project_version", where),
        release=text_of(values, "release", where),
        server_version=text_of(values, "server_version", where),
        source_commit=optional_text_of(values, "source_commit", where),
    )
