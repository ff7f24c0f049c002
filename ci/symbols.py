# SPDX-License-Identifier: Apache-2.0
"""What a native library gives to and takes from the server, read from its dynamic symbols.

Triton opens a backend with every symbol bound at once, so one function that a release does not
have is enough for the backend not to load there. And whatever a backend exports can clash with
another backend in the same process.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable
from pathlib import Path

from ci.process import capture
from tritonserver_jax.releases import Release

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


def unknown_to(release: Release, names: Iterable[str], releases: Collection[Release]) -> list[str]:
    """Returns those of the names which came to the C API after a release.

    Args:
        release: The release that has to provide them.
        names: Names that a library needs.
        releases: All releases, the oldest first.
    """
    ordered = list(releases)
    later = ordered[ordered.index(release) + 1 :]
    added = {name for newer in later for name in newer.c_api_functions_added or ()}
    return sorted(added.intersection(names))


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
