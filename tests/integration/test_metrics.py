# SPDX-License-Identifier: Apache-2.0
"""The backend's metrics on Triton's endpoint, and Triton's own figures about it."""

from __future__ import annotations

import json
import re
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ci.monitoring.metrics import GPU, SUMMARIES, TRITON, Metric
from tests.support.backend import LOAD_TIMEOUT, Backend
from tests.support.client import Client, infer
from tests.support.metrics import counted, family, sample
from tests.support.models import LINEAR, write_model
from tritonserver_jax.releases import load_releases
from tritonserver_jax.server import TritonServer

pytestmark = [pytest.mark.core, pytest.mark.integration]

PARAMS = {"w": np.ones((4, 3), np.float32), "b": np.zeros(3, np.float32)}
ROW = {"x": np.ones((1, 4), np.float32)}


def test_names_kinds_and_help(server: TritonServer) -> None:
    metrics = server.metrics()
    assert family(metrics, "jax_predict_calls") == (
        "counter",
        "Number of calls of the model's compiled predict function, one per executed batch",
    )
    assert family(metrics, "jax_xla_compilations") == (
        "counter",
        "Number of XLA programs compiled for the model",
    )
    assert family(metrics, "jax_xla_compilation_time") == (
        "counter",
        "Cumulative seconds spent tracing, lowering and compiling XLA programs for the model",
    )


@pytest.mark.parametrize("metric", TRITON, ids=lambda one: one.name)
def test_tritons_own_metrics_are_there_from_the_release_on_that_is_declared(
    server: TritonServer, metric: Metric
) -> None:
    if metric.needs:  # a GPU, or another option of the server
        assert metric.needs in (GPU, SUMMARIES)
        return
    releases = list(load_releases())
    release = server.distribution.release.release
    has = not metric.since or releases.index(release) >= releases.index(metric.since)
    assert (f"# TYPE {metric.name} {metric.kind}\n" in server.metrics()) is has


def test_calls_and_compilations_are_counted(server: TritonServer, repository: Path) -> None:
    write_model(repository, "counted", LINEAR, params=PARAMS)
    server.load_model("counted")
    labels = {"model": "counted", "version": "1"}
    before = server.metrics()
    assert sample(before, "jax_predict_calls", **labels) == 0, "warm-up is not traffic"
    assert sample(before, "jax_xla_compilations", **labels) == 4, "1, 2, 4 and 8 rows"
    seconds = sample(before, "jax_xla_compilation_time", **labels)
    assert seconds is not None
    assert 0 < seconds < 60
    for _ in range(3):
        infer(server, "counted", ROW)
    after = server.metrics()
    assert sample(after, "jax_predict_calls", **labels) == 3
    assert sample(after, "jax_xla_compilations", **labels) == 4
    assert sample(after, "jax_xla_compilation_time", **labels) == seconds
    assert sample(after, "jax_xla_compilations_in_traffic", **labels) == 0


def test_a_compilation_in_traffic_is_counted_and_logged_once(
    server: TritonServer, repository: Path
) -> None:
    code = """
        SIGNATURE = {"inputs": {"x": ("FP32", [-1])}, "max_batch_size": 4}

        def predict(params, x):
            return {"y": x * 2}
    """
    write_model(repository, "in_traffic", code)
    server.load_model("in_traffic")
    labels = {"model": "in_traffic", "version": "1"}
    assert sample(server.metrics(), "jax_xla_compilations", **labels) == 0
    seconds = []
    for _ in range(2):
        infer(server, "in_traffic", {"x": np.ones((3, 7), np.float32)})
        for metric in ("jax_xla_compilations", "jax_xla_compilations_in_traffic"):
            assert sample(server.metrics(), metric, **labels) == 1
        seconds.append(sample(server.metrics(), "jax_xla_compilation_time", **labels) or 0)
    assert seconds[0] == seconds[1] > 0
    lines = [
        line
        for line in server.log_text().splitlines()
        if "model 'in_traffic' version 1: compiled predict for" in line
    ]
    assert len(lines) == 1
    assert lines[0].startswith("I")
    assert "x: float32[4,7] on cpu:0 in " in lines[0]
    assert re.search(r"s, [0-9.]+ s of them in XLA \(in traffic\)\"?$", lines[0])


def test_metrics_follow_a_model_through_reload_and_unload(
    server: TritonServer, repository: Path
) -> None:
    write_model(repository, "reloaded", LINEAR, params=PARAMS)
    labels = {"model": "reloaded", "version": "1"}
    server.load_model("reloaded")
    infer(server, "reloaded", ROW)
    for reload in range(1, 4):
        # Triton loads the new one before it unloads the old one.
        path = repository / "reloaded" / "1" / "model.py"
        path.write_text(path.read_text() + f"\n# {reload}\n")
        server.load_model("reloaded")
        deadline = time.monotonic() + 10
        infer(server, "reloaded", ROW)
        while sample(server.metrics(), "jax_predict_calls", **labels) != 1 + reload:
            assert time.monotonic() < deadline, server.metrics()
    server.unload_model("reloaded")
    assert sample(server.metrics(), "jax_predict_calls", **labels) is None


def test_models_load_where_metrics_are_off(backend: Backend, tmp_path: Path) -> None:
    write_model(tmp_path, "linear", LINEAR, params=PARAMS)
    with backend.server(tmp_path, args=["--allow-metrics=false"]) as server:
        server.wait_model("linear", timeout=LOAD_TIMEOUT)
        assert np.array_equal(infer(server, "linear", ROW)["y"], [[4, 4, 4]])
        assert "E1" not in [line[:2] for line in server.log_text().splitlines() if "jax:" in line]


def test_tritons_own_figures_add_up(server: TritonServer, repository: Path) -> None:
    code = """
        import time
        import jax

        SIGNATURE = {"inputs": {"x": ("FP32", [4])}, "max_batch_size": 8}

        def slowly(x):
            time.sleep(0.05)
            return x

        def predict(params, x):
            return {"y": jax.pure_callback(slowly, jax.ShapeDtypeStruct(x.shape, x.dtype), x)}
    """
    write_model(repository, "slow", code)
    server.load_model("slow")
    with Client(server, "http") as client:
        for rows in (1, 3, 8):
            client.infer("slow", {"x": np.ones((rows, 4), np.float32)})
    url = f"http://{server.http_url}/v2/models/slow/stats"

    def read() -> Any:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["model_stats"][0]

    assert counted(lambda: read()["inference_count"], 12) == 12
    statistics = read()
    assert statistics["execution_count"] == 3
    assert {b["batch_size"]: b["compute_infer"]["count"] for b in statistics["batch_stats"]} == {
        1: 1,
        3: 1,
        8: 1,
    }
    figures = statistics["inference_stats"]
    assert figures["success"]["count"] == 3
    assert figures["fail"]["count"] == 0
    infer_ns = figures["compute_infer"]["ns"]
    assert infer_ns >= 3 * 50e6, "the 50 ms of the model are compute"
    parts = sum(figures[part]["ns"] for part in ("queue", "compute_input", "compute_output"))
    assert parts < infer_ns
    assert infer_ns + parts <= figures["success"]["ns"]
