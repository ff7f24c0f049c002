# SPDX-License-Identifier: Apache-2.0
"""Reading the samples of model_warmup."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tritonserver_jax.runtime.dtypes import DTYPES
from tritonserver_jax.runtime.errors import BackendError
from tritonserver_jax.runtime.tensors import TensorSpec
from tritonserver_jax.runtime.warmup import samples

_BY_NAME = {dtype.name: dtype for dtype in DTYPES}
X = TensorSpec("x", _BY_NAME["INT32"], (-1, 2))
FLAG = TensorSpec("flag", _BY_NAME["BOOL"], (5,), optional=True)
TEXT = TensorSpec("text", _BY_NAME["BYTES"], (1,))


def config(batch_size: int = 2, **inputs: dict[str, Any]) -> dict[str, Any]:
    return {"model_warmup": [{"name": "one", "batch_size": batch_size, "inputs": inputs}]}


def of_x(**data: Any) -> dict[str, Any]:
    return {"data_type": "TYPE_INT32", "dims": ["3", "2"], **data}  # as Triton's JSON has numbers


def test_zeros_and_what_is_left_out(tmp_path: Path) -> None:
    (sample,) = samples(config(x=of_x(zero_data=True)), tmp_path, [X, FLAG], "model 'm'")
    assert (sample.name, sample.rows) == ("one", 2)
    x = sample.arrays["x"]
    assert x is not None
    assert x.dtype == np.int32
    assert x.tolist() == [[0, 0]] * 3
    assert sample.arrays["flag"] is None


def test_random_data(tmp_path: Path) -> None:
    flag = {"data_type": "TYPE_BOOL", "dims": [5], "random_data": True}
    (sample,) = samples(
        config(x=of_x(random_data=True), flag=flag), tmp_path, [X, FLAG], "model 'm'"
    )
    x, got = sample.arrays["x"], sample.arrays["flag"]
    assert x is not None
    assert got is not None
    assert x.any()
    assert set(got.view(np.uint8).tolist()) <= {0, 1}


def test_data_from_a_file(tmp_path: Path) -> None:
    given = config(x=of_x(input_data_file="x.bin"))
    with pytest.raises(BackendError, match=r"'one': cannot read .*/warmup/x\.bin: No such file"):
        samples(given, tmp_path, [X], "model 'm'")
    (tmp_path / "warmup").mkdir()
    path = tmp_path / "warmup" / "x.bin"
    path.write_bytes(np.arange(6, dtype=np.int32).tobytes()[:-1])
    with pytest.raises(BackendError, match="expected 24 bytes for input 'x', got 23"):
        samples(given, tmp_path, [X], "model 'm'")
    path.write_bytes(np.arange(6, dtype=np.int32).tobytes())
    (sample,) = samples(given, tmp_path, [X], "model 'm'")
    x = sample.arrays["x"]
    assert x is not None
    assert x.tolist() == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize(
    ("given", "inputs"),
    [
        (config(0, x=of_x(zero_data=True)), [X]),
        (config(x={**of_x(zero_data=True), "data_type": "TYPE_INT64"}), [X]),
        (config(x={**of_x(zero_data=True), "dims": [3]}), [X]),
        (config(flag={"data_type": "TYPE_BOOL", "dims": [5], "zero_data": True}), [X, FLAG]),
        (config(text={"data_type": "TYPE_STRING", "dims": [1], "zero_data": True}), [TEXT]),
    ],
    ids=["no batch", "type", "dims", "missing", "strings"],
)
def test_what_is_left_to_triton(
    tmp_path: Path, given: dict[str, Any], inputs: list[TensorSpec]
) -> None:
    assert samples(given, tmp_path, inputs, "model 'm'") == []
