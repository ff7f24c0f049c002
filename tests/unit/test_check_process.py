# SPDX-License-Identifier: Apache-2.0
"""`check` as a command: in processes of its own, for people and for machines."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from ci.process import ROOT
from examples.digits import train
from tests.support.models import LINEAR, write_model
from tritonserver_jax import __version__
from tritonserver_jax.checking.model_check import check_model
from tritonserver_jax.checking.process import check_in_process
from tritonserver_jax.cli.app import make_app
from tritonserver_jax.cli.jax_python import _without_env
from tritonserver_jax.findings import Status

PARAMS = {"w": np.ones((4, 3), np.float32), "b": np.zeros(3, np.float32)}
ENV = {**os.environ, "PYTHONPATH": str(ROOT / "backend" / "python"), "NO_COLOR": "1"}


def run(*arguments: str | Path) -> tuple[int, str, str]:
    result = CliRunner().invoke(make_app(), [str(one) for one in arguments])
    return result.exit_code, result.stdout, result.stderr


EXAMPLES = sorted(path.parent.name for path in (ROOT / "examples").glob("*/config.pbtxt"))


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_are_well(tmp_path: Path, name: str) -> None:
    model = tmp_path / name
    if name == "digits":
        train.write_model(model, train.train(seed=7, epochs=1, report=None).params)
    elif (ROOT / "examples" / name / "make.py").is_file():
        importlib.import_module(f"examples.{name}.make").make(model)
    else:
        shutil.copytree(ROOT / "examples" / name, model)
    (report,) = check_model(model, tell=lambda _: None)
    assert report.loaded
    assert {one.status for one in report.findings} == {Status.OK}
    assert {"load", "types", "rows", "padding"} <= {one.name for one in report.findings}


def test_what_is_wrong_is_told_to_people_and_machines(tmp_path: Path) -> None:
    write_model(tmp_path, "good", LINEAR, params=PARAMS)
    write_model(tmp_path, "bad", LINEAR.replace("x @", "(x - x.mean(0)) @"), params=PARAMS)
    code, out, err = run("check", tmp_path)
    assert code == 1
    assert "bad version 1" in out
    assert "fail rows: row 0 of 8: output 'y' changes by" in out
    assert "(reduce_sum in model.py:5 mixes them)" in out
    assert "1 of 2 models are not well: bad" in err
    assert "program" in out
    assert "compiled in" in out
    code, out, _ = run("check", tmp_path, "--model", "good", "--strict", "--json")
    assert code == 0
    (report,) = json.loads(out)["models"]
    assert (report["model"], report["version"]) == ("good", 1)
    assert len(report["programs"]) == 4
    assert {one["status"] for one in report["findings"]} == {"ok"}


def test_names_that_look_like_markup_are_shown_as_they_are(tmp_path: Path) -> None:
    code = """
        SIGNATURE = {"inputs": {"a[/b]": ("FP32", [4])}, "max_batch_size": 2}

        def predict(params, **inputs):
            return {"y": inputs["a[/b]"]}
    """
    write_model(tmp_path, "m", code)
    status, out, _ = run("check", tmp_path)
    assert status == 0
    assert "a[/b]: float32[2,4]" in out


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("import os; os._exit(3)", "ended with status 3"),
        ("import os; os.kill(os.getpid(), 11)", "was ended by SIGSEGV"),
    ],
)
def test_a_model_that_ends_its_process(tmp_path: Path, line: str, said: str) -> None:
    write_model(tmp_path, "m", f"print('on its way')\n{line}\n")
    (report,) = check_in_process(tmp_path / "m")
    (finding,) = report.findings
    assert (finding.name, finding.status) == ("process", Status.FAIL)
    assert said in finding.detail
    assert "m version 1: loading" in finding.detail
    assert "that would be the server" in finding.detail


def test_a_model_that_does_not_end(tmp_path: Path) -> None:
    write_model(tmp_path, "m", "while True: pass\n")
    (report,) = check_in_process(tmp_path / "m", timeout=3)
    assert "took longer than 3 s" in report.findings[0].detail
    assert "--timeout" in report.findings[0].remedy


def test_a_process_that_a_model_leaves_behind_is_not_waited_for(tmp_path: Path) -> None:
    left = tmp_path / "pid"
    leaving = (
        "import os, pathlib, time\n"
        "if (child := os.fork()) == 0:\n    os.setsid()\n    time.sleep(600)\n    os._exit(0)\n"
        f"pathlib.Path({str(left)!r}).write_text(str(child))\n"
    )
    write_model(tmp_path, "m", leaving + LINEAR.replace("\n    ", "\n"), params=PARAMS)
    (report,) = check_in_process(tmp_path / "m")
    os.kill(int(left.read_text()), signal.SIGKILL)  # it is still there
    assert report.loaded


def test_a_model_that_writes_where_it_should_not(tmp_path: Path) -> None:
    everywhere = (
        "import os\nfor number in range(3, 40):\n    try:\n"
        "        os.write(number, b'what is this\\n')\n    except OSError:\n        pass\n"
    )
    write_model(tmp_path, "m", everywhere + LINEAR.replace("\n    ", "\n"), params=PARAMS)
    told: list[tuple[str, str]] = []
    (report,) = check_in_process(tmp_path / "m", tell=lambda kind, text: told.append((kind, text)))
    assert report.loaded
    assert ("printed", "what is this") in told


def test_what_a_model_prints_and_warns_of(tmp_path: Path) -> None:
    noisy = 'print("{not json")\nimport jax\njax.config.update("jax_debug_nans", True)\n'
    write_model(tmp_path, "m", noisy + LINEAR.replace("\n    ", "\n"), params=PARAMS)
    told: list[tuple[str, str]] = []
    (report,) = check_in_process(tmp_path / "m", tell=lambda kind, text: told.append((kind, text)))
    assert report.loaded
    assert ("printed", "{not json") in told
    (finding,) = [one for one in report.findings if one.status is Status.WARN]
    assert finding.name == "log"
    assert "jax_debug_nans" in finding.detail


def test_the_shell_completes_models(models: Path) -> None:
    words = f"tritonserver-jax check {models} --model t"
    completing = {
        "_TRITONSERVER_JAX_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": "4",
    }
    done = subprocess.run(
        [sys.executable, "-m", "tritonserver_jax.cli"],
        env={**ENV, **completing},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout.split() == ["two"], done.stderr


# -- wrong usage -----------------------------------------------------------------------------------


@pytest.fixture
def models(tmp_path: Path) -> Path:
    for name in ("one", "two"):
        folder = tmp_path / "models" / name / "1"
        folder.mkdir(parents=True)
        (folder / "model.py").touch()
        (folder.parent / "config.pbtxt").write_text('backend: "jax"\n', encoding="utf-8")
    return tmp_path / "models"


@pytest.mark.parametrize(
    ("options", "said", "remedy"),
    [
        (["--model", "three"], "--model: expected a model in", "there are one, two"),
        (["--version", "2"], "--version: expected with one model", "--model"),
        (["--data", "rows.npz"], "--data: expected a file, found none", "numpy.savez"),
        (["--env", "/no/such"], "--env: expected a Python environment with JAX", "--with-env"),
    ],
)
def test_wrong_options_are_named(models: Path, options: list[str], said: str, remedy: str) -> None:
    code, _, err = run("check", models, *options)
    assert code == 2
    assert said in err
    assert remedy in err


def test_a_model_or_nothing_in_place_of_a_repository(models: Path, tmp_path: Path) -> None:
    code, _, err = run("check", models / "one")
    assert code == 2
    assert f"check the folder that it is in: {models}" in err
    (tmp_path / "empty").mkdir()
    code, _, err = run("check", tmp_path / "empty")
    assert code == 2
    assert "tritonserver-jax init" in err


def test_a_python_without_jax_is_told_where_to_go(models: Path) -> None:
    """With packages left out of Python's path, but for what the command line itself needs."""
    code = (
        "import importlib.util, sys\n"
        "real = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *a: None if name == 'jax' else real(name, *a)\n"
        "from tritonserver_jax.cli.app import run\n"
        f"sys.exit(run(['check', {str(models)!r}]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=ENV, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert f"this Python has no JAX: {sys.executable}" in done.stderr
    assert "--env" in done.stderr


def test_the_command_line_goes_on_without_the_option() -> None:
    words = ["check", "m", "--env", "/e", "--json", "--env=/f", "--model", "x"]
    assert _without_env(words) == ["check", "m", "--json", "--model", "x"]


def environment_with_jax(folder: Path, version: str = __version__) -> Path:
    """An environment whose Python says what it was given."""
    (folder / "bin").mkdir(parents=True)
    package = folder / "lib" / "python3.99" / "site-packages" / "jax"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    if version:
        metadata = package.with_name(f"tritonserver_jax-{version}.dist-info") / "METADATA"
        metadata.parent.mkdir()
        metadata.write_text(f"Name: tritonserver-jax\nVersion: {version}\n", encoding="utf-8")
    python = folder / "bin" / "python"
    python.write_text('#!/bin/sh\necho "$@"\nexit 7\n', encoding="utf-8")
    python.chmod(0o755)
    return folder


def test_the_command_goes_on_in_the_environment_that_is_named(models: Path, tmp_path: Path) -> None:
    env = environment_with_jax(tmp_path / "env")
    command: list[Any] = [
        sys.executable,
        "-m",
        "tritonserver_jax.cli",
        "check",
        models,
        "--env",
        env,
    ]
    done = subprocess.run(
        list(map(str, command)), env=ENV, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (7, f"-m tritonserver_jax.cli check {models}\n")


@pytest.mark.parametrize(
    ("version", "found", "remedy"),
    [("0.0.9", "found 0.0.9 in", "or install 0.0.9 where"), ("", "found none in", "--with-env")],
)
def test_an_environment_of_another_version_is_refused(
    models: Path, tmp_path: Path, version: str, found: str, remedy: str
) -> None:
    """Of another, the command would end in words about code that is not there."""
    env = environment_with_jax(tmp_path / "env", version)
    code, _, err = run("check", models, "--env", env)
    assert code == 2
    assert f"--env: expected an environment with tritonserver-jax {__version__}" in err
    assert found in err
    assert remedy in err
