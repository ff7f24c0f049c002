# SPDX-License-Identifier: Apache-2.0
"""What a native library gives to and takes from the server and the system, read from its symbols.

Triton opens a backend with every symbol bound at once, so one function that a release does not
have is enough for the backend not to load there; the same holds for the versions of symbols that
the libraries of its image do not have. And whatever a backend exports can clash with another
backend in the same process.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from ci.process import ROOT, capture
from tritonserver_jax.releases import Release

#: The functions of the oldest release's C API. What was added since is in releases.toml.
OLDEST_C_API = ROOT / "ci" / "c_api_23.04.txt"

#: What Triton looks up in a backend, and all that the core may export.
EXPORTED_PREFIX = "TRITONBACKEND_"
#: How the functions begin which the server provides.
SERVER_PREFIXES = ("TRITONBACKEND_", "TRITONSERVER_")


class SymbolError(RuntimeError):
    """A library exports or needs what it must not."""


def _symbols(library: Path, selection: str) -> set[str]:
    text = capture(["nm", "--dynamic", "--format=posix", selection, library])
    if text is None:
        tool = "nm is there" if shutil.which("nm") else "there is no nm: install binutils"
        raise SymbolError(f"cannot read the symbols of {library} ({tool})")
    return {line.split()[0].partition("@")[0] for line in text.splitlines() if line.strip()}


def exported(library: Path) -> set[str]:
    """Returns the names that a library exports."""
    return _symbols(library, "--defined-only")


def required(library: Path) -> set[str]:
    """Returns the names that a library needs from others."""
    return _symbols(library, "--undefined-only")


class Versioned(NamedTuple):
    """A symbol of the system's libraries, in the version that is needed: GLIBC_2.34."""

    name: str
    family: str
    version: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.name} of {self.family}_{'.'.join(map(str, self.version))}"


_VERSIONED = re.compile(r"\bUND\s+(\w+)@+(GLIBC|GLIBCXX|CXXABI)_([0-9]+(?:\.[0-9]+)*)\b")


def versioned(library: Path) -> list[Versioned]:
    """Returns the symbols of the system's libraries which a library needs, the newest last."""
    text = capture(["readelf", "--dyn-syms", "--wide", library])
    if text is None:
        tool = "readelf is there" if shutil.which("readelf") else "install binutils for readelf"
        raise SymbolError(f"cannot read the symbol versions of {library} ({tool})")
    found = [
        Versioned(name, family, tuple(map(int, version.split("."))))
        for name, family, version in _VERSIONED.findall(text)
    ]
    return sorted(found, key=lambda symbol: (symbol.family, symbol.version, symbol.name))


def c_api(release: Release, releases: Iterable[Release]) -> set[str]:
    """Returns the functions of a release's C API.

    Args:
        release: The release. Where it is not known what it added, that is left out.
        releases: All releases, the oldest first.
    """
    lines = OLDEST_C_API.read_text(encoding="utf-8").splitlines()
    functions = {line for line in lines if not line.startswith("#")}
    for one in releases:
        functions.update(one.c_api_functions_added or ())
        if one.release == release.release:
            break
    return functions


def unknown_to(release: Release, names: Iterable[str], releases: Collection[Release]) -> list[str]:
    """Returns those of the names which the C API of a release does not have.

    Args:
        release: The release that has to provide them.
        names: Names that a library needs.
        releases: All releases, the oldest first.
    """
    return sorted(set(names) - c_api(release, releases))


def check_core(library: Path, release: Release, releases: Collection[Release]) -> None:
    """Checks that a release can load the core, and that the core exports what it should.

    Raises:
        SymbolError: It exports more than Triton's entry points, or none of them, or needs Python
            or functions that the release does not have.
    """
    names = exported(library)
    foreign = sorted(name for name in names if not name.startswith(EXPORTED_PREFIX))
    if foreign or not names:
        raise SymbolError(
            f"{library.name}: expected to export {EXPORTED_PREFIX}* and nothing else, "
            f"got {', '.join(foreign) or 'nothing'}; see its list of exports"
        )
    needed = required(library)
    python = sorted(name for name in needed if name.startswith(("Py", "_Py")))
    if python:
        raise SymbolError(
            f"{library.name}: expected no symbol of Python, got {', '.join(python)}; "
            "only the engine may use Python"
        )
    check_functions(library, release, releases)


def check_functions(library: Path, release: Release, releases: Collection[Release]) -> None:
    """Checks that a release has every function of the server which a library links to.

    Raises:
        SymbolError: It needs functions that the release does not have.
    """
    needed = {name for name in required(library) if name.startswith(SERVER_PREFIXES)}
    newer = unknown_to(release, needed, releases)
    if newer:
        raise SymbolError(
            f"{library.name} cannot be loaded by {release.release}, which does not have "
            f"{', '.join(newer)}; look these up at run time instead of linking to them"
        )


def check_system(library: Path, release: Release) -> None:
    """Checks that the image of a release has the system libraries which a library needs.

    Raises:
        SymbolError: It needs newer ones.
    """
    has = release.libraries
    newest = {"GLIBC": has.glibc, "GLIBCXX": has.glibcxx, "CXXABI": has.cxxabi}
    newer = [symbol for symbol in versioned(library) if symbol.version > newest[symbol.family]]
    if newer:
        levels = ", ".join(f"{name}_{'.'.join(map(str, one))}" for name, one in newest.items())
        raise SymbolError(
            f"{library.name} cannot be loaded in the image of {release.release} (Ubuntu "
            f"{release.ubuntu}), which has {levels} at most: it needs "
            f"{', '.join(map(str, newer))}. This machine's compiler is newer than that image's: "
            "define them in backend/src/portability/older_systems.cc, or build in the image of "
            "the release or another system of its age"
        )
