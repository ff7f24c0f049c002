# SPDX-License-Identifier: Apache-2.0
"""Each artifact holds what its list says: no file appears in it, or vanishes, by accident."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path

import pytest

from ci import content
from tritonserver_jax import __version__


def members(archive: Path, top: str) -> list[str]:
    with tarfile.open(archive) as opened:
        return sorted(
            member.name.removeprefix(f"{top}/") for member in opened if not member.isdir()
        )


def told(names: list[str]) -> list[str]:
    """What a list names, of this project version."""
    return sorted(name.replace(content.VERSION, __version__) for name in names)


def test_the_tarball_holds_what_its_list_says(tarball: Path) -> None:
    assert members(tarball, "jax") == told(content.listed("tarball"))


def test_the_wheel_holds_what_its_list_says(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        assert sorted(archive.namelist()) == told(content.listed("wheel"))


def test_the_sdist_holds_what_its_list_says_and_every_file_is_the_repositorys(
    python_dist: Path,
) -> None:
    (sdist,) = python_dist.glob("*.tar.gz")
    names = members(sdist, f"tritonserver_jax-{__version__}")
    assert content.condensed(names) == content.listed("sdist")
    assert names == content.expected()["sdist"]


def test_what_is_published_is_small(tarball: Path, python_dist: Path) -> None:
    for path in [tarball, *python_dist.iterdir()]:
        assert path.stat().st_size < 3_000_000, path.name


def test_the_lists_are_what_the_source_says() -> None:
    content.check_content_lists()
    assert content.main(["--check"]) == 0


def test_a_new_file_is_named_until_the_lists_are_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(content, "LISTS", tmp_path)
    assert {path.name for path in content.write_content_lists()} == {
        *("sdist.txt", "tarball.txt", "wheel.txt")
    }
    assert content.write_content_lists() == []
    content.check_content_lists()
    path = tmp_path / "wheel.txt"
    text = path.read_text().replace("tritonserver_jax/py.typed\n", "tritonserver_jax/old\n")
    path.write_text(text)
    assert content.main(["--check"]) == 1
    said = capsys.readouterr().err
    assert "wheel.txt: the artifact will hold something else: +tritonserver_jax/py.typed" in said
    assert ", -tritonserver_jax/old; if that is meant, run: python -m ci.content" in said
    assert content.write_content_lists() == [path]
