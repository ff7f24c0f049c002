# SPDX-License-Identifier: Apache-2.0
"""The command line of what writes files that derive from others."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ci.process import ROOT

__all__ = ["outdated_files", "write_or_check"]


def outdated_files(files: Mapping[Path, Callable[[], str]], *, write: bool) -> list[Path]:
    """Return the files that are not what they should be.

    Args:
        files: What makes the text of each.
        write: Whether to write those anew.
    """
    found = []
    for path, make in files.items():
        text = make()
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            found.append(path)
            if write:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
    return found


def write_or_check(
    arguments: Sequence[str] | None,
    *,
    program: str,
    description: str | None,
    outdated: Callable[[bool], list[Path]],
    difference: str,
) -> int:
    """Write what is out of date; with ``--check``, only name it.

    Args:
        arguments: Of the command line; by default those of the process.
        program: How it is called.
        description: For ``--help``.
        outdated: Returns the files that are out of date; writes them if it is given True.
        difference: What is said of them when they are only checked.

    Returns:
        The exit status: 1 where a check found any.
    """
    parser = argparse.ArgumentParser(prog=program, description=description)
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit 1 on a difference"
    )
    check = parser.parse_args(arguments).check
    paths = outdated(not check)
    for path in paths:
        print(f"{path.relative_to(ROOT)}: {'out of date' if check else 'written'}")
    if paths and check:
        print(f"{difference}; write them with {program}")
        return 1
    return 0
