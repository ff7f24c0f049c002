# SPDX-License-Identifier: Apache-2.0
"""The checkouts that pipelines run in have what is here, and are what a clone would be."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ci.pipeline_checkout import commit_all, make_checkout
from ci.process import capture, run


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A checkout with one commit."""
    folder = tmp_path / "source"
    folder.mkdir()
    run(["git", "init", "--quiet", "--initial-branch=main", folder], cwd=tmp_path)
    (folder / ".gitignore").write_text("/dist/\n")
    for name in ("kept", "changed", "gone"):
        (folder / name).write_text(name)
    commit_all(folder, "one")
    return folder


def test_what_is_changed_is_laid_over_and_the_commit_stays(source: Path, tmp_path: Path) -> None:
    (source / "changed").write_text("otherwise")
    (source / "gone").unlink()
    (source / "new").mkdir()
    (source / "new" / "file").write_text("new")
    (source / "dist").mkdir()
    (source / "dist" / "output").write_text("made")
    checkout = make_checkout(tmp_path / "checkout", source)
    assert capture(["git", "rev-parse", "HEAD"], cwd=checkout) == capture(
        ["git", "rev-parse", "HEAD"], cwd=source
    )
    assert (checkout / "changed").read_text() == "otherwise"
    assert not (checkout / "gone").exists()
    assert not (checkout / "dist").exists()
    tracked = (capture(["git", "ls-files"], cwd=checkout) or "").splitlines()
    assert "new/file" in tracked
    changes = capture(["git", "status", "--porcelain"], cwd=checkout)
    assert changes is not None
    assert {line.split()[-1] for line in changes.splitlines()} == {"changed", "gone", "new/file"}


def test_without_changes_it_is_a_clean_clone(source: Path, tmp_path: Path) -> None:
    run(["git", "tag", "v0.1.0"], cwd=source)
    checkout = make_checkout(tmp_path / "checkout", source)
    assert capture(["git", "status", "--porcelain"], cwd=checkout) == ""
    assert capture(["git", "tag"], cwd=checkout) == ""


def test_without_git_everything_is_committed_once(source: Path, tmp_path: Path) -> None:
    shutil.rmtree(source / ".git")
    (source / "build").mkdir()
    (source / "build" / "output").write_text("made")
    checkout = make_checkout(tmp_path / "checkout", source)
    tracked = (capture(["git", "ls-files"], cwd=checkout) or "").splitlines()
    assert tracked == [".gitignore", "changed", "gone", "kept"]
    assert capture(["git", "status", "--porcelain"], cwd=checkout) == ""
