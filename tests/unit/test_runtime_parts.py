# SPDX-License-Identifier: Apache-2.0
"""Buckets, parameters, data types, tensors and configurations, without a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci.process import ROOT
from tritonserver_jax.runtime import config as model_config
from tritonserver_jax.runtime.buckets import Buckets
from tritonserver_jax.runtime.dtypes import DTYPES, DType, dtype_of_author
from tritonserver_jax.runtime.errors import BackendError, Code, describe, model_code
from tritonserver_jax.runtime.parameters import parse_parameters
from tritonserver_jax.runtime.settings import Settings, parse_settings
from tritonserver_jax.runtime.strings import (
    Strings,
    from_strings,
    to_elements,
    to_objects,
    to_strings,
)
from tritonserver_jax.runtime.tensors import TensorSpec, author_specs, dims_agree


@given(st.integers(1, 4096), st.data())
def test_every_batch_fits_its_bucket_and_no_smaller_one(maximum: int, data: st.DataObject) -> None:
    chosen = data.draw(st.none() | st.lists(st.integers(1, maximum), min_size=1))
    buckets = Buckets(maximum, chosen)
    rows = data.draw(st.integers(1, maximum))
    fit = buckets.fit(rows)
    assert fit >= rows
    assert not [size for size in buckets.sizes if rows <= size < fit]
    assert buckets.sizes[-1] == maximum
    if chosen is None:
        assert fit < 2 * rows or fit == maximum


def test_buckets_of_a_model_without_batches() -> None:
    assert Buckets(0).sizes == ()
    with pytest.raises(BackendError, match="needs a model with max_batch_size > 0"):
        Buckets(0, [1])
    with pytest.raises(BackendError, match="9 rows exceeds max_batch_size, which is 8"):
        Buckets(8).fit(9)


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("buckets", "8, 1,8", (1, 8)),
        ("x64", "TRUE", True),
        ("x64", "false", False),
        ("x64", "auto", None),
        ("engine", "Python", "python"),
        ("lengths", "64,16", (16, 64)),
        ("max_programs", "3", 3),
        ("devices", "cpu:0, cpu:2", ("cpu:0", "cpu:2")),
        ("warm_up", "compile", "compile"),
        ("matmul_precision", "highest", "highest"),
        ("xla_flags", "--xla_a=1 xla_b=true", {"xla_a": "1", "xla_b": True}),
        ("donate", "true", True),
        ("compile_cache", "/cache", Path("/cache")),
    ],
)
def test_parameters_that_are_understood(key: str, text: str, value: object) -> None:
    assert getattr(parse_parameters({key: {"string_value": text}}), key) == value


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        ("buckets", "0", "parameter 'buckets': expected batch sizes > 0"),
        ("buckets", "", "got ''"),
        ("engine", "pjrt", "parameter 'engine': expected python, got 'pjrt'"),
        ("lengths", "-1", "parameter 'lengths': expected lengths > 0"),
        ("max_programs", "0", "parameter 'max_programs': expected an integer > 0"),
        ("devices", "cpu", "parameter 'devices': expected devices separated by commas"),
        ("warm_up", "no", "parameter 'warm_up': expected run or compile"),
        ("matmul_precision", "fast", "expected default, high or highest, got 'fast'"),
        ("xla_flags", "--fast", "parameter 'xla_flags': expected flags separated by spaces"),
        ("xla_flags", "--xla_fast", "got '--xla_fast'"),
        ("donate", "maybe", "parameter 'donate': expected true or false"),
        ("compile_cache", "cache", "parameter 'compile_cache': expected an absolute path"),
        ("x64", "yes", "parameter 'x64': expected true, false or auto, got 'yes'"),
        (
            "x46",
            "true",
            "parameter 'x46' in the model configuration is unknown; did you mean 'x64'",
        ),
        ("colour", "red", "known are engine, buckets, lengths"),
    ],
)
def test_parameters_that_are_refused(key: str, text: str, words: str) -> None:
    with pytest.raises(BackendError) as refused:
        parse_parameters({key: {"string_value": text}})
    assert refused.value.code == Code.INVALID_ARG
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("compile-cache", "/cache", Path("/cache")),
        ("log-detail", "quiet", "quiet"),
        ("memory-fraction", "0.5", 0.5),
        ("preallocate", "false", False),
        ("cpu-devices", "4", 4),
    ],
)
def test_settings_that_are_understood(key: str, text: str, value: object) -> None:
    given = {key: text, "env": "/env", "backend-directory": "/backends"}
    assert getattr(parse_settings(given), key.replace("-", "_")) == value


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        ("compile-cache", "cache", "expected an absolute path, got 'cache'"),
        ("log-detail", "loud", "expected quiet, normal or detailed, got 'loud'"),
        ("memory-fraction", "1.5", "expected a number > 0 and <= 1"),
        ("preallocate", "1", "expected true or false"),
        ("cpu-devices", "0", "expected an integer > 0"),
        ("env", "", "expected a path"),
        ("memory-fractions", "1", "did you mean 'memory-fraction'?"),
    ],
)
def test_settings_that_are_refused(key: str, text: str, words: str) -> None:
    with pytest.raises(BackendError) as refused:
        parse_settings({key: text})
    assert f"--backend-config=jax,{key}" in str(refused.value)
    assert words in str(refused.value)


def test_a_setting_of_a_newer_triton_is_no_error() -> None:
    assert parse_settings({"execution-policy": "x"}) == Settings()


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_an_author_may_name_a_type_in_several_ways(dtype: DType) -> None:
    spellings: list[Any] = [dtype.name, dtype.name.lower(), dtype.config_name, dtype]
    if not dtype.is_bytes:
        spellings += [dtype.numpy, dtype.numpy.name, dtype.numpy.type]
    for spelling in spellings:
        assert dtype_of_author(spelling, "x") == dtype


def test_data_types_are_the_servers() -> None:
    # TRITONSERVER_DataType, as backend/src/core/triton_c_api.h has it.
    text = (ROOT / "backend" / "src" / "core" / "triton_c_api.h").read_text(encoding="utf-8")
    for dtype in DTYPES:
        assert f"X(TRITONSERVER_TYPE_{dtype.name}, {dtype.number})" in text


@pytest.mark.parametrize("given", ["FP31", "float31", object(), None, np.complex64, "datetime64"])
def test_what_is_no_type_is_refused(given: object) -> None:
    with pytest.raises(BackendError, match="tensor"):
        dtype_of_author(given, "tensor")


@pytest.mark.parametrize(
    "given",
    [
        "FP32",
        {"x": "FP32"},
        {"x": ("FP32",)},
        {"x": ("FP32", 4)},
        {"x": ("FP32", [4.0])},
        {"x": ("FP32", [-2])},
        {"x": ("FP32", [True])},
        {"": ("FP32", [4])},
        {3: ("FP32", [4])},
    ],
)
def test_signatures_that_are_refused_by_name(given: Any) -> None:
    with pytest.raises(BackendError, match=r"SIGNATURE\['inputs'\]") as refused:
        author_specs(given, "SIGNATURE['inputs']")
    assert refused.value.code == Code.INVALID_ARG


def test_anything_with_shape_and_dtype_is_a_spec() -> None:
    given = {"x": np.zeros((2, 3), ml_dtypes.bfloat16), "y": ("int8", ())}
    first, second = author_specs(given, "SIGNATURE")
    assert (str(first), str(second)) == ("BF16[2, 3]", "INT8[]")


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        ((), (), True),
        ((4,), (4,), True),
        ((-1,), (4,), True),
        ((4,), (-1,), True),
        ((4,), (5,), False),
        ((4,), (4, 1), False),
    ],
)
def test_dims_agree(one: tuple[int, ...], other: tuple[int, ...], agree: bool) -> None:
    assert dims_agree(one, other) is agree


def test_completion_changes_nothing_that_is_there() -> None:
    dtype = dtype_of_author("FP32", "x")
    written = {
        "backend": "jax",
        "max_batch_size": 4,
        "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [3], "format": "FORMAT_NONE"}],
        "sequence_batching": {"max_sequence_idle_microseconds": 5},
        "parameters": {"anything": {"string_value": "1"}},
    }
    completed = model_config.complete(
        written,
        max_batch_size=4,
        inputs=[TensorSpec("x", dtype, (3,)), TensorSpec("z", dtype, ())],
        outputs=[TensorSpec("y", dtype, (2,))],
    )
    assert {key: completed[key] for key in written if key != "input"} == {
        key: value for key, value in written.items() if key != "input"
    }
    assert completed["input"][0] == written["input"][0]  # type: ignore[index]
    assert completed["input"][1] == {
        "name": "z",
        "data_type": "TYPE_FP32",
        "dims": [1],
        "reshape": {"shape": []},
    }
    assert completed["output"] == [{"name": "y", "data_type": "TYPE_FP32", "dims": [2]}]
    assert "dynamic_batching" not in completed


def test_errors_of_a_models_code_name_the_line(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text("def helper():\n    return {}['missing']\n\ndef run():\n    helper()\n")
    namespace: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), namespace)  # noqa: S102
    with pytest.raises(BackendError) as refused, model_code("running it", tmp_path):
        namespace["run"]()
    assert str(refused.value) == "running it raised KeyError: 'missing' (model.py:2)"
    assert describe(refused.value) == (Code.INTERNAL, str(refused.value), False)


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), GeneratorExit()])
def test_what_would_end_a_program_is_an_error_like_any_other(
    tmp_path: Path, error: BaseException
) -> None:
    with pytest.raises(BackendError, match=type(error).__name__), model_code("it", tmp_path):
        raise error


def test_lack_of_memory_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(BackendError) as refused, model_code("it", tmp_path):
        raise MemoryError
    assert refused.value.code == Code.UNAVAILABLE


def as_read(given: Any) -> tuple[list[bytes], tuple[int, ...]]:
    """What the C++ side makes of strings."""
    strings, dims, *lengths = given
    if lengths:
        matrix = strings.tobytes()
        ends = lengths[0].ravel().tolist()
        width = len(matrix) // max(len(ends), 1)
        strings = [matrix[i * width : i * width + end] for i, end in enumerate(ends)]
    return [one.encode() if isinstance(one, str) else one for one in strings], dims


@given(
    st.lists(st.binary(max_size=40), max_size=12),
    st.integers(0, 3),
)
def test_strings_survive_the_way_into_xla_and_back(elements: list[bytes], missing: int) -> None:
    shape = (len(elements) + missing,)
    strings = to_strings(elements, shape, (1, 8, 40), "s")
    assert strings.bytes.dtype == np.uint8
    assert strings.bytes.shape == (*shape, strings.bytes.shape[-1])
    assert strings.bytes.shape[-1] in (1, 8, 40)
    for array in (strings, from_strings(strings)):
        flat, dims = as_read(to_elements(array, "s"))
        assert flat == elements + [b""] * missing
        assert dims == shape


def test_a_string_that_is_too_long_is_refused() -> None:
    with pytest.raises(BackendError, match="a string of 5 bytes"):
        to_strings([b"12345"], (1,), (2, 4), "s")


@pytest.mark.parametrize(
    "array",
    [
        np.array([["a", "é"]]),
        np.array([[b"a", "é".encode()]]),
        to_objects([b"a", "é".encode()], (1, 2)),
        np.array([["a", "é"]], object),
        np.array([["a", "é".encode()]], object),
    ],
    ids=["U", "S", "bytes", "str", "mixed"],
)
def test_host_strings_of_any_kind_are_byte_strings(array: np.ndarray[Any, Any]) -> None:
    assert as_read(to_elements(array, "s")) == ([b"a", "é".encode()], (1, 2))


def test_numbers_are_no_strings() -> None:
    with pytest.raises(BackendError, match="output 's': expected byte strings, got an array of"):
        to_elements(np.zeros(3), "s")
    assert isinstance(Strings(np.zeros((1, 2), np.uint8), np.zeros(1, np.int32)), tuple)
