# SPDX-License-Identifier: Apache-2.0
"""Packs what was built into the artifact of one release.

``dist/<release>/`` then holds the tarball and all that describes it (`ci.describe`). The tarball is
one folder, ``jax/``: an operator unpacks it and runs ``scripts/install.sh``. The same inputs give
the same bytes: members are sorted, belong to nobody, and carry the time of the source.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ci.describe import Artifact, write_folder
from ci.locks import ACCELERATORS, PYTHONS, accelerator_lock_path, lock_path, pinned
from ci.process import ROOT, capture
from ci.provenance import source_commit
from ci.sbom import tarball_sbom
from ci.tarballs import DATA, PROGRAM, Packed, tar_gz
from tritonserver_jax import __version__
from tritonserver_jax.artifacts import layout
from tritonserver_jax.artifacts.checksums import format_checksums
from tritonserver_jax.artifacts.layout import TOP
from tritonserver_jax.releases import MINIMUM_BACKEND_API, Release

__all__ = ["PackageError", "package", "tarball_name"]

PACKAGING: Final = ROOT / "packaging"

_X86_64: Final = 62  # e_machine of ELF
_COMMENT = re.compile(r"\[\s*[0-9a-f]+\]\s+(.*)")


class PackageError(RuntimeError):
    """What should be packed is missing, or is not fit to be shipped."""


def tarball_name(release: Release) -> str:
    """Return the file name of a release's tarball."""
    return layout.tarball_name(__version__, release.release)


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
    commit = source_commit()
    info = _build_info(release, libraries, commit, source_date_epoch)
    members["BUILD_INFO.json"] = Packed(_json(info), DATA)
    digests = {name: hashlib.sha256(one.content).hexdigest() for name, one in members.items()}
    members["SHA256SUMS"] = Packed(format_checksums(digests), DATA)
    content = tar_gz(
        {f"{TOP}/{path}": member for path, member in members.items()}, source_date_epoch
    )
    name = tarball_name(release)
    sbom = tarball_sbom(
        name,
        content,
        {path: member.content for path, member in members.items()},
        release=release.release,
        epoch=source_date_epoch,
    )
    write_folder(
        output,
        [Artifact(name, "tarball", "linux-x86_64", content, sbom)],
        release=release,
        commit=commit,
        epoch=source_date_epoch,
    )
    return output / name


def _members(libraries: Sequence[Path], wheel: Path, *, for_tests: bool) -> dict[str, Packed]:
    """Collect everything but the two files that describe the rest."""
    expected = layout.wheel_name(__version__)
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
        members[name] = Packed(content, PROGRAM if executable else DATA)
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


def _build_info(
    release: Release, libraries: Sequence[Path], commit: str | None, epoch: int
) -> dict[str, object]:
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
        "source_commit": commit,
        "source_date_epoch": epoch,
        "pythons": list(PYTHONS),
        "jax": jax,
    }


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode()
