# SPDX-License-Identifier: Apache-2.0
"""Requests, right and wrong, over both protocols."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.support.client import PROTOCOLS, Array, Protocol, RequestError, infer, status
from tests.support.models import write_model
from tritonserver_jax.server import TritonServer

pytestmark = [
    pytest.mark.core,
    pytest.mark.integration,
    pytest.mark.parametrize("protocol", PROTOCOLS),
]

INVALID_ARGUMENT = {"http": "400", "grpc": "StatusCode.INVALID_ARGUMENT"}
INTERNAL: dict[Protocol, str] = {"http": "500", "grpc": "StatusCode.INTERNAL"}
NOT_FOUND: dict[Protocol, str] = {"http": "404", "grpc": "StatusCode.NOT_FOUND"}


def loaded(server: TritonServer, repository: Path, name: str, code: str, **options: object) -> str:
    if not (repository / name).exists():
        write_model(repository, name, code, **options)  # type: ignore[arg-type]
        server.load_model(name)
    return name


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"x": np.zeros((2, 4), np.float64)}, ["x", "FP64", "FP32"]),
        ({"x": np.zeros((2, 5), np.float32)}, ["x", "[2,5]", "[-1,4]"]),
        ({"x": np.zeros((2, 1, 4), np.float32)}, ["x", "[2,1,4]", "[-1,4]"]),
        ({"x": np.zeros((9, 4), np.float32)}, ["batch", "8"]),
        ({"z": np.zeros((2, 4), np.float32)}, ["z"]),
        ({}, ["input"]),
    ],
    ids=["type", "shape", "rank", "rows", "name", "missing"],
)
def test_a_wrong_request_is_refused_by_name(
    server: TritonServer, protocol: Protocol, inputs: dict[str, Array], words: list[str]
) -> None:
    with pytest.raises(RequestError) as refused:
        infer(server, "bystander", inputs, protocol)
    assert refused.value.status == INVALID_ARGUMENT[protocol]
    for word in words:
        assert word in refused.value.message
    right = {"x": np.ones((2, 4), np.float32)}
    assert np.array_equal(infer(server, "bystander", right, protocol)["y"], np.full((2, 3), 4))


def test_an_unknown_version_is_not_found(server: TritonServer, protocol: Protocol) -> None:
    with pytest.raises(RequestError) as refused:
        infer(server, "bystander", {"x": np.zeros((1, 4), np.float32)}, protocol, version="7")
    assert refused.value.status == status(server, protocol, NOT_FOUND)


def test_predict_raises_when_it_runs(
    server: TritonServer, repository: Path, protocol: Protocol
) -> None:
    code = """
        import jax, numpy as np

        SIGNATURE = {"inputs": {"x": ("FP32", [4])}, "max_batch_size": 8}

        def check(x):
            if (x < 0).any():
                raise ValueError(f"negative: {x.min()}")
            return x

        def predict(params, x):
            return {"y": jax.pure_callback(check, jax.ShapeDtypeStruct(x.shape, x.dtype), x)}
    """
    model = loaded(server, repository, "raises_at_run", code)
    good = {"x": np.ones((2, 4), np.float32)}
    assert np.array_equal(infer(server, model, good, protocol)["y"], good["x"])
    with pytest.raises(RequestError) as refused:
        infer(server, model, {"x": np.full((1, 4), -2, np.float32)}, protocol)
    assert refused.value.status == status(server, protocol, INTERNAL)
    assert "model 'raises_at_run' version 1: predict raised" in refused.value.message
    assert "ValueError: negative: -2.0" in refused.value.message
    assert np.array_equal(infer(server, model, good, protocol)["y"], good["x"])


def test_postprocess_raises_when_it_runs(
    server: TritonServer, repository: Path, protocol: Protocol
) -> None:
    code = """
        SIGNATURE = {"inputs": {"x": ("FP32", [4])}, "max_batch_size": 8}

        def predict(params, x):
            return {"y": x * 2}

        def postprocess(outputs):
            if (outputs["y"] < 0).any():
                raise LookupError("nothing below zero")
            return outputs
    """
    model = loaded(server, repository, "raises_in_postprocess", code)
    with pytest.raises(RequestError) as refused:
        infer(server, model, {"x": np.full((1, 4), -2, np.float32)}, protocol)
    assert refused.value.status == status(server, protocol, INTERNAL)
    assert (
        "postprocess raised LookupError: nothing below zero (model.py:9)" in refused.value.message
    )


def test_host_code_sees_the_real_rows_only(
    server: TritonServer, repository: Path, protocol: Protocol
) -> None:
    code = """
        import numpy as np

        SIGNATURE = {"inputs": {"x": ("FP32", [4])}, "max_batch_size": 8}

        def preprocess(inputs):
            rows = np.float32(len(inputs["x"]))
            return {"scaled": inputs["x"] * 2, "rows": np.full(len(inputs["x"]), rows)}

        def predict(params, scaled, rows):
            return {"sum": scaled.sum(axis=1), "rows": rows}

        def postprocess(outputs):
            return {"sum": outputs["sum"] + 1, "seen": outputs["rows"].astype(np.int32)}
    """
    model = loaded(server, repository, "host_code", code)
    got = infer(server, model, {"x": np.ones((3, 4), np.float32)}, protocol)
    assert np.array_equal(got["sum"], [[9]] * 3)
    assert np.array_equal(got["seen"], [[3]] * 3)


IDENTITY_TYPES = {
    "BOOL": np.array([[True, False, True]]),
    "UINT8": np.array([[0, 1, 255]], np.uint8),
    "UINT16": np.array([[0, 1, 65535]], np.uint16),
    "UINT32": np.array([[0, 1, 2**32 - 1]], np.uint32),
    "UINT64": np.array([[0, 2**53 + 1, 2**64 - 1]], np.uint64),
    "INT8": np.array([[-128, 0, 127]], np.int8),
    "INT16": np.array([[-(2**15), 0, 2**15 - 1]], np.int16),
    "INT32": np.array([[-(2**31), 0, 2**31 - 1]], np.int32),
    "INT64": np.array([[-(2**63), 2**32, 2**63 - 1]], np.int64),
    "FP16": np.array([[-65504, 6e-8, np.inf]], np.float16),
    "FP32": np.array([[-3.4e38, 1e-45, np.nan]], np.float32),
    "FP64": np.array([[1e300, 1 / 3, 5e-324]], np.float64),
}


@pytest.mark.parametrize("dtype", IDENTITY_TYPES)
def test_every_type_comes_back_bit_for_bit(
    server: TritonServer, repository: Path, protocol: Protocol, dtype: str
) -> None:
    code = f"""
        SIGNATURE = {{"inputs": {{"x": ("{dtype}", [3])}}, "max_batch_size": 4}}

        def predict(params, x):
            return {{"y": x}}
    """
    model = loaded(server, repository, f"identity_{dtype}", code)
    x = IDENTITY_TYPES[dtype]
    y = infer(server, model, {"x": x}, protocol)["y"]
    assert (y.dtype, y.shape) == (x.dtype, x.shape)
    assert y.tobytes() == x.tobytes()


def test_bfloat16_is_exact(server: TritonServer, repository: Path, protocol: Protocol) -> None:
    code = """
        SIGNATURE = {"inputs": {"x": ("BF16", [256])}, "max_batch_size": 4}

        def predict(params, x):
            return {"y": x, "sum": x + x}
    """
    model = loaded(server, repository, "identity_BF16", code)
    bits = np.random.default_rng(0).integers(0, 2**16, 256).astype(np.uint16)
    bits[:5] = [0x7FC0, 0x7F80, 0x0001, 0x8000, 0x3C24]  # NaN, inf, subnormal, -0, 0.01
    x = bits.view(ml_dtypes.bfloat16).reshape(1, 256)
    got = infer(server, model, {"x": x}, protocol, dtypes={"x": "BF16"})
    # The client turns BF16 into FP32, which keeps every bit.
    exact = np.asarray(got["y"], np.float32)
    assert (exact.view(np.uint32) >> 16).astype(np.uint16).tobytes() == bits.tobytes()
    assert got["sum"][0, 4] == np.float32(x[0, 4] + x[0, 4])


def test_a_request_may_ask_for_some_outputs(
    server: TritonServer, repository: Path, protocol: Protocol
) -> None:
    code = """
        SIGNATURE = {"inputs": {"x": ("FP32", [4])}, "max_batch_size": 8}

        def predict(params, x):
            return {"a": x + 1, "b": x + 2, "c": x.sum(axis=1)}
    """
    model = loaded(server, repository, "three_outputs", code)
    x = np.ones((2, 4), np.float32)
    assert set(infer(server, model, {"x": x}, protocol, outputs=["c", "a"])) == {"a", "c"}
    got = infer(server, model, {"x": x}, protocol, outputs=["b"])
    assert list(got) == ["b"]
    assert np.array_equal(got["b"], x + 2)
    with pytest.raises(RequestError) as refused:
        infer(server, model, {"x": x}, protocol, outputs=["d"])
    assert refused.value.status == INVALID_ARGUMENT[protocol]


def test_names_may_be_any_string(
    server: TritonServer, repository: Path, protocol: Protocol
) -> None:
    code = """
        SIGNATURE = {"inputs": {"input:0": ("FP32", [2]), "Größe/2": ("FP32", [2])},
                     "max_batch_size": 8}

        def predict(params, **inputs):
            return {"a b": inputs["input:0"] - inputs["Größe/2"]}
    """
    model = loaded(server, repository, "odd_names", code)
    one, two = np.ones((1, 2), np.float32), np.full((1, 2), 2, np.float32)
    got = infer(server, model, {"Größe/2": one, "input:0": two}, protocol)
    assert np.array_equal(got["a b"], [[1, 1]])


def test_a_model_without_a_batch_dimension(
    server: TritonServer, repository: Path, protocol: Protocol
) -> None:
    code = """
        SIGNATURE = {"inputs": {"x": ("FP32", [2, 3]), "scale": ("FP32", [])},
                     "max_batch_size": 0}

        def predict(params, x, scale):
            return {"y": (x * scale).T, "total": x.sum()}
    """
    model = loaded(server, repository, "no_batches", code)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    # Triton has no tensors of rank 0 here: to clients, a scalar is one element.
    got = infer(server, model, {"x": x, "scale": np.full(1, 2, np.float32)}, protocol)
    assert np.array_equal(got["y"], 2 * x.T)
    assert got["total"].tolist() == [15]


def test_a_dimension_that_varies(
    server: TritonServer, repository: Path, protocol: Protocol
) -> None:
    code = """
        SIGNATURE = {"inputs": {"x": ("FP32", [-1])}, "max_batch_size": 4}

        def predict(params, x):
            return {"reversed": x[:, ::-1], "sum": x.sum(axis=1, keepdims=True)}
    """
    model = loaded(server, repository, "varying", code)
    for length in (1, 5, 0, 5):
        x = np.arange(2 * length, dtype=np.float32).reshape(2, length)
        got = infer(server, model, {"x": x}, protocol)
        assert np.array_equal(got["reversed"], x[:, ::-1])
        assert np.array_equal(got["sum"], x.sum(axis=1, keepdims=True))
