# SPDX-License-Identifier: Apache-2.0
"""From `init` over `check` and `serve` to `bench`, on a real server with the installed backend."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ci.process import ROOT
from examples.digits import train
from tests.support.backend import LOAD_TIMEOUT, Backend
from tests.support.client import infer
from tests.support.models import LINEAR, write_model
from tritonserver_jax.checking.model_check import check_model
from tritonserver_jax.cli.commands.serve import request_to_try
from tritonserver_jax.findings import Status
from tritonserver_jax.model_config import parse_config
from tritonserver_jax.server import ServerError, TritonServer

pytestmark = [pytest.mark.integration]

PARAMS = {"w": np.ones((4, 3), np.float32), "b": np.zeros(3, np.float32)}


def run(backend: Backend, *arguments: str | Path) -> dict[str, Any]:
    """Run a command that has to end well; returns what it tells a machine."""
    done = subprocess.run(
        [sys.executable, "-m", "tritonserver_jax.cli", *map(str, arguments), "--json"],
        env={
            **os.environ,
            **backend.variables,
            "PYTHONPATH": os.pathsep.join([str(ROOT / "backend" / "python"), str(ROOT)]),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.slow
def test_what_init_makes_passes_check_and_is_served(backend: Backend, tmp_path: Path) -> None:
    models, net = tmp_path / "models", tmp_path / "net.py"
    net.write_text("import jax.numpy as jnp\n\n\ndef predict(X):\n    return jnp.tanh(X)\n")
    run(backend, "init", "mine", "--from", f"{net}:predict", "--input", "X:FP32[4]",
        "--repository", models)  # fmt: skip
    made = run(backend, "export", models, "--model", "mine", "--name", "exported",
               "--output", models, "--platform", "cpu", "--platform", "cuda")  # fmt: skip
    assert Path(made["artifact"]).stat().st_size == made["bytes"]
    assert {one["status"] for one in made["check"]["findings"]} == {"ok"}
    assert [one.name for one in (models / "exported" / "1").iterdir()] == ["model.jaxexport"]
    # With the Python of the server, which is another one than that of the tests.
    checked = run(backend, "check", models, "--strict", "--env", backend.environment)
    reports = {one["model"]: one for one in checked["models"]}
    assert sorted(reports) == ["exported", "mine"]
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    with backend.server(models) as server:
        server.wait_ready(LOAD_TIMEOUT)
        for name in ("mine", "exported"):
            got = infer(server, name, {"X": x})["OUTPUT"]
            np.testing.assert_allclose(got, np.tanh(x), rtol=1e-5, atol=1e-6)
        for name, report in reports.items():
            served, said = server.model_config(name), parse_config(report["config"])
            for key in ("max_batch_size", "dynamic_batching", "input", "output"):
                assert _numbers(served[key]) == _subset(_numbers(said[key]), _numbers(served[key]))
            assert [one["name"] for one in report["outputs"]] == [
                one["name"] for one in server.model_metadata(name)["outputs"]
            ]


def _numbers(value: Any) -> Any:
    """The same, with numbers that JSON has as text."""
    if isinstance(value, dict):
        return {key: _numbers(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_numbers(one) for one in value]
    return int(value) if isinstance(value, str) and value.lstrip("-").isdigit() else value


def _subset(value: Any, of: Any) -> Any:
    """What another release's server has fields of."""
    if isinstance(of, dict):
        return {key: _subset(value[key], one) for key, one in of.items()}
    if isinstance(of, list):
        return [_subset(one, other) for one, other in zip(value, of, strict=True)]
    return value


#: What Triton itself refuses, before the backend sees it.
OF_TRITON = {
    "name": 'name: "another"',
    "platform": 'platform: "tensorflow_graphdef"',
    "versions": "version_policy { specific { versions: [ 7 ] } }",
    "negative": "max_batch_size: -1",
    "zero": 'max_batch_size: 8 input { name: "x" data_type: TYPE_FP32 dims: 0 }',
    "preferred": "dynamic_batching { preferred_batch_size: 4 }",
    "priority": "max_batch_size: 8 "
    "dynamic_batching { priority_levels: 2 default_priority_level: 3 }",
    "gpus": "instance_group { kind: KIND_CPU gpus: 0 }",
    "unknown": "max_batchsize: 3",
}


@pytest.mark.parametrize("case", OF_TRITON)
def test_what_check_says_triton_refuses_is_refused(
    case: str, server: TritonServer, repository: Path, tmp_path: Path
) -> None:
    name = f"refused_{case}"
    write_model(
        repository, name, LINEAR, params=PARAMS, config=f'backend: "jax"\n{OF_TRITON[case]}'
    )
    (report,) = check_model(repository / name, tell=lambda _: None)
    finding = next(one for one in report.findings if one.status is Status.FAIL)
    assert finding.name == "config"
    with pytest.raises(ServerError):
        server.load_model(name)
    (repository / name / "config.pbtxt").unlink()


@pytest.mark.parametrize(
    ("name", "protocol"), [("a%20b", "http"), ("über", "grpc"), ("with space", "grpc")]
)
def test_a_name_that_a_url_would_have_otherwise_is_measured(
    backend: Backend, tmp_path: Path, name: str, protocol: str
) -> None:
    """Triton decodes nothing of a path; over gRPC a name may have anything."""
    write_model(tmp_path / "models", name, LINEAR, params=PARAMS)
    with backend.server(tmp_path / "models") as server:
        server.wait_ready(LOAD_TIMEOUT)
        url = server.http_url if protocol == "http" else server.grpc_url
        given = ["--url", url, "--model", name, "--protocol", protocol, "--concurrency", "1"]
        plot = tmp_path / "bench.svg"
        answer = run(backend, "bench", *given, "--seconds", "0.3", "--plot", plot)
        line = request_to_try(server, name)
        told = subprocess.run(line, capture_output=True, text=True, check=True)
        if " " in name:
            with pytest.raises(ServerError, match="expected a name that a request over HTTP can"):
                server.model_metadata(name)
        else:
            assert server.model_metadata(name)["name"] == name
    assert answer["points"][0]["throughput"] > 1
    asked = json.loads(told.stdout)
    assert asked["model_name"] == name if name.isascii() and " " not in name else asked["version"]


@pytest.mark.slow
def test_bench_writes_its_plot_of_digits(backend: Backend, tmp_path: Path) -> None:
    models = tmp_path / "models"
    train.write_model(models / "digits", train.train(seed=7, epochs=1, report=None).params)
    loads = ["--concurrency", "1,4", "--seconds", "0.3"]
    if backend.environment == backend.directory / "jax" / "env":
        installed: list[str | Path] = [
            "--release",
            backend.release,
            "--backends",
            backend.directory,
        ]
        plot = tmp_path / "bench.png"
        answer = run(backend, "bench", models, *loads, "--plot", plot, *installed)
        assert [one["concurrency"] for one in answer["points"]] == [1, 4]
        assert plot.read_bytes().startswith(b"\x89PNG")
    with backend.server(models) as server:
        server.wait_ready(LOAD_TIMEOUT)
        plot = tmp_path / "bench.svg"
        named: list[str | Path] = [
            "--url",
            server.grpc_url,
            "--model",
            "digits",
            "--rows",
            "4",
            "--plot",
            plot,
        ]
        answer = run(backend, "bench", *named, "--concurrency", "2", "--seconds", "0.3")
    assert all(one["throughput"] > 10 for one in answer["points"])
    assert all(one["p50_us"] <= one["p99_us"] for one in answer["points"])
    assert "<svg" in plot.read_text(encoding="utf-8")
