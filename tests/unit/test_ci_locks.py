# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from ci.locks import (
    ACCELERATORS,
    EXAMPLES,
    LOCKS,
    PYTHONS,
    LockError,
    accelerator_lock_path,
    check_accelerator_locks,
    check_example_requirements,
    check_locks,
    example_requirements_path,
    lock_path,
    main,
    pinned,
    write_example_requirements,
)
from ci.process import ROOT


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What the locks are made from, to be changed."""
    for name in ("pyproject.toml", "uv.lock"):
        shutil.copy(ROOT / name, tmp_path)
    package = tmp_path / "backend" / "python" / "tritonserver_jax"
    package.mkdir(parents=True)
    shutil.copy(ROOT / "backend" / "python" / "tritonserver_jax" / "__init__.py", package)
    shutil.copytree(LOCKS, tmp_path / "locks")
    return tmp_path


def test_the_committed_locks_fit() -> None:
    check_locks()
    assert main(["--check"]) == 0
    added = [accelerator_lock_path(name, python) for name in ACCELERATORS for python in PYTHONS]
    assert sorted(LOCKS.iterdir()) == sorted([*map(lock_path, PYTHONS), *added])


def test_every_requirement_is_pinned_and_hashed_and_no_host_is_named() -> None:
    for path in LOCKS.iterdir():
        text = path.read_text()
        requirements = re.split(r"\n(?=[a-z0-9])", text.split("content-sha256", 1)[1])[1:]
        assert len(requirements) == len(pinned(path)) > 10
        for requirement in requirements:
            assert re.match(r"[a-z0-9.-]+==\S+ \\\n", requirement), requirement
            assert re.findall(r"--hash=sha256:[0-9a-f]{64}", requirement), requirement
        assert "://" not in text


def test_the_locks_have_the_versions_the_tests_use() -> None:
    text = (ROOT / "uv.lock").read_text()
    locked = set(re.findall(r'name = "([^"]+)"\nversion = "([^"]+)"', text))
    for python in PYTHONS:
        assert set(pinned(lock_path(python)).items()) <= locked


def test_the_copy_fits_before_it_is_changed(checkout: Path) -> None:
    check_locks(checkout, checkout / "locks")


def test_a_changed_dependency_is_drift(checkout: Path) -> None:
    pyproject = checkout / "pyproject.toml"
    pyproject.write_text(pyproject.read_text().replace('"jax>=0.7"', '"jax>=0.8"'))
    with pytest.raises(LockError, match=r"py311\.txt: the dependencies .* have changed"):
        check_locks(checkout, checkout / "locks")


def test_a_changed_version_is_drift(checkout: Path) -> None:
    lock = checkout / "uv.lock"
    text = lock.read_text()
    found = re.search(r'name = "absl-py"\nversion = "([^"]+)"', text)
    assert found is not None
    entry = found.group().replace(found[1], "0.0.1")
    text = text.replace(found.group(), entry)
    lock.write_text(re.sub(rf"(absl[-_]py-){re.escape(found[1])}", r"\g<1>0.0.1", text))
    with pytest.raises(LockError, match="have changed since it was made; run: "):
        check_locks(checkout, checkout / "locks")


def test_an_edited_lock_is_drift(checkout: Path) -> None:
    path = lock_path("3.12", checkout / "locks")
    path.write_text(path.read_text().replace("jax==", "jax<="))
    with pytest.raises(LockError, match=r"py312\.txt: was edited by hand"):
        check_locks(checkout, checkout / "locks")


def test_a_missing_lock_is_named(checkout: Path) -> None:
    lock_path("3.14", checkout / "locks").unlink()
    with pytest.raises(LockError, match=r"py314\.txt: expected a lock for Python 3\.14"):
        check_locks(checkout, checkout / "locks")


def test_an_accelerator_adds_its_plugin_of_the_same_jax_and_nothing_that_the_lock_has() -> None:
    for accelerator in ACCELERATORS:
        for python in PYTHONS:
            lock = pinned(lock_path(python))
            added = pinned(accelerator_lock_path(accelerator, python))
            assert added[f"jax-{accelerator}-plugin"] == lock["jax"]
            assert any(name.startswith("nvidia-cudnn") for name in added)
            assert not added.keys() & lock.keys()


def test_a_lock_that_changed_makes_what_accelerators_add_to_it_outdated(checkout: Path) -> None:
    folder = checkout / "locks"
    check_accelerator_locks(folder)
    path = lock_path("3.12", folder)
    path.write_text(re.sub(r"jaxlib==\S+", "jaxlib==0.0.1", path.read_text()))
    with pytest.raises(LockError, match=r"cuda12-py312\.txt: requirements-cpu-py312\.txt has ch"):
        check_accelerator_locks(folder)


def test_what_an_accelerator_adds_is_not_edited_and_is_there(checkout: Path) -> None:
    path = accelerator_lock_path("cuda13", "3.13", checkout / "locks")
    path.write_text(path.read_text().replace("nvidia-nvvm==", "nvidia-nvvm>="))
    with pytest.raises(LockError, match=r"cuda13-py313\.txt: was edited by hand"):
        check_accelerator_locks(checkout / "locks")
    path.unlink()
    with pytest.raises(LockError, match=r"cuda13-py313\.txt: expected what cuda13 adds"):
        check_accelerator_locks(checkout / "locks")


def test_the_requirements_of_examples_have_nothing_that_a_lock_has(checkout: Path) -> None:
    for example, package in (("equinox_mlp", "equinox"), ("haiku_mlp", "dm-haiku")):
        found = pinned(example_requirements_path(example))
        assert package in found
        for python in PYTHONS:
            assert not set(found) & set(pinned(lock_path(python)))
    for example in EXAMPLES:
        example_requirements_path(example, checkout).parent.mkdir(parents=True)
    write_example_requirements(checkout, checkout / "locks")
    check_example_requirements(checkout, checkout / "locks")
    path = example_requirements_path("equinox_mlp", checkout)
    assert path.read_text() == example_requirements_path("equinox_mlp").read_text()
    path.write_text(path.read_text().replace("equinox==", "equinox<="))
    with pytest.raises(
        LockError, match=r"equinox_mlp/requirements\.txt: is not what uv\.lock says"
    ):
        check_example_requirements(checkout, checkout / "locks")


def test_without_uv_the_launcher_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("UV", raising=False)
    with pytest.raises(LockError, match="uv: expected on PATH or in"):
        check_locks()
