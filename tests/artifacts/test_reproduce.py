# SPDX-License-Identifier: Apache-2.0
"""Two builds are compared byte by byte, and what differs is shown."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ci import reproduce
from ci.process import ROOT, capture
from ci.reproduce import (
    VARIATIONS,
    ReproductionError,
    compare,
    copy_source,
    main,
    report,
    show_layers,
)
from tests.support.artifacts import changed_tar, entry, write_tar


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Two folders with the same tarball."""
    pair = (tmp_path / "one", tmp_path / "two")
    for folder in pair:
        (folder / "sub").mkdir(parents=True)
        write_tar(folder / "sub" / "a.tar.gz", [entry("jax/LICENSE", b"free\n", mtime=1)])
        # gzip writes its own time; the names are part of it too.
        content = bytearray((folder / "sub" / "a.tar.gz").read_bytes())
        content[4:8] = bytes(4)
        (folder / "sub" / "a.tar.gz").write_bytes(content)
    return pair


def test_the_same_bytes_are_the_same(folders: tuple[Path, Path]) -> None:
    same, differences = compare(*folders)
    assert list(same) == ["sub/a.tar.gz"]
    assert differences == []
    files = [folder / "sub" / "a.tar.gz" for folder in folders]
    renamed = files[1].rename(files[1].with_name("b.tar.gz"))
    assert compare(files[0], renamed) == ({"a.tar.gz": same["sub/a.tar.gz"]}, [])


def test_a_difference_is_found_and_shown(
    folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    changed_tar(folders[1] / "sub" / "a.tar.gz", lambda _: [entry("jax/LICENSE", b"no\n", mtime=9)])
    (folders[1] / "new").write_text("")
    _, differences = compare(*folders)
    assert [one.name for one in differences] == ["new", "sub/a.tar.gz"]
    assert str(differences[0]).startswith("new: not there and e3b0c442")
    assert main(["--compare", *map(str, folders)]) == 1
    said = capsys.readouterr()
    assert "DIFFERS sub/a.tar.gz: " in said.out
    assert "-free\n" in said.out, "diffoscope looks into the tarball"
    assert "+no\n" in said.out
    assert "jax/LICENSE" in said.out
    assert "error: they differ; the report is above" in said.err


def test_layers_of_two_images_are_compared_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert show_layers(["sha256:a", "sha256:b"], ["sha256:a", "sha256:b"]) == 0
    assert "DIFFERS" not in capsys.readouterr().out
    assert show_layers(["sha256:a", "sha256:b"], ["sha256:a", "sha256:c", "sha256:d"]) == 2
    said = capsys.readouterr().out.splitlines()
    assert said == [
        "same    sha256:a  layer 1 of the image",
        "DIFFERS layer 2 of the image: sha256:b and sha256:c",
        "DIFFERS layer 3 of the image: not there and sha256:d",
    ]


def test_what_is_not_there_is_no_agreement(tmp_path: Path) -> None:
    with pytest.raises(ReproductionError, match="expected a file or a folder to compare"):
        compare(tmp_path, tmp_path / "absent")


def test_without_diffoscope_it_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ReproductionError, match="diffoscope: expected beside this Python"):
        report(tmp_path, tmp_path)


def test_the_copy_is_the_checkout_with_its_changes(tmp_path: Path) -> None:
    target = tmp_path / "a, b" / "copy"
    copy_source(target, file_time=1_000_000_000, umask=0o077)
    assert capture(["git", "rev-parse", "HEAD"], cwd=target) == capture(
        ["git", "rev-parse", "HEAD"]
    )
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = {name for name in (capture(listing) or "").splitlines() if (ROOT / name).is_file()}
    assert set((capture(listing, cwd=target) or "").splitlines()) == names
    assert all((target / name).read_bytes() == (ROOT / name).read_bytes() for name in names)
    # Modes of files are no change to git, but for the bit that makes a program.
    assert not capture(["git", "diff", "--summary"], cwd=target)
    file = target / "pyproject.toml"
    assert file.read_bytes() == (ROOT / "pyproject.toml").read_bytes()
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.stat().st_mtime == 1_000_000_000
    assert (target / "ci" / "nox").stat().st_mode & 0o777 == 0o700
    assert not (target / "build").exists()
    assert not (target / ".nox").exists()


def test_without_git_the_files_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "root"
    for name in ("ci/nox", "build/x", ".nox/x", "dist/x", "docs/a.md"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    monkeypatch.setattr(reproduce, "ROOT", root)
    copy_source(tmp_path / "copy", file_time=1_000_000_000, umask=0o022)
    copied = {str(p.relative_to(tmp_path / "copy")) for p in (tmp_path / "copy").rglob("*")}
    assert copied == {"ci", "ci/nox", "docs", "docs/a.md"}


@pytest.mark.slow
def test_wheel_and_sdist_are_the_same_in_all_circumstances(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The session `reproduce` does this with the tarball, which has to be compiled twice."""
    assert main(["--python-only", "--keep", str(tmp_path / "work")]) == 0, capsys.readouterr()
    said = capsys.readouterr().out
    assert "the same bytes in every file" in said
    assert said.count("same    ") == 8, "wheel, sdist, 2 SBOMs, 3 that describe them; and one more"


def test_a_build_that_fails_is_shown(tmp_path: Path) -> None:
    one, two = VARIATIONS
    broken = replace(one, environment={"SOURCE_DATE_EPOCH": "never"})
    said = r"ci\.python_artifacts in .* ended with status 1"
    with pytest.raises(ReproductionError, match=said) as caught:
        reproduce.reproduce(None, tmp_path, (broken, two))
    assert "SOURCE_DATE_EPOCH: expected the seconds since 1970" in str(caught.value)
