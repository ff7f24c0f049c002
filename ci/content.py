# SPDX-License-Identifier: Apache-2.0
"""What the artifacts are to hold: a list for the tarball, the wheel and the sdist each.

A file that appears in an artifact, or vanishes from it, is a decision and not an accident: the
tests compare what was built with these lists, and lint does so from the source, without a build.
``python -m ci.content`` writes them anew, ``--check`` says where they are out of date.

The sdist is the repository's own files; its list has a line for each kind of file in a folder
(``tests/unit/*.py``), because each single name is in git already.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from ci.locks import ACCELERATORS, PYTHONS, accelerator_lock_path, lock_path
from ci.process import ROOT, CommandError, capture, fail
from tritonserver_jax.artifacts.layout import wheel_name

__all__ = [
    "LISTS",
    "VERSION",
    "ContentError",
    "check_content_lists",
    "condensed",
    "expected",
    "listed",
    "write_content_lists",
]

#: Where the lists are.
LISTS: Final = ROOT / "tests" / "artifacts" / "content"

#: What stands in a list for the project version.
VERSION: Final = "<version>"

_PACKAGE: Final = "backend/python/"
_HEADER: Final = "# Made by `python -m ci.content`: read the difference before you commit it.\n"


class ContentError(RuntimeError):
    """A list is not what the source says."""


def _tracked() -> list[str]:
    """Every file of the repository, those included that are not committed yet."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = capture(command)
    if listing is None:
        raise ContentError("git: expected a checkout to list the files of, found none")
    return sorted(name for name in listing.split("\0") if name and (ROOT / name).is_file())


def _tarball() -> list[str]:
    locks = [lock_path(python) for python in PYTHONS]
    locks += [accelerator_lock_path(one, python) for one in ACCELERATORS for python in PYTHONS]
    return [
        *("BUILD_INFO.json", "LICENSE", "SHA256SUMS", "config.pbtxt"),
        *("lib/libtriton_jax.so", "lib/libtriton_jax_python.so"),
        *(f"locks/{lock.name}" for lock in locks),
        *(f"scripts/{name}" for name in ("health_check.py", "install.sh", "setup_env.sh")),
        f"wheel/{wheel_name(VERSION)}",
    ]


def _wheel(tracked: Iterable[str]) -> list[str]:
    info = f"tritonserver_jax-{VERSION}.dist-info"
    files = [name[len(_PACKAGE) :] for name in tracked if name.startswith(_PACKAGE)]
    files += ["tritonserver_jax/releases.toml"]
    metadata = ["METADATA", "RECORD", "WHEEL", "licenses/LICENSE"]
    if _has_command():
        metadata.append("entry_points.txt")
    return [*files, *(f"{info}/{name}" for name in metadata)]


def _has_command() -> bool:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return "\n[project.scripts]\n" in text


def _sdist(tracked: Iterable[str]) -> list[str]:
    """What pyproject.toml includes, and what hatchling adds."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    include = project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    roots = [pattern.removeprefix("/") for pattern in include]
    files = [name for name in tracked if any(name == r or name.startswith(f"{r}/") for r in roots)]
    return [*files, ".gitignore", "PKG-INFO", "pyproject.toml"]


def condensed(names: Iterable[str]) -> list[str]:
    """Return a line for each kind of file in a folder; names without a suffix stay."""
    return sorted(
        {
            str(path.with_name(f"*{path.suffix}")) if path.suffix and len(path.parts) > 1 else name
            for name in names
            for path in [PurePosixPath(name)]
        }
    )


def expected() -> dict[str, list[str]]:
    """Return what the source says that each artifact holds."""
    tracked = _tracked()
    return {
        "tarball": sorted(_tarball()),
        "wheel": sorted(_wheel(tracked)),
        "sdist": sorted(set(_sdist(tracked))),
    }


def listed(kind: str) -> list[str]:
    """Return a list as it is committed: of ``tarball``, ``wheel`` or ``sdist``."""
    text = (LISTS / f"{kind}.txt").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if not line.startswith("#")]


def _texts() -> dict[Path, str]:
    return {
        LISTS / f"{kind}.txt": _HEADER
        + "".join(f"{name}\n" for name in (condensed(names) if kind == "sdist" else names))
        for kind, names in expected().items()
    }


def write_content_lists() -> list[Path]:
    """Write the lists from the source; returns those that changed."""
    changed = []
    LISTS.mkdir(exist_ok=True)
    for path, text in _texts().items():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            changed.append(path)
    return changed


def check_content_lists() -> None:
    """Check that the lists are what the source says.

    Raises:
        ContentError: One is not; the message names the files.
    """
    for path, text in _texts().items():
        committed = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        new, old = set(text.splitlines()), set(committed)
        if new == old:
            continue
        changes = [*(f"+{name}" for name in sorted(new - old))]
        changes += [f"-{name}" for name in sorted(old - new)]
        raise ContentError(
            f"{path.name}: the artifact will hold something else: "
            f"{', '.join(changes)}; if that is meant, run: python -m ci.content"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the lists, or check them with ``--check``."""
    parser = argparse.ArgumentParser(prog="python -m ci.content", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing, fail when outdated")
    options = parser.parse_args(arguments)
    try:
        if options.check:
            check_content_lists()
        else:
            for path in write_content_lists():
                print(f"wrote {path}")
    except (CommandError, ContentError) as error:
        return fail(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
