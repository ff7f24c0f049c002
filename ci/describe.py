# SPDX-License-Identifier: Apache-2.0
"""Lays out a folder of artifacts: the artifacts themselves, and all that describes them.

`tritonserver_jax.artifacts.layout` has the names, and `tritonserver_jax.artifacts.verify` reads
what is written here.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ci.provenance import make_statement
from tritonserver_jax import __version__
from tritonserver_jax.artifacts import layout
from tritonserver_jax.artifacts.checksums import format_checksums
from tritonserver_jax.releases import Release

__all__ = ["Artifact", "write_folder"]

_DATA: Final = 0o644

#: How the files begin that are ours to remove when they are of an earlier build.
_OURS: Final = ("tritonserver-jax-", "tritonserver_jax-")


@dataclass(frozen=True, slots=True)
class Artifact:
    """One file that is released, and its SBOM.

    Attributes:
        name: The file name.
        kind: ``tarball``, ``wheel`` or ``sdist``.
        platform: What it runs on.
        content: The file.
        sbom: In CycloneDX.
    """

    name: str
    kind: str
    platform: str
    content: bytes
    sbom: bytes


def write_folder(
    output: Path,
    artifacts: Sequence[Artifact],
    *,
    release: Release | None,
    commit: str | None,
    epoch: int,
) -> None:
    """Write artifacts and what describes them; what is left of an earlier build is removed.

    Args:
        output: The folder, as in ``dist/24.10``.
        artifacts: What is released.
        release: The Triton release that they are for; None of a wheel and an sdist.
        commit: What they were built from.
        epoch: The time of every file in them, in seconds since 1970.
    """
    contents: dict[str, bytes] = {}
    entries: list[dict[str, object]] = []

    def add(name: str, content: bytes, **facts: str) -> None:
        contents[name] = content
        digest = hashlib.sha256(content).hexdigest()
        entries.append({"name": name, **facts, "size": len(content), "sha256": digest})

    for artifact in artifacts:
        add(artifact.name, artifact.content, kind=artifact.kind, platform=artifact.platform)
    for artifact in artifacts:
        name = artifact.name + layout.SBOM_SUFFIX
        add(name, artifact.sbom, kind="sbom", format="CycloneDX 1.6", of=artifact.name)
    subjects = {str(entry["name"]): str(entry["sha256"]) for entry in entries}
    statement = make_statement(
        subjects,
        release=None if release is None else release.release,
        commit=commit,
        epoch=epoch,
    )
    add(layout.PROVENANCE, statement, kind="provenance", format="in-toto statement, SLSA 1")
    listing: dict[str, object] = {
        "schema": layout.LISTING_SCHEMA,
        "project_version": __version__,
        "release": None if release is None else release.release,
        "server_version": None if release is None else release.server_version,
        "artifacts": entries,
    }
    contents[layout.LISTING] = (json.dumps(listing, indent=2) + "\n").encode()
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    contents[layout.CHECKSUMS] = format_checksums(digests)

    output.mkdir(parents=True, exist_ok=True)
    for old in output.iterdir():
        # Of another project version, or over other files: SHA256SUMS would not know it.
        if old.name in layout.SIGNATURES or (
            old.name.startswith(_OURS) and old.name not in contents
        ):
            old.unlink()
    for name, content in contents.items():
        _write(output / name, content)


def _write(path: Path, content: bytes) -> None:
    """Replace a file as a whole."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    fresh = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        fresh.chmod(_DATA)
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
