# SPDX-License-Identifier: Apache-2.0
"""An instance of a model: its input memory, and how to run each batch size."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from tritonserver_jax.runtime import errors, gpu
from tritonserver_jax.runtime.author import AuthorModel
from tritonserver_jax.runtime.buckets import Buckets
from tritonserver_jax.runtime.dtypes import dtype_of_array
from tritonserver_jax.runtime.errors import Code, refuse
from tritonserver_jax.runtime.events import Event
from tritonserver_jax.runtime.program import (
    Argument,
    Arguments,
    DevicePrograms,
    Predict,
    data_arguments,
    flatten_outputs,
)
from tritonserver_jax.runtime.strings import (
    Strings,
    from_strings,
    to_elements,
    to_objects,
    to_strings,
)
from tritonserver_jax.runtime.tensors import TensorSpec, dims_agree
from tritonserver_jax.runtime.warmup import Sample

# What XLA on CPU wants of an input to take it without a copy.
_ALIGNMENT = 64

Array = np.ndarray[Any, Any]
Outputs = Sequence[Any]
Elements = list[bytes]


def aligned_bytes(size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """`size` bytes of zeros that start at a multiple of 64."""
    memory = np.zeros(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + size]


@dataclass(frozen=True, slots=True)
class Plan:
    """How to run a batch of one size.

    Attributes:
        call: takes the elements of each BYTES input, a list each, runs them with what is in the
            input memory, and returns the outputs in order: objects with the buffer protocol, or for
            BYTES a list of elements and the dimensions. Of a decoupled model: an iterator of such.
        call_in_place: the same where inputs are used where they are, in memory of the instance's
            GPU or of the CPU: takes the address of each, 0 for what is in the input memory, and the
            elements. None where the instance takes none from there.
        padded_rows: rows of the padded batch.
        buffers: the input memory, one flat array of bytes per input; None for BYTES and for an
            input that is not there.
        lengths: ``int32[padded rows, dimensions that vary]`` per input, to be filled; None where
            nobody asks.
    """

    call: Callable[..., Any]
    call_in_place: Callable[[Sequence[int], Sequence[Elements]], Any] | None
    padded_rows: int
    buffers: tuple[Array | None, ...]
    lengths: tuple[Array | None, ...]


class StreamContext:
    """What a model's own ``stream(context, **inputs)`` gets.

    Attributes:
        params: the parameters, on the device.
    """

    def __init__(self, programs: DevicePrograms) -> None:
        self._programs = programs
        self.params = programs.params

    def predict(self, **inputs: Any) -> dict[str, Any]:
        """Call the compiled ``predict``; it is compiled when its inputs have new shapes."""
        arrays = {name: np.asarray(array) for name, array in inputs.items()}
        checked_for_jax(arrays, "stream: context.predict", self._programs.x64, verb="got")
        program = self._programs.program(data_arguments(arrays), in_traffic=True)
        self._programs.observe(Event.PREDICTED)
        outputs: dict[str, Any] = program.run(tuple(arrays.values()))
        return outputs


@dataclass
class _Input:
    """One input of a plan."""

    spec: TensorSpec
    shape: tuple[int, ...]  # of the padded batch
    real_shape: tuple[int, ...]  # of the real rows
    array: Array | None = None  # on the input memory; None for BYTES
    lengths: Array | None = None


class Instance:
    """One instance, used by one thread at a time. Called by the C++ side."""

    def __init__(
        self,
        *,
        doing: str,
        author: AuthorModel,
        predict: Predict,
        programs: DevicePrograms,
        buckets: Buckets,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[TensorSpec],
        samples: Sequence[Sample] = (),
        gpu_memory: bool = False,
    ) -> None:
        """Set up, compile every batch size that is known beforehand, and run the author's samples.

        With `gpu_memory`, the C++ side copies from and to memory of GPUs.

        Raises:
            BackendError: where a batch size does not compile or run, or a sample does not run.
        """
        self.device_name = programs.device_name
        self._on_cpu = programs.device.platform == "cpu"
        self._outputs_gpu = gpu.number_of(programs.device) if gpu_memory else -1
        # Host code may keep or change what it gets, and what JAX may write outputs to must not be a
        # client's. DLPack knows the CPU as one device.
        takes = author.preprocess is None and author.stream is None
        takes = takes and not predict.parameters.donate
        #: In which GPU's memory it takes inputs; -1: none.
        self.gpu = self._outputs_gpu if takes else -1
        self._takes_in_place = takes and (
            self.gpu >= 0
            or (
                predict.parameters.inputs_in_place
                and self._on_cpu
                and programs.device == jax.devices("cpu")[0]
            )
        )
        self._doing = doing
        self._author = author
        self._predict = predict
        self._programs = programs
        self._buckets = buckets
        self._batching = bool(buckets.sizes)
        self._inputs = tuple(inputs)
        self._outputs = tuple(outputs)
        self._plain_outputs = self._on_cpu and all(
            spec.dtype.name not in ("BF16", "BYTES") for spec in self._outputs
        )
        self._memory: dict[int, np.ndarray[Any, np.dtype[np.uint8]]] = {}
        self._ready = False
        if author.stream is None:
            self._warm_up()
            for sample in samples:
                self._run_sample(sample)
        self._ready = True

    # -- before the first request ---------------------------------------------------------------

    def _known_shapes(self) -> Iterator[list[list[int] | None]]:
        """Every set of input shapes that is known before a request brings it."""
        if any(-1 in spec.dims and not spec.dim_lengths for spec in self._inputs):
            return
        lengths = sorted({n for s in self._inputs for n in s.dim_lengths if -1 in s.dims}) or [0]

        def shape(spec: TensorSpec, length: int) -> list[int]:
            fit = next((n for n in spec.dim_lengths if n >= length), length)
            return [fit if dim == -1 else dim for dim in spec.dims]

        for length in reversed(lengths):
            yield [shape(spec, length) for spec in self._inputs]
            if any(spec.optional for spec in self._inputs):
                yield [None if s.optional else shape(s, length) for s in self._inputs]

    def _warm_up(self) -> None:
        for shapes in self._known_shapes():
            # The largest first: it sizes the memory.
            for rows in reversed(self._buckets.sizes or (1,)):
                plan = self.plan(rows, shapes)
                if self._predict.parameters.warm_up == "compile":
                    continue
                elements = [
                    [b""] * (rows * math.prod(shape))
                    for spec, shape in zip(self._inputs, shapes, strict=True)
                    if spec.dtype.is_bytes and shape is not None
                ]
                _wait(plan.call(*elements))

    def _run_sample(self, sample: Sample) -> None:
        try:
            given = [sample.arrays[spec.name] for spec in self._inputs]
            shapes = [
                None if array is None else _padded_dims(spec, array.shape)
                for spec, array in zip(self._inputs, given, strict=True)
            ]
            plan = self.plan(sample.rows, shapes)
            lead = (plan.padded_rows,) if self._batching else ()
            for spec, array, dims, buffer, lengths in zip(
                self._inputs, given, shapes, plan.buffers, plan.lengths, strict=True
            ):
                if array is None or dims is None or buffer is None:
                    continue
                memory = buffer.view(spec.dtype.numpy).reshape(*lead, *dims)
                memory[...] = 0
                whole = tuple(slice(size) for size in memory.shape[: len(lead)])
                memory[(*whole, *(slice(size) for size in array.shape))] = array
                if lengths is not None:
                    lengths[...] = [
                        size for size, dim in zip(array.shape, spec.dims, strict=True) if dim == -1
                    ]
            _wait(plan.call())
        except errors.BackendError as error:
            raise errors.BackendError(
                error.code, f"{self._doing}: sample '{sample.name}' of model_warmup: {error}"
            ) from error

    # -- input memory ---------------------------------------------------------------------------

    def plan(self, rows: int, shapes: Sequence[Sequence[int] | None]) -> Plan:
        """How to run `rows` rows.

        Args:
            rows: real rows of the batch; 1 where the model has no batch dimension.
            shapes: padded dimensions of each input, without the batch; None for one that is not
                there.
        """
        bucket = self._buckets.fit(max(rows, 1)) if self._batching else 1
        inputs: list[_Input | None] = []
        for index, (spec, dims) in enumerate(zip(self._inputs, shapes, strict=True)):
            if dims is None:
                inputs.append(None)
                continue
            shape = (bucket, *dims) if self._batching else tuple(dims)
            real = (rows, *dims) if self._batching else tuple(dims)
            if not self._batching and spec.dims == ():
                shape = real = ()  # to Triton, and so to the C++ side, a scalar is one element
            one = _Input(spec, shape, real)
            if not spec.dtype.is_bytes:
                memory = self._input_memory(index, math.prod(shape) * spec.dtype.numpy.itemsize)
                one.array = memory.view(spec.dtype.numpy).reshape(shape)
                if self._predict.wants_masks and -1 in spec.dims:
                    leading = (bucket,) if self._batching else ()
                    one.lengths = np.zeros((*leading, spec.dims.count(-1)), np.int32)
            inputs.append(one)
        present = [one for one in inputs if one is not None]
        return Plan(
            call=self._caller(present, rows if self._batching else None, bucket),
            call_in_place=(
                self._in_place_caller(inputs, rows if self._batching else None)
                if self._takes_in_place
                else None
            ),
            padded_rows=bucket,
            buffers=tuple(
                None if one is None or one.array is None else one.array.reshape(-1).view(np.uint8)
                for one in inputs
            ),
            lengths=tuple(None if one is None else one.lengths for one in inputs),
        )

    def _input_memory(self, index: int, size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """`size` bytes for input number `index`: all batch sizes of an instance share them."""
        memory = self._memory.get(index)
        if memory is None or memory.nbytes < size:
            memory = self._memory[index] = aligned_bytes(size)
        return memory[:size]

    def close(self) -> None:
        """Give up what the instance holds."""
        self._memory = {}

    # -- running --------------------------------------------------------------------------------

    def _caller(self, inputs: list[_Input], rows: int | None, bucket: int) -> Callable[..., Any]:
        if self._author.stream is not None:
            return lambda *elements: self._stream(inputs, elements, rows)
        if self._author.preprocess is not None or self._author.postprocess is not None:
            return self._guarded(
                lambda *elements: self._run_with_host_code(inputs, elements, rows, bucket)
            )
        if any(one.spec.dtype.is_bytes for one in inputs):
            return self._guarded(lambda *elements: self._run_strings(inputs, elements))
        arguments, arrays = self._arguments(inputs)
        arrays = self._programs.resident(arrays)
        program = self._programs.program(arguments, in_traffic=self._ready)

        def run_again() -> Outputs:
            nonlocal program
            if program.evicted:
                program = self._programs.program(arguments, in_traffic=True)
            program.last_used = time.monotonic()
            outputs: Outputs = program.run(arrays)
            return outputs

        run = program.bind(arrays) if program.permanent else run_again
        if self._plain_outputs:
            return self._guarded(run)
        return self._guarded(lambda: self._exported(run(), rows))

    def _in_place_caller(
        self, inputs: Sequence[_Input | None], rows: int | None
    ) -> Callable[[Sequence[int], Sequence[Elements]], Any]:
        shared = [
            None
            if one is None or one.array is None
            else gpu.SharedInput(one.shape, one.array.dtype, self._programs.device)
            for one in inputs
        ]
        present = [one for one in inputs if one is not None]

        def run(addresses: Sequence[int], elements: Sequence[Elements]) -> Outputs:
            given = {
                one.spec.name: of.array(address)
                for one, of, address in zip(inputs, shared, addresses, strict=True)
                if one is not None and of is not None and address
            }
            arguments, arrays = self._all_arguments(present, elements)
            program = self._programs.program(arguments, in_traffic=self._ready)
            result = program.run(
                tuple(
                    given.get(argument.name, array) if argument.role == "data" else array
                    for argument, array in zip(arguments, arrays, strict=True)
                )
            )
            return self._after_run(result, rows)

        return self._guarded(run)

    def _guarded(self, run: Callable[..., Any]) -> Callable[..., Any]:
        doing = f"{self._doing}: predict"
        directory = self._author.directory

        def call(*arguments: Any) -> Any:
            try:
                return run(*arguments)
            except errors.BackendError:
                raise
            except BaseException as error:
                raise errors.model_code_error(doing, error, directory) from error

        return call

    def _arguments(self, inputs: Iterable[_Input]) -> tuple[Arguments, tuple[Array, ...]]:
        """Arguments of the compiled function, and the arrays to pass, of inputs without BYTES."""
        arguments: list[Argument] = []
        arrays: list[Array] = []
        for one in inputs:
            if one.array is None:
                continue
            arguments.append(Argument(one.spec.name, "data", one.shape, one.array.dtype))
            arrays.append(one.array)
            if one.lengths is not None:
                lead = len(one.shape) - len(one.spec.dims)
                varying = tuple(i + lead for i, dim in enumerate(one.spec.dims) if dim == -1)
                arguments.append(
                    Argument(
                        one.spec.name, "lengths", one.lengths.shape, one.lengths.dtype, varying
                    )
                )
                arrays.append(one.lengths)
        return tuple(arguments), tuple(arrays)

    def _all_arguments(
        self, inputs: list[_Input], elements: Sequence[Elements]
    ) -> tuple[Arguments, tuple[Array, ...]]:
        """The same of all inputs, with those of BYTES as `Strings`."""
        arguments, arrays = self._arguments(inputs)
        given = iter(elements)
        for one in inputs:
            if not one.spec.dtype.is_bytes:
                continue
            row_elements = math.prod(one.shape[1:]) if self._batching else 0
            real = next(given)
            # Filled up with the last row, as the C++ side does with numbers.
            missing = (math.prod(one.shape) - len(real)) // (row_elements or 1)
            elements_of_all = real + real[len(real) - row_elements :] * missing
            strings = to_strings(elements_of_all, one.shape, one.spec.lengths, one.spec.name)
            name = one.spec.name
            arguments += (
                Argument(name, "bytes", strings.bytes.shape, strings.bytes.dtype),
                Argument(name, "string_lengths", strings.lengths.shape, strings.lengths.dtype),
            )
            arrays += (strings.bytes, strings.lengths)
        return arguments, arrays

    def _run_strings(self, inputs: list[_Input], elements: Sequence[Elements]) -> Outputs:
        """Run a compiled function that takes strings."""
        arguments, arrays = self._all_arguments(inputs, elements)
        program = self._programs.program(arguments, in_traffic=self._ready)
        return self._exported(program.run(arrays), None)

    def _host_inputs(
        self, inputs: list[_Input], elements: Sequence[Elements], rows: int | None
    ) -> dict[str, Any]:
        """The inputs as host code sees them: the real rows only."""
        given = iter(elements)
        arrays: dict[str, Any] = {}
        for one in inputs:
            if one.spec.dtype.is_bytes:
                arrays[one.spec.name] = to_objects(next(given), one.real_shape)
            elif one.array is not None:
                # A copy: host code may keep it, and the next batch overwrites the input memory.
                arrays[one.spec.name] = (one.array if rows is None else one.array[:rows]).copy()
        return arrays

    def _run_with_host_code(
        self,
        inputs: list[_Input],
        elements: Sequence[Elements],
        rows: int | None,
        bucket: int,
    ) -> Outputs:
        directory = self._author.directory
        if self._author.preprocess is None:
            arguments, arrays = self._all_arguments(inputs, elements)
        else:
            given = self._host_inputs(inputs, elements, rows)
            with errors.model_code(f"{self._doing}: preprocess", directory):
                prepared = self._author.preprocess(given)
            named = checked_arrays(prepared, f"{self._doing}: preprocess")
            checked_for_jax(named, f"{self._doing}: preprocess", self._predict.x64)
            if rows is not None:
                named = {
                    name: _pad(array, rows, bucket, f"{self._doing}: preprocess returned '{name}'")
                    for name, array in named.items()
                }
            arguments, arrays = data_arguments(named), tuple(named.values())
        program = self._programs.program(arguments, in_traffic=self._ready)
        return self._after_run(program.run(arrays), rows)

    def _after_run(self, result: Outputs, rows: int | None) -> Outputs:
        """Outputs of a compiled function, after the author's ``postprocess``."""
        if self._author.postprocess is None:
            return self._exported(result, rows)
        directory = self._author.directory
        # Copies: what JAX gives away is read-only, and host code may work in place.
        outputs: Mapping[str, Any] = {
            name: _host_output(array, rows).copy()
            for name, array in zip(self._programs.output_names or (), result, strict=True)
        }
        with errors.model_code(f"{self._doing}: postprocess", directory):
            outputs = self._author.postprocess(dict(outputs))
        return self._checked(checked_arrays(outputs, f"{self._doing}: postprocess"), rows)

    def _stream(
        self, inputs: list[_Input], elements: Sequence[Elements], rows: int | None
    ) -> Iterator[Outputs]:
        """The responses of a decoupled model to one request."""
        doing = f"{self._doing}: stream"
        directory = self._author.directory
        assert self._author.stream is not None  # noqa: S101 - only called where it is
        arrays = self._host_inputs(inputs, elements, rows)
        with errors.model_code(doing, directory):
            responses = iter(self._author.stream(StreamContext(self._programs), **arrays))
        try:
            while True:
                with errors.model_code(doing, directory):
                    try:
                        response = next(responses)
                    except StopIteration:
                        return
                outputs = flatten_outputs(response, f"{doing} must yield")
                host = {name: _host_output(array, None) for name, array in outputs.items()}
                yield self._checked(host, rows)
        finally:
            close = getattr(responses, "close", None)
            if close is not None:
                with errors.model_code(doing, directory):
                    close()

    # -- outputs --------------------------------------------------------------------------------

    def _exported(self, outputs: Outputs, rows: int | None) -> Outputs:
        """Outputs of a compiled function as the C++ side takes them."""
        if not self._on_cpu:
            outputs = [
                array if spec.dtype.is_bytes else gpu.shared_output(array, self._outputs_gpu)
                for spec, array in zip(self._outputs, gpu.outputs_ready(outputs), strict=True)
            ]
        return [
            _export(spec, _first_rows(array, rows) if spec.dtype.is_bytes else array)
            for spec, array in zip(self._outputs, outputs, strict=True)
        ]

    def _checked(self, outputs: Mapping[str, Any], rows: int | None) -> Outputs:
        """Outputs of host code, which may be anything, as the C++ side takes them."""
        checked = []
        for spec in self._outputs:
            what = f"{self._doing}: output '{spec.name}'"
            array = outputs.get(spec.name)
            if array is None:
                refuse(f"{what} is missing; got {', '.join(outputs) or 'none'}", Code.INTERNAL)
            dtype = dtype_of_array(array.dtype, what, Code.INTERNAL)
            expected = ([] if rows is None else [rows]) + list(spec.dims)
            if dtype != spec.dtype or not dims_agree(array.shape, tuple(expected)):
                refuse(
                    f"{what}: expected {spec.dtype.name}{expected}, got "
                    f"{dtype.name}{list(array.shape)}",
                    Code.INTERNAL,
                )
            checked.append(_export(spec, np.ascontiguousarray(array)))
        return checked


def _wait(outputs: Outputs) -> None:
    for output in outputs:
        if not isinstance(output, tuple):
            memoryview(output).release()  # waits for it, and fails here if it failed


def _padded_dims(spec: TensorSpec, dims: Sequence[int]) -> list[int]:
    return [
        next((length for length in spec.lengths if length >= size), size) if dim == -1 else size
        for size, dim in zip(dims, spec.dims, strict=True)
    ]


def _export(spec: TensorSpec, array: Any) -> Any:
    if spec.dtype.is_bytes:
        return to_elements(array, spec.name)
    if isinstance(array, tuple):  # where it is, on a GPU
        return array
    if spec.dtype.name == "BF16":
        # Unknown to the buffer protocol: its bytes go out as 16-bit integers.
        host = np.ascontiguousarray(np.asarray(array)).reshape(array.shape)
        return host.view(np.uint16)
    if isinstance(array, np.ndarray) and not array.dtype.isnative:
        return array.astype(spec.dtype.numpy)
    return array


def _first_rows(array: Any, rows: int | None) -> Any:
    """Of strings or an array; all where there is no batch."""
    if isinstance(array, Strings):
        return Strings(*(np.asarray(half)[:rows] for half in array)) if rows is not None else array
    return _host_output(array, rows)


def _host_output(array: Any, rows: int | None) -> Array:
    if isinstance(array, Strings):
        array = from_strings(array)
    host = np.asarray(array)
    return host if rows is None else host[:rows]


def checked_arrays(given: Any, doing: str) -> dict[str, Array]:
    """What an author's host code returned, as NumPy arrays by name."""
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        refuse(
            f"{doing} must return a dict of name -> array, got {type(given).__name__}",
            Code.INTERNAL,
        )
    return {name: np.asarray(array) for name, array in given.items()}


def checked_for_jax(
    arrays: Mapping[str, Array], doing: str, x64: bool, verb: str = "returned"
) -> None:
    """Refuse what JAX would narrow, or cannot take at all."""
    for name, array in arrays.items():
        if array.dtype.kind in "OSU":
            refuse(
                f"{doing} {verb} '{name}' as {array.dtype.name}, but predict takes numbers",
                Code.INTERNAL,
            )
        if not x64 and dtype_of_array(array.dtype, f"{doing}: '{name}'", Code.INTERNAL).needs_x64:
            narrow = array.dtype.name.replace("64", "32")
            refuse(
                f"{doing} {verb} '{name}' as {array.dtype.name}, which JAX would narrow to 32 "
                f"bits; make it {narrow}, or set the parameter 'x64' to true",
                Code.INTERNAL,
            )


def _pad(array: Array, rows: int, bucket: int, what: str) -> Array:
    """Fill a batch up with its last row, which can do nothing that the real rows do not."""
    if array.ndim == 0 or array.shape[0] != rows:
        refuse(
            f"{what} with shape {list(array.shape)}; its first dimension must be the {rows} rows "
            "of the batch",
            Code.INTERNAL,
        )
    if rows == bucket:
        return np.ascontiguousarray(array)
    padded = np.zeros((bucket, *array.shape[1:]), array.dtype)
    padded[:rows] = array
    if rows > 0:
        padded[rows:] = array[-1]
    return padded
