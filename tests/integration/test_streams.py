# SPDX-License-Identifier: Apache-2.0
"""Decoupled models: any number of responses to a request. And requests that are given up."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton_grpc

from tests.support.backend import LOAD_TIMEOUT, Backend
from tests.support.metrics import sample
from tests.support.models import write_model
from tritonserver_jax.server import ServerError, TritonServer

pytestmark = [pytest.mark.core, pytest.mark.integration]

#: What every release understands; where the server takes it from the backend, one line is enough.
DECOUPLED = 'backend: "jax"\nmodel_transaction_policy { decoupled: true }\n'

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

#: Their gRPC front end at times leaves a stream open that has had its last response, and with it
#: the request: the same happens, about as often, to a model of Triton's python backend.
LEAVE_STREAMS_OPEN = ("24.06", "24.07")


@pytest.fixture(scope="module")
def server(backend: Backend, repository: Path) -> Iterator[TritonServer]:
    """A server of their own, which waits but shortly for streams that were left open."""
    args = ["--exit-timeout-secs=5"]
    with backend.server(repository, explicit=True, args=args) as running:
        running.wait_live(LOAD_TIMEOUT)
        yield running


def has_function(server: TritonServer, name: str) -> bool:
    """Whether the server has a function of the C API that is newer than the oldest release."""
    return name in server.distribution.release.later_functions


def responses(server: TritonServer, model: str, n: int, timeout: float = 30) -> list[Any]:
    """All responses to one request, errors too, without the empty one that ends them.

    Where the server does not send such, they end when as many as were asked for have come, and
    no more for a while.
    """
    says_the_end = "final_response" in server.distribution.release.features
    results: queue.Queue[Any] = queue.Queue()
    client = triton_grpc.InferenceServerClient(server.grpc_url)
    client.start_stream(lambda result, error: results.put(error or result))
    count = triton_grpc.InferInput("n", [1, 1], "INT32")
    count.set_data_from_numpy(np.full((1, 1), n, np.int32))
    x = triton_grpc.InferInput("x", [1, 4], "FP32")
    x.set_data_from_numpy(np.ones((1, 4), np.float32))
    client.async_stream_infer(model, [count, x], enable_empty_final_response=says_the_end)
    got: list[Any] = []
    while True:
        over = not says_the_end and len(got) >= n
        try:
            result = results.get(timeout=0.5 if over else timeout)
        except queue.Empty:
            assert over, f"{len(got)} responses, and then none for {timeout} s"
            break
        if isinstance(result, Exception):
            got.append(result)
            break
        final = result.get_response().parameters["triton_final_response"].bool_param
        if says_the_end and final:
            assert result.get_response().outputs == []
            break
        got.append(result)
    # All responses are there. Whoever waits for the end of the stream, too, may wait for ever.
    end = threading.Thread(target=client.stop_stream, daemon=True)
    end.start()
    end.join(20)
    if end.is_alive():
        assert server.distribution.release.release in LEAVE_STREAMS_OPEN
        client.stop_stream(cancel_requests=True)
    client.close()
    return got


@pytest.fixture(scope="module")
def stream(server: TritonServer, repository: Path) -> str:
    write_model(repository, "stream", STREAM, params={"factor": np.float32(2)}, config=DECOUPLED)
    server.load_model("stream")
    return "stream"


def test_responses_come_in_order(server: TritonServer, repository: Path) -> None:
    code = STREAM.replace("if step == 13:", "if step < 0:")
    write_model(repository, "twenty", code, params={"factor": np.float32(2)}, config=DECOUPLED)
    server.load_model("twenty")
    labels = {"model": "twenty", "version": "1"}
    got = responses(server, "twenty", 20)
    assert len(got) == 20
    for step, result in enumerate(got):
        assert result.as_numpy("step").tolist() == [[step]]
        assert np.array_equal(result.as_numpy("y"), np.full((1, 4), 2.0 ** (step + 1)))
        assert result.as_numpy("text").tolist() == [[f"step {step}".encode()]]
    assert sample(server.metrics(), "jax_predict_calls", **labels) == 20
    assert sample(server.metrics(), "jax_xla_compilations", **labels) == 1


def test_no_response_is_an_answer_too(server: TritonServer, stream: str) -> None:
    assert responses(server, stream, 0) == []


def test_an_error_ends_the_responses(server: TritonServer, stream: str) -> None:
    got = responses(server, stream, 20)
    assert len(got) == 14
    assert "stream raised ValueError: thirteen (model.py:17)" in str(got[-1])
    assert len(responses(server, stream, 3)) == 3


def test_a_client_that_goes_ends_the_generator(backend: Backend, tmp_path: Path) -> None:
    """On a server of its own, as after a cancelled stream 24.07 at times ends no other any more."""
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
    # Where Triton does not tell that the client has gone, it goes on to its end.
    functions = backend.distribution.release.later_functions
    told = "TRITONBACKEND_ResponseFactoryIsCancelled" in functions
    steps = 1000 if told else 20
    directory = write_model(tmp_path, "endless", code, config=DECOUPLED)
    with backend.server(tmp_path, args=["--exit-timeout-secs=5"]) as server:
        server.wait_model("endless", timeout=LOAD_TIMEOUT)
        go_while_it_streams(server, steps)
        deadline = time.monotonic() + 20
        while not (directory / "ended").exists():
            assert time.monotonic() < deadline, "the generator goes on for nobody"
            time.sleep(0.05)
        time.sleep(0.1)  # it is written
    last = int((directory / "ended").read_text() or 0)
    assert last < 900 if told else last == steps - 1


def go_while_it_streams(server: TritonServer, steps: int) -> None:
    """Ask for responses, and cancel after the first."""
    results: queue.Queue[Any] = queue.Queue()
    client = triton_grpc.InferenceServerClient(server.grpc_url)
    client.start_stream(lambda result, error: results.put(error or result))
    count = triton_grpc.InferInput("n", [1, 1], "INT32")
    count.set_data_from_numpy(np.full((1, 1), steps, np.int32))
    x = triton_grpc.InferInput("x", [1, 4], "FP32")
    x.set_data_from_numpy(np.ones((1, 4), np.float32))
    client.async_stream_infer("endless", [count, x])
    results.get(timeout=30)
    client.stop_stream(cancel_requests=True)
    client.close()


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
    code = STREAM.replace(*replace)
    write_model(repository, name, code, params={"factor": np.float32(2)}, config=DECOUPLED)
    server.load_model(name)
    got = responses(server, name, 3)
    assert len(got) == 1
    assert words in str(got[0])


def test_decoupled_needs_a_stream(server: TritonServer, repository: Path) -> None:
    code = "SIGNATURE = {'inputs': {'x': ('FP32', [1])}}\ndef predict(params, x): return {'y': x}"
    write_model(repository, "no_stream", code, config=DECOUPLED)
    with pytest.raises(ServerError, match=r"decoupled, but model\.py has no stream"):
        server.load_model("no_stream")


def test_one_line_of_config_is_enough_where_the_server_takes_the_rest(
    server: TritonServer, repository: Path
) -> None:
    write_model(repository, "one_line_stream", STREAM, params={"factor": np.float32(2)})
    if "decoupled_completion" in server.distribution.release.features:
        server.load_model("one_line_stream")
        assert len(responses(server, "one_line_stream", 2)) == 2
        return
    with pytest.raises(ServerError) as refused:
        server.load_model("one_line_stream")
    assert "model_transaction_policy { decoupled: true }" in str(refused.value)


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

    told = has_function(server, "TRITONBACKEND_RequestIsCancelled")
    count = 20 if told else 5
    calls = [client.async_infer("cancelled", [x], callback=done) for _ in range(count)]
    time.sleep(0.2)
    for call in calls[1:]:
        call.cancel()
    for _ in calls:
        assert answered.acquire(timeout=30)
    time.sleep(1.5 if told else 3)  # for whatever should not run, to run
    client.close()
    assert len(errors) == count - 1
    assert all("CANCELLED" in error for error in errors)
    ran = sample(server.metrics(), "jax_predict_calls", **labels) or 0
    assert ran <= 3 if told else ran == count, "where Triton does not tell, all of them run"


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
        model_transaction_policy { decoupled: true }
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
