# SPDX-License-Identifier: Apache-2.0
"""The backend's Python environment: missing, broken, of another Python, and repaired."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.support.backend import LOAD_TIMEOUT, Backend
from tests.support.client import infer
from tests.support.models import LINEAR, write_model
from tritonserver_jax.server import ServerError

pytestmark = pytest.mark.integration

PARAMS = {"w": np.ones((4, 3), np.float32), "b": np.zeros(3, np.float32)}

# Served by Triton's python backend.
NEIGHBOUR = """
    import numpy as np
    import triton_python_backend_utils as pb_utils

    class TritonPythonModel:
        def execute(self, requests):
            inputs = [pb_utils.get_input_tensor_by_name(request, "x") for request in requests]
            outputs = [pb_utils.Tensor.from_dlpack("y", np.from_dlpack(x) + 1) for x in inputs]
            return [pb_utils.InferenceResponse([y]) for y in outputs]
"""
NEIGHBOUR_CONFIG = """
    backend: "python"
    max_batch_size: 0
    input { name: "x" data_type: TYPE_FP32 dims: 2 }
    output { name: "y" data_type: TYPE_FP32 dims: 2 }
"""


def missing(path: Path, environment: Path) -> None:
    """Nothing there."""


def empty(path: Path, environment: Path) -> None:
    path.mkdir()


def dangling(path: Path, environment: Path) -> None:
    (path / "bin").mkdir(parents=True)
    (path / "bin" / "python").symlink_to("/nonexistent/python3")


def no_program(path: Path, environment: Path) -> None:
    (path / "bin").mkdir(parents=True)
    (path / "bin" / "python").write_text("#!/bin/sh\necho 'cannot start' >&2\nexit 1\n")
    (path / "bin" / "python").chmod(0o755)


def hanging_never(path: Path, environment: Path) -> None:
    (path / "bin").mkdir(parents=True)
    (path / "bin" / "python").write_text("#!/bin/sh\necho 'not JSON'\n")
    (path / "bin" / "python").chmod(0o755)


def no_packages(path: Path, environment: Path) -> None:
    venv.create(path, with_pip=False)


def for_another_python(path: Path, environment: Path) -> None:
    """As when the system's Python goes from one minor version to the next under the environment."""
    shutil.copytree(environment, path, symlinks=True, copy_function=os.link)
    library = next((path / "lib").glob("python3.*"))
    library.rename(library.with_name("python3.99"))


def without_jax(path: Path, environment: Path) -> None:
    """As when somebody took a package out."""
    shutil.copytree(environment, path, symlinks=True, copy_function=os.link)
    site = next((path / "lib").glob("python3.*")) / "site-packages"
    for found in site.glob("jax-*.dist-info"):
        shutil.rmtree(found)


def of_another_version(path: Path, environment: Path) -> None:
    """As when the libraries were replaced, and the environment forgotten."""
    shutil.copytree(environment, path, symlinks=True, copy_function=os.link)
    site = next((path / "lib").glob("python3.*")) / "site-packages"
    metadata = next(site.glob("tritonserver_jax-*.dist-info")) / "METADATA"
    text = metadata.read_text()
    metadata.unlink()  # a link: the original is to stay as it is
    metadata.write_text(text.replace("\nVersion: ", "\nVersion: 99."))


CASES: dict[Callable[[Path, Path], None], str] = {
    missing: "there is no such directory",
    empty: "bin/python is missing, or points to a Python that is no longer there",
    dangling: "bin/python is missing, or points to a Python that is no longer there",
    no_program: "its interpreter does not start: cannot start",
    hanging_never: "its interpreter does not start: ",
    no_packages: "its Python {python} has no package tritonserver-jax",
    for_another_python: "its Python {python} has no package tritonserver-jax",
    without_jax: (
        "its Python {python} has no package jax (it was made for another Python, or not by "
        "setup_env.sh)"
    ),
    of_another_version: "it has tritonserver-jax 99.",
}


@pytest.fixture
def models(tmp_path: Path) -> Path:
    repository = tmp_path / "models"
    write_model(repository, "linear", LINEAR, params=PARAMS)
    write_model(repository, "neighbour", NEIGHBOUR, config=NEIGHBOUR_CONFIG)
    return repository


@pytest.fixture
def backends(backend: Backend, tmp_path: Path) -> Path:
    """A backend directory with Triton's python backend beside ours."""
    directory = tmp_path / "backends"
    directory.mkdir()
    (directory / "jax").symlink_to(backend.directory / "jax")
    (directory / "python").symlink_to(backend.distribution.backend_directory / "python")
    return directory


@pytest.mark.parametrize("damage", CASES, ids=lambda case: case.__name__)
def test_a_bad_environment_is_named_and_can_be_repaired_without_a_restart(
    backend: Backend,
    models: Path,
    backends: Path,
    tmp_path: Path,
    damage: Callable[[Path, Path], None],
) -> None:
    environment = tmp_path / "environment"
    damage(environment, backend.environment)
    # The python backend takes its environment, and so NumPy, from the python3 on PATH.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with backend.server(
        models,
        explicit=True,
        backend_config={"env": str(environment)},
        backend_directory=backends,
        env={"PATH": path},
    ) as server:
        server.wait_live(LOAD_TIMEOUT)
        server.load_model("neighbour")
        for _ in range(2):
            with pytest.raises(ServerError) as refused:
                server.load_model("linear")
            message = str(refused.value)
            words = CASES[damage].format(python=platform.python_version())
            assert f"Python environment {environment}: {words}" in message
            assert "scripts/setup_env.sh" in message
        x = np.ones(2, np.float32)
        assert np.array_equal(infer(server, "neighbour", {"x": x})["y"], x + 1)

        if environment.exists():
            shutil.rmtree(environment)
        environment.symlink_to(backend.environment)
        server.load_model("linear")
        row = np.ones((1, 4), np.float32)
        assert np.array_equal(infer(server, "linear", {"x": row})["y"], [[4, 4, 4]])
        assert np.array_equal(infer(server, "neighbour", {"x": x})["y"], x + 1)


def test_the_environment_is_found_beside_the_backend(backend: Backend, models: Path) -> None:
    assert backend.environment == backend.directory / "jax" / "env"
    running = backend.server(models, explicit=True)
    running._extra_args = [arg for arg in running._extra_args if "jax,env=" not in arg]
    with running as server:
        server.wait_live(LOAD_TIMEOUT)
        server.load_model("linear")


def test_python_variables_of_the_server_are_ignored(backend: Backend, models: Path) -> None:
    garbage = {"PYTHONHOME": "/nonexistent", "PYTHONPATH": "/nonexistent", "PYTHONOPTIMIZE": "2"}
    with backend.server(models, explicit=True, env=garbage) as server:
        server.wait_live(LOAD_TIMEOUT)
        server.load_model("linear")


def test_the_environment_works_without_the_server(backend: Backend) -> None:
    program = "import jax, tritonserver_jax.runtime.entry; print(jax.__version__)"
    python = backend.environment / "bin" / "python"
    done = subprocess.run([python, "-I", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip()
