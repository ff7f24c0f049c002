# SPDX-License-Identifier: Apache-2.0
"""Whether what was downloaded, or is installed, is what was released.

`verify_directory` looks at a whole folder of artifacts, `verify_artifact` at one file and what lies
beside it, `verify_installation` at a backend in a server's backend directory. Each returns a
`Report` of what was checked and what could not be, or raises a `VerificationError` that says which
file is wrong, what was expected, what is there, and what to do.

Without a key this shows that the files belong together and are undamaged. *Who* made them, only a
signature says: give the public key that the project publishes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tritonserver_jax.artifacts import layout
from tritonserver_jax.artifacts.archives import read_tar
from tritonserver_jax.artifacts.checksums import parse_checksums, sha256_of
from tritonserver_jax.artifacts.content import check_content, kind_of
from tritonserver_jax.artifacts.descriptions import check_provenance, check_sbom
from tritonserver_jax.artifacts.errors import Problem, VerificationError
from tritonserver_jax.artifacts.folder import (
    Entry,
    Folder,
    Signer,
    check_files,
    check_plain,
    compare,
    file_problem,
    released,
)
from tritonserver_jax.artifacts.keyless import SigstoreIdentity
from tritonserver_jax.artifacts.report import (
    Check,
    Findings,
    Report,
    adopt,
    build_info,
    check_release,
)
from tritonserver_jax.artifacts.signature import load_public_key

__all__ = ["Check", "Report", "verify_artifact", "verify_directory", "verify_installation"]

_AGAIN: Final = "download it again"

#: What a server's folder of the backend may hold beside what was installed.
_ENVIRONMENT: Final = "env"


def verify_directory(
    path: Path,
    *,
    release: str | None = None,
    public_key: Path | None = None,
    identity: SigstoreIdentity | None = None,
) -> Report:
    """Verify a folder of artifacts, such as ``dist/24.10``: every file of it, and no other.

    Args:
        path: The folder.
        release: The Triton release that it has to be for; any when not given.
        public_key: A PEM file with the key that has to have signed it.
        identity: Whose identity has to have signed it, by Sigstore. With neither, signatures are
            not checked.

    Raises:
        VerificationError: Something is not what was released.
        OSError: A file cannot be read.
    """
    key = None if public_key is None else load_public_key(public_key)
    signer = Signer(key, identity)
    found = Findings()
    if not path.is_dir():
        remedy = "name the folder that has artifacts.json, or one artifact"
        raise VerificationError(Problem(str(path), "a folder", "none", remedy))
    beside = Folder.read(path, signer, found)
    check_files(path, beside.digests, found)
    listing = beside.listing
    if listing is None:
        raise AssertionError("without `only`, a folder has a listing or is refused")
    adopt(found.identity, listing.identity, layout.LISTING)
    check_release(release, found.identity, path.name)
    for entry in released(path, listing):
        check_content(path / entry.name, entry.kind, found)
        check_sbom(path, entry.name, listing, found)
    check_provenance(path, listing.entries.values(), key, found)
    return found.report(path, "directory")


def verify_artifact(
    file: Path,
    *,
    release: str | None = None,
    public_key: Path | None = None,
    identity: SigstoreIdentity | None = None,
    sha256: str | None = None,
) -> Report:
    """Verify one tarball, wheel or sdist, and what lies beside it and says something about it.

    Args:
        file: The artifact.
        release: The Triton release that it has to be for; any when not given.
        public_key: A PEM file with the key that has to have signed the ``SHA256SUMS`` beside it.
        identity: Whose identity has to have signed that, by Sigstore.
        sha256: What its SHA-256 has to be; as on a page, or in the fragment of a URL.

    Raises:
        VerificationError: It is not what was released.
        OSError: It cannot be read.
    """
    key = None if public_key is None else load_public_key(public_key)
    signer = Signer(key, identity)
    found = Findings()
    check_plain(file)
    kind = kind_of(file)
    digest = sha256_of(file)
    if sha256 is not None:
        if digest != sha256.lower():
            raise VerificationError(Problem(file.name, f"SHA-256 {sha256}", digest, _AGAIN))
        found.ok("sha256", f"{file.name} has the SHA-256 that was asked for")
    folder = file.absolute().parent
    beside = None
    if (folder / layout.CHECKSUMS).is_file():
        beside = Folder.read(folder, signer, found, only=file.name)
        compare(file.name, digest, beside.digests[file.name])
        found.ok("checksums", f"{file.name} is the one in {layout.CHECKSUMS}")
        if beside.listing is not None:
            adopt(found.identity, beside.listing.identity, layout.LISTING)
    elif signer.named:
        raise VerificationError(
            Problem(
                layout.CHECKSUMS,
                f"it beside {file.name}, signed",
                "none",
                f"download {layout.CHECKSUMS} and {layout.SIGNATURE} of the same release",
            )
        )
    else:
        found.unchecked(
            "checksums", f"there is no {layout.CHECKSUMS} beside {file.name}: download it as well"
        )
        found.unchecked("signature", f"there is no {layout.CHECKSUMS} that could be signed")
    check_content(file, kind, found)
    check_release(release, found.identity, file.name)
    sbom = file.name + layout.SBOM_SUFFIX
    if _described(sbom, "sbom", file, beside, found):
        check_sbom(folder, file.name, None if beside is None else beside.listing, found)
    if _described(layout.PROVENANCE, "provenance", file, beside, found):
        entry = Entry(file.name, kind, file.stat().st_size, digest)
        check_provenance(folder, [entry], key, found)
    return found.report(file, kind)


def _described(name: str, what: str, file: Path, beside: Folder | None, found: Findings) -> bool:
    """Say whether a file that describes an artifact lies beside it, unchanged."""
    path = file.absolute().parent / name
    if not path.is_file():
        found.unchecked(what, f"there is no {name} beside {file.name}")
        return False
    check_plain(path)
    if beside is not None:
        compare(name, sha256_of(path), beside.digests.get(name))
    return True


def verify_installation(
    directory: Path, *, release: str | None = None, tarball: Path | None = None
) -> Report:
    """Verify an installed backend: ``<backends>/jax``, without its Python environment.

    Args:
        directory: The folder.
        release: The Triton release that it has to be for; any when not given.
        tarball: A verified tarball, whose very files have to be there. Without one they are
            compared with the ``SHA256SUMS`` that was installed with them: that shows damage, and
            no intent.

    Raises:
        VerificationError: A file is missing, was changed, or must not be there.
        OSError: A file cannot be read.
    """
    found = Findings()
    remedy = "run install.sh of the tarball again"
    sums = directory / "SHA256SUMS"
    if not sums.is_file():
        raise VerificationError(
            Problem(
                str(sums),
                "it, in an installed backend",
                "none",
                "name <backends>/jax, or install the backend",
            )
        )
    digests = parse_checksums(sums.read_bytes(), str(sums))
    problems = [
        problem
        for name, digest in digests.items()
        if (problem := file_problem(directory, name, digest, remedy)) is not None
    ]
    present = {
        str(path.relative_to(directory)): path
        for entry in sorted(directory.iterdir())
        if entry.name != _ENVIRONMENT
        for path in ([entry] if entry.is_symlink() or not entry.is_dir() else entry.rglob("*"))
        if path.is_symlink() or not path.is_dir()
    }
    extra = sorted(set(present) - set(digests) - {"SHA256SUMS"})
    problems += [
        Problem(
            name,
            "no such file in the backend's folder",
            "one, which makes Triton take the folder for a Python-based backend",
            "remove it",
        )
        for name in extra
        if name.rsplit("/", 1)[-1] == "model.py"
    ]
    if problems:
        raise VerificationError(*problems)
    found.ok("checksums", f"{len(digests)} files are those that were installed")
    info = build_info((directory / "BUILD_INFO.json").read_bytes(), "BUILD_INFO.json", remedy)
    adopt(found.identity, info, "BUILD_INFO.json")
    check_release(release, found.identity, str(directory))
    if tarball is None:
        found.unchecked("tarball", "no tarball was given to compare it with")
    else:
        _check_installed_from(tarball, digests, remedy)
        found.ok("tarball", f"they are those of {tarball.name}")
    if extra:
        found.unchecked("other files", f"not from the tarball: {', '.join(extra)}")
    return found.report(directory, "installation")


def _check_installed_from(tarball: Path, digests: Mapping[str, str], remedy: str) -> None:
    members = read_tar(tarball)
    # install.sh lays lib/ flat, and writes a SHA256SUMS of its own.
    released = {
        name.removeprefix("lib/"): member.sha256
        for name, member in members.items()
        if name != "SHA256SUMS"
    }
    if released == digests:
        return
    raise VerificationError(
        *(
            Problem(
                name,
                f"the one of {tarball.name}",
                "none" if name not in digests else "another one",
                remedy,
            )
            for name in sorted(released)
            if digests.get(name) != released[name]
        ),
        *(
            Problem(name, f"none, as in {tarball.name}", "one", remedy)
            for name in sorted(set(digests) - set(released))
        ),
    )
