# SPDX-License-Identifier: Apache-2.0
"""A model that is loaded as in the server, and given batches as the core gives them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import jax
import numpy as np

from tritonserver_jax.checking.data import Arrays
from tritonserver_jax.runtime import errors
from tritonserver_jax.runtime.buckets import Buckets
from tritonserver_jax.runtime.devices import Kind
from tritonserver_jax.runtime.events import Event
from tritonserver_jax.runtime.instance import Instance, checked_arrays, checked_for_jax
from tritonserver_jax.runtime.model import Model
from tritonserver_jax.runtime.program import (
    Argument,
    Arguments,
    Predict,
    Program,
    data_arguments,
)
from tritonserver_jax.runtime.tensors import TensorSpec
from tritonserver_jax.runtime.x64 import x64_mode

__all__ = ["CheckedModel", "answers", "batch_answers", "responses"]


class CheckedModel(Model):
    """A loaded model that also tells what it is made of.

    Attributes:
        compile_seconds: Of each program, in the order in which they were compiled.
        host_params: The parameters as they were loaded, before they go to a device.
    """

    def __init__(
        self,
        *,
        directory: Path,
        version: int,
        config: Mapping[str, Any],
        complete_config: bool = True,
    ) -> None:
        """Load it.

        Raises:
            BackendError: The server would refuse it, in these words.
        """
        self.compile_seconds: list[float] = []
        self.host_params: Any = None
        super().__init__(
            name=directory.name,
            version=version,
            directory=directory,
            config=config,
            complete_config=complete_config,
            default_max_batch_size=0,
            observe=self._observed,
        )

    def _observed(self, event: Event, _device: str, value: float) -> None:
        if event is Event.COMPILED:
            self.compile_seconds.append(value)

    def _find_out(
        self, config: Mapping[str, Any], directory: Path, complete_config: bool, default_rows: int
    ) -> None:
        self.host_params = self._author.params
        super()._find_out(config, directory, complete_config, default_rows)

    # -- what it is -----------------------------------------------------------------------------

    @property
    def batching(self) -> bool:
        """Whether it has a batch dimension."""
        return self.max_batch_size > 0

    @property
    def bucket_sizes(self) -> tuple[int, ...]:
        """The batch sizes that it is compiled for."""
        return self._buckets.sizes

    @property
    def all_inputs(self) -> tuple[TensorSpec, ...]:
        """What `predict` or `preprocess` is given, what Triton adds for a sequence included."""
        return self._all_inputs

    @property
    def predict(self) -> Predict:
        """Its function."""
        return self._predict

    @property
    def x64(self) -> bool:
        """Whether it runs in JAX's 64-bit mode."""
        return self._predict.x64

    @property
    def code_directory(self) -> Path:
        """Where its code is."""
        return self._author.directory

    @property
    def declared_max_batch_size(self) -> int | None:
        """``max_batch_size`` of SIGNATURE; None where it does not say, or there is none."""
        signature = self._author.signature
        return None if self._author.module is None else signature.max_batch_size

    @property
    def author(self) -> Any:
        """What the author left in the version directory."""
        return self._author

    @property
    def runs_on_the_host(self) -> str:
        """The names of the author's functions that stand beside `predict`, if any."""
        names = ("preprocess", "postprocess", "stream")
        return " and ".join(name for name in names if getattr(self._author, name) is not None)

    @property
    def takes_strings(self) -> bool:
        """Whether `predict` itself is given strings."""
        return self._author.preprocess is None and any(
            spec.dtype.is_bytes for spec in self._all_inputs
        )

    def device_params(self) -> Any:
        """The parameters on the device of the first instance."""
        return next(iter(self._devices.values())).params

    def programs(self) -> list[tuple[str, Arguments, Program]]:
        """Each compiled program with its device and arguments, in the order of compilation."""
        return [
            (programs.device_name, arguments, program)
            for programs in self._devices.values()
            for arguments, program in programs._permanent.items()
        ]

    # -- instances ------------------------------------------------------------------------------

    def instances(self, *, on_cpu: bool) -> list[Instance]:
        """Create an instance of each device that the instance groups name; of each group one.

        Args:
            on_cpu: Whether they are on the CPU, whatever the configuration says.
        """
        made = []
        for group in self.config.get("instance_group") or [{"kind": "KIND_AUTO"}]:
            kind = Kind[str(group.get("kind", "KIND_AUTO")).removeprefix("KIND_")]
            if on_cpu and kind is Kind.GPU:
                kind = Kind.CPU
            numbers = (group.get("gpus") or [0]) if kind is Kind.GPU else [0]
            name = f"{self._doing} {kind.name}"
            made += [self.create_instance(name, kind, int(number)) for number in numbers]
        return made

    def unpadded(self, rows: int | None, arrays: Arrays) -> Instance:
        """Create an instance in which a batch of just these shapes is not padded at all.

        Args:
            rows: Of the batch; None for a model without one.
            arrays: What it will be given.
        """
        lead = 0 if rows is None else 1
        inputs = []
        for spec in self._all_inputs:
            dims = arrays[spec.name].shape[lead:]
            varying = [size for size, dim in zip(dims, spec.dims, strict=True) if dim == -1]
            if varying and spec.dim_lengths:
                spec = dataclasses.replace(spec, lengths=tuple(sorted(set(varying))))
            inputs.append(spec)
        return Instance(
            doing=self._doing,
            author=self._author,
            predict=self._predict,
            programs=next(iter(self._devices.values())),
            buckets=Buckets(rows or 0, None if rows is None else [rows]),
            inputs=inputs,
            outputs=self._all_outputs,
        )

    def traced(self, arrays: Arrays, *, x64: bool | None = None) -> tuple[Any, list[Any]]:
        """Return `predict` as a program in JAX's own language, and the arrays that it takes.

        Args:
            arrays: For all inputs; those that `predict` itself is given are numbers. Nothing of
                them is padded.
            x64: In JAX's 64-bit mode or not; None for the model's own.

        Raises:
            BackendError: The model's code failed.
        """
        arguments, given = self._arguments(arrays)
        mode = nullcontext() if x64 is None else x64_mode(x64)
        with self._predict.tracing("tracing predict"), mode:
            closed = jax.make_jaxpr(
                lambda params, arrays: self._predict.call(params, tuple(arguments), arrays)
            )(self.device_params(), tuple(given))
        return closed, [*jax.tree.leaves(self.device_params()), *given]

    def _arguments(self, arrays: Arrays) -> tuple[Sequence[Argument], list[Any]]:
        """What `predict` is called with."""
        if self._author.preprocess is not None:
            doing = f"{self._doing}: preprocess"
            with errors.model_code(doing, self._author.directory):
                prepared = self._author.preprocess(dict(arrays))
            named = checked_arrays(prepared, doing)
            checked_for_jax(named, doing, self.x64)
            return data_arguments(named), list(named.values())
        arguments: list[Argument] = []
        given: list[Any] = []
        lead = 1 if self.batching else 0
        for spec in self._all_inputs:
            array = arrays[spec.name]
            arguments.append(Argument(spec.name, "data", array.shape, array.dtype))
            given.append(array)
            if self._predict.wants_masks and -1 in spec.dims:
                varying = tuple(i + lead for i, dim in enumerate(spec.dims) if dim == -1)
                sizes = np.array([array.shape[axis] for axis in varying], np.int32)
                lengths = np.tile(sizes, (*array.shape[:lead], 1)).reshape(*array.shape[:lead], -1)
                arguments.append(
                    Argument(spec.name, "lengths", lengths.shape, lengths.dtype, varying)
                )
                given.append(lengths)
        return arguments, given


def _padded(spec: TensorSpec, dims: Sequence[int]) -> list[int]:
    """What the core pads the dimensions of a request to."""
    return [
        next((length for length in spec.dim_lengths if length >= size), size) if dim == -1 else size
        for size, dim in zip(dims, spec.dims, strict=True)
    ]


def answers(model: CheckedModel, instance: Instance, arrays: Arrays) -> Arrays:
    """Run a request as the core does: gather and pad it, run it, cut the padding off.

    Args:
        model: The model.
        instance: Of it.
        arrays: For all inputs, with the batch dimension first where the model has one.

    Raises:
        BackendError: As a client would get it.
    """
    return batch_answers(model, instance, [arrays])[0]


def batch_answers(
    model: CheckedModel, instance: Instance, requests: Sequence[Arrays]
) -> list[Arrays]:
    """Run requests in one batch as the core does.

    Args:
        model: The model.
        instance: Of it.
        requests: Each for all inputs, with the batch dimension first where the model has one; of
            the same dimensions but for the rows, and for inputs that may be ragged.

    Raises:
        BackendError: As a client would get it.
    """
    call, counts = _gathered(model, instance, requests)
    lead = 1 if model.batching else 0
    starts = [sum(counts[:n]) for n in range(len(counts))]
    outputs = [_host(spec, output) for spec, output in zip(instance._outputs, call(), strict=True)]
    made: list[Arrays] = []
    for one, start, count in zip(requests, starts, counts, strict=True):
        sizes = [n for s in model.all_inputs for n in _varying(s, one[s.name].shape[lead:])]
        found = {}
        for spec, array in zip(instance._outputs, outputs, strict=True):
            if not lead and spec.dims == ():
                array = array.reshape(())
            cut = [
                slice(None) if follows == -1 else slice(sizes[follows])
                for follows in spec.follows or (-1,) * len(spec.dims)
            ]
            found[spec.name] = array[(*(slice(start, start + count),) * lead, *cut)]
        made.append(found)
    return made


def responses(
    model: CheckedModel, instance: Instance, request: Arrays
) -> Generator[Any, None, None]:
    """Run a request of a decoupled model, and yield the responses as the core gets them.

    Args:
        model: The model.
        instance: Of it.
        request: For all inputs, with the batch dimension first where the model has one.

    Raises:
        BackendError: As a client would get it.
    """
    call, _ = _gathered(model, instance, [request])
    yield from call()


def _gathered(
    model: CheckedModel, instance: Instance, requests: Sequence[Arrays]
) -> tuple[Callable[[], Any], list[int]]:
    """What runs the requests, which are in the input memory now; and the rows of each."""
    lead = 1 if model.batching else 0
    first = next(iter(requests[0]))
    counts = [len(one[first]) if lead else 1 for one in requests]
    starts = [sum(counts[:n]) for n in range(len(counts))]
    rows = sum(counts)
    shapes = []
    for spec in instance._inputs:
        dims = [one[spec.name].shape[lead:] for one in requests]
        shapes.append(_padded(spec, [max(sizes) for sizes in zip(*dims, strict=True)]))
    plan = instance.plan(rows, shapes)
    elements = []
    for spec, dims, buffer, lengths in zip(
        instance._inputs, shapes, plan.buffers, plan.lengths, strict=True
    ):
        if buffer is None:
            memory = np.empty((*(rows,) * lead, *dims), np.object_)
            memory[...] = b""
        else:
            memory = buffer.view(spec.dtype.numpy).reshape((*(plan.padded_rows,) * lead, *dims))
            memory[...] = 0
        for one, start, count in zip(requests, starts, counts, strict=True):
            array = one[spec.name]
            place = (*(slice(start, start + count),) * lead, *map(slice, array.shape[lead:]))
            memory[place] = array
            if lengths is not None:
                # Of the rows that fill the batch up, the last one's.
                lengths[(*(slice(start, None),) * lead,)] = _varying(spec, array.shape[lead:])
        if buffer is None:
            elements.append(memory.ravel().tolist())
        elif lead:
            memory[rows:] = memory[rows - 1]
    return functools.partial(plan.call, *elements), counts


def _varying(spec: TensorSpec, dims: Sequence[int]) -> list[int]:
    return [size for size, dim in zip(dims, spec.dims, strict=True) if dim == -1]


def _host(spec: TensorSpec, output: Any) -> np.ndarray[Any, Any]:
    """An output as NumPy's array; a copy, because the next batch may overwrite it."""
    if not spec.dtype.is_bytes:
        array = np.array(output)
        return array.view(spec.dtype.numpy) if spec.dtype.name == "BF16" else array
    first, dims, *rest = output
    if rest:  # a row of bytes for each string, and its length
        matrix, lengths = np.asarray(first), np.asarray(rest[0]).ravel()
        rows = matrix.reshape(len(lengths), -1)
        texts = [row[:size].tobytes() for row, size in zip(rows, lengths, strict=True)]
    else:
        texts = [one.encode() if isinstance(one, str) else bytes(one) for one in first]
    array = np.empty(len(texts), np.object_)
    array[:] = texts
    return array.reshape(dims)
