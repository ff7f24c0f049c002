# SPDX-License-Identifier: Apache-2.0
"""The project version is declared once, and a tag can only repeat it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import tritonserver_jax
from ci.version import DECLARATION, VersionError, check, main, project_version, tags_of_head


def checkout(root: Path, text: str) -> Path:
    path = root / DECLARATION
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    return root


def test_the_declaration_is_what_the_package_says() -> None:
    assert project_version() == tritonserver_jax.__version__


def test_it_is_read_without_running_the_file(tmp_path: Path) -> None:
    root = checkout(tmp_path, 'raise SystemExit\n__version__ = "1.2.3"\n')
    assert project_version(root) == "1.2.3"


@pytest.mark.parametrize("text", ["", "__version__ = 1\n", '# __version__ = "1.2.3"\n'])
def test_a_missing_declaration_names_the_file(tmp_path: Path, text: str) -> None:
    with pytest.raises(VersionError, match=rf"{DECLARATION}: expected a line __version__"):
        project_version(checkout(tmp_path, text))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(VersionError, match=f"cannot read .*{DECLARATION}"):
        project_version(tmp_path)


@pytest.mark.parametrize("tags", [[], ["v0.1.0"], ["nightly", "vendor", "v0.1.0"]])
def test_tags_that_agree(tags: list[str]) -> None:
    check("0.1.0", tags)


@pytest.mark.parametrize("tag", ["v0.1", "v0.2.0", "v0.1.0rc1"])
def test_a_tag_that_disagrees(tag: str) -> None:
    with pytest.raises(VersionError, match=rf"expected v0\.1\.0, got {tag}"):
        check("0.1.0", ["v0.1.0", tag])


def test_tags_come_from_git_and_may_be_absent(tmp_path: Path) -> None:
    assert tags_of_head(tmp_path) == []

    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=n", "-c", "user.email=n@example.org"]
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True)

    git("init", "--quiet")
    git("commit", "--quiet", "--allow-empty", "--message=first")
    assert tags_of_head(tmp_path) == []
    git("tag", "v1.0.0")
    assert tags_of_head(tmp_path) == ["v1.0.0"]
    git("commit", "--quiet", "--allow-empty", "--message=second")
    assert tags_of_head(tmp_path) == []


def test_the_tag_of_a_pipeline_is_checked_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CI_COMMIT_TAG", "v999.0.0")
    assert main(["--check"]) == 1
    assert "got v999.0.0" in capsys.readouterr().err
    assert main([]) == 0
    assert capsys.readouterr().out == f"{tritonserver_jax.__version__}\n"
