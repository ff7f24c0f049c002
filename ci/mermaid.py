# SPDX-License-Identifier: Apache-2.0
"""The program that draws the diagrams of the site, from the npm registry.

The theme would have each reader's browser load it from a server of others. So it is a part of the
site: one file of one package, downloaded once by npm and known by its hash.
"""

from __future__ import annotations

import base64
import hashlib
import shutil
import tarfile
import tempfile
from functools import partial
from pathlib import Path
from typing import Final

from ci import toolchain
from ci.process import run
from ci.toolchain import Requirement
from tritonserver_jax.server.distribution import default_cache_directory

__all__ = ["MermaidError", "mermaid_script"]

VERSION: Final = "11.17.2"
#: SHA-512 of the package, as the registry and lock files write it.
INTEGRITY: Final = (
    "sha512-"
    "V6K3C8EBdEsPFZXSKMJe6ppQOENxuHARr9GvHX4hh47lAbhMRD9qf4oEK7LoaRQxULMa80/qt5gHO73aCleBBg=="
)
_MEMBER: Final = "package/dist/mermaid.min.js"


class MermaidError(RuntimeError):
    """The package is not the one that is pinned."""


def mermaid_script(cache: Path | None = None) -> bytes:
    """Return the program, downloading its package if the cache does not have it.

    Args:
        cache: Where packages are kept, by default in the cache of the project.

    Raises:
        MermaidError: What was downloaded has another hash.
        CommandError: npm cannot download it.
        ToolchainError: There is no npm, and it cannot be installed.
    """
    folder = (default_cache_directory() if cache is None else cache) / "tools"
    package = folder / f"mermaid-{VERSION}.tgz"
    if not package.is_file() or _integrity(package) != INTEGRITY:
        folder.mkdir(parents=True, exist_ok=True)
        _download(package)
    with tarfile.open(package) as archive:
        member = archive.extractfile(_MEMBER)
        if member is None:
            raise MermaidError(f"{package}: expected {_MEMBER} in it, found none")
        return member.read()


def _download(package: Path) -> None:
    toolchain.ensure([Requirement("npm", "any", "npm", partial(shutil.which, "npm"))])
    with tempfile.TemporaryDirectory(dir=package.parent) as scratch:
        command = ["npm", "pack", f"mermaid@{VERSION}", "--silent", "--ignore-scripts"]
        run([*command, "--pack-destination", scratch], cwd=Path(scratch))
        found = Path(scratch, package.name)
        if not found.is_file():
            raise MermaidError(f"npm pack mermaid@{VERSION}: expected {package.name}, found none")
        got = _integrity(found)
        if got != INTEGRITY:
            raise MermaidError(
                f"mermaid {VERSION} from the npm registry: expected {INTEGRITY}, got {got}; "
                "do not use it: another package has that name there, or it was changed"
            )
        found.replace(package)


def _integrity(package: Path) -> str:
    with package.open("rb") as file:
        digest = hashlib.file_digest(file, "sha512").digest()
    return f"sha512-{base64.b64encode(digest).decode()}"
