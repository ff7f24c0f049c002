# SPDX-License-Identifier: Apache-2.0
"""The oldest JAX that the backend is declared to work with, the newest, and those outside of that.

pyproject.toml declares the oldest, and each Python's lock the newest that there is for it.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from ci.locks import PYTHONS, lock_path
from ci.locks import pinned as versions
from ci.process import ROOT
from tests.support.backend import LOAD_TIMEOUT, Backend
from tests.support.client import PROTOCOLS, infer
from tests.support.models import LINEAR, write_model
from tests.support.pythons import find_python
from tests.support.scripts import run_script
from tritonserver_jax.repository import save_params
from tritonserver_jax.server import ServerError

reference = importlib.import_module("examples.digits.reference")

pytestmark = [pytest.mark.integration, pytest.mark.slow]

#: Everything of an environment with the oldest JAX, at the versions that go with it, with hashes.
OLDEST = Path(__file__).parent / "requirements-oldest-jax.txt"
PARAMS = {"w": np.ones((4, 3), np.float32), "b": np.zeros(3, np.float32)}


def declared() -> Requirement:
    """What pyproject.toml says of JAX."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(r'^\s*"(jax\W[^"]*)",$', text, re.MULTILINE)
    assert found
    return Requirement(found[1])


def pinned(name: str) -> str:
    found = re.search(rf"^{name}==(\S+)", OLDEST.read_text(encoding="utf-8"), re.MULTILINE)
    assert found, f"{OLDEST}: no {name}"
    return found[1]


def test_the_oldest_jax_is_the_one_that_is_declared() -> None:
    (bound,) = (spec for spec in declared().specifier if spec.operator == ">=")
    assert Version(pinned("jax")) == Version(bound.version)


@pytest.fixture(scope="module")
def oldest(backend: Backend, shared_directory: Path) -> Backend:
    """The backend with an environment of the oldest JAX."""
    environment = shared_directory / "oldest-jax"
    uv = os.environ.get("UV") or shutil.which("uv")
    assert uv, "uv: expected on PATH or in $UV; ./ci/nox brings it"
    if not (environment / "bin" / "python").exists():
        python = environment / "bin" / "python"
        wheel = next((backend.directory / "jax" / "wheel").glob("tritonserver_jax-*.whl"))
        base = (backend.environment / "bin" / "python").resolve()
        commands: list[list[str | Path]] = [
            [uv, "venv", "--quiet", "--python", base, environment],
            [uv, "pip", "install", "--quiet", "--python", python, "--require-hashes", "-r", OLDEST],
            [uv, "pip", "install", "--quiet", "--python", python, "--no-deps", wheel],
        ]
        for command in commands:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
    return replace(backend, environment=environment)


def serve_the_examples(backend: Backend, tmp_path: Path, version: str) -> None:
    """Serve two examples with the JAX of that version, and compare with plain JAX here."""
    for name in ("add_sub", "digits"):
        shutil.copytree(
            ROOT / "examples" / name,
            tmp_path / name,
            ignore=shutil.ignore_patterns("__pycache__", "params.msgpack"),
        )
    # Not trained: what is shown is that the network runs, and gives what plain JAX gives.
    version_directory = tmp_path / "digits" / "1"
    network = reference.load_module(version_directory).DigitsNetwork()
    images = np.random.default_rng(0).integers(0, 17, (5, 8, 8, 1)).astype(np.float32)
    save_params(version_directory, network.init(jax.random.key(0), images)["params"])
    expected = reference.predict(version_directory, images)
    with backend.server(tmp_path) as server:
        server.wait_ready(LOAD_TIMEOUT)
        assert f"JAX {version}," in server.log_text()
        for protocol in PROTOCOLS:
            one, two = np.full((3, 4), 5, np.float32), np.full((3, 4), 2, np.float32)
            got = infer(server, "add_sub", {"INPUT0": one, "INPUT1": two}, protocol)
            assert np.array_equal(got["OUTPUT0"], one + two)
            assert np.array_equal(got["OUTPUT1"], one - two)
            got = infer(server, "digits", {"IMAGE": images}, protocol)
            for name, array in expected.items():
                np.testing.assert_allclose(got[name], array, rtol=1e-4, atol=1e-5)


def test_the_examples_are_served_with_the_oldest_jax(oldest: Backend, tmp_path: Path) -> None:
    serve_the_examples(oldest, tmp_path, pinned("jax"))


@pytest.mark.parametrize("python", PYTHONS)
def test_the_examples_are_served_with_the_locked_jax_of_each_python(
    backend: Backend, tmp_path: Path, python: str
) -> None:
    """One binary for all of them; the newest Python has the newest JAX that is supported."""
    version = versions(lock_path(python))["jax"]
    if (backend.environment / "lib" / f"python{python}").is_dir():
        serve_the_examples(backend, tmp_path / "models", version)
        return
    found = find_python(python)
    if found is None:
        pytest.skip(f"there is no Python {python} with its shared library, and uv has none")
    environment = tmp_path / "environment"
    script = backend.directory / "jax" / "scripts" / "setup_env.sh"
    status, said = run_script(script, "--env", environment, "--python", found)
    assert status == 0, said
    other = replace(backend, environment=environment)
    serve_the_examples(other, tmp_path / "models", version)


def test_the_newest_jax_is_the_one_of_the_newest_pythons_lock() -> None:
    locked = [Version(versions(lock_path(python))["jax"]) for python in PYTHONS]
    assert locked == sorted(locked)
    assert all(declared().specifier.contains(version) for version in locked)
    assert locked[0] > Version(pinned("jax"))


@pytest.mark.parametrize("version", ["0.6.2", "0.6"])
def test_a_jax_outside_of_what_is_declared_is_refused(
    backend: Backend, tmp_path: Path, version: str
) -> None:
    models, environment = tmp_path / "models", tmp_path / "environment"
    write_model(models, "linear", LINEAR, params=PARAMS)
    shutil.copytree(backend.environment, environment, symlinks=True, copy_function=os.link)
    site = next((environment / "lib").glob("python3.*")) / "site-packages"
    metadata = next(site.glob("jax-*.dist-info")) / "METADATA"
    text = metadata.read_text(encoding="utf-8")
    metadata.unlink()  # a link: the original is to stay as it is
    metadata.write_text(re.sub(r"\nVersion: .*", f"\nVersion: {version}", text), encoding="utf-8")
    with replace(backend, environment=environment).server(models, explicit=True) as server:
        server.wait_live(LOAD_TIMEOUT)
        for _ in range(2):
            with pytest.raises(ServerError) as refused:
                server.load_model("linear")
            assert f"has JAX {version}, but the jax backend needs {declared()}" in str(
                refused.value
            )
            assert "scripts/setup_env.sh" in str(refused.value)
