# SPDX-License-Identifier: Apache-2.0
"""A version is cut in a checkout that is fit for it, and leaves any other as it was."""

from __future__ import annotations

import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from ci import cut_version
from ci.changelog import ChangelogError, section
from ci.cut_version import CutError, cut
from ci.process import ROOT
from ci.version import DECLARATION, project_version, tags_of_head

DAY = date(2026, 3, 1)
WELL = [("-c", "pass")]
CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- Something.\n"


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def commit(folder: Path, subject: str) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", f"--message={subject}")


@pytest.fixture(autouse=True)
def identity(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Who commits, and no settings of this machine."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    (tmp_path / "gitconfig").write_text(
        "[user]\nname = n\nemail = n@example.org\n[init]\ndefaultBranch = main\n"
    )


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A small checkout of version 0.1.0, which was never released, and its remote."""
    folder, remote = tmp_path / "checkout", tmp_path / "remote.git"
    (folder / DECLARATION).parent.mkdir(parents=True)
    (folder / DECLARATION).write_text('"""It."""\n\n__version__ = "0.1.0"\n')
    (folder / "CHANGELOG.md").write_text(CHANGELOG)
    git(folder, "init", "--quiet")
    commit(folder, "first")
    git(tmp_path, "clone", "--quiet", "--bare", str(folder), str(remote))
    git(folder, "remote", "add", "origin", str(remote))
    git(folder, "fetch", "--quiet")
    git(folder, "branch", "--set-upstream-to=origin/main")
    return folder


def state(folder: Path) -> tuple[str, str, str]:
    return (
        git(folder, "rev-parse", "HEAD"),
        git(folder, "tag", "--list"),
        git(folder, "status", "--porcelain"),
    )


def test_a_version_is_declared_dated_committed_and_tagged(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut("0.2.0", root=checkout, day=DAY, derived=(), checks=WELL)
    assert project_version(checkout) == "0.2.0"
    assert section("0.2.0", checkout / "CHANGELOG.md") == "### Added\n\n- Something."
    assert tags_of_head(checkout) == ["v0.2.0"]
    assert git(checkout, "status", "--porcelain") == ""
    assert git(checkout, "log", "-1", "--format=%s") == "Release 0.2.0"
    assert git(checkout, "cat-file", "-t", "v0.2.0") == "tag"
    assert "git push --atomic origin main v0.2.0" in capsys.readouterr().out


def test_the_declared_version_itself_is_cut_while_it_has_no_tag(checkout: Path) -> None:
    cut("0.1.0", root=checkout, day=DAY, derived=(), checks=WELL)
    assert tags_of_head(checkout) == ["v0.1.0"]
    (checkout / "CHANGELOG.md").write_text(
        (checkout / "CHANGELOG.md")
        .read_text()
        .replace("## [Unreleased]\n", "## [Unreleased]\n\n- More.\n")
    )
    commit(checkout, "more")
    with pytest.raises(CutError, match=r"expected one after 0\.1\.0, which has a tag"):
        cut("0.1.0", root=checkout, derived=(), checks=WELL)


def test_a_rehearsal_changes_nothing(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = state(checkout)
    cut("0.2.0", root=checkout, day=DAY, derived=(), checks=WELL, dry_run=True)
    assert state(checkout) == before
    assert project_version(checkout) == "0.1.0"
    said = capsys.readouterr().out
    assert '+__version__ = "0.2.0"' in said
    assert "+## [0.2.0] - 2026-03-01" in said
    assert "dry run: 0.2.0 can be cut, as far as this shows: the checks pass" in said
    assert "committed as 'Release 0.2.0' once the checks pass, and tagged v0.2.0" in said


@pytest.mark.parametrize(
    ("options", "run", "said"),
    [
        (["--dry-run"], False, "no check was run, --checks runs them too"),
        (["--dry-run", "--checks"], True, ""),
        ([], True, ""),
    ],
)
def test_a_rehearsal_runs_the_checks_only_where_that_is_asked_for(
    checkout: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    options: list[str],
    run: bool,
    said: str,
) -> None:
    before = state(checkout)

    def here(version: str, **given: Any) -> None:
        cut(version, root=checkout, derived=(), **given)

    monkeypatch.setattr(cut_version, "cut", here)
    monkeypatch.setattr(cut_version, "CHECKS", [("-c", "raise SystemExit(7)")])
    assert cut_version.main(["0.2.0", *options]) == (1 if run else 0)
    shown = capfd.readouterr()
    assert said in shown.out
    assert ("ended with status 7" in shown.err) == run
    assert state(checkout) == before


def test_a_cut_cannot_do_without_the_checks(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cut_version.main(["0.2.0", "--checks"])
    assert "--checks: expected with --dry-run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("0.0.9", r"expected 0\.1\.0, which is declared in .*, or one after it, got 0\.0\.9"),
        ("0.2", r"expected one as in 0\.2\.0 or 0\.2\.0rc1, got '0\.2'"),
        ("v0.2.0", r"expected one as in 0\.2\.0"),
        ("0.2.0+local", r"expected one as in 0\.2\.0"),
    ],
)
def test_a_version_that_is_not_greater_or_none_at_all_is_refused(
    checkout: Path, version: str, message: str
) -> None:
    before = state(checkout)
    with pytest.raises(CutError, match=message):
        cut(version, root=checkout, derived=(), checks=WELL)
    assert state(checkout) == before


def test_a_version_before_one_that_has_a_tag_is_refused(checkout: Path) -> None:
    git(checkout, "tag", "v0.3.0")
    with pytest.raises(CutError, match=r"expected one after 0\.3\.0, which has a tag, got 0\.2\.0"):
        cut("0.2.0", root=checkout, derived=(), checks=WELL)


@pytest.mark.parametrize("name", ["CHANGELOG.md", "new file"])
def test_a_checkout_with_changes_is_refused(checkout: Path, name: str) -> None:
    with (checkout / name).open("a") as file:
        file.write("changed\n")
    with pytest.raises(CutError, match=f"expected no changes, got .*{name}"):
        cut("0.2.0", root=checkout, derived=(), checks=WELL)
    assert (checkout / name).read_text().endswith("changed\n")


def test_an_empty_section_of_the_changelog_is_refused(checkout: Path) -> None:
    (checkout / "CHANGELOG.md").write_text("# Changelog\n\n## [Unreleased]\n\n### Added\n")
    commit(checkout, "empty")
    with pytest.raises(ChangelogError, match=r"\[Unreleased\]: expected a list, got none; write"):
        cut("0.2.0", root=checkout, derived=(), checks=WELL)


def test_a_branch_that_is_behind_or_follows_none_is_refused(checkout: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    git(tmp_path, "clone", "--quiet", str(tmp_path / "remote.git"), str(other))
    (other / "more").write_text("more\n")
    commit(other, "of somebody else")
    git(other, "push", "--quiet", "origin", "main")
    with pytest.raises(CutError, match="expected all of origin/main, it is 1 commits behind"):
        cut("0.2.0", root=checkout, derived=(), checks=WELL)
    git(checkout, "switch", "--quiet", "--create", "mine", "--no-track")
    with pytest.raises(CutError, match="git push --set-upstream origin mine"):
        cut("0.2.0", root=checkout, derived=(), checks=WELL)
    git(checkout, "switch", "--quiet", "--detach")
    with pytest.raises(CutError, match="expected a branch, got a commit without one"):
        cut("0.2.0", root=checkout, derived=(), checks=WELL)


def test_a_check_that_fails_leaves_everything_as_it_was(checkout: Path) -> None:
    before = state(checkout)
    leaves_a_file = ("-c", "open('left', 'w').close()")
    fails = ("-c", "raise SystemExit(3)")
    with pytest.raises(CutError, match=r"ended with status 3.*0\.2\.0 is not cut"):
        cut("0.2.0", root=checkout, day=DAY, derived=[leaves_a_file], checks=[fails])
    assert state(checkout) == before
    assert project_version(checkout) == "0.1.0"


def test_what_derives_from_the_version_follows_it(tmp_path: Path) -> None:
    """In a copy of this checkout, whatever its own state is."""
    folder, remote = tmp_path / "copy", tmp_path / "copy.git"
    ignored = shutil.ignore_patterns(
        ".git", ".nox", ".venv*", "build", "dist", "__pycache__", ".*_cache"
    )
    shutil.copytree(ROOT, folder, symlinks=True, ignore=ignored)
    git(folder, "init", "--quiet")
    commit(folder, "as it is here")
    git(tmp_path, "clone", "--quiet", "--bare", str(folder), str(remote))
    git(folder, "remote", "add", "origin", str(remote))
    git(folder, "fetch", "--quiet")
    git(folder, "branch", "--set-upstream-to=origin/main")
    assert git(folder, "status", "--porcelain") == ""
    version = f"{int(project_version(folder).partition('.')[0]) + 1}.0.0"
    cut(version, root=folder, day=DAY, checks=WELL)
    changed = git(folder, "show", "--name-only", "--format=").splitlines()
    for name in (
        "packaging/docker/docker-bake.hcl",
        "packaging/helm/tritonserver-jax/Chart.yaml",
        "packaging/kubernetes/cpu.yaml",
    ):
        assert name in changed
        assert version in (folder / name).read_text()
    done = subprocess.run(
        [sys.executable, "-m", "ci.version", "--check"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == version


def test_the_command_says_what_is_wrong(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def elsewhere(version: str, **options: object) -> None:
        cut(version, root=checkout, day=DAY, derived=(), checks=WELL)

    monkeypatch.setattr(cut_version, "cut", elsewhere)
    assert cut_version.main(["nonsense"]) == 1
    assert capsys.readouterr().err.startswith("error: version: expected one as in 0.2.0")
    assert cut_version.main(["0.2.0"]) == 0
