# SPDX-License-Identifier: Apache-2.0
"""Packs what was built into the artifact of one release.

``dist/<release>/`` then holds the tarball, ``artifacts.json`` and ``SHA256SUMS``. The tarball is
one folder, ``jax/``: an operator unpacks it and runs ``scripts/install.sh``. The same inputs give
the same bytes: members are sorted, belong to nobody, and carry the time of the source.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ci.locks import ACCELERATORS, PYTHONS, accelerator_lock_path, lock_path, pinned
from ci.process import ROOT, capture
from tritonserver_jax import __version__
from tritonserver_jax.releases import MINIMUM_BACKEND_API, Release

__all__ = ["PackageError", "package", "tarball_name"]

PACKAGING: Final = ROOT / "packaging"
TOP: Final = "jax"

_PROGRAM: Final = 0o755
_DATA: Final = 0o644

_X86_64: Final = 62  # e_machine of ELF
_COMMENT = re.compile(r"\[\s*[0-9a-f]+\]\s+(.*)")


class PackageError(RuntimeError):
    """What should be packed is missing, or is not fit to be shipped."""


@dataclass(frozen=True, slots=True)
class _Member:
    content: bytes
    mode: int


def tarball_name(release: Release) -> str:
    """Return the file name of a release's tarball."""
    return f"tritonserver-jax-{__version__}-triton{release.release}-linux-x86_64.tar.gz"


def package(
    release: Release,
    *,
    libraries: Sequence[Path],
    wheel: Path,
    output: Path,
    source_date_epoch: int,
    for_tests: bool = False,
) -> Path:
    """Make the artifact of one release.

    Args:
        release: The release it is for.
        libraries: The native libraries, ``libtriton_jax.so`` among them.
        wheel: The wheel of this project, of this version.
        output: Where to put it, as in ``dist/24.10``.
        source_date_epoch: The time of every file in it, in seconds since 1970.
        for_tests: Whether the libraries may hold paths of this machine, as sanitizers put there.

    Returns:
        The tarball.

    Raises:
        PackageError: Something is missing, or must not be shipped.
    """
    members = _members(libraries, wheel, for_tests=for_tests)
    members["BUILD_INFO.json"] = _Member(
        _json(_build_info(release, libraries, source_date_epoch)), _DATA
    )
    members["SHA256SUMS"] = _Member(
        _checksums({name: member.content for name, member in members.items()}), _DATA
    )
    content = _tar_gz(members, source_date_epoch)

    tarball = output / tarball_name(release)
    listing = _json(
        {
            "project_version": __version__,
            "release": release.release,
            "server_version": release.server_version,
            "artifacts": [
                {
                    "name": tarball.name,
                    "kind": "tarball",
                    "platform": "linux-x86_64",
                    "size": len(content),
                    "sha256": hashlib.sha256(content).hexdigest(),
                }
            ],
        }
    )
    output.mkdir(parents=True, exist_ok=True)
    for old in output.glob("tritonserver-jax-*.tar.gz"):
        if old != tarball:
            old.unlink()  # of another project version: SHA256SUMS would not know it
    _write(tarball, content)
    _write(output / "artifacts.json", listing)
    checksums = _checksums({tarball.name: content, "artifacts.json": listing})
    _write(output / "SHA256SUMS", checksums)
    return tarball


def _members(libraries: Sequence[Path], wheel: Path, *, for_tests: bool) -> dict[str, _Member]:
    """Collect everything but the two files that describe the rest."""
    expected = f"tritonserver_jax-{__version__}-py3-none-any.whl"
    if wheel.name != expected:
        raise PackageError(f"wheel: expected {expected}, got {wheel.name}; build it again")
    sources = {
        "LICENSE": ROOT / "LICENSE",
        "config.pbtxt": PACKAGING / "config.pbtxt",
        f"wheel/{wheel.name}": wheel,
    }
    for script in ("health_check.py", "install.sh", "setup_env.sh"):
        sources[f"scripts/{script}"] = PACKAGING / "scripts" / script
    for python in PYTHONS:
        accelerators = (accelerator_lock_path(name, python) for name in ACCELERATORS)
        for lock in (lock_path(python), *accelerators):
            sources[f"locks/{lock.name}"] = lock
    for library in libraries:
        sources[f"lib/{library.name}"] = library
    if "lib/libtriton_jax.so" not in sources:
        names = ", ".join(library.name for library in libraries) or "none"
        raise PackageError(f"libraries: expected libtriton_jax.so among them, got {names}")

    members = {}
    for name, path in sources.items():
        try:
            content = path.read_bytes()
        except OSError as error:
            raise PackageError(f"{path}: cannot be read: {error.strerror}") from error
        if name.startswith("lib/"):
            _check_library(path, content, for_tests=for_tests)
        executable = name.startswith(("lib/", "scripts/"))
        members[name] = _Member(content, _PROGRAM if executable else _DATA)
    return members


def _check_library(path: Path, content: bytes, *, for_tests: bool) -> None:
    machine = int.from_bytes(content[18:20], "little")
    if not content.startswith(b"\x7fELF\x02\x01") or machine != _X86_64:
        raise PackageError(f"{path}: expected a 64-bit x86_64 ELF library, got another file")
    if not for_tests and str(ROOT).encode() in content:
        raise PackageError(
            f"{path}: holds the path of the checkout ({ROOT}), so that a build elsewhere would "
            "differ; build it with -ffile-prefix-map, as the CMake presets do"
        )


def _compiler(library: Path) -> str | None:
    """Return what the compiler wrote about itself into a library."""
    dump = capture(["readelf", "--string-dump=.comment", library]) or ""
    found = [match.group(1).strip() for match in map(_COMMENT.search, dump.splitlines()) if match]
    return "; ".join(sorted(set(found))) or None


def _source_commit() -> str | None:
    """Return the commit that was built, marked when the checkout had other changes."""
    commit = capture(["git", "rev-parse", "HEAD"], cwd=ROOT)
    if commit is None:
        return None
    changes = capture(["git", "status", "--porcelain", "--untracked-files=no"], cwd=ROOT)
    return f"{commit}-modified" if changes else commit


def _build_info(release: Release, libraries: Sequence[Path], epoch: int) -> dict[str, object]:
    """Describe the artifact; install.sh reads the top-level strings of it with sed."""
    core = next(library for library in libraries if library.name == "libtriton_jax.so")
    jax = {}
    for python in PYTHONS:
        versions = pinned(lock_path(python))
        if "jax" not in versions:
            raise PackageError(f"{lock_path(python)}: expected jax in it, found none")
        jax[python] = versions["jax"]
    return {
        "project_version": __version__,
        "release": release.release,
        "server_version": release.server_version,
        "backend_api_needed": str(MINIMUM_BACKEND_API),
        "backend_api_of_release": None if release.backend_api is None else str(release.backend_api),
        "architecture": "x86_64",
        "compiler": _compiler(core),
        "source_commit": _source_commit(),
        "source_date_epoch": epoch,
        "pythons": list(PYTHONS),
        "jax": jax,
    }


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode()


def _checksums(files: Mapping[str, bytes]) -> bytes:
    """Return what ``sha256sum --check`` reads."""
    lines = [f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files)]
    return "".join(lines).encode()


def _tar_gz(members: Mapping[str, _Member], epoch: int) -> bytes:
    folders = {
        str(parent) for name in members for parent in Path(TOP, name).parents if str(parent) != "."
    }
    files = {f"{TOP}/{name}": member for name, member in members.items()}
    buffer = io.BytesIO()
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=buffer, compresslevel=9, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for name in sorted([*folders, *files]):
            entry = tarfile.TarInfo(name)
            entry.mtime = epoch  # and uid, gid 0 without names, which is TarInfo's beginning
            member = files.get(name)
            if member is None:
                entry.type = tarfile.DIRTYPE
                entry.mode = _PROGRAM
                archive.addfile(entry)
            else:
                entry.mode = member.mode
                entry.size = len(member.content)
                archive.addfile(entry, io.BytesIO(member.content))
    return buffer.getvalue()


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
