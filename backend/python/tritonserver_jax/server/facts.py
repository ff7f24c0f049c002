# SPDX-License-Identifier: Apache-2.0
"""Which release a server on the disk is, and which functions it has for a backend.

Nothing of the server is run or loaded: its version is read from the file that release images have,
and its functions from the symbol table of its library.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tritonserver_jax.elf import ElfError, read_elf
from tritonserver_jax.releases import ApiLevel, Release, load_releases
from tritonserver_jax.server.distribution import MARKER, SERVER_FOLDER

__all__ = ["IMAGE_ROOT", "ServerFacts", "find_servers", "releases_with", "server_facts"]

#: Where the server is in a release image.
IMAGE_ROOT: Final = Path("/opt/tritonserver")

_PREFIXES: Final = ("TRITONBACKEND_", "TRITONSERVER_")
#: These the C API has a backend implement: a server that has them exports nothing of the name.
_OF_BACKENDS: Final = frozenset({"TRITONBACKEND_ModelInstanceReady"})


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """A server as it lies on the disk.

    Attributes:
        root: The folder that holds ``bin`` and ``backends``.
        executable: The server; None where there is none.
        library: Its ``libtritonserver``; None where it was not found.
        functions: The functions of Triton's C APIs which that exports.
        server_version: What the server says it is; None where nothing says so.
        said_by: Where that is said.
        releases: The releases that it can be, the oldest first; more than one where only its
            functions tell, and none where nothing does.
        trouble: Why its functions are not known, where they are not.
    """

    root: Path
    executable: Path | None
    library: Path | None
    functions: frozenset[str]
    server_version: str | None
    said_by: str
    releases: tuple[Release, ...]
    trouble: str = ""

    @property
    def backend_api(self) -> ApiLevel | None:
        """The level of the backend API that it has at least, by the releases that it can be."""
        levels = [one.backend_api for one in self.releases if one.backend_api is not None]
        return min(levels, default=None)

    def describe(self) -> str:
        """Return which server it is, in words."""
        if self.server_version is not None:
            names = " or ".join(one.release for one in self.releases) or "no known release"
            return f"server version {self.server_version} ({names}), says {self.said_by}"
        if not self.releases:
            return "a server that nothing says the release of"
        first, last = self.releases[0].release, self.releases[-1].release
        span = first if first == last else f"one of {first} … {last}"
        return f"release {span}, by the functions of its library"


def server_facts(root: Path, env: Mapping[str, str] | None = None) -> ServerFacts:
    """Look at a server.

    Args:
        root: The folder that holds ``bin`` and ``backends``, as ``/opt/tritonserver``.
        env: The environment, in which release images say what they are; by default this one's.
    """
    root = root.absolute()
    executable: Path | None = root / "bin" / "tritonserver"
    library, functions, trouble = None, frozenset[str](), ""
    if executable is None or not executable.is_file():
        executable, trouble = None, f"there is no {root / 'bin' / 'tritonserver'}"
    else:
        try:
            library = read_elf(executable).find_library("libtritonserver")
            if library is None and (root / "lib" / "libtritonserver.so").is_file():
                library = root / "lib" / "libtritonserver.so"
            if library is None:
                trouble = f"the libtritonserver of {executable} was not found"
            else:
                names = read_elf(library).exported
                functions = frozenset(name for name in names if name.startswith(_PREFIXES))
        except (ElfError, OSError) as error:
            trouble = str(error)
    version, said_by = _version(root, os.environ if env is None else env)
    known = list(load_releases().values())
    if version is not None:
        fitting = [one for one in known if one.server_version == version]
    elif functions:
        fitting = releases_with(functions, known)
    else:
        fitting = []
    return ServerFacts(
        root, executable, library, functions, version, said_by, tuple(fitting), trouble
    )


def releases_with(functions: frozenset[str], releases: Iterable[Release]) -> list[Release]:
    """Return the releases whose C API has these functions, and no more of those that are known.

    Args:
        functions: What a server exports.
        releases: All releases, the oldest first.
    """
    fitting: list[Release] = []
    for release in releases:
        added = set(release.c_api_functions_added or ()) - _OF_BACKENDS
        if not added <= functions:
            break
        if added:
            fitting = []  # an older one would not have these
        fitting.append(release)
    return fitting


def _version(root: Path, env: Mapping[str, str]) -> tuple[str | None, str]:
    file = root / "TRITON_VERSION"
    if file.is_file():
        return file.read_text(encoding="utf-8", errors="replace").strip(), str(file)
    if root == IMAGE_ROOT:
        if said := env.get("TRITON_SERVER_VERSION"):
            return said, "$TRITON_SERVER_VERSION"
        release = load_releases().get(env.get("NVIDIA_TRITON_SERVER_VERSION", ""))
        if release is not None:
            return release.server_version, "$NVIDIA_TRITON_SERVER_VERSION"
    # One that was unpacked from a wheel: what unpacked it wrote down which wheel.
    above = list(root.parents)[len(SERVER_FOLDER.parts) - 1 :]
    if not above:
        return None, ""
    marker = above[0] / MARKER
    try:
        wheel = json.loads(marker.read_text(encoding="utf-8"))["wheel"]
    except (OSError, ValueError, KeyError, TypeError):
        return None, ""
    for release in load_releases().values():
        if release.server is not None and release.server.wheel == wheel:
            return release.server_version, "the wheel that it came in"
    return None, ""


def find_servers(cache: Path, env: Mapping[str, str] | None = None) -> list[Path]:
    """Return the roots of the servers on this machine: of an image, on PATH, in the cache."""
    env = os.environ if env is None else env
    found = [IMAGE_ROOT]
    for folder in env.get("PATH", "").split(os.pathsep):
        program = Path(folder, "tritonserver")
        if folder and os.access(program, os.X_OK):
            found.append(program.resolve().parent.parent)
    found += sorted((cache / "servers").glob(f"*/{SERVER_FOLDER}"))
    usable = [root for root in found if (root / "bin" / "tritonserver").is_file()]
    return list(dict.fromkeys(usable))
