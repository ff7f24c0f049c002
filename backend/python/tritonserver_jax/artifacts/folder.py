# SPDX-License-Identifier: Apache-2.0
"""What a folder of artifacts says about them: ``SHA256SUMS`` and ``artifacts.json``."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tritonserver_jax.artifacts import layout
from tritonserver_jax.artifacts.checksums import parse_checksums, sha256_of
from tritonserver_jax.artifacts.errors import Problem, VerificationError
from tritonserver_jax.artifacts.keyless import SigstoreIdentity, check_bundle
from tritonserver_jax.artifacts.report import (
    Findings,
    Identity,
    json_object,
    optional_text_of,
    text_of,
)
from tritonserver_jax.artifacts.signature import PublicKey

__all__ = [
    "Entry",
    "Folder",
    "Listing",
    "Signer",
    "check_files",
    "check_plain",
    "compare",
    "file_problem",
    "released",
]

_AGAIN: Final = "download it again"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of artifacts.json."""

    name: str
    kind: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Listing:
    """artifacts.json."""

    identity: Identity
    entries: dict[str, Entry]


@dataclass(frozen=True, slots=True)
class Signer:
    """Who has to have signed: whoever is named here."""

    key: PublicKey | None = None
    identity: SigstoreIdentity | None = None

    @property
    def named(self) -> bool:
        """Whether a signature is asked for."""
        return self.key is not None or self.identity is not None


@dataclass(frozen=True, slots=True)
class Folder:
    """What a folder says about its artifacts."""

    digests: dict[str, str]
    listing: Listing | None

    @classmethod
    def read(
        cls, folder: Path, signer: Signer, found: Findings, *, only: str | None = None
    ) -> Folder:
        """Read SHA256SUMS, the signature first, and artifacts.json.

        With `only`, artifacts.json need not be there: a person may have downloaded one file and
        its checksum.
        """
        path = folder / layout.CHECKSUMS
        check_plain(path)
        content = path.read_bytes()
        _check_signature(folder, content, signer, found)
        digests = parse_checksums(content, layout.CHECKSUMS)
        for name in digests:
            if "/" in name or name in (layout.CHECKSUMS, *layout.SIGNATURES):
                raise VerificationError(
                    Problem(layout.CHECKSUMS, "files of its folder", repr(name), _AGAIN)
                )
        if only is not None and only not in digests:
            raise VerificationError(
                Problem(
                    layout.CHECKSUMS,
                    f"a line for {only}",
                    f"lines for {', '.join(sorted(digests))}",
                    f"put {only} beside the {layout.CHECKSUMS} that it came with; was it renamed?",
                )
            )
        if layout.LISTING not in digests:
            raise VerificationError(
                Problem(layout.CHECKSUMS, f"a line for {layout.LISTING}", "none", _AGAIN)
            )
        listing = folder / layout.LISTING
        if only is not None and not listing.exists():
            return cls(digests, None)
        problem = file_problem(folder, layout.LISTING, digests[layout.LISTING], _AGAIN)
        if problem is not None:
            raise VerificationError(problem)
        return cls(digests, _read_listing(listing.read_bytes(), digests))


def released(folder: Path, listing: Listing) -> list[Entry]:
    """Return the artifacts of a listing; every file has the size, and the kind, that it says.

    Raises:
        VerificationError: One has not, or there is no artifact.
    """
    problems = []
    for entry in listing.entries.values():
        size = (folder / entry.name).stat().st_size
        if size != entry.size:
            problems.append(Problem(entry.name, f"{entry.size} bytes", str(size), _AGAIN))
        if entry.name.endswith((".tar.gz", ".whl")) and entry.kind not in layout.NEEDS_SBOM:
            kinds = ", ".join(layout.NEEDS_SBOM)
            where = f"{layout.LISTING}: {entry.name}: kind"
            problems.append(Problem(where, f"one of {kinds}", repr(entry.kind), _AGAIN))
    artifacts = [entry for entry in listing.entries.values() if entry.kind in layout.NEEDS_SBOM]
    if not artifacts:
        problems.append(Problem(layout.LISTING, "an artifact", "none", _AGAIN))
    if problems:
        raise VerificationError(*problems)
    return artifacts


def check_plain(path: Path) -> None:
    """Refuse what is no file of its own: a link may lead anywhere, and elsewhere tomorrow."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError as error:
        raise VerificationError(
            Problem(str(path), "a file", "none", "check the name, or download it")
        ) from error
    if not stat.S_ISREG(mode):
        got = "a link" if stat.S_ISLNK(mode) else "something else"
        remedy = "name, or put there, the file itself"
        raise VerificationError(Problem(str(path), "a plain file", got, remedy))


def file_problem(folder: Path, name: str, digest: str, remedy: str) -> Problem | None:
    """Say what is wrong with a file that has to be there."""
    path = folder / name
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return Problem(name, f"a file of SHA-256 {digest}", "none", remedy)
    if not stat.S_ISREG(mode):
        return Problem(name, "a plain file", "a link, a folder or a device", remedy)
    got = sha256_of(path)
    return None if got == digest else Problem(name, f"SHA-256 {digest}", got, remedy)


def compare(name: str, got: str, expected: str | None) -> None:
    """Compare a SHA-256 with the one that is listed, if one is."""
    if expected is None:
        remedy = f"put it beside the {layout.CHECKSUMS} that it came with"
        raise VerificationError(
            Problem(name, f"a line for it in {layout.CHECKSUMS}", "none", remedy)
        )
    if got != expected:
        raise VerificationError(Problem(name, f"SHA-256 {expected}", got, _AGAIN))


def check_files(folder: Path, digests: Mapping[str, str], found: Findings) -> None:
    """Every file that is listed, and no other."""
    problems = [
        problem
        for name, digest in digests.items()
        if (problem := file_problem(folder, name, digest, _AGAIN)) is not None
    ]
    known = {*digests, layout.CHECKSUMS, *layout.SIGNATURES}
    problems += [
        Problem(
            entry.name,
            f"only what {layout.CHECKSUMS} lists",
            "another file",
            "move it away, or download the whole folder again",
        )
        for entry in sorted(folder.iterdir())
        if entry.name not in known
    ]
    if problems:
        raise VerificationError(*problems)
    found.ok("checksums", f"{len(digests)} files are those of {layout.CHECKSUMS}, and no other")


def _read_listing(content: bytes, digests: Mapping[str, str]) -> Listing:
    """Read artifacts.json, and compare it with SHA256SUMS."""
    where = layout.LISTING
    values = json_object(content, where)
    schema = values.get("schema")
    if schema != layout.LISTING_SCHEMA:
        remedy = "verify it with the tritonserver-jax of its own version"
        raise VerificationError(
            Problem(f"{where}: schema", str(layout.LISTING_SCHEMA), repr(schema), remedy)
        )
    entries: dict[str, Entry] = {}
    listed = values.get("artifacts")
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise VerificationError(Problem(f"{where}: artifacts", "a list", repr(listed), _AGAIN))
    for one in listed:
        name, size = text_of(one, "name", where), one.get("size")
        if not isinstance(size, int):
            raise VerificationError(
                Problem(f"{where}: {name}: size", "a number of bytes", repr(size), _AGAIN)
            )
        if name in entries:
            raise VerificationError(Problem(f"{where}: {name}", "it once", "it twice", _AGAIN))
        entries[name] = Entry(
            name, text_of(one, "kind", where), size, text_of(one, "sha256", where)
        )
    expected = {name: digest for name, digest in digests.items() if name != layout.LISTING}
    got = {name: entry.sha256 for name, entry in entries.items()}
    if got != expected:
        names = sorted(name for name, _ in set(got.items()) ^ set(expected.items()))
        raise VerificationError(
            Problem(
                where,
                f"the files and digests of {layout.CHECKSUMS}",
                f"other ones for {', '.join(names)}",
                "download both again: they are not of the same build",
            )
        )
    identity = Identity(
        project_version=text_of(values, "project_version", where),
        release=optional_text_of(values, "release", where),
        server_version=optional_text_of(values, "server_version", where),
    )
    return Listing(identity, entries)


def _check_signature(folder: Path, content: bytes, signer: Signer, found: Findings) -> None:
    """The signature over SHA256SUMS, before anything in it is believed."""
    if signer.identity is not None:
        check_bundle(folder, signer.identity)
        found.ok("signature", f"{layout.CHECKSUMS} is signed by {signer.identity.identity}")
    key = signer.key
    path = folder / layout.SIGNATURE
    if key is None and signer.identity is not None:
        return
    if key is None:
        found.unchecked(
            "signature",
            f"no public key was given to check {layout.SIGNATURE} with"
            if path.is_file()
            else f"it is not signed by a key: there is no {layout.SIGNATURE}",
        )
        return
    if not path.is_file():
        raise VerificationError(
            Problem(
                layout.SIGNATURE,
                f"a signature by the key {key.key_id[:16]}… ({key.where})",
                "none",
                "download it too; what is not signed cannot be trusted to be ours",
            )
        )
    key.check(path.read_bytes(), content, file=layout.SIGNATURE, of=layout.CHECKSUMS)
    found.ok("signature", f"{layout.CHECKSUMS} is signed by the key {key.key_id[:16]}…")
