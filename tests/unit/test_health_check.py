# SPDX-License-Identifier: Apache-2.0
"""The health check against a real tritonserver, and against servers that answer oddly."""

from __future__ import annotations

import ast
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tritonclient.utils import deserialize_bytes_tensor

from ci.process import ROOT
from tests.support.scripts import run_script
from tritonserver_jax.releases import DEFAULT_RELEASE, find_release
from tritonserver_jax.server import ServerError, TritonServer, obtain_server

SCRIPT = ROOT / "packaging" / "scripts" / "health_check.py"


def check(*arguments: str) -> tuple[int, list[str]]:
    """Run it with the system's Python, isolated: it may need nothing beyond the library."""
    status, said = run_script(Path(sys.executable), "-I", SCRIPT, *arguments, timeout=120)
    assert "Traceback" not in said, said
    return status, said.splitlines()


def test_it_can_be_read_by_python_3_8() -> None:
    ast.parse(SCRIPT.read_text(), feature_version=(3, 8))
    modules = {
        (node.module or "").split(".")[0] if isinstance(node, ast.ImportFrom) else name.name
        for node in ast.walk(ast.parse(SCRIPT.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    assert {name.split(".")[0] for name in modules} <= sys.stdlib_module_names


# -- a real server -----------------------------------------------------------------------------

# All but BYTES and BF16 by DLPack: it is the one way that works with every NumPy in this server.
ECHO = """
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        return [
            pb.InferenceResponse(
                [pb.Tensor.from_dlpack("OUT_" + t.name(), t.to_dlpack()) for t in r.inputs()]
            )
            for r in requests
        ]
"""
RAISES = """
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        return [
            pb.InferenceResponse([], pb.TritonError("no zeros,\\nplease")) for r in requests
        ]
"""
LACKS_AN_OUTPUT = """
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        return [
            pb.InferenceResponse([pb.Tensor.from_dlpack("A", r.inputs()[0].to_dlpack())])
            for r in requests
        ]
"""
BROKEN = "raise RuntimeError('no such weights: w.bin')\n"

TYPES = (
    *("BOOL", "UINT8", "UINT16", "UINT32", "UINT64"),
    *("INT8", "INT16", "INT32", "INT64", "FP16", "BF16", "FP32", "FP64"),
)


def tensors(names: list[str], types: list[str], dims: str, extra: str = "") -> str:
    rows = [
        f'{{ name: "{n}", data_type: TYPE_{t}, dims: {dims}{extra} }}'
        for n, t in zip(names, types, strict=True)
    ]
    return "[" + ", ".join(rows) + "]\n"


def add_model(repository: Path, name: str, code: str, config: str) -> None:
    version = repository / name / "1"
    version.mkdir(parents=True)
    (repository / name / "config.pbtxt").write_text(
        f'backend: "python"\ninstance_group [{{ kind: KIND_CPU }}]\n{config}'
    )
    (version / "model.py").write_text(code)


@pytest.fixture(scope="module")
def triton(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TritonServer]:
    repository = tmp_path_factory.mktemp("models")
    types = list(TYPES)
    add_model(
        repository,
        "types",
        ECHO,
        "max_batch_size: 4\ninput "
        + tensors(types, types, "[2, -1]")
        + "output "
        + tensors([f"OUT_{t}" for t in types], types, "[2, -1]"),
    )
    one = "input " + tensors(["A"], ["FP32"], "[3]") + "output "
    add_model(repository, "raises", RAISES, one + tensors(["OUT_A"], ["FP32"], "[3]"))
    add_model(
        repository,
        "lacks_an_output",
        LACKS_AN_OUTPUT,
        one + tensors(["A", "B"], ["FP32", "FP32"], "[3]"),
    )
    add_model(
        repository,
        "decoupled",
        ECHO,
        one
        + tensors(["OUT_A"], ["FP32"], "[3]")
        + "model_transaction_policy { decoupled: true }\n",
    )
    add_model(
        repository,
        "sequence",
        ECHO,
        "max_batch_size: 2\nsequence_batching { max_sequence_idle_microseconds: 5000000 }\n"
        + one
        + tensors(["OUT_A"], ["FP32"], "[3]"),
    )
    add_model(
        repository,
        "optional",
        ECHO,
        "input "
        + tensors(["A"], ["INT32"], "[1]")
        + "input "
        + tensors(["B"], ["INT32"], "[1]", ", optional: true")
        + "output "
        + tensors(["OUT_A"], ["INT32"], "[1]"),
    )
    with running(repository) as server:
        server.wait_live(60)
        yield server
        server.terminate()


def running(repository: Path, *options: str) -> TritonServer:
    distribution = obtain_server(find_release(DEFAULT_RELEASE))
    return TritonServer(
        distribution,
        [repository],
        backend_directory=distribution.backend_directory,
        extra_args=["--model-control-mode=explicit", *options],
        # The python backend takes its environment, and so NumPy, from the python3 on PATH.
        env={"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
    )


def test_a_server_without_models_is_well(triton: TritonServer) -> None:
    for state in triton.model_index():
        if state.state == "READY":
            triton.unload_model(state.name)
    status, lines = check("--url", triton.http_url)
    assert status == 0
    assert lines[:2] == ["ok   server live", "ok   server ready"]
    assert lines[-1] == "note models: none is loaded"


def test_every_data_type_batches_sequences_and_optional_inputs_are_asked(
    triton: TritonServer,
) -> None:
    loaded = ("types", "sequence", "optional", "decoupled")
    for name in loaded:
        triton.load_model(name)
    status, lines = check("--url", f"http://{triton.http_url}/")
    assert status == 0, lines
    for name in loaded:
        assert f"ok   model {name} ready" in lines
    for name in ("types", "sequence", "optional"):
        assert [line for line in lines if line.startswith(f"ok   model {name} inference ")], lines
    assert "note model decoupled inference: not checked: is decoupled" in "\n".join(lines)
    assert len(lines) == 3 + 2 * len(loaded)
    for name in loaded:
        triton.unload_model(name)


def test_the_models_own_error_is_shown_in_one_line(triton: TritonServer) -> None:
    triton.load_model("raises")
    status, lines = check("--url", triton.http_url, "--model", "raises")
    assert status == 1
    (failed,) = [line for line in lines if line.startswith("FAIL")]
    assert failed.startswith("FAIL model raises inference: expected status 200, got 500: ")
    assert "no zeros, please" in failed
    status, lines = check("--url", triton.http_url, "--model", "raises", "--no-infer")
    assert (status, lines[-1]) == (0, "ok   model raises ready")
    triton.unload_model("raises")


def test_a_missing_output_is_named(triton: TritonServer) -> None:
    triton.load_model("lacks_an_output")
    status, lines = check("--url", triton.http_url, "--model", "lacks_an_output")
    triton.unload_model("lacks_an_output")
    assert status == 1
    assert lines[-1].startswith("FAIL model lacks_an_output inference: ")
    assert "output B" in lines[-1]


def test_a_model_that_failed_to_load_is_found_without_being_named(tmp_path: Path) -> None:
    one = "input " + tensors(["A"], ["FP32"], "[3]")
    add_model(tmp_path, "broken", BROKEN, one + "output " + tensors(["B"], ["FP32"], "[3]"))
    add_model(tmp_path, "well", ECHO, one + "output " + tensors(["OUT_A"], ["FP32"], "[3]"))
    # On a server of its own: that a load has failed is not forgotten, and it is not ready then.
    with running(tmp_path) as triton:
        triton.wait_live(60)
        with pytest.raises(ServerError, match="no such weights"):
            triton.load_model("broken")
        every = check("--url", triton.http_url)
        named = check("--url", triton.http_url, "--model", "broken")
        # It is no concern of who asks about another model.
        triton.load_model("well")
        other = check("--url", triton.http_url, "--model", "well")
        assert triton.stop() == 0
    unready = "the server is not ready (a model failed to load, or is loading)"
    for status, lines in (every, named):
        assert status == 1
        assert lines[1].startswith(f"FAIL server ready: {unready}; see which model failed")
        (failed,) = [line for line in lines if line.startswith("FAIL model broken")]
        assert failed.startswith("FAIL model broken ready: version 1 is UNAVAILABLE: ")
        assert "no such weights: w.bin" in failed
        assert "; correct the model, and load it again, or restart a server without" in failed
    status, lines = other
    assert status == 0, lines
    assert lines[1] == f"note server ready: {unready}: broken; of no account for --model"
    assert lines[2] == "ok   model well ready"


def test_names_are_asked_for_as_triton_takes_them(tmp_path: Path) -> None:
    """Which decodes no path; what has no way by HTTP is no failure of the model."""
    one = "input " + tensors(["A"], ["FP32"], "[3]") + "output "
    config = one + tensors(["OUT_A"], ["FP32"], "[3]")
    for name in ("a%20b", "a?b"):
        add_model(tmp_path, name, ECHO, config)
    with running(tmp_path, "--load-model=a?b") as triton:
        triton.wait_ready()
        triton.load_model("a%20b")
        status, lines = check("--url", triton.http_url)
        assert status == 0, lines
        assert "ok   model a%20b ready" in lines
        assert [line for line in lines if line.startswith("ok   model a%20b inference ")]
        said = "not checked: no request over HTTP can name it; ask it by gRPC"
        assert f"note model a?b ready: {said}" in "\n".join(lines)
        status, lines = check("--url", triton.http_url, "--model", "not there")
        assert triton.stop() == 0
    assert status == 1
    assert "FAIL model not there ready: the server does not have it; check the name" in lines


def test_unknown_and_unloaded_models_and_versions_are_told_apart(triton: TritonServer) -> None:
    triton.load_model("optional")
    url = triton.http_url
    status, lines = check("--url", url, "--model", "nowhere", "--model", "types")
    assert status == 1
    assert "in the server's repository" in lines[2]
    assert "FAIL model types ready: " in lines[3]
    assert "load the model" in lines[3]
    status, lines = check("--url", url, "--model", "optional", "--model-version", "7")
    assert status == 1
    assert "FAIL model optional version 7 ready: " in lines[2]
    assert "version 1 READY" in lines[2]
    status, lines = check("--url", url, "--model", "optional", "--model-version", "1")
    assert status == 0
    assert lines[2] == "ok   model optional version 1 ready"
    triton.unload_model("optional")


def test_json_says_the_same(triton: TritonServer) -> None:
    status, lines = check("--url", triton.http_url, "--model", "nowhere", "--json")
    report = json.loads("\n".join(lines))
    assert status == 1
    assert report["ok"] is False
    assert [entry["status"] for entry in report["checks"]] == ["ok", "ok", "fail"]
    assert report["checks"][2]["next_step"]


def test_the_grpc_port_is_recognised(triton: TritonServer) -> None:
    status, lines = check("--url", triton.grpc_url, "--timeout", "5")
    assert status == 1
    assert "expected an HTTP answer" in lines[0]
    assert "give the HTTP port" in lines[0]


# -- servers that answer oddly -----------------------------------------------------------------

Handler = Callable[[BaseHTTPRequestHandler, bytes], None]


@pytest.fixture
def odd_server() -> Iterator[Callable[[dict[str, Handler]], str]]:
    """Start a server whose answers are given by path; the rest of it is a healthy Triton."""
    servers: list[ThreadingHTTPServer] = []

    def start(routes: dict[str, Handler]) -> str:
        class Requests(BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                routes.get(self.path, healthy)(self, body)

            do_GET = do_POST = answer  # noqa: N815  named by http.server

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"127.0.0.1:{server.server_address[1]}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def send(
    request: BaseHTTPRequestHandler, body: bytes, status: int = 200, head: int | None = None
) -> None:
    request.send_response(status)
    if head is not None:
        request.send_header("Inference-Header-Content-Length", str(head))
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)


def send_json(request: BaseHTTPRequestHandler, value: object, data: bytes = b"") -> None:
    head = json.dumps(value).encode()
    send(request, head + data, head=len(head))


METADATA: dict[str, Any] = {
    "name": "m",
    "inputs": [{"name": "X", "datatype": "BYTES", "shape": [-1, 2]}],
    "outputs": [{"name": "Y", "datatype": "FP32", "shape": [-1, 2]}],
}
OUTPUT = {"name": "Y", "datatype": "FP32", "shape": [1, 2], "parameters": {"binary_data_size": 8}}


def healthy(request: BaseHTTPRequestHandler, body: bytes) -> None:
    if request.path == "/v2/repository/index":
        send_json(request, [{"name": "m", "version": "1", "state": "READY"}])
    elif request.path == "/v2/models/m":
        send_json(request, METADATA)
    elif request.path == "/v2/models/m/config":
        send_json(request, {"name": "m", "max_batch_size": 4, "input": [{"name": "X"}]})
    elif request.path == "/v2/models/m/infer":
        send_json(request, {"outputs": [OUTPUT]}, bytes(8))
    else:
        send(request, b"")


def test_strings_are_sent_as_triton_reads_them(
    odd_server: Callable[[dict[str, Handler]], str],
) -> None:
    seen: list[tuple[dict[str, Any], bytes]] = []

    def infer(request: BaseHTTPRequestHandler, body: bytes) -> None:
        length = int(request.headers["Inference-Header-Content-Length"])
        seen.append((json.loads(body[:length]), body[length:]))
        healthy(request, body)

    status, lines = check("--url", odd_server({"/v2/models/m/infer": infer}))
    assert status == 0, lines
    ((head, data),) = seen
    (tensor,) = head["inputs"]
    assert (tensor["datatype"], tensor["shape"]) == ("BYTES", [1, 2])
    assert tensor["parameters"]["binary_data_size"] == len(data)
    strings = deserialize_bytes_tensor(data)
    assert np.array_equal(strings, np.array([b"0", b"0"], dtype=object))


def replies(value: object, data: bytes = b"") -> Handler:
    return lambda request, _: send_json(request, value, data)


def raw(body: bytes, status: int = 200, head: int | None = None) -> Handler:
    return lambda request, _: send(request, body, status, head)


def hang_up(request: BaseHTTPRequestHandler, _: bytes) -> None:
    request.connection.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    ("path", "handler", "said"),
    [
        ("health/live", raw(b"<html>", 404), "server live: expected status 200, got 404: <html>"),
        ("health/live", hang_up, "server live: 127.0.0.1:"),
        ("health/ready", raw(b'{"error":"loading"}', 400), "server ready: expected .* loading; "),
        ("repository/index", raw(b"gar\x00\xffbage"), "repository index: expected JSON, got gar"),
        ("repository/index", replies({"a": 1}), "repository index: expected a list of models"),
        ("repository/index", raw(b'{"error":"off"}', 403), "index: expected .* got 403: off"),
        ("models/m/ready", raw(b'{"error":"asleep"}', 400), "m ready: expected .* 400: asleep"),
        ("models/m", raw(b"garbage"), "inference: metadata: expected JSON, got garbage"),
        ("models/m", replies({"inputs": 3}), "metadata: expected a list of inputs, got 3"),
        ("models/m", replies([1]), "metadata: expected an object"),
        ("models/m/config", raw(b"", 500), "config: expected status 200, got 500: no text"),
        ("models/m/infer", raw(b"garbage"), "inference: answer: expected JSON, got garbage"),
        ("models/m/infer", raw(b"{}", head=99), "answer: expected a header within it, got '99'"),
        ("models/m/infer", raw(b"{}", head=-1), "answer: expected a header within it, got '-1'"),
        ("models/m/infer", replies({}), "answer: expected a list of outputs, got None"),
        ("models/m/infer", replies({"outputs": []}), "output Y: expected in the answer, got only"),
        ("models/m/infer", replies({"outputs": [OUTPUT]}), "expected 8 bytes of output data"),
        (
            "models/m/infer",
            replies({"outputs": [{**OUTPUT, "parameters": {"binary_data_size": 0}}]}),
            r"output Y: expected 8 bytes for shape \[1, 2\], got 0",
        ),
        (
            "models/m/infer",
            replies({"outputs": [{**OUTPUT, "datatype": "INT8"}]}, bytes(8)),
            "output Y: expected FP32, got 'INT8'",
        ),
        (
            "models/m/infer",
            replies({"outputs": [{**OUTPUT, "shape": [2]}]}, bytes(8)),
            r"output Y: expected shape \[-1, 2\], got \[2\]",
        ),
    ],
)
def test_an_odd_answer_is_named(
    odd_server: Callable[[dict[str, Handler]], str], path: str, handler: Handler, said: str
) -> None:
    status, lines = check("--url", odd_server({f"/v2/{path}": handler}), "--timeout", "20")
    assert status == 1
    failed = [line for line in lines if line.startswith("FAIL ")]
    assert len(failed) == 1, lines
    assert re.search(said, failed[0]), failed
    assert "; " in failed[0], "the next step"


def test_an_environment_is_not_blamed_on_the_model(
    odd_server: Callable[[dict[str, Handler]], str],
) -> None:
    reason = (
        "Internal: backend jax: Python environment /b/jax/env: is not there; make it with "
        "/b/jax/scripts/setup_env.sh"
    )
    index = [{"name": "m", "version": "1", "state": "UNAVAILABLE", "reason": reason}]
    status, lines = check("--url", odd_server({"/v2/repository/index": replies(index)}))
    assert status == 1
    assert lines[-1] == (
        f"FAIL model m ready: version 1 is UNAVAILABLE: {reason}; then load it again, or restart "
        "a server without model control; the log says more"
    )


def test_a_server_that_is_not_ready_for_no_known_model_fails(
    odd_server: Callable[[dict[str, Handler]], str],
) -> None:
    url = odd_server({"/v2/health/ready": raw(b"", 400)})
    status, lines = check("--url", url, "--model", "m")
    assert status == 1
    assert lines[1].startswith("FAIL server ready: the server is not ready (a model failed")


def test_a_model_with_huge_inputs_is_not_tried(
    odd_server: Callable[[dict[str, Handler]], str],
) -> None:
    huge = {**METADATA, "inputs": [{"name": "X", "datatype": "FP32", "shape": [99999, 99999]}]}
    status, lines = check("--url", odd_server({"/v2/models/m": replies(huge)}))
    assert status == 0
    assert "note model m inference: not checked: input X of shape [99999, 99999]" in lines[-1]


def hang(_: BaseHTTPRequestHandler, __: bytes) -> None:
    time.sleep(20)


def trickle(request: BaseHTTPRequestHandler, _: bytes) -> None:
    request.send_response(200)
    request.send_header("Content-Length", "1000")
    request.end_headers()
    for _second in range(200):
        request.wfile.write(b" ")
        request.wfile.flush()
        time.sleep(0.1)


@pytest.mark.parametrize("handler", [hang, trickle])
@pytest.mark.parametrize("path", ["health/live", "models/m/infer"])
def test_the_deadline_holds_for_all_checks_together(
    odd_server: Callable[[dict[str, Handler]], str], path: str, handler: Handler
) -> None:
    begin = time.monotonic()
    status, lines = check("--url", odd_server({f"/v2/{path}": handler}), "--timeout", "1")
    assert time.monotonic() - begin < 5
    assert status == 1
    assert lines[-1].startswith("FAIL ")
    assert "no answer within the 1 s for all checks; give more time with --timeout" in lines[-1]


def test_nobody_there_is_named() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    status, lines = check("--url", f"127.0.0.1:{port}")
    assert status == 1
    assert lines == [
        f"FAIL server live: 127.0.0.1:{port}: connection refused; start tritonserver, or give its "
        "HTTP address with --url (default port 8000)"
    ]


def test_an_unknown_host_is_named() -> None:
    status, lines = check("--url", "no-such-host.invalid:8000", "--timeout", "20")
    assert status == 1
    assert "no-such-host.invalid:8000" in lines[0]
    assert lines[0].startswith("FAIL server live: ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--timeout", "0"], "--timeout: expected seconds above 0, got 0"),
        (["--timeout", "x"], "--timeout"),
        (["--model-version", "1"], "--model-version: expected --model with it"),
        (["--url", "not a url"], "--url: expected host:port, got 'not a url'"),
        (["--nothing"], "--nothing"),
    ],
)
def test_a_wrong_option_ends_with_2(arguments: list[str], said: str) -> None:
    status, lines = check(*arguments)
    assert status == 2
    assert said in lines[-1]


def test_it_runs_by_itself() -> None:
    done = subprocess.run([SCRIPT, "--help"], capture_output=True, text=True, check=True)
    assert "--model-version" in done.stdout
