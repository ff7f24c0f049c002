# SPDX-License-Identifier: Apache-2.0
"""Whether an SBOM and a provenance are those of the artifacts that they lie beside."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tritonserver_jax.artifacts import layout
from tritonserver_jax.artifacts.checksums import sha256_of
from tritonserver_jax.artifacts.errors import Problem, VerificationError
from tritonserver_jax.artifacts.folder import Entry, Listing
from tritonserver_jax.artifacts.report import Findings, json_object
from tritonserver_jax.artifacts.signature import PublicKey, read_envelope

__all__ = ["PREDICATE", "STATEMENT", "check_provenance", "check_sbom"]

#: The type of an in-toto statement, and of what ours says.
STATEMENT: Final = "https://in-toto.io/Statement/v1"
PREDICATE: Final = "https://slsa.dev/provenance/v1"

_AGAIN: Final = "download it again"


def check_sbom(folder: Path, name: str, listing: Listing | None, found: Findings) -> None:
    """The SBOM is of this very artifact: its SHA-256 is in there."""
    sbom = name + layout.SBOM_SUFFIX
    if listing is not None and sbom not in listing.entries:
        raise VerificationError(
            Problem(layout.LISTING, f"{sbom}, the SBOM of {name}", "none", _AGAIN)
        )
    values = json_object((folder / sbom).read_bytes(), sbom)
    try:
        is_sbom = values["bomFormat"] == "CycloneDX"
        of = values["metadata"]["component"]
        digests = {one["alg"]: one["content"] for one in of["hashes"]}
        components = values["components"]
        amount = len(components)
    except (KeyError, TypeError) as error:
        raise VerificationError(
            Problem(sbom, "an SBOM in CycloneDX of one artifact", f"none ({error!r})", _AGAIN)
        ) from error
    if not is_sbom:
        raise VerificationError(
            Problem(sbom, "an SBOM in CycloneDX", repr(values["bomFormat"]), _AGAIN)
        )
    expected, got = sha256_of(folder / name), digests.get("SHA-256")
    if got != expected:
        raise VerificationError(
            Problem(
                sbom,
                f"the SBOM of {name}, SHA-256 {expected}",
                f"one of {of.get('name')} {of.get('version')}, SHA-256 {got}",
                "download the SBOM that belongs to it",
            )
        )
    found.ok("sbom", f"{sbom} is of {name} and has {amount} components")


def check_provenance(
    folder: Path,
    artifacts: Iterable[Entry],
    key: PublicKey | None,
    found: Findings,
) -> None:
    """The statement is about these very artifacts, and the envelope is around this statement."""
    where = layout.PROVENANCE
    if not (folder / where).is_file():
        raise VerificationError(Problem(where, "it", "none", _AGAIN))
    content = (folder / where).read_bytes()
    values = json_object(content, where)
    try:
        kinds = (values["_type"], values["predicateType"])
        subjects = {one["name"]: one["digest"]["sha256"] for one in values["subject"]}
        definition = values["predicate"]["buildDefinition"]
        builder = values["predicate"]["runDetails"]["builder"]["id"]
        sources = [
            one["digest"]["gitCommit"]
            for one in definition["resolvedDependencies"]
            if "gitCommit" in one["digest"]
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise VerificationError(
            Problem(where, "an in-toto statement of SLSA provenance", f"none ({error!r})", _AGAIN)
        ) from error
    if kinds != (STATEMENT, PREDICATE):
        raise VerificationError(
            Problem(where, f"{STATEMENT} with {PREDICATE}", " with ".join(map(str, kinds)), _AGAIN)
        )
    remedy = "download the provenance of the same build"
    for entry in artifacts:
        if entry.name == where:
            continue
        got = subjects.get(entry.name)
        if got != entry.sha256:
            raise VerificationError(
                Problem(
                    where,
                    f"the subject {entry.name}, SHA-256 {entry.sha256}",
                    "no such subject" if got is None else f"SHA-256 {got}",
                    remedy,
                )
            )
    commit = found.identity.source_commit
    if commit is not None and sources != [commit.removesuffix("-modified")]:
        raise VerificationError(
            Problem(where, f"the source commit {commit}", ", ".join(sources) or "none", remedy)
        )
    if commit is None and sources:
        found.identity.source_commit = sources[0]
    found.ok("provenance", f"{where} is about it: built by {builder}")
    envelope = folder / layout.ENVELOPE
    if envelope.is_file():
        payload = read_envelope(envelope.read_bytes(), layout.ENVELOPE, key)
        if payload != content:
            raise VerificationError(
                Problem(layout.ENVELOPE, f"the statement of {where}", "another one", remedy)
            )
        if key is not None:
            found.ok("signed provenance", f"{layout.ENVELOPE} is signed by {key.key_id[:16]}…")
