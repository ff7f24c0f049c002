# SPDX-License-Identifier: Apache-2.0
"""Compiled programs: how they are called, and with what options."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tritonserver_jax.runtime import program
from tritonserver_jax.runtime.author import AuthorModel
from tritonserver_jax.runtime.direct_call import direct_call
from tritonserver_jax.runtime.instance import aligned_bytes
from tritonserver_jax.runtime.parameters import Parameters
from tritonserver_jax.runtime.program import (
    Argument,
    DevicePrograms,
    Predict,
    data_arguments,
)
from tritonserver_jax.runtime.x64 import x64_mode


def programs_of(
    predict: Callable[..., Any],
    params: Any,
    *,
    parameters: Parameters | None = None,
    x64: bool = False,
    device: jax.Device | None = None,
) -> DevicePrograms:
    author = SimpleNamespace(
        predict=predict, params=params, missing_weights="", directory=Path("/model")
    )
    traced = Predict(
        cast("AuthorModel", author),
        "model 'm'",
        x64,
        parameters or Parameters(),
        batching=True,
        inputs=["x"],
    )
    return DevicePrograms(
        device or jax.devices("cpu")[0], traced, params, ["y"], "model 'm'", lambda *_: None
    )


def aligned(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    memory: np.ndarray[Any, Any] = aligned_bytes(array.nbytes).view(array.dtype)
    memory = memory.reshape(array.shape)
    memory[...] = array
    return memory


def compiled(function: Callable[..., Any], *arguments: Any) -> jax.stages.Compiled:
    return jax.jit(function, keep_unused=True).lower(*arguments).compile()


def on_device(*arrays: Any) -> tuple[jax.Array, ...]:
    return tuple(jax.device_put(array) for array in arrays)


# -- below JAX's dispatch -------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.bool_, np.float16, jnp.bfloat16])
def test_a_direct_call_returns_what_jax_does(dtype: Any) -> None:
    x, y = on_device(np.ones((3, 4), dtype), np.arange(4).astype(dtype))
    program = compiled(lambda x, y: (x * y, x.sum(0), y), x, y)
    call = direct_call(program, [x, y])
    assert call is not None  # with the JAX that the locks pin, at least
    for direct, ordinary in zip(call(), program(x, y), strict=True):
        assert direct.dtype == ordinary.dtype
        assert np.asarray(direct).tobytes() == np.asarray(ordinary).tobytes()


def test_a_direct_call_sees_what_the_memory_holds_now() -> None:
    memory = aligned(np.zeros((2, 3), np.float32))
    (x,) = on_device(memory)
    call = direct_call(compiled(lambda x: (x + 1,), x), [x])
    assert call is not None
    memory[...] = 41
    assert np.asarray(call()[0]).tolist() == [[42] * 3] * 2


def host_sum(x: Any) -> Any:
    return jax.pure_callback(np.sum, jax.ShapeDtypeStruct((), x.dtype), x)


def printed(x: Any) -> Any:
    jax.debug.print("x {x}", x=x)
    return x + 1


def ordered(x: Any) -> Any:
    jax.debug.print("x {x}", x=x, ordered=True)
    return x + 1


@pytest.mark.parametrize("function", [host_sum, printed, ordered])
def test_what_calls_the_host_is_left_to_jax(function: Callable[[Any], Any]) -> None:
    (x,) = on_device(np.ones(3, np.float32))
    assert direct_call(compiled(lambda x: (function(x),), x), [x]) is None


def test_arguments_that_are_not_plain_arrays_are_left_to_jax() -> None:
    x = np.ones(3, np.float32)
    assert direct_call(compiled(lambda x: (x,), x), [x]) is None
    key = jax.random.key(0)
    program = compiled(lambda key: (jax.random.uniform(key, (2,)),), key)
    assert direct_call(program, [key]) is None


def test_a_result_that_is_no_tuple_is_left_to_jax() -> None:
    (x,) = on_device(np.ones(3, np.float32))
    assert direct_call(compiled(lambda x: {"y": x}, x), [x]) is None
    assert direct_call(compiled(lambda x: x, x), [x]) is None


def test_another_jax_is_left_to_itself() -> None:
    (x,) = on_device(np.ones(3, np.float32))
    assert direct_call(cast("Any", SimpleNamespace()), [x]) is None
    without = SimpleNamespace(runtime_executable=object, _executable=None)
    assert direct_call(cast("Any", without), [x]) is None


def test_jax_looks_for_nans_where_it_is_asked_to() -> None:
    (x,) = on_device(np.zeros(3, np.float32))
    program = compiled(lambda x: (x,), x)
    with jax.debug_nans(True):
        assert direct_call(program, [x]) is None
    assert direct_call(program, [x]) is not None


# -- programs of a model --------------------------------------------------------------------------


def test_a_bound_program_reads_the_input_memory_at_each_run() -> None:
    params = {"b": np.full(2, 10, np.float32), "w": {"deep": [np.ones((4, 2), np.float32)]}}
    programs = programs_of(lambda p, x: {"y": x @ p["w"]["deep"][0] + p["b"]}, params)
    memory = aligned(np.zeros((3, 4), np.float32))
    resident = programs.resident((memory,))
    assert isinstance(resident[0], jax.Array)
    program = programs.program(data_arguments({"x": memory}), in_traffic=False)
    run = program.bind(resident)
    for value in (1, 2):
        memory[...] = value
        (y,) = run()
        assert np.asarray(y).tolist() == [[10 + 4 * value] * 2] * 3


def test_a_bound_program_keeps_64_bits() -> None:
    with x64_mode(False):
        programs = programs_of(
            lambda p, x: {"y": x + p}, np.int64(2**40), x64=True, parameters=Parameters(x64=True)
        )
        memory = aligned(np.array([2**50 + 1], np.int64))
        program = programs.program(data_arguments({"x": memory}), in_traffic=False)
        (y,) = program.bind(programs.resident((memory,)))()
        assert np.asarray(y).tolist() == [2**50 + 1 + 2**40]
        assert np.asarray(y).dtype == np.int64


def test_memory_that_cannot_be_shared_is_passed_at_each_run() -> None:
    misaligned = aligned_bytes(4 * 8 + 4)[4:].view(np.float32)
    programs = programs_of(lambda _, x: {"y": x * 2}, ())
    assert programs.resident((misaligned,))[0] is misaligned
    program = programs.program(data_arguments({"x": misaligned}), in_traffic=False)
    run = program.bind(programs.resident((misaligned,)))
    for value in (3, 4):
        misaligned[...] = value
        assert np.asarray(run()[0]).tolist() == [2 * value] * 8


def test_memory_is_not_shared_with_a_program_that_may_overwrite_it() -> None:
    programs = programs_of(lambda _, x: {"y": x}, (), parameters=Parameters(donate=True))
    memory = aligned(np.ones(16, np.float32))
    assert programs.resident((memory,))[0] is memory


@pytest.mark.parametrize(
    ("size", "flags", "environment", "expected"),
    [
        (8, {}, "", False),
        (2048, {}, "", None),
        (8, {"xla_cpu_multi_thread_eigen": True}, "", True),
        (8, {}, "--xla_cpu_multi_thread_eigen=true", None),
    ],
)
def test_a_small_program_runs_on_one_thread(
    monkeypatch: pytest.MonkeyPatch,
    size: int,
    flags: dict[str, bool | str],
    environment: str,
    expected: bool | None,
) -> None:
    monkeypatch.setenv("XLA_FLAGS", environment)
    programs = programs_of(lambda _, x: {"y": x @ x}, (), parameters=Parameters(xla_flags=flags))
    lowered = jax.jit(lambda x: x @ x).lower(jax.ShapeDtypeStruct((size, size), np.float32))
    arguments = (Argument("x", "data", (size, size), np.dtype(np.float32)),)
    options = programs._compiler_options(arguments, lowered)
    assert options.get("xla_cpu_multi_thread_eigen") is expected
    assert lowered.compile(compiler_options=options or None) is not None


def test_xla_is_asked_once_what_a_small_program_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a model's programs, those that do no more than one that is small need no question."""
    asked = []

    def is_small(lowered: jax.stages.Lowered) -> bool:
        asked.append(lowered.in_avals[0][1][0].shape)
        return bool(asked[-1][0] <= 8)

    monkeypatch.setattr(program, "_is_small", is_small)
    programs = programs_of(lambda _, x: {"y": x @ x.T}, ())

    def compile_for(*shape: int) -> None:
        programs.program((Argument("x", "data", shape, np.dtype(np.float32)),), in_traffic=False)

    for rows in (16, 8, 4, 1):
        compile_for(rows, 4)
    assert asked == [(16, 4), (8, 4)]
    compile_for(8, 5)  # another dimension is larger
    compile_for(4, 5)
    assert asked == [(16, 4), (8, 4), (8, 5)]
