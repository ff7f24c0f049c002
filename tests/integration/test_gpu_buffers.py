# SPDX-License-Identifier: Apache-2.0
"""Tensors in memory of a GPU, given and taken by clients through CUDA shared memory.

Without a GPU all of this is skipped; what it does without one is in `tests/native/test_gpu.cc` and
`tests/unit/test_gpu_arrays.py`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tritonclient.http as triton_http

from tests.support.backend import LOAD_TIMEOUT, Backend
from tests.support.client import infer
from tests.support.gpu import ON_CPU, ON_GPU, CudaRegion, cuda_region
from tests.support.metrics import sample
from tests.support.models import write_model
from tritonserver_jax.runtime.dtypes import DTYPES, DType
from tritonserver_jax.server import TritonServer

pytestmark = [pytest.mark.integration, pytest.mark.gpu]

SIZE = 1 << 20
#: Where inputs and outputs go in a region: the latter in its second half.
OUTPUTS = SIZE // 2
NUMBERS = [dtype for dtype in DTYPES if not dtype.is_bytes]
PLACES = {"gpu": ON_GPU, "cpu": ON_CPU}

IDENTITY = """
    SIGNATURE = {{"inputs": {{"x": ("{dtype}", [-1, 3])}}, "max_batch_size": 4}}

    def predict(params, x):
        return {{"y": x}}
"""

# Waits for other requests, so that they run together.
GATHERED = """
    SIGNATURE = {{"inputs": {{"x": ("INT32", [-1])}}, "lengths": {{"x": [8, 64]}},
                  "max_batch_size": 8}}

    def predict(params, x, masks):
        return {{"y": x + 1, "real": masks["x"].sum(1, keepdims=True).astype("int32")}}
"""
WAITS = """
    max_batch_size: 8
    input { name: "x" data_type: TYPE_INT32 dims: [-1] allow_ragged_batch: true }
    dynamic_batching { max_queue_delay_microseconds: 300000 preferred_batch_size: 8 }
"""

WORDS = """
    import numpy as np

    SIGNATURE = {"inputs": {"text": ("BYTES", [2]), "n": ("INT32", [1])}, "max_batch_size": 4}

    def preprocess(inputs):
        return {"n": inputs["n"] + len(inputs["text"][0, 0])}

    def predict(params, n):
        return {"n": n}

    def postprocess(outputs):
        return {"said": np.array([[b"%d" % n, b"\\0\\xff"] for n in outputs["n"][:, 0]], object)}
"""

COUNTS = """
    SIGNATURE = {"inputs": {"x": ("FP32", [4])}, "state": {"total": ("FP32", [4])},
                 "max_batch_size": 4}

    def predict(params, x, total):
        return {"y": x + total, "total": x + total}
"""

TWICE = """
    name: "twice"
    platform: "ensemble"
    max_batch_size: 4
    input { name: "x" data_type: TYPE_FP32 dims: [-1, 3] }
    output { name: "z" data_type: TYPE_FP32 dims: [-1, 3] }
    ensemble_scheduling {
      step { model_name: "FP32_gpu" model_version: -1
             input_map { key: "x" value: "x" } output_map { key: "y" value: "between" } }
      step { model_name: "FP32_gpu" model_version: -1
             input_map { key: "x" value: "between" } output_map { key: "y" value: "z" } }
    }
"""


@pytest.fixture(scope="module")
def server(
    gpu_backend: Backend, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TritonServer]:
    """A server with all models of this file."""
    repository = tmp_path_factory.mktemp("models")
    for place, config in PLACES.items():
        for dtype in NUMBERS:
            code = IDENTITY.format(dtype=dtype.name)
            write_model(repository, f"{dtype.name}_{place}", code, config=config)
        write_model(repository, f"gathered_{place}", GATHERED.format(), config=config + WAITS)
        write_model(repository, f"words_{place}", WORDS, config=config)
        write_model(repository, f"counts_{place}", COUNTS, config=config)
    (repository / "twice" / "1").mkdir(parents=True)
    (repository / "twice" / "config.pbtxt").write_text(TWICE)
    with gpu_backend.server(repository, backend_config={"memory-fraction": "0.2"}) as running:
        running.wait_ready(5 * LOAD_TIMEOUT)
        yield running


@pytest.fixture(scope="module")
def region(server: TritonServer) -> Iterator[CudaRegion]:
    """A region of the GPU that server and tests share."""
    with cuda_region(server, "shared", SIZE) as made:
        yield made


def some(dtype: DType, shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    """Any bits at all, as the elements of a type."""
    random = np.random.default_rng(seed)
    if dtype.name == "BOOL":
        return random.integers(0, 2, shape).astype(np.bool_)
    size = int(np.prod(shape)) * dtype.numpy.itemsize
    return random.integers(0, 256, size, dtype=np.uint8).view(dtype.numpy).reshape(shape)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dtype", NUMBERS, ids=lambda dtype: dtype.name)
def test_every_type_goes_from_region_to_region_bit_for_bit(
    server: TritonServer, region: CudaRegion, dtype: DType, place: str
) -> None:
    """As it is wanted, to be padded, at an odd place; outputs to the region and in the answer."""
    client = triton_http.InferenceServerClient(server.http_url)
    shapes = [(1, 4, 3), (2, 1, 3), (3, 5, 3), (4, 2, 3)]
    for seed, (shape, offset) in enumerate(itertools.product(shapes, (0, 4096, 8))):
        sent = some(dtype, shape, seed)
        region.write(sent, offset)
        x = triton_http.InferInput("x", list(shape), dtype.name)
        x.set_shared_memory("shared", sent.nbytes, offset)
        y = triton_http.InferRequestedOutput("y")
        y.set_shared_memory("shared", sent.nbytes, OUTPUTS + offset)
        region.write(np.full(sent.nbytes, 0x5A, np.uint8), OUTPUTS + offset)
        client.infer(f"{dtype.name}_{place}", [x], outputs=[y])
        assert region.read(OUTPUTS + offset, sent.nbytes) == sent.tobytes(), (shape, offset)
        answer = client.infer(f"{dtype.name}_{place}", [x]).as_numpy("y")
        if dtype.name == "BF16":  # which the client makes FP32 of
            answer = answer.astype(ml_dtypes.bfloat16)
            assert np.array_equal(answer, sent, equal_nan=True)
        else:
            assert answer.tobytes() == sent.tobytes(), (shape, offset)
    client.close()


@pytest.mark.parametrize("place", PLACES)
def test_requests_on_the_gpu_and_on_the_host_run_together(
    server: TritonServer, region: CudaRegion, place: str
) -> None:
    model = f"gathered_{place}"
    client = triton_http.InferenceServerClient(server.http_url, concurrency=8)
    before = sample(server.metrics(), "jax_predict_calls", model=model) or 0
    rows, calls = [], []
    for number, length in enumerate([3, 64, 8, 1, 17, 40, 5, 64]):
        row = np.arange(length, dtype=np.int32)[None] + 1000 * number
        x = triton_http.InferInput("x", [1, length], "INT32")
        outputs = [triton_http.InferRequestedOutput(name) for name in ("y", "real")]
        if number % 4 != 3:
            region.write(row, 4096 * number)
            x.set_shared_memory("shared", row.nbytes, 4096 * number)
        else:
            x.set_data_from_numpy(row)
        if number % 2 == 0:
            outputs[0].set_shared_memory("shared", row.nbytes, OUTPUTS + 4096 * number)
        rows.append(row)
        calls.append(client.async_infer(model, [x], outputs=outputs))
    for number, (row, call) in enumerate(zip(rows, calls, strict=True)):
        answer = call.get_result()
        assert answer.as_numpy("real").tolist() == [[row.size]]
        if number % 2 == 0:
            got = region.read(OUTPUTS + 4096 * number, row.nbytes)
            assert got == (row + 1).tobytes()
        else:
            assert np.array_equal(answer.as_numpy("y"), row + 1)
    client.close()
    # One, where all come in time; some room for a busy machine.
    assert (sample(server.metrics(), "jax_predict_calls", model=model) or 0) - before <= 5


@pytest.mark.parametrize("place", PLACES)
def test_strings_are_read_from_a_region_and_written_to_one(
    server: TritonServer, region: CudaRegion, place: str
) -> None:
    def serialized(*elements: bytes) -> np.ndarray[Any, Any]:
        data = b"".join(len(element).to_bytes(4, "little") + element for element in elements)
        return np.frombuffer(data, np.uint8)

    client = triton_http.InferenceServerClient(server.http_url)
    sent = serialized(b"\0four", b"")
    region.write(sent)
    region.write(np.array([[37]], np.int32), 256)
    text = triton_http.InferInput("text", [1, 2], "BYTES")
    text.set_shared_memory("shared", sent.nbytes)
    n = triton_http.InferInput("n", [1, 1], "INT32")
    n.set_shared_memory("shared", 4, 256)
    said = triton_http.InferRequestedOutput("said")
    said.set_shared_memory("shared", 64, OUTPUTS)
    client.infer(f"words_{place}", [text, n], outputs=[said])
    expected = serialized(b"42", b"\0\xff").tobytes()
    assert region.read(OUTPUTS, len(expected)) == expected
    client.close()


@pytest.mark.parametrize("place", PLACES)
def test_a_state_stays_right_on_a_gpu(server: TritonServer, region: CudaRegion, place: str) -> None:
    client = triton_http.InferenceServerClient(server.http_url)
    x = triton_http.InferInput("x", [1, 4], "FP32")
    x.set_shared_memory("shared", 16)
    totals = {sequence: np.zeros((1, 4), np.float32) for sequence in (1, 2, 3)}
    for step in range(20):
        for sequence, total in totals.items():
            row = np.full((1, 4), 100 * sequence + step, np.float32)
            region.write(row)
            total += row
            answer = client.infer(
                f"counts_{place}",
                [x],
                sequence_id=sequence,
                sequence_start=step == 0,
                sequence_end=step == 19,
            )
            assert np.array_equal(answer.as_numpy("y"), total)
    client.close()


def test_tensors_between_the_models_of_an_ensemble_stay_on_the_gpu(server: TritonServer) -> None:
    """That they do is Triton's choice; that they are right is shown."""
    sent = np.random.default_rng(0).normal(size=(3, 7, 3)).astype(np.float32)
    for _ in range(5):
        assert np.array_equal(infer(server, "twice", {"x": sent})["z"], sent)
