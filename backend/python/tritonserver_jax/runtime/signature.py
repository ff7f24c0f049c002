# SPDX-License-Identifier: Apache-2.0
"""Finding out what a model returns, by tracing it with sizes that show what depends on what."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tritonserver_jax.runtime import errors
from tritonserver_jax.runtime.author import AuthorModel
from tritonserver_jax.runtime.dtypes import DTYPES, dtype_of_array
from tritonserver_jax.runtime.errors import BackendError, Code, refuse
from tritonserver_jax.runtime.instance import checked_arrays
from tritonserver_jax.runtime.program import Argument, Arguments, Predict, data_arguments
from tritonserver_jax.runtime.strings import Strings
from tritonserver_jax.runtime.tensors import Dims, TensorSpec

# Two sizes for each thing that varies: what differs between the two traces, varies with it.
_BATCHES = (2, 3)
_SIZES = (16, 24)
_BYTES = next(dtype for dtype in DTYPES if dtype.is_bytes)

Shape = tuple[int, ...]


def _assignments(inputs: Sequence[TensorSpec]) -> Iterator[tuple[Dims, Dims]]:
    """Sizes of the dimensions that vary, for both traces; what may fit the model, in turn."""
    varying = [spec for spec in inputs for dim in spec.dims if dim == -1]
    if not any(spec.lengths for spec in varying):
        if len(varying) > 1:
            first, second = ([size + i for i in range(len(varying))] for size in _SIZES)
            yield tuple(first), tuple(second)
        yield (_SIZES[0],) * len(varying), (_SIZES[1],) * len(varying)
        return
    first = [spec.lengths[-1] if spec.lengths else _SIZES[0] for spec in varying]
    second = [
        _SIZES[1] if not spec.lengths else spec.lengths[0] if len(spec.lengths) > 1 else size - 1
        for spec, size in zip(varying, first, strict=True)
    ]
    yield tuple(first), tuple(second)


class _Prober:
    """Shapes of a model's outputs for given sizes."""

    def __init__(
        self,
        author: AuthorModel,
        predict: Predict,
        inputs: Sequence[TensorSpec],
        batching: bool,
        doing: str,
    ) -> None:
        self._author = author
        self._predict = predict
        self._inputs = inputs
        self._batching = batching
        self._doing = doing
        #: Of predict, in order; of the last trace.
        self.predict_outputs: tuple[str, ...] = ()

    def _sized(self, rows: int, sizes: Dims) -> list[tuple[TensorSpec, Shape]]:
        declared = {spec.name: spec.dims for spec in self._author.signature.inputs or ()}
        remaining = iter(sizes)
        shapes = []
        for spec in self._inputs:
            # A configuration may leave open what the model does not.
            of_model = declared.get(spec.name, spec.dims)
            dims = []
            for size, model_size in zip(spec.dims, of_model, strict=True):
                chosen = next(remaining) if size == -1 else size
                dims.append(model_size if size == -1 and model_size != -1 else chosen)
            shapes.append((spec, (*((rows,) if self._batching else ()), *dims)))
        return shapes

    def _arguments(self, shapes: list[tuple[TensorSpec, Shape]]) -> Arguments:
        arguments: list[Argument] = []
        lead = 1 if self._batching else 0
        for spec, shape in shapes:
            name = spec.name
            if spec.dtype.is_bytes:
                if not spec.lengths:
                    refuse(
                        f"{self._doing}: input '{name}' is BYTES; add preprocess(inputs) to "
                        "model.py to make numbers of it, or give SIGNATURE['lengths'] for it to "
                        "get it as bytes and lengths inside predict"
                    )
                matrix = (*shape, spec.lengths[-1])
                arguments += [
                    Argument(name, "bytes", matrix, np.dtype(np.uint8)),
                    Argument(name, "string_lengths", shape, np.dtype(np.int32)),
                ]
                continue
            arguments.append(Argument(name, "data", shape, spec.dtype.numpy))
            if self._predict.wants_masks and -1 in spec.dims:
                varying = tuple(i + lead for i, dim in enumerate(spec.dims) if dim == -1)
                arguments.append(
                    Argument(
                        name,
                        "lengths",
                        (*shape[:lead], len(varying)),
                        np.dtype(np.int32),
                        varying,
                    )
                )
        return tuple(arguments)

    def _zeros(self, shapes: list[tuple[TensorSpec, Shape]]) -> dict[str, Any]:
        return {
            spec.name: np.full(shape, b"", np.object_)
            if spec.dtype.is_bytes
            else np.zeros(shape, spec.dtype.numpy)
            for spec, shape in shapes
        }

    def __call__(self, rows: int, sizes: Dims) -> dict[str, tuple[Shape, Any]]:
        """Shape and dtype of each output."""
        shapes = self._sized(rows, sizes)
        directory = self._author.directory
        if self._author.preprocess is None:
            arguments = self._arguments(shapes)
        else:
            with errors.model_code(f"{self._doing}: preprocess of zeros", directory):
                prepared = self._author.preprocess(self._zeros(shapes))
            arguments = data_arguments(checked_arrays(prepared, f"{self._doing}: preprocess"))
        outputs: Mapping[str, Any] = self._predict.shapes(arguments)
        self.predict_outputs = tuple(outputs)
        if self._author.postprocess is not None:
            zeros = {
                name: np.full(one.lengths.shape, b"", np.object_)
                if isinstance(one, Strings)
                else np.zeros(one.shape, one.dtype)
                for name, one in outputs.items()
            }
            with errors.model_code(f"{self._doing}: postprocess of zeros", directory):
                processed = self._author.postprocess(zeros)
            outputs = checked_arrays(processed, f"{self._doing}: postprocess")
        return {
            name: (tuple(one.lengths.shape), _BYTES.numpy)
            if isinstance(one, Strings)
            else (tuple(one.shape), one.dtype)
            for name, one in outputs.items()
        }


def find_outputs(
    author: AuthorModel,
    predict: Predict,
    inputs: Sequence[TensorSpec],
    *,
    batching: bool,
    doing: str,
) -> tuple[tuple[TensorSpec, ...], tuple[str, ...]]:
    """What a model returns.

    Args:
        author: the model.
        predict: its function.
        inputs: everything that it is called with.
        batching: whether it has a batch dimension.
        doing: for messages.

    Returns:
        Its outputs, and the names of those of ``predict`` alone.

    Raises:
        BackendError: where its code fails, or what it returns cannot be served.
    """
    prober = _Prober(author, predict, inputs, batching, doing)
    failure: BackendError | None = None
    for first_sizes, second_sizes in _assignments(inputs):
        try:
            first = prober(_BATCHES[0], first_sizes)
            second = prober(_BATCHES[1], second_sizes)
        except BackendError as error:
            failure = error
            continue
        source = "predict" if author.postprocess is None else "postprocess"
        describe = _describer(
            first_sizes, second_sizes, any(s.lengths for s in inputs), batching, source, doing
        )
        found = tuple(describe(name, first[name], second.get(name)) for name in first)
        if not found:
            refuse(f"{doing}: {source} returns no outputs")
        return found, prober.predict_outputs
    assert failure is not None  # noqa: S101 - there is always one assignment
    raise failure


def _describer(
    first_sizes: Dims,
    second_sizes: Dims,
    padded: bool,
    batching: bool,
    source: str,
    doing: str,
) -> Callable[[str, tuple[Shape, Any], tuple[Shape, Any] | None], TensorSpec]:
    """A function that makes a spec of what both traces say of an output."""

    def follows(a: int, b: int, name: str) -> int:
        if a == b:
            return -1
        for number, sizes in enumerate(zip(first_sizes, second_sizes, strict=True)):
            if (a, b) == sizes:
                return number
        if padded:
            refuse(
                f"{doing}: output '{name}' has a dimension of {a} where the padded length is "
                f"{first_sizes[0]}, and {b} where it is {second_sizes[0]}; padding cannot be cut "
                "off such a dimension. Return the whole length, or give no lengths"
            )
        return -1

    def describe(
        name: str, first: tuple[Shape, Any], second: tuple[Shape, Any] | None
    ) -> TensorSpec:
        shape, dtype = first
        if second is None or len(second[0]) != len(shape):
            refuse(
                f"{doing}: output '{name}' is not there, or has another rank, for another batch "
                "size; outputs must not depend on it"
            )
        if batching:
            for rows, got in zip(_BATCHES, (shape, second[0]), strict=True):
                if got[:1] != (rows,):
                    refuse(
                        f"{doing}: output '{name}' has shape {list(got)} for a batch of {rows} "
                        f"rows; its first dimension must be the batch of {rows}. Either make "
                        f"{source} keep the batch dimension, or set max_batch_size to 0 if the "
                        "model takes no batches"
                    )
        pairs = list(zip(shape, second[0], strict=True))[1 if batching else 0 :]
        return TensorSpec(
            name,
            dtype_of_array(dtype, f"{doing}: output '{name}'", Code.UNSUPPORTED),
            tuple(a if a == b else -1 for a, b in pairs),
            follows=tuple(follows(a, b, name) for a, b in pairs),
        )

    return describe
