# SPDX-License-Identifier: Apache-2.0
"""A model that is loaded as in the server, and given batches as the core gives them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from tritonserver_jax.checking.data import Arrays
from tritonserver_jax.runtime.buckets import Buckets
from tritonserver_jax.runtime.devices import Kind
from tritonserver_jax.runtime.events import Event
from tritonserver_jax.runtime.instance import Instance
from tritonserver_jax.runtime.model import Model
from tritonserver_jax.runtime.program import Argument, Arguments, Predict, Program
from tritonserver_jax.runtime.tensors import TensorSpec

__all__ = ["CheckedModel", "answers"]


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

    def traced(self, arrays: Arrays) -> tuple[Any, list[Any]]:
        """Return `predict` as a program in JAX's own language, and the arrays that it takes.

        Args:
            arrays: Of numbers, for all inputs. Nothing of them is padded.
        """
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
        with self._predict.tracing("tracing predict"):
            closed = jax.make_jaxpr(
                lambda params, arrays: self._predict.call(params, tuple(arguments), arrays)
            )(self.device_params(), tuple(given))
        return closed, [*jax.tree.leaves(self.device_params()), *given]


def _padded(spec: TensorSpec, dims: Sequence[int]) -> list[int]:
    """What the core pads the dimensions of a request to."""
    return [
        next((length for length in spec.dim_lengths if length >= size), size) if dim == -1 else size
        for size, dim in zip(dims, spec.dims, strict=True)
    ]


def answers(model: CheckedModel, instance: Instance, arrays: Arrays) -> Arrays:
    """Run a batch as the core does: gather and pad it, run it, cut the padding off.

    Args:
        model: The model.
        instance: Of it.
        arrays: For all inputs, with the batch dimension first where the model has one.

    Raises:
        BackendError: As a client would get it.
    """
    lead = 1 if model.batching else 0
    rows = len(next(iter(arrays.values()))) if model.batching else 1
    inputs = instance._inputs
    shapes = [_padded(spec, arrays[spec.name].shape[lead:]) for spec in inputs]
    plan = instance.plan(rows, shapes)
    elements = []
    for spec, dims, buffer, lengths in zip(inputs, shapes, plan.buffers, plan.lengths, strict=True):
        array = arrays[spec.name]
        if buffer is None:
            elements.append(array.ravel().tolist())
            continue
        memory = buffer.view(spec.dtype.numpy).reshape((*(plan.padded_rows,) * lead, *dims))
        memory[...] = 0
        memory[tuple(slice(size) for size in array.shape)] = array
        if lead:
            memory[rows:] = memory[rows - 1]
        if lengths is not None:
            sizes = array.shape[lead:]
            lengths[...] = [n for n, dim in zip(sizes, spec.dims, strict=True) if dim == -1]
    sizes = [
        size
        for spec in model.all_inputs
        for size, dim in zip(arrays[spec.name].shape[lead:], spec.dims, strict=True)
        if dim == -1
    ]
    found = {}
    for spec, output in zip(instance._outputs, plan.call(*elements), strict=True):
        array = _host(spec, output)
        if not lead and spec.dims == ():
            array = array.reshape(())
        cut = [
            slice(None) if follows == -1 else slice(sizes[follows])
            for follows in spec.follows or (-1,) * len(spec.dims)
        ]
        found[spec.name] = array[(*(slice(rows),) * lead, *cut)]
    return found


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
