# SPDX-License-Identifier: Apache-2.0
"""The build: its time, its inputs, and a wheel that holds what it should."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import tritonserver_jax
from ci import build
from ci.build import BuildError
from ci.process import ROOT


def test_the_epoch_that_is_set_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert build.source_date_epoch() == 1700000000


@pytest.mark.parametrize("text", ["", "yesterday", "-1", "1.5", "0", "315532799"])
def test_an_epoch_that_cannot_be_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", text)
    with pytest.raises(BuildError, match=f"SOURCE_DATE_EPOCH: expected .* got '{text}'"):
        build.source_date_epoch()


def test_the_epoch_is_the_time_of_the_last_commit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    monkeypatch.setenv("GIT_COMMITTER_DATE", "1710000000 +0000")
    for command in (["init", "--quiet"], ["commit", "--quiet", "--allow-empty", "--message=one"]):
        identity = ["-c", "user.name=n", "-c", "user.email=n@example.org"]
        subprocess.run(["git", *identity, *command], cwd=tmp_path, check=True)
    assert build.source_date_epoch(tmp_path) == 1710000000


def test_without_git_the_epoch_is_fixed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert build.source_date_epoch(tmp_path) == build.FALLBACK_EPOCH


def test_a_directory_that_is_no_sdk_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=rf"TRITON_SDK_DIR={tmp_path}: expected .*include/"):
        build.build_backend(build_dir=tmp_path / "b", triton_sdk_dir=tmp_path)
    assert not (tmp_path / "b").exists()


def test_the_sdk_comes_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRITON_SDK_DIR", str(tmp_path))
    with pytest.raises(BuildError, match=f"TRITON_SDK_DIR={tmp_path}"):
        build.configure(build_dir=tmp_path / "b")


def test_the_cache_of_another_place_is_discarded(tmp_path: Path) -> None:
    cache = tmp_path / "CMakeCache.txt"
    (tmp_path / "CMakeFiles").mkdir()
    ours = (
        f"CMAKE_HOME_DIRECTORY:INTERNAL={ROOT / 'backend'}\n"
        f"CMAKE_CACHEFILE_DIR:INTERNAL={tmp_path}\n"
    )
    cache.write_text(ours, encoding="utf-8")
    build._discard_foreign_cache(tmp_path)
    assert cache.is_file()
    cache.write_text(ours.replace(str(tmp_path), "/elsewhere"), encoding="utf-8")
    build._discard_foreign_cache(tmp_path)
    assert not cache.exists()
    assert not (tmp_path / "CMakeFiles").exists()


def test_a_preset_is_what_it_says_and_what_it_inherits(tmp_path: Path) -> None:
    presets = tmp_path / "CMakePresets.json"
    base = {"name": "base", "hidden": True, "generator": "Ninja", "cacheVariables": {"A": "0"}}
    child = {"name": "asan", "inherits": "base", "cacheVariables": {"A": "1", "B": "2"}}
    presets.write_text(json.dumps({"configurePresets": [base, child]}), encoding="utf-8")
    assert build.preset_options("asan", presets) == ["-G", "Ninja", "-DA=1", "-DB=2"]
    with pytest.raises(BuildError, match=r"expected a preset of asan, got base"):
        build.preset_options("base", presets)


@pytest.mark.parametrize("name", ["release", "debug", "asan", "tsan"])
def test_the_presets_of_the_backend(name: str) -> None:
    options = build.preset_options(name)
    assert options[:2] == ["-G", "Ninja"]
    assert any(option.startswith("-DCMAKE_BUILD_TYPE=") for option in options)


def test_the_wheel_holds_the_package_and_the_releases_and_is_the_same_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    wheel = build.build_wheel(tmp_path / "one")
    assert wheel.name == f"tritonserver_jax-{tritonserver_jax.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert (
            archive.read("tritonserver_jax/releases.toml") == (ROOT / "releases.toml").read_bytes()
        )
    assert "tritonserver_jax/__init__.py" in names
    assert "tritonserver_jax/py.typed" in names
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"tritonserver_jax"}
    assert_importable_alone(wheel, tmp_path / "unpacked")
    again = build.build_wheel(tmp_path / "two")
    digests = {hashlib.sha256(path.read_bytes()).hexdigest() for path in (wheel, again)}
    assert len(digests) == 1


def assert_importable_alone(wheel: Path, directory: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(directory)
    code = (
        f"import sys; sys.path.insert(0, {str(directory)!r});"
        "import tritonserver_jax, tritonserver_jax.releases as r;"
        "print(tritonserver_jax.__file__, r.DEFAULT_RELEASE)"
    )
    command = [sys.executable, "-I", "-c", code]
    result = subprocess.run(command, check=False, capture_output=True, text=True, cwd=directory)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(str(directory))


def test_a_new_wheel_replaces_the_old_one(tmp_path: Path) -> None:
    (tmp_path / "tritonserver_jax-0.0.1-py3-none-any.whl").touch()
    (tmp_path / "other-1.0-py3-none-any.whl").touch()
    wheel = build.build_wheel(tmp_path)
    assert {path.name for path in tmp_path.iterdir() if path.suffix == ".whl"} == {
        wheel.name,
        "other-1.0-py3-none-any.whl",
    }
