# SPDX-License-Identifier: Apache-2.0
"""`bench`: what it refuses, and how a curve of loads is measured and drawn."""

from __future__ import annotations

import http.server
import io
import json
import socket
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from tritonserver_jax.cli.app import make_app
from tritonserver_jax.tuning.curve import Curve, Point, measure_curve
from tritonserver_jax.tuning.curve_display import draw_curve, show_curve
from tritonserver_jax.tuning.loads import shape_problem
from tritonserver_jax.tuning.perf_analyzer import Load, Measurement, PerfAnalyzer

LOAD = Load(model="m", protocol="grpc", concurrency=1, seconds=1.0)


def measurement(throughput: float, p99: float) -> Measurement:
    return Measurement(throughput, p99 / 2, p99 / 3, p99 / 1.5, p99)


CURVE = Curve(
    LOAD,
    [
        Point(1, [measurement(1000, 900)]),
        Point(8, [measurement(5000, 3000), measurement(5200, 2900), measurement(5100, 3100)]),
        Point(32, [measurement(5050, 9000)]),
    ],
)


class Recorded(PerfAnalyzer):
    """Answers at once, and keeps what it was asked for."""

    asked: list[Load] = []  # noqa: RUF012 - one test has one

    def measure(self, url: str, load: Load) -> Measurement:  # noqa: ARG002
        self.asked.append(load)
        return measurement(100.0 * load.concurrency, 1000)


def test_loads_are_measured_in_turn_after_a_warm_up() -> None:
    analyzer, told = Recorded(Path(), Path()), list[float]()
    curve = measure_curve(
        analyzer, "h:1", LOAD, [8, 1, 8], rounds=2, tell=lambda _t, _m, share: told.append(share)
    )
    warm, *asked = analyzer.asked
    assert (warm.seconds, warm.concurrency) == (0.5, 8)
    assert asked == [replace(LOAD, concurrency=one) for one in (1, 8, 1, 8)]
    assert [(one.concurrency, len(one.measured)) for one in curve.points] == [(1, 2), (8, 2)]
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_a_curve_is_told_in_words_and_numbers() -> None:
    assert CURVE.best.concurrency == 8
    assert CURVE.summary() == (
        "5,100 infer/s at 8 requests under way, p99 3.00 ms; p50 0.30 ms at 1"
    )
    first, second, _ = CURVE.as_json()
    assert first["concurrency"] == 1
    assert (second["throughput"], second["p99_us"], second["rounds"]) == (5100, 3000, 3)
    text = io.StringIO()
    show_curve(CURVE, Console(file=text, width=100))
    assert "5,100" in text.getvalue()
    assert "p99 ms" in text.getvalue()


@pytest.mark.parametrize(("name", "begins"), [("a.png", b"\x89PNG"), ("b/c.svg", b"<?xml")])
def test_a_curve_is_drawn(tmp_path: Path, name: str, begins: bytes) -> None:
    assert draw_curve(CURVE, tmp_path / name, "m on a server")
    data = (tmp_path / name).read_bytes()
    assert data.startswith(begins)
    if name.endswith("svg"):
        assert b"requests under way" in data or b"<g id=" in data


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        ({}, "give --shape x:"),
        ({"x": [2, 3]}, ""),
        ({"x": [2, 3], "y": [4]}, ""),
        ({"x": [2, 3], "NOPE": [4]}, "--shape NOPE:4: expected an input of the model, got 'NOPE'"),
        ({"x": [2, 3], "NOPE": [4]}, "; its inputs are x, y"),
        ({"x": [2]}, "--shape x:2: expected sizes that fit the dims [-1, 3] of input 'x'"),
        ({"x": [2, 4]}, "give one for each of them, and the same where it is not -1"),
    ],
)
def test_shapes_are_of_the_inputs_and_fit_them(shapes: dict[str, list[int]], said: str) -> None:
    # As Triton has it in JSON.
    config = {"input": [{"name": "x", "dims": ["-1", "3"]}, {"name": "y", "dims": ["4"]}]}
    problem = shape_problem(config, shapes)
    assert said in problem
    assert bool(problem) == bool(said)
    # Of a model of which nothing is known, nothing can be said.
    assert shape_problem({}, shapes) == ""
    assert shape_problem({"input": []}, {"x": [1]}).endswith("its inputs are none")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "expected a model repository or --url, got neither"),
        (["MODELS", "--url", "h:1"], "got both"),
        (["--url", "h:1"], "--model: expected with --url"),
        (["--url", "h", "--model", "m"], "--url: expected HOST:PORT"),
        (["--url", "http://h:8000", "--model", "m"], "--url: expected HOST:PORT"),
        (["--url", "h:1", "--model", "m", "--python", "python3"], "has its release and backend"),
        (["MODELS", "--concurrency", "1,x"], "--concurrency: expected numbers > 0"),
        (["MODELS", "--concurrency", "0"], "--concurrency: expected numbers > 0"),
        (["MODELS", "--plot", "plot.jpeg"], "--plot: expected a name that ends in .png"),
        (["MODELS", "--protocol", "ftp"], "--protocol: expected grpc, http or shm"),
        (["MODELS", "--shape", "X"], "--shape: expected INPUT:DIMS"),
        (["MODELS", "--model", "none"], "--model: expected a model in"),
        (["/no/such"], "/no/such: expected a folder that holds models"),
    ],
)
def test_bench_refuses(tmp_path: Path, options: list[str], said: str) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "config.pbtxt").write_text('backend: "jax"\n', encoding="utf-8")
    given = [str(tmp_path) if one == "MODELS" else one for one in options]
    result = CliRunner().invoke(make_app(), ["bench", *given])
    assert result.exit_code == 2
    assert said in result.stderr


class Answering(http.server.BaseHTTPRequestHandler):
    """Has models, and takes their names as Triton does."""

    def do_GET(self) -> None:
        config = {"input": [{"name": "x", "dims": ["4"]}]}
        known = {"/v2/models/a%20b/ready": b"", "/v2/models/text/ready": b""}
        known["/v2/models/a%20b/config"] = json.dumps(config).encode()
        known["/v2/models/text/config"] = b"<html>"
        body = known.get(self.path)
        self.send_response(200 if body is not None else 404)
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *_: object) -> None: ...


@pytest.mark.parametrize(
    ("model", "code", "said"),
    [
        ("a%20b", 2, "--shape NOPE:4: expected an input of the model, got 'NOPE'"),
        ("other", 1, "the model other is not ready there (status 404)"),
        ("with space", 2, "--protocol http: expected a model whose name goes into an address"),
        ("über", 2, "got 'über'\n  -> measure it by gRPC"),
        ("text", 1, "expected a Triton server there, got an answer that is no JSON"),
    ],
)
def test_a_running_server_is_asked_for_the_model_by_its_name(
    model: str, code: int, said: str
) -> None:
    server = http.server.HTTPServer(("127.0.0.1", 0), Answering)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        options = ["--url", f"127.0.0.1:{server.server_port}", "--model", model]
        options += ["--protocol", "http", "--shape", "NOPE:4"]
        result = CliRunner().invoke(make_app(), ["bench", *options])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert (result.exit_code, said in result.stderr) == (code, True), result.stderr


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        url = f"127.0.0.1:{listener.getsockname()[1]}"
        options = ["--url", url, "--model", "m", "--protocol", "http", "--json"]
        result = CliRunner().invoke(make_app(), ["bench", *options])
    assert result.exit_code == 1
    error = json.loads(result.stdout)["error"]
    assert f"{url}: no server answers there by HTTP" in error["message"]
    assert "tritonserver-jax serve" in error["remedy"]
