# SPDX-License-Identifier: Apache-2.0
"""An instance of a model: its input memory, and how to run each batch size."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tritonserver_jax.runtime import errors
from tritonserver_jax.runtime.author import AuthorModel
from tritonserver_jax.runtime.buckets import Buckets
from tritonserver_jax.runtime.dtypes import dtype_of_array
from tritonserver_jax.runtime.errors import Code, refuse
from tritonserver_jax.runtime.program import DevicePrograms, shapes_of
from tritonserver_jax.runtime.tensors import TensorSpec, dims_agree

# What XLA on CPU wants of an input to take it without a copy.
_ALIGNMENT = 64

Outputs = Sequence[Any]


def aligned_bytes(size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """`size` bytes of zeros that start at a multiple of 64."""
    memory = np.zeros(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + size]


class Plan:
    """How to run a batch of one size.

    Attributes:
        call: takes nothing, runs what is in the input memory, and returns the outputs in order;
            each has the buffer protocol.
        buffers: the input memory, one flat array of bytes per input.
        arrays: the same memory as `call` sees it.
    """

    __slots__ = ("arrays", "buffers", "call")

    def __init__(
        self,
        call: Callable[[], Outputs],
        buffers: tuple[np.ndarray[Any, Any], ...],
        arrays: tuple[np.ndarray[Any, Any], ...],
    ) -> None:
        self.call = call
        self.buffers = buffers
        self.arrays = arrays


def _exporter(specs: Sequence[TensorSpec]) -> Callable[[Outputs], Outputs] | None:
    """What makes outputs readable through the buffer protocol, or None where they all are.

    bfloat16 is unknown to the buffer protocol: its bytes go out as 16-bit integers.
    """
    which = [index for index, spec in enumerate(specs) if spec.dtype.name == "BF16"]
    if not which:
        return None

    def export(outputs: Outputs) -> Outputs:
        exported = list(outputs)
        for index in which:
            array = np.ascontiguousarray(np.asarray(outputs[index]))
            exported[index] = array.view(np.uint16)
        return exported

    return export


class Instance:
    """One instance, used by one thread at a time. Called by the C++ side."""

    def __init__(
        self,
        *,
        doing: str,
        author: AuthorModel,
        programs: DevicePrograms,
        buckets: Buckets,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[TensorSpec],
    ) -> None:
        """Set up and compile every batch size that is known beforehand."""
        self._doing = doing
        self._author = author
        self._programs = programs
        self._buckets = buckets
        self._inputs = tuple(inputs)
        self._outputs = tuple(outputs)
        self._export = _exporter(outputs)
        self._memory: list[np.ndarray[Any, np.dtype[np.uint8]] | None] = [None] * len(inputs)
        self._ready = False
        self._compile_known_sizes()
        self._ready = True

    def _compile_known_sizes(self) -> None:
        if any(-1 in spec.dims for spec in self._inputs):
            return  # no size is known before a request brings one
        dims = [list(spec.dims) for spec in self._inputs]
        for rows in reversed(self._buckets.sizes or (1,)):  # the largest first: it sizes the memory
            plan = self.plan(rows, dims)
            outputs = plan.call()
            for output in outputs:
                memoryview(output).release()  # waits for it, and fails here if running it failed

    def plan(self, rows: int, dims: Sequence[Sequence[int]]) -> Plan:
        """How to run `rows` rows.

        Args:
            rows: real rows of the batch; 1 where the model has no batch dimension.
            dims: of each input, without the batch dimension.
        """
        batching = bool(self._buckets.sizes)
        bucket = self._buckets.fit(max(rows, 1)) if batching else 1
        buffers = []
        arrays = []
        for index, (spec, input_dims) in enumerate(zip(self._inputs, dims, strict=True)):
            shape = (bucket, *input_dims) if batching else tuple(input_dims)
            if not batching and spec.dims == ():
                shape = ()  # to Triton, and so to the C++ side, a scalar is one element
            dtype = spec.dtype.numpy
            buffer = self._input_memory(index, math.prod(shape) * dtype.itemsize)
            buffers.append(buffer)
            arrays.append(buffer.view(dtype).reshape(shape))
        inputs = tuple(arrays)
        call = self._caller(inputs, rows if batching else None, bucket)
        return Plan(call, tuple(buffers), inputs)

    def _input_memory(self, index: int, size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """`size` bytes for input number `index`: all batch sizes of an instance share them."""
        memory = self._memory[index]
        if memory is None or memory.nbytes < size:
            memory = self._memory[index] = aligned_bytes(size)
        return memory[:size]

    def drop_buffers(self) -> None:
        """Leave the input memory to whoever still holds it; the next plan gets its own."""
        self._memory = [None] * len(self._inputs)

    def close(self) -> None:
        """Give up what the instance holds."""
        self.drop_buffers()

    def _caller(
        self, arrays: tuple[np.ndarray[Any, Any], ...], rows: int | None, bucket: int
    ) -> Callable[[], Outputs]:
        if self._author.preprocess is None and self._author.postprocess is None:
            names = [spec.name for spec in self._inputs]
            program = self._programs.program(
                shapes_of(dict(zip(names, arrays, strict=True))), in_traffic=self._ready
            )
            export = self._export
            run = lambda: program(arrays)  # noqa: E731
            if export is not None:
                run = lambda: export(program(arrays))  # noqa: E731
            return self._guarded(run)
        return self._guarded(lambda: self._call_with_host_code(arrays, rows, bucket))

    def _guarded(self, run: Callable[[], Outputs]) -> Callable[[], Outputs]:
        doing = f"{self._doing}: predict"
        directory = self._author.directory

        def call() -> Outputs:
            try:
                return run()
            except errors.BackendError:
                raise
            except BaseException as error:
                raise errors.model_code_error(doing, error, directory) from error

        return call

    def _call_with_host_code(
        self, arrays: tuple[np.ndarray[Any, Any], ...], rows: int | None, bucket: int
    ) -> Outputs:
        # The author's host code sees the real rows only; padding is between the two.
        directory = self._author.directory
        inputs: Mapping[str, Any] = {
            spec.name: array[:rows] if rows is not None else array
            for spec, array in zip(self._inputs, arrays, strict=True)
        }
        if self._author.preprocess is not None:
            with errors.model_code(f"{self._doing}: preprocess", directory):
                inputs = self._author.preprocess(dict(inputs))
            inputs = checked_arrays(inputs, f"{self._doing}: preprocess")
        if rows is not None:
            inputs = {name: _pad(array, rows, bucket, name) for name, array in inputs.items()}
        program = self._programs.program(shapes_of(inputs), in_traffic=self._ready)
        result = program(tuple(inputs.values()))
        names = self._programs.output_names
        outputs = {
            name: np.asarray(array)[:rows] if rows is not None else np.asarray(array)
            for name, array in zip(names, result, strict=True)
        }
        if self._author.postprocess is not None:
            with errors.model_code(f"{self._doing}: postprocess", directory):
                outputs = self._author.postprocess(outputs)
            outputs = checked_arrays(outputs, f"{self._doing}: postprocess")
        ordered = [self._checked_output(spec, outputs, rows) for spec in self._outputs]
        return ordered if self._export is None else self._export(ordered)

    def _checked_output(
        self, spec: TensorSpec, outputs: Mapping[str, Any], rows: int | None
    ) -> np.ndarray[Any, Any]:
        array = outputs.get(spec.name)
        expected = f"{spec.dtype.name}{[*([] if rows is None else [rows]), *spec.dims]}"
        if array is None:
            refuse(
                f"{self._doing}: output '{spec.name}' is missing; got {', '.join(outputs)}",
                Code.INTERNAL,
            )
        dtype = dtype_of_array(array.dtype, f"{self._doing}: output '{spec.name}'")
        dims = array.shape if rows is None else array.shape[1:]
        if dtype != spec.dtype or (rows is not None and array.shape[:1] != (rows,)):
            fits = False
        else:
            fits = dims_agree(dims, spec.dims)
        if not fits:
            refuse(
                f"{self._doing}: output '{spec.name}': expected {expected}, got "
                f"{dtype.name}{list(array.shape)}",
                Code.INTERNAL,
            )
        return np.ascontiguousarray(array)


def checked_arrays(given: Any, doing: str) -> dict[str, np.ndarray[Any, Any]]:
    """What an author's host code returned, as NumPy arrays by name."""
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        refuse(
            f"{doing} must return a dict of name -> array, got {type(given).__name__}",
            Code.INTERNAL,
        )
    return {name: np.asarray(array) for name, array in given.items()}


def _pad(array: np.ndarray[Any, Any], rows: int, bucket: int, name: str) -> np.ndarray[Any, Any]:
    if array.ndim == 0 or array.shape[0] != rows:
        refuse(
            f"preprocess returned '{name}' with shape {list(array.shape)}; its first dimension "
            f"must be the {rows} rows of the batch",
            Code.INTERNAL,
        )
    padded = np.zeros((bucket, *array.shape[1:]), array.dtype)
    padded[:rows] = array
    return padded
