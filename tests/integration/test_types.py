# SPDX-License-Identifier: Apache-2.0
"""Every data type, in every shape, on every way in and out: each comes back bit for bit."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http
import tritonclient.utils.shared_memory as shared_memory
from tritonclient.utils import InferenceServerException, serialize_byte_tensor

from tests.support.models import write_model
from tritonserver_jax.server import TritonServer

pytestmark = pytest.mark.integration

DTYPES: dict[str, Any] = {
    "BOOL": np.bool_,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "FP16": np.float16,
    "FP32": np.float32,
    "FP64": np.float64,
    "BF16": ml_dtypes.bfloat16,
    "BYTES": np.object_,
}
# What JSON cannot carry, by Triton's own rule.
NOT_IN_JSON = ("FP16", "BF16")
WAYS = ("http", "json", "grpc", "http_shm", "grpc_shm")

IDENTITY = """
    SIGNATURE = {{
        "inputs": {{"r0": ("{dtype}", []), "v": ("{dtype}", [-1]), "m": ("{dtype}", [2, -1])}},
        "max_batch_size": {rows},{lengths}
    }}

    def predict(params, r0, v, m):
        return {{"r0_": r0, "v_": v, "m_": m}}
"""

Array = np.ndarray[Any, Any]


def values(dtype: str, shape: tuple[int, ...], chance: np.random.Generator) -> Array:
    """Elements of all kinds, the extreme ones first."""
    count = int(np.prod(shape))
    if dtype == "BYTES":
        texts = [b"", b"\x00", b"a\x00b", b"\xff\xfe", "é".encode(), bytes(range(8))]
        array = np.empty(count, object)
        array[:] = [texts[i % len(texts)] for i in range(count)]
        return array.reshape(shape)
    if dtype == "BOOL":
        return chance.integers(0, 2, shape).astype(bool)
    kind = np.dtype(DTYPES[dtype])
    bits = np.dtype(f"u{kind.itemsize}")
    raw = np.frombuffer(chance.bytes(count * kind.itemsize), bits).copy()
    if kind.kind == "f" or dtype == "BF16":
        special = [np.nan, np.inf, -np.inf, -0.0, 1 / 3]
        raw[: len(special)] = np.array(special).astype(kind).view(bits)[:count]
    elif count:
        raw[0] = np.iinfo(bits).max
    numbers: Array = raw.view(kind).reshape(shape)
    return numbers


def text_values(dtype: str, array: Array) -> Array:
    """What JSON can carry: no NaN, no infinity, and text."""
    if dtype == "BYTES":
        flat = np.empty(array.size, object)
        flat[:] = [f"é{i}".encode() for i in range(array.size)]
        return flat.reshape(array.shape)
    if array.dtype.kind == "f":
        # Triton's JSON reader and writer are a digit short of all doubles: few bits come through.
        flat = (np.arange(array.size) * 1.25 - 3).astype(array.dtype)
        return flat.reshape(array.shape)
    return array


def raw_bytes(dtype: str, array: Array) -> bytes:
    if dtype == "BYTES":
        serialized = serialize_byte_tensor(array)
        return b"" if serialized is None or not array.size else bytes(serialized.item())
    return array.tobytes()


@contextmanager
def region(client: Any, content: bytes, size: int) -> Iterator[tuple[str, Any]]:
    """System shared memory, registered with the server."""
    name = f"region_{uuid.uuid4().hex[:12]}"
    handle = shared_memory.create_shared_memory_region(name, f"/{name}", max(size, 1))
    try:
        if content:
            shared_memory.set_shared_memory_region(handle, [np.frombuffer(content, np.uint8)])
        client.register_system_shared_memory(name, f"/{name}", max(size, 1))
        yield name, handle
        deadline = time.monotonic() + 10
        while True:  # on a busy machine the server may hold it a little longer than the response
            try:
                client.unregister_system_shared_memory(name)
                break
            except InferenceServerException as error:
                if "in use" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
    finally:
        shared_memory.destroy_shared_memory_region(handle)


def ask(
    server: TritonServer, way: str, model: str, dtype: str, inputs: dict[str, Array]
) -> dict[str, tuple[list[int], Any]]:
    """Send the inputs in one way: shape of each output, and its bytes or values."""
    from contextlib import ExitStack

    module = triton_grpc if way.startswith("grpc") else triton_http
    url = server.grpc_url if way.startswith("grpc") else server.http_url
    client = module.InferenceServerClient(url)
    with ExitStack() as stack:
        stack.callback(client.close)
        sent, wanted, handles = [], [], {}
        for name, array in inputs.items():
            tensor = module.InferInput(name, list(array.shape), dtype)
            content = raw_bytes(dtype, array)
            output = module.InferRequestedOutput(f"{name}_")
            if way.endswith("shm"):
                source, _ = stack.enter_context(region(client, content, len(content)))
                tensor.set_shared_memory(source, len(content))
                target, handle = stack.enter_context(region(client, b"", len(content) + 64))
                output = module.InferRequestedOutput(f"{name}_")
                output.set_shared_memory(target, len(content))
                handles[f"{name}_"] = (handle, len(content))
            elif way == "json":
                tensor.set_data_from_numpy(array, binary_data=False)
                output = module.InferRequestedOutput(f"{name}_", binary_data=False)
            elif way == "http":
                tensor._raw_data = content
                tensor._parameters["binary_data_size"] = len(content)
            else:
                tensor._raw_content = content
            sent.append(tensor)
            wanted.append(output)
        result = client.infer(model, sent, outputs=wanted)
        response = result.get_response()
        got: dict[str, tuple[list[int], Any]] = {}
        for index, one in enumerate(
            response["outputs"] if module is triton_http else response.outputs
        ):
            name = one["name"] if module is triton_http else one.name
            shape = list(one["shape"] if module is triton_http else one.shape)
            if name in handles:
                handle, size = handles[name]
                memory = shared_memory.get_contents_as_numpy(handle, np.uint8, [max(size, 1)])
                got[name] = (shape, memory.tobytes()[:size])
            elif way == "json":
                got[name] = (shape, one.get("data", []))
            elif way == "http":
                got[name] = (
                    shape,
                    raw_bytes(dtype, result.as_numpy(name)) if dtype != "BF16" else None,
                )
            else:
                got[name] = (shape, response.raw_output_contents[index])
    return got


@pytest.mark.core
@pytest.mark.parametrize("rows", [0, 4], ids=["alone", "batched"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_identity(server: TritonServer, repository: Path, dtype: str, rows: int) -> None:
    model = f"types_{dtype}_{rows}"
    names = '"r0", "v", "m"'
    lengths = (
        f'\n        "lengths": {{name: [8] for name in [{names}]}},' if dtype == "BYTES" else ""
    )
    code = IDENTITY.format(dtype=dtype, rows=rows, lengths=lengths)
    write_model(repository, model, code)
    server.load_model(model)
    chance = np.random.default_rng(5)
    lead = (3,) if rows else ()
    for size in (3, 0):
        # Triton has no tensors of rank 0: to clients, a scalar is one element.
        shapes = {"r0": (*lead, 1), "v": (*lead, size), "m": (*lead, 2, size)}
        for way in WAYS:
            if way == "json" and dtype in NOT_IN_JSON:
                continue
            if way.endswith("shm") and size == 0:
                continue  # there is no shared memory of no bytes
            inputs = {name: values(dtype, shape, chance) for name, shape in shapes.items()}
            if way == "json":
                inputs = {name: text_values(dtype, array) for name, array in inputs.items()}
            got = ask(server, way, model, dtype, inputs)
            for name, array in inputs.items():
                shape, data = got[f"{name}_"]
                assert shape == list(array.shape), (way, name)
                if way == "json":
                    expected = array.ravel().tolist()
                    if dtype == "BYTES":
                        expected = [element.decode() for element in expected]
                    assert np.array_equal(
                        np.array(data, array.dtype), np.array(expected, array.dtype)
                    ), (way, name)
                elif data is not None:
                    assert data == raw_bytes(dtype, array), (way, name)
    server.unload_model(model)


@pytest.mark.core
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_all_bit_patterns_of_bfloat16(
    server: TritonServer, repository: Path, protocol: str
) -> None:
    code = """
        SIGNATURE = {"inputs": {"r0": ("BF16", [-1])}, "max_batch_size": 0}

        def predict(params, r0):
            return {"r0_": r0}
    """
    if not (repository / "all_bf16").exists():
        write_model(repository, "all_bf16", code)
        server.load_model("all_bf16")
    bits = np.arange(2**16, dtype=np.uint16)
    x = bits.view(ml_dtypes.bfloat16)
    way = "grpc" if protocol == "grpc" else "http_shm"
    _, data = ask(server, way, "all_bf16", "BF16", {"r0": x})["r0_"]
    assert data == bits.tobytes()


@pytest.mark.parametrize("in_place", ["true", "false"])
@pytest.mark.parametrize(
    "dtype", [pytest.param("FP32", marks=pytest.mark.core), "INT64", "BF16", "BOOL"]
)
def test_large_inputs_in_shared_memory(
    server: TritonServer, repository: Path, dtype: str, in_place: str
) -> None:
    """In shared memory, without a copy where it is aligned; what was sent before never shows."""
    size = 2**18
    model = f"large_{dtype}_{in_place}"
    code = f"""
        SIGNATURE = {{"inputs": {{"x": ("{dtype}", [{size}])}}, "max_batch_size": 4}}

        def predict(params, x):
            return {{"same": x, "flipped": x[:, ::-1]}}
    """
    config = (
        'backend: "jax"\nparameters { key: "inputs_in_place" '
        f'value {{ string_value: "{in_place}" }} }}\n'
    )
    write_model(repository, model, code, config=config)
    server.load_model(model)
    chance = np.random.default_rng(7)
    kind = np.dtype(DTYPES[dtype])
    client = triton_grpc.InferenceServerClient(server.grpc_url)
    most = 4 * size * kind.itemsize
    with region(client, b"", most + 64) as (name, handle):
        for rows, offset in ((1, 0), (2, 0), (4, 0), (3, 0), (1, 0), (1, 64), (2, 8), (4, 1)):
            sent = values(dtype, (rows, size), chance)
            content = np.frombuffer(sent.tobytes(), np.uint8)
            shared_memory.set_shared_memory_region(handle, [content], offset=offset)
            tensor = triton_grpc.InferInput("x", list(sent.shape), dtype)
            tensor.set_shared_memory(name, content.nbytes, offset)
            response = client.infer(model, [tensor]).get_response()
            got = dict(
                zip(
                    (output.name for output in response.outputs),
                    response.raw_output_contents,
                    strict=True,
                )
            )
            assert got["same"] == sent.tobytes(), (rows, offset)
            assert got["flipped"] == sent[:, ::-1].tobytes(), (rows, offset)
    client.close()
    server.unload_model(model)
