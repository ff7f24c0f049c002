# SPDX-License-Identifier: Apache-2.0
"""BYTES: on the host, inside a compiled function, and wrong."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from tests.support.backend import Backend
from tests.support.client import PROTOCOLS, Client, Protocol, RequestError, infer, status
from tests.support.models import write_model
from tritonserver_jax.server import TritonServer

pytestmark = [pytest.mark.core, pytest.mark.integration]

ECHO = """
    import numpy as np

    SIGNATURE = {"inputs": {"text": ("BYTES", [-1])}, "max_batch_size": 8}

    def preprocess(inputs):
        text = inputs["text"]
        kept.append(text)
        return {"lengths": np.array([[len(e) for e in row] for row in text], np.int32)
                           .reshape(text.shape)}

    kept = []

    def predict(params, lengths):
        return {"lengths": lengths}

    def postprocess(outputs):
        return {"text": kept.pop(), "lengths": outputs["lengths"]}
"""

#: Upper case of ASCII letters, inside XLA.
UPPER = """
    import jax.numpy as jnp

    SIGNATURE = {"inputs": {"text": ("BYTES", [1])}, "lengths": {"text": [4, 16]},
                 "max_batch_size": 4}

    def predict(params, text):
        letters = text.bytes
        small = (letters >= ord("a")) & (letters <= ord("z"))
        return {"upper": text._replace(bytes=jnp.where(small, letters - 32, letters)),
                "length": text.lengths}
"""

EVERY_BYTE = [
    b"",
    b"\x00",
    b"a\x00",
    b"\xff\xfe",
    bytes(range(256)),
    "Größe".encode(),
    b"x" * 2**20,
]


def objects(elements: list[bytes], shape: tuple[int, ...]) -> np.ndarray:
    array = np.empty(len(elements), object)
    array[:] = elements
    return array.reshape(shape)


@pytest.fixture(scope="module")
def echo(server: TritonServer, repository: Path) -> str:
    write_model(repository, "echo", ECHO)
    server.load_model("echo")
    return "echo"


@pytest.fixture(scope="module")
def upper(server: TritonServer, repository: Path) -> str:
    write_model(repository, "upper", UPPER)
    server.load_model("upper")
    return "upper"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_byte_survives(server: TritonServer, echo: str, protocol: Protocol) -> None:
    got = infer(server, echo, {"text": objects(EVERY_BYTE, (1, len(EVERY_BYTE)))}, protocol)
    assert got["text"].ravel().tolist() == EVERY_BYTE
    assert got["lengths"].ravel().tolist() == [len(element) for element in EVERY_BYTE]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_shapes_of_strings(server: TritonServer, echo: str, protocol: Protocol) -> None:
    for shape in ((3, 2), (1, 0), (8, 1)):
        elements = [f"{i}".encode() for i in range(shape[0] * shape[1])]
        got = infer(server, echo, {"text": objects(elements, shape)}, protocol)
        assert got["text"].shape == shape
        assert got["text"].ravel().tolist() == elements


def test_a_json_request_of_text(server: TritonServer, echo: str) -> None:
    body = {"inputs": [{"name": "text", "shape": [1, 2], "datatype": "BYTES", "data": ["a", "ü"]}]}
    request = urllib.request.Request(
        f"http://{server.http_url}/v2/models/{echo}/infer", json.dumps(body).encode()
    )
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
        outputs = {one["name"]: one["data"] for one in json.load(answer)["outputs"]}
    assert outputs == {"text": ["a", "ü"], "lengths": [1, 2]}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_strings_inside_a_compiled_function(
    server: TritonServer, upper: str, protocol: Protocol
) -> None:
    texts = [b"abcZ", b"", b"\xffq\x00r"]
    got = infer(server, upper, {"text": objects(texts, (3, 1))}, protocol)
    assert got["upper"].ravel().tolist() == [b"ABCZ", b"", b"\xffQ\x00R"]
    assert got["length"].ravel().tolist() == [4, 0, 4]
    longer = objects([b"a" * 16, b"b"], (2, 1))
    assert infer(server, upper, {"text": longer}, protocol)["upper"][0, 0] == b"A" * 16
    with pytest.raises(RequestError, match="a string of 17 bytes, the longest allowed is 16"):
        infer(server, upper, {"text": objects([b"a" * 17], (1, 1))}, protocol)


def post_raw(server: TritonServer, model: str, count: int, raw: bytes) -> tuple[int, str]:
    """One request with these very bytes as the elements of `text`."""
    head = json.dumps(
        {
            "inputs": [
                {
                    "name": "text",
                    "shape": [1, count],
                    "datatype": "BYTES",
                    "parameters": {"binary_data_size": len(raw)},
                }
            ]
        }
    ).encode()
    request = urllib.request.Request(
        f"http://{server.http_url}/v2/models/{model}/infer",
        head + raw,
        {"Inference-Header-Content-Length": str(len(head))},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            return answer.status, answer.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.parametrize(
    "raw",
    [
        b"\x05\x00\x00\x00ab",
        b"\xff\xff\xff\xffab",
        b"\x01\x00\x00\x00a",
        b"\x01\x00\x00\x00a\x01\x00\x00\x00bc",
        b"\x00\x00",
        b"",
    ],
    ids=["short", "huge", "one of two", "one byte more", "half a prefix", "nothing"],
)
def test_a_wrong_length_prefix_is_the_requests_fault(
    server: TritonServer, echo: str, raw: bytes
) -> None:
    status, text = post_raw(server, echo, 2, raw)
    assert status == 400, text
    features = server.distribution.release.features
    # Between these two, Triton finds it before the backend does, and does not say where.
    named = "bytes_checked" not in features or "bytes_error_named" in features
    assert "text" in text or (not named and "exceeds the end of the buffer" in text)
    good = b"\x01\x00\x00\x00a\x02\x00\x00\x00bc"
    assert post_raw(server, echo, 2, good)[0] == 200


def test_bytes_need_host_code_or_lengths(server: TritonServer, repository: Path) -> None:
    code = """
        SIGNATURE = {"inputs": {"text": ("BYTES", [1])}, "max_batch_size": 8}

        def predict(params, text):
            return {"y": text}
    """
    write_model(repository, "no_way_in", code)
    with pytest.raises(Exception, match="input 'text' is BYTES; add preprocess") as refused:
        server.load_model("no_way_in")
    assert "SIGNATURE['lengths']" in str(refused.value)


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        ("np.full((len(outputs['y']), 1), 3, object)", "expected elements of type bytes, got "),
        ("np.zeros((len(outputs['y']), 1))", "expected BYTES"),
        ("np.full((1, 1), b'x', object)", "expected BYTES[2, 1], got BYTES[1, 1]"),
    ],
    ids=["elements", "numbers", "rows"],
)
def test_host_code_that_returns_no_strings(
    server: TritonServer,
    repository: Path,
    returned: str,
    words: str,
    request: pytest.FixtureRequest,
) -> None:
    name = f"bad_strings_{request.node.callspec.id}"
    code = f"""
        import numpy as np

        SIGNATURE = {{"inputs": {{"x": ("FP32", [1])}}, "max_batch_size": 4}}

        def predict(params, x):
            return {{"y": x}}

        calls = []

        def postprocess(outputs):
            calls.append(1)
            if len(calls) <= 5:  # while the model is loaded
                return {{"s": np.full((len(outputs["y"]), 1), b"x", object)}}
            return {{"s": {returned}}}
    """
    write_model(repository, name, code)
    server.load_model(name)
    with pytest.raises(RequestError) as refused:
        infer(server, name, {"x": np.zeros((2, 1), np.float32)})
    assert refused.value.status == status(server, "http", {"http": "500"})
    assert words in refused.value.message


def test_many_strings_are_not_slow(server: TritonServer, repository: Path) -> None:
    """Strings in bulk cost a few times what numbers cost, not hundreds of times."""
    code = """
        import numpy as np

        SIGNATURE = {"inputs": {"x": ("FP32", [256])}, "max_batch_size": 64}

        def predict(params, x):
            return {"y": x}

        def postprocess(outputs):
            return {"s": outputs["y"].astype("S5")}
    """
    write_model(repository, "bulk", code)
    write_model(
        repository, "bulk_numbers", code.replace('"s"', '"s"').replace('.astype("S5")', " + 1")
    )
    x = {"x": np.full((64, 256), 12345, np.float32)}
    seconds = {}
    for model in ("bulk", "bulk_numbers"):
        server.load_model(model)
        with Client(server, "grpc") as client:
            client.infer(model, x)
            times = []
            for _ in range(20):
                started = time.perf_counter()
                got = client.infer(model, x)
                times.append(time.perf_counter() - started)
        seconds[model] = sorted(times)[10]
    assert got["s"].shape == (64, 256)
    # Generous: it is to catch a loop in Python per element, not to measure.
    assert seconds["bulk"] < 0.5


def test_the_health_check_asks_models_of_strings(
    server: TritonServer, backend: Backend, echo: str
) -> None:
    script = backend.directory / "jax" / "scripts" / "health_check.py"
    command = [sys.executable, str(script), "--url", server.http_url, "--model", echo]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # Other tests leave models that could not be loaded, so this server is not ready as a whole.
    assert f"ok   model {echo} inference" in done.stdout, done.stdout + done.stderr


def test_ragged_strings_are_answered_each_for_itself(
    server: TritonServer, repository: Path
) -> None:
    code = """
        import numpy as np

        SIGNATURE = {"inputs": {"text": ("BYTES", [-1])}, "max_batch_size": 4}

        def preprocess(inputs):
            return {"sum": np.array([sum(map(len, row)) for row in inputs["text"]], np.int32)}

        def predict(params, sum):
            return {"sum": sum}
    """
    config = """
        backend: "jax"
        max_batch_size: 4
        input { name: "text" data_type: TYPE_STRING dims: -1 allow_ragged_batch: true }
        dynamic_batching { preferred_batch_size: 4 max_queue_delay_microseconds: 300000 }
    """
    write_model(repository, "ragged_strings", code, config=config)
    server.load_model("ragged_strings")
    for _ in range(3):
        got: dict[int, int] = {}

        def ask(count: int, got: dict[int, int] = got) -> None:
            text = objects([b"x" * 10] * count, (1, count))
            got[count] = int(infer(server, "ragged_strings", {"text": text})["sum"].item())

        threads = [threading.Thread(target=ask, args=(count,)) for count in (1, 2, 3, 400)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert got == {1: 10, 2: 20, 3: 30, 400: 4000}


@pytest.mark.parametrize("count", [2**20, 2**32, 2**40])
def test_a_huge_count_without_its_bytes_is_refused_at_once(
    server: TritonServer, echo: str, count: int
) -> None:
    status, text = post_raw(server, echo, count, b"\x01\x00\x00\x00a")
    assert status == 400, text
    assert post_raw(server, echo, 1, b"\x01\x00\x00\x00a")[0] == 200


def test_a_string_never_reaches_into_the_next(server: TritonServer, repository: Path) -> None:
    code = """
        SIGNATURE = {"inputs": {"text": ("BYTES", [1])}, "lengths": {"text": [8]},
                     "max_batch_size": 4}

        def predict(params, text):
            return {"long": text._replace(lengths=text.lengths + 12),
                    "short": text._replace(lengths=text.lengths - 100)}
    """
    write_model(repository, "overlong", code)
    server.load_model("overlong")
    got = infer(server, "overlong", {"text": objects([b"abc", b"SECRET"], (2, 1))})
    assert got["long"].ravel().tolist() == [b"abc\0\0\0\0\0", b"SECRET\0\0"]
    assert got["short"].ravel().tolist() == [b"", b""]


def test_strings_inside_xla_and_host_code_after_it(server: TritonServer, repository: Path) -> None:
    code = (
        UPPER
        + """
    def postprocess(outputs):
        return {"upper": outputs["upper"] + b"!", "length": outputs["length"] * 2}
    """
    )
    write_model(repository, "upper_host", code)
    server.load_model("upper_host")
    got = infer(server, "upper_host", {"text": objects([b"ab", b"", b"xyz"], (3, 1))})
    assert got["upper"].ravel().tolist() == [b"AB!", b"!", b"XYZ!"]
    assert got["length"].ravel().tolist() == [4, 0, 6]
