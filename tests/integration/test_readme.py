# SPDX-License-Identifier: Apache-2.0
"""What README.md tells a newcomer to do, done: from an artifact to a served flax model."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ci.package import tarball_name
from ci.process import ROOT
from tests.support.backend import LOAD_TIMEOUT, Backend
from tests.support.client import infer
from tritonserver_jax import __version__
from tritonserver_jax.releases import DEFAULT_RELEASE, find_release
from tritonserver_jax.repository import save_params, write_config
from tritonserver_jax.server import TritonServer

pytestmark = pytest.mark.integration

README = (ROOT / "README.md").read_text(encoding="utf-8")
MOST_COMMANDS = 10
BACKENDS = "/opt/tritonserver/backends"


def section(title: str) -> str:
    found = re.search(rf"^## {title}$(.*?)(?=^## |\Z)", README, re.MULTILINE | re.DOTALL)
    assert found, f"README.md has no section {title!r}"
    return found[1]


def blocks(text: str) -> list[str]:
    return [block.strip() for block in re.findall(r"^```\w*\n(.*?)^```$", text, re.M | re.S)]


def commands(block: str) -> list[list[str]]:
    return [shlex.split(line, comments=True) for line in block.splitlines() if line.strip()]


def test_a_newcomer_needs_ten_commands_at_most() -> None:
    of_operator = commands(blocks(section("For an operator"))[0])
    of_newcomer = [command for block in blocks(README.split("\n## ")[0]) for command in [block]]
    assert 0 < len(of_operator) + len(of_newcomer) <= MOST_COMMANDS


@pytest.mark.slow
def test_the_operators_commands_serve_the_authors_model(
    backend: Backend, pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    # The author's model, from the text.
    layout, code = blocks(section("For a model author"))
    where = re.match(r"# (models/mine/1/model\.py)\n", code)
    assert where, "the example says where it goes"
    model_file = tmp_path / where[1]
    model_file.parent.mkdir(parents=True)
    model_file.write_text(code, encoding="utf-8")
    w = np.arange(12, dtype=np.float32).reshape(4, 3)
    save_params(model_file.parent, {"w": w, "b": np.ones(3, np.float32)})
    write_config(model_file.parent.parent)
    for name in re.findall(r"[\w.]+\.(?:py|pbtxt|msgpack)\b", layout):
        assert list((tmp_path / "models").rglob(name)), f"{name} of README's layout"
    line = re.search(r"config\.pbtxt\s+one line: (.*)", layout)
    assert line, "the layout says what is in config.pbtxt"
    written = (model_file.parent.parent / "config.pbtxt").read_text(encoding="utf-8")
    kept = [text for text in written.splitlines() if text and not text.startswith("#")]
    assert kept == [line[1]]

    # The operator's commands, with the places of a test in them.
    readme_tarball = tarball_name(find_release(DEFAULT_RELEASE))
    tarball = tarball_name(find_release(backend.release))
    backends = tmp_path / "backends"
    backends.mkdir()
    install, doctor, serve, check = commands(blocks(section("For an operator"))[0])

    assert install[:2] == ["tritonserver-jax", "install"]
    assert install[2].replace("<version>", __version__) == readme_tarball
    dist: Path = pytestconfig.getoption("--backend-dist")
    shutil.copyfile(dist / backend.release / tarball, tmp_path / tarball)
    program = [sys.executable, "-m", "tritonserver_jax.cli"]
    at = install.index(BACKENDS)
    options = [*install[3:at], str(backends), *install[at + 1 :]]
    run(tmp_path, *program, "install", tarball, *options)
    assert (backends / "jax" / "env" / "bin" / "python").exists()

    assert doctor[0] == "tritonserver-jax"
    # The ports of this machine are nobody's here: the doctor only warns of them.
    options = [str(backends) if word == BACKENDS else word for word in doctor[1:]]
    assert "ok   devices: JAX has " in run(tmp_path, *program, *options)

    assert serve == ["tritonserver", "--model-repository=/models"]
    with TritonServer(
        backend.distribution, [tmp_path / "models"], backend_directory=backends
    ) as server:
        server.wait_model("mine", timeout=LOAD_TIMEOUT)
        x = np.arange(8, dtype=np.float32).reshape(2, 4)
        assert np.array_equal(infer(server, "mine", {"X": x})["Y"], x @ w + 1)
        script = check[0].replace(BACKENDS, str(backends))
        at = check.index("--url")
        report = run(tmp_path, sys.executable, script, *check[1 : at + 1], server.http_url)
    assert "ok   model mine inference" in report


def run(directory: Path, *command: str) -> str:
    """Run a command as README.md has it, and return what it printed."""
    done = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT / "backend" / "python")},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout
