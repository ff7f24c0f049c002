# SPDX-License-Identifier: Apache-2.0
"""The changelog is read for the notes of a release, and dated when a version is cut."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from ci.changelog import ChangelogError, date_section, section

TEXT = """\
# Changelog

## [Unreleased]

### Added

- Something new,
  on two lines.

## [0.1.0] - 2026-01-31

### Fixed

- Something old.

## [0.0.1]

Nothing.
"""


@pytest.fixture
def changelog(tmp_path: Path) -> Path:
    path = tmp_path / "CHANGELOG.md"
    path.write_text(TEXT)
    return path


def test_a_section_ends_where_the_next_begins(changelog: Path) -> None:
    assert section("0.1.0", changelog) == "### Fixed\n\n- Something old."
    assert section("Unreleased", changelog) == "### Added\n\n- Something new,\n  on two lines."


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("0.2.0", r"expected a section ## \[0\.2\.0\] - <date>, got none; \./ci/nox -s cut-ver"),
        ("0.0.1", r"expected a section ## \[0\.0\.1\] - <date>, got ## \[0\.0\.1\];"),
    ],
)
def test_a_version_without_its_section_says_how_it_gets_one(
    changelog: Path, version: str, message: str
) -> None:
    with pytest.raises(ChangelogError, match=message):
        section(version, changelog)


def test_a_version_is_cut_from_what_is_unreleased(changelog: Path) -> None:
    before = section("Unreleased", changelog)
    date_section("0.2.0", date(2026, 3, 1), changelog)
    assert "## [Unreleased]\n\n## [0.2.0] - 2026-03-01\n\n### Added" in changelog.read_text()
    assert section("0.2.0", changelog) == before
    assert section("0.1.0", changelog) == "### Fixed\n\n- Something old."
    with pytest.raises(ChangelogError, match=r"## \[Unreleased\]: expected a list, got none"):
        date_section("0.3.0", date(2026, 4, 1), changelog)


def test_a_version_is_not_cut_twice(changelog: Path) -> None:
    before = changelog.read_text()
    with pytest.raises(ChangelogError, match=r"expected no section 0\.1\.0 yet, got one"):
        date_section("0.1.0", date(2026, 3, 1), changelog)
    assert changelog.read_text() == before


def test_two_sections_of_a_version_are_refused(changelog: Path) -> None:
    changelog.write_text(TEXT + "\n## [0.1.0] - 2026-02-01\n\n- Again.\n")
    with pytest.raises(ChangelogError, match=r"expected one section 0\.1\.0, got two"):
        section("0.1.0", changelog)


def test_a_changelog_without_any_section_is_told_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "CHANGELOG.md"
    path.write_text("# Changelog\n\nNothing yet.\n", encoding="utf-8")
    with pytest.raises(ChangelogError, match=r"expected a section ## \[Unreleased\], got none"):
        section("Unreleased", path)
