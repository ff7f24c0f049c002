# SPDX-License-Identifier: Apache-2.0
"""Decoupled models: any number of responses to a request. And requests that are given up."""

from __future__ import annotations

import queue
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton_grpc

from tests.support.metrics import sample
from tests.support.models import write_model
from tritonserver_jax.server import ServerError, TritonServer

pytestmark = pytest.mark.integration

STREAM = """
    import numpy as np

    SIGNATURE = {
        "inputs": {"n": ("INT32", [1]), "x": ("FP32", [4])},
        "outputs": {"y": ("FP32", [4]), "step": ("INT32", [1]), "text": ("BYTES", [1])},
        "max_batch_size": 1,
    }

    def predict(params, state):
        return {"state": state * params["factor"]}

    def stream(context, n, x):
        state = x
        for step in range(int(n[0, 0])):
            if step == 13:
                raise ValueError("thirteen")
            state = context.predict(state=state)["state"]
            yield {"y": state, "step": np.full((1, 1), step, np.int32),
                   "text": np.array([[f"step {step}"]])}
"""


def responses(server: TritonServer, model: str, n: int, timeout: float = 30) -> list[Any]:
    """All responses to one request, errors too."""
    results: queue.Queue[Any] = queue.Queue()
    client = triton_grpc.InferenceServerClient(server.grpc_url)
    client.start_stream(lambda result, error: results.put(error or result))
    count = triton_grpc.InferInput("n", [1, 1], "INT32")
    count.set_data_from_numpy(np.full((1, 1), n, np.int32))
    x = triton_grpc.InferInput("x", [1, 4], "FP32")
    x.set_data_from_numpy(np.ones((1, 4), np.float32))
    client.async_stream_infer(model, [count, x], enable_empty_final_response=True)
    got = []
    while True:
        result = results.get(timeout=timeout)
        got.append(result)
        if isinstance(result, Exception):
            break
        if result.get_response().parameters["triton_final_response"].bool_param:
            break
    client.stop_stream()
    client.close()
    return got


@pytest.fixture(scope="module")
def stream(server: TritonServer, repository: Path) -> str:
    write_model(repository, "stream", STREAM, params={"factor": np.float32(2)})
    server.load_model("stream")
    return "stream"


def test_responses_come_in_order(server: TritonServer, repository: Path) -> None:
    code = STREAM.replace("if step == 13:", "if step < 0:")
    write_model(repository, "twenty", code, params={"factor": np.float32(2)})
    server.load_model("twenty")
    labels = {"model": "twenty", "version": "1"}
    got = responses(server, "twenty", 20)
    assert len(got) == 21, "and an empty one that ends them"
    for step, result in enumerate(got[:-1]):
        assert result.as_numpy("step").tolist() == [[step]]
        assert np.array_equal(result.as_numpy("y"), np.full((1, 4), 2.0 ** (step + 1)))
        assert result.as_numpy("text").tolist() == [[f"step {step}".encode()]]
    assert got[-1].get_response().outputs == []
    assert sample(server.metrics(), "jax_predict_calls", **labels) == 20
    assert sample(server.metrics(), "jax_xla_compilations", **labels) == 1


def test_no_response_is_an_answer_too(server: TritonServer, stream: str) -> None:
    got = responses(server, stream, 0)
    assert len(got) == 1
    assert got[0].get_response().outputs == []


def test_an_error_ends_the_responses(server: TritonServer, stream: str) -> None:
    got = responses(server, stream, 20)
    assert len(got) == 14
    assert "stream raised ValueError: thirteen (model.py:17)" in str(got[-1])
    assert len(responses(server, stream, 3)) == 4


def test_a_client_that_goes_ends_the_generator(server: TritonServer, repository: Path) -> None:
    code = """
        import pathlib, time
        import numpy as np

        SIGNATURE = {"inputs": {"n": ("INT32", [1]), "x": ("FP32", [4])},
                     "outputs": {"y": ("FP32", [4])}, "max_batch_size": 1}

        def stream(context, n, x):
            try:
                for step in range(int(n[0, 0])):
                    time.sleep(0.05)
                    yield {"y": x + step}
            finally:
                (pathlib.Path(__file__).parent / "ended").write_text(str(step))
    """
    directory = write_model(repository, "endless", code)
    server.load_model("endless")
    results: queue.Queue[Any] = queue.Queue()
    client = triton_grpc.InferenceServerClient(server.grpc_url)
    client.start_stream(lambda result, error: results.put(error or result))
    count = triton_grpc.InferInput("n", [1, 1], "INT32")
    count.set_data_from_numpy(np.full((1, 1), 1000, np.int32))
    x = triton_grpc.InferInput("x", [1, 4], "FP32")
    x.set_data_from_numpy(np.ones((1, 4), np.float32))
    client.async_stream_infer("endless", [count, x])
    results.get(timeout=30)
    client.stop_stream(cancel_requests=True)
    client.close()
    deadline = time.monotonic() + 20
    while not (directory / "ended").exists():
        assert time.monotonic() < deadline, "the generator goes on for nobody"
        time.sleep(0.05)
    assert int((directory / "ended").read_text() or 0) < 900


@pytest.mark.parametrize(
    ("replace", "words"),
    [
        (('"step": np.full((1, 1), step, np.int32)', '"step": np.full((1, 1), step)'), "got INT64"),
        (('"y": state', '"y": state[:, :2]'), "output 'y': expected FP32[1, 4], got FP32[1, 2]"),
        (('"text": np', '"txt": np'), "output 'text' is missing; got y, step, txt"),
        (("yield {", "yield 3, {"), "stream must yield a dict of output name -> array, got tuple"),
        (('np.array([[f"step {step}"]])', '"text"'), "strings go as np.array([...], object)"),
        (
            ("state=state", "state=state.astype('float64')"),
            "got 'state' as float64, which JAX would",
        ),
    ],
    ids=["type", "shape", "name", "tuple", "text", "wide"],
)
def test_a_wrong_response_is_named(
    server: TritonServer,
    repository: Path,
    replace: tuple[str, str],
    words: str,
    request: pytest.FixtureRequest,
) -> None:
    name = f"bad_stream_{request.node.callspec.id}"
    write_model(repository, name, STREAM.replace(*replace), params={"factor": np.float32(2)})
    server.load_model(name)
    got = responses(server, name, 3)
    assert len(got) == 1
    assert words in str(got[0])


def test_decoupled_needs_a_stream(server: TritonServer, repository: Path) -> None:
    config = 'backend: "jax"\nmodel_transaction_policy { decoupled: true }\n'
    code = "SIGNATURE = {'inputs': {'x': ('FP32', [1])}}\ndef predict(params, x): return {'y': x}"
    write_model(repository, "no_stream", code, config=config)
    with pytest.raises(ServerError, match=r"decoupled, but model\.py has no stream"):
        server.load_model("no_stream")


def test_cancelled_requests_do_not_run(server: TritonServer, repository: Path) -> None:
    code = """
        import time
        import jax

        SIGNATURE = {"inputs": {"x": ("FP32", [1])}, "max_batch_size": 1}

        def slowly(x):
            time.sleep(0.5)
            return x

        def predict(params, x):
            return {"y": jax.pure_callback(slowly, jax.ShapeDtypeStruct(x.shape, x.dtype), x)}
    """
    write_model(repository, "cancelled", code)
    server.load_model("cancelled")
    labels = {"model": "cancelled", "version": "1"}
    client = triton_grpc.InferenceServerClient(server.grpc_url)
    x = triton_grpc.InferInput("x", [1, 1], "FP32")
    x.set_data_from_numpy(np.ones((1, 1), np.float32))
    errors: list[str] = []
    answered = threading.Semaphore(0)

    def done(result: Any, error: Any) -> None:
        if error is not None:
            errors.append(str(error))
        answered.release()

    calls = [client.async_infer("cancelled", [x], callback=done) for _ in range(20)]
    time.sleep(0.2)
    for call in calls[1:]:
        call.cancel()
    for _ in calls:
        assert answered.acquire(timeout=30)
    time.sleep(1.5)  # for whatever should not run, to run
    client.close()
    assert len(errors) == 19
    assert all("CANCELLED" in error for error in errors)
    assert (sample(server.metrics(), "jax_predict_calls", **labels) or 0) <= 3


def test_a_short_stream_does_not_wait_for_a_long_one(
    server: TritonServer, repository: Path
) -> None:
    code = """
        import time

        SIGNATURE = {"inputs": {"n": ("INT32", [1]), "x": ("FP32", [4])},
                     "outputs": {"y": ("FP32", [4])}, "max_batch_size": 8}

        def stream(context, n, x):
            for _ in range(int(n[0, 0])):
                time.sleep(0.1)
                yield {"y": x}
    """
    config = """
        backend: "jax"
        max_batch_size: 8
        dynamic_batching { preferred_batch_size: 2 max_queue_delay_microseconds: 500000 }
    """
    write_model(repository, "short_and_long", code, config=config)
    server.load_model("short_and_long")
    ends: dict[int, float] = {}

    def ask(n: int) -> None:
        responses(server, "short_and_long", n)
        ends[n] = time.monotonic()

    threads = [threading.Thread(target=ask, args=(n,)) for n in (1, 30)]
    for thread in threads:
        thread.start()
        time.sleep(0.05)
    for thread in threads:
        thread.join()
    # Both came in one batch, the short one first.
    assert ends[30] - ends[1] > 2
