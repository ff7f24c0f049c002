# SPDX-License-Identifier: Apache-2.0
"""The project version, and the check that a tag agrees with it.

The version is declared once, as ``__version__`` in ``tritonserver_jax/__init__.py``. Tags are
made from it and never the other way round: a checkout without tags builds the same artifacts.
``python -m ci.version`` prints the version; ``--check`` fails when HEAD has a ``v…`` tag (or
``CI_COMMIT_TAG`` names one) that says otherwise.
"""

from __future__ import annotations

import argparse
import ast
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from ci.process import ROOT, capture, fail

#: Where the version is declared.
DECLARATION = Path("backend/python/tritonserver_jax/__init__.py")


class VersionError(RuntimeError):
    """The version is not declared as it should be, or a tag contradicts it."""


def project_version(root: Path = ROOT) -> str:
    """Reads the declaration without importing the package.

    Raises:
        VersionError: There is no ``__version__ = "…"`` in the file.
    """
    path = root / DECLARATION
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise VersionError(f"cannot read {path}: {error.strerror}") from error
    for statement in tree.body:
        if (
            isinstance(statement, ast.Assign)
            and [ast.unparse(target) for target in statement.targets] == ["__version__"]
            and isinstance(statement.value, ast.Constant)
            and isinstance(statement.value.value, str)
        ):
            return statement.value.value
    raise VersionError(f'{path}: expected a line __version__ = "1.2.3", found none')


def tags_of_head(root: Path = ROOT) -> list[str]:
    """Returns the tags on HEAD: none without git, and none in a checkout that has no tags."""
    return (capture(["git", "tag", "--points-at", "HEAD"], cwd=root) or "").splitlines()


def tags() -> list[str]:
    """Returns the tags on HEAD, and the one that a pipeline is for: its clone may not have it."""
    named = os.environ.get("CI_COMMIT_TAG")
    return [*tags_of_head(), *([named] if named else [])]


def check(version: str, tags: Iterable[str]) -> None:
    """Checks that each release tag (``v`` and a digit) is ``v`` and the version.

    Raises:
        VersionError: A tag says otherwise.
    """
    for tag in tags:
        if tag[:1] == "v" and tag[1:2].isdigit() and tag != f"v{version}":
            raise VersionError(
                f"the tag {tag} is not the project version: expected v{version}, got {tag}; "
                f"change {DECLARATION} in a commit, then tag that commit"
            )


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the version, and with ``--check`` compares the tags with it."""
    parser = argparse.ArgumentParser(prog="python -m ci.version", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare the tags of HEAD with it")
    options = parser.parse_args(arguments)
    try:
        version = project_version()
        if options.check:
            check(version, tags())
    except VersionError as error:
        return fail(error)
    print(version)
    return 0


if __name__ == "__main__":
    sys.exit(main())
