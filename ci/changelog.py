# SPDX-License-Identifier: Apache-2.0
"""CHANGELOG.md: what it says of a version, and how a version gets its section.

The file is after Keep a Changelog: a section ``## [0.2.0] - 2026-01-31`` for each version, the
newest first, and ``## [Unreleased]`` before them.
"""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Final

from ci.process import ROOT

__all__ = ["CHANGELOG", "ChangelogError", "date_section", "section"]

CHANGELOG: Final = ROOT / "CHANGELOG.md"
UNRELEASED: Final = "Unreleased"

_HEADING: Final = re.compile(
    r"^## \[(?P<name>[^\]\n]+)\](?: - (?P<date>\d{4}-\d\d-\d\d))?[ \t]*$", re.MULTILINE
)


class ChangelogError(RuntimeError):
    """A section is missing, empty, or there twice."""


def _sections(text: str) -> dict[str, tuple[re.Match[str], str]]:
    headings = list(_HEADING.finditer(text))
    ends = [*(match.start() for match in headings), len(text)][1:]
    found: dict[str, tuple[re.Match[str], str]] = {}
    for match, end in zip(headings, ends, strict=True):
        if match["name"] in found:
            raise ChangelogError(f"CHANGELOG.md: expected one section {match['name']}, got two")
        found[match["name"]] = (match, text[match.end() : end].strip())
    return found


def section(name: str, path: Path = CHANGELOG) -> str:
    """Return what the changelog says of a version.

    Args:
        name: The version, or ``Unreleased``.
        path: The changelog.

    Raises:
        ChangelogError: There is no such section, it says nothing, or a version has no date.
    """
    found = _sections(path.read_text(encoding="utf-8")).get(name)
    heading = f"## [{name}]" if name == UNRELEASED else f"## [{name}] - <date>"
    remedy = "write what users notice there, as a list below ### Added, ### Changed or ### Fixed"
    if name != UNRELEASED:
        remedy = f"./ci/nox -s cut-version -- {name} makes it of ## [{UNRELEASED}]"
    if found is None or (name != UNRELEASED and found[0]["date"] is None):
        got = "none" if found is None else found[0][0].strip()
        raise ChangelogError(f"CHANGELOG.md: expected a section {heading}, got {got}; {remedy}")
    if not re.search(r"^- ", found[1], re.MULTILINE):
        raise ChangelogError(f"CHANGELOG.md: {heading}: expected a list, got none; {remedy}")
    return found[1]


def date_section(version: str, day: date, path: Path = CHANGELOG) -> None:
    """Make what is not released yet the section of a version, and leave an empty one before it.

    Args:
        version: The version.
        day: Of its release.
        path: The changelog; it is written.

    Raises:
        ChangelogError: There is nothing unreleased, or the version has a section already.
    """
    section(UNRELEASED, path)
    text = path.read_text(encoding="utf-8")
    sections = _sections(text)
    if version in sections:
        raise ChangelogError(f"CHANGELOG.md: expected no section {version} yet, got one")
    heading = sections[UNRELEASED][0]
    dated = f"## [{UNRELEASED}]\n\n## [{version}] - {day.isoformat()}"
    path.write_text(text[: heading.start()] + dated + text[heading.end() :], encoding="utf-8")
