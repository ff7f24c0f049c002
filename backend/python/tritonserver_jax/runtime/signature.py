# SPDX-License-Identifier: Apache-2.0
"""Finding out what a model returns, by tracing it with sizes that show what depends on what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tritonserver_jax.runtime import errors
from tritonserver_jax.runtime.author import AuthorModel
from tritonserver_jax.runtime.dtypes import DTYPES, dtype_of_array
from tritonserver_jax.runtime.errors import BackendError, Code, refuse
from tritonserver_jax.runtime.instance import checked_arrays, checked_for_jax
from tritonserver_jax.runtime.program import Argument, Arguments, Predict, data_arguments
from tritonserver_jax.runtime.strings import Strings
from tritonserver_jax.runtime.tensors import Dims, TensorSpec

# Two batch sizes, and pairs of sizes for a dimension that varies: first odd ones far apart, which
# no rounding makes equal; then for models that ask for a multiple of something, or have a table
# with so many positions.
_BATCHES = (2, 3)
_SIZES = ((17, 45), (32, 64), (128, 256), (4, 8), (1, 2))
_BYTES = next(dtype for dtype in DTYPES if dtype.is_bytes)

Shape = tuple[int, ...]
Shapes = dict[str, tuple[Shape, Any]]


@dataclass(frozen=True)
class _Varying:
    """A dimension of an input that varies, and two sizes to give it."""

    first: int
    second: int
    optional: bool


def _candidates(inputs: Sequence[TensorSpec]) -> Iterator[list[_Varying]]:
    """Sizes to try for the dimensions that vary, in turn until the model can be traced."""
    varying = [spec for spec in inputs for dim in spec.dims if dim == -1]
    for first, second in _SIZES:
        yield [
            _Varying(first, second, spec.optional)
            if not spec.dim_lengths
            else _Varying(
                spec.dim_lengths[-1],
                spec.dim_lengths[0]
                if len(spec.dim_lengths) > 1
                else max(1, spec.dim_lengths[0] - 1),
                spec.optional,
            )
            for spec in varying
        ]
        if all(spec.dim_lengths for spec in varying):
            return  # there is nothing else to try


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

    def _sized(self, rows: int, sizes: Sequence[int]) -> list[tuple[TensorSpec, Shape]]:
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

    def __call__(self, rows: int, sizes: Sequence[int]) -> Shapes:
        """Shape and dtype of each output."""
        shapes = self._sized(rows, sizes)
        directory = self._author.directory
        if self._author.preprocess is None:
            arguments = self._arguments(shapes)
        else:
            doing = f"{self._doing}: preprocess"
            with errors.model_code(f"{doing} of zeros", directory):
                prepared = self._author.preprocess(self._zeros(shapes))
            arrays = checked_arrays(prepared, doing)
            checked_for_jax(arrays, doing, self._predict.x64)
            arguments = data_arguments(arrays)
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


def _same_outputs(one: Shapes, other: Shapes, doing: str) -> None:
    for name, (shape, _) in one.items():
        if name not in other or len(other[name][0]) != len(shape):
            refuse(
                f"{doing}: output '{name}' is not there, or has another rank, for other sizes of "
                "the inputs; outputs must not depend on them"
            )


def _check_batch(base: Shapes, other: Shapes, source: str, doing: str) -> None:
    """That the batch is the first dimension of every output, and no other."""
    _same_outputs(base, other, doing)
    for name, (shape, _) in base.items():
        for rows, got in zip(_BATCHES, (shape, other[name][0]), strict=True):
            if got[:1] != (rows,):
                refuse(
                    f"{doing}: output '{name}' has shape {list(got)} for a batch of {rows} rows; "
                    f"its first dimension must be the batch of {rows}. Either make {source} keep "
                    "the batch dimension, or set max_batch_size to 0 if the model takes no batches"
                )
        if shape[1:] != other[name][0][1:]:
            refuse(
                f"{doing}: output '{name}' has shape {list(shape)} for a batch of {_BATCHES[0]} "
                f"rows and {list(other[name][0])} for {_BATCHES[1]}; only its first dimension may "
                "depend on the batch, since rows of several requests share one"
            )


class _Dependence:
    """Which output dimension is as long as which input dimension."""

    def __init__(self, base: Shapes, padded: bool, lead: int, doing: str) -> None:
        self._base = base
        self._padded = padded
        self._lead = lead
        self._doing = doing
        self.follows = {name: [-1] * len(shape) for name, (shape, _) in base.items()}
        self.varies = {name: [False] * len(shape) for name, (shape, _) in base.items()}

    def learn(self, other: Shapes, changed: Sequence[tuple[int, _Varying]]) -> None:
        """From the outputs after input dimensions, by number, were changed.

        Of several that changed together, an output follows the first of an input that is never
        left out.
        """
        _same_outputs(self._base, other, self._doing)
        for name, (shape, _) in self._base.items():
            for axis, (a, b) in enumerate(zip(shape, other[name][0], strict=True)):
                if a == b or axis < self._lead:
                    continue
                self.varies[name][axis] = True
                matches = [n for n, sizes in changed if (a, b) == (sizes.first, sizes.second)]
                if matches:
                    self.follows[name][axis] = matches[0]
                elif self._padded:
                    refuse(
                        f"{self._doing}: output '{name}' has a dimension of {a} where the padded "
                        f"length is {changed[0][1].first}, and {b} where it is "
                        f"{changed[0][1].second}; padding cannot be cut off such a dimension. "
                        "Return the whole length, or give no lengths"
                    )


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
    source = "predict" if author.postprocess is None else "postprocess"
    failure: BackendError | None = None
    for varying in _candidates(inputs):
        first = [one.first for one in varying]
        try:
            base = prober(_BATCHES[0], first)
        except BackendError as error:
            failure = failure or error
            continue
        names = prober.predict_outputs
        if batching:
            _check_batch(base, prober(_BATCHES[1], first), source, doing)
        dependence = _Dependence(
            base,
            padded=any(spec.dim_lengths and -1 in spec.dims for spec in inputs)
            or any(spec.ragged for spec in inputs),
            lead=1 if batching else 0,
            doing=doing,
        )
        try:
            _learn(prober, dependence, varying)
        except BackendError as error:
            failure = failure or error
            continue
        if not base:
            refuse(f"{doing}: {source} returns no outputs")
        return tuple(_describe(base, dependence, batching, doing)), names
    assert failure is not None  # noqa: S101 - there is always one candidate
    raise failure


def _learn(prober: _Prober, dependence: _Dependence, varying: list[_Varying]) -> None:
    together: list[tuple[int, _Varying]] = []
    for number, one in enumerate(varying):
        sizes = [other.first for other in varying]
        sizes[number] = one.second
        try:
            alone = prober(_BATCHES[0], sizes)
        except BackendError:
            if len(varying) == 1:
                raise
            together.append((number, one))  # it has to be as long as another one
            continue
        dependence.learn(alone, [(number, one)])
    if together:
        changed = {number for number, _ in together}
        sizes = [
            one.second if number in changed else one.first for number, one in enumerate(varying)
        ]
        together.sort(key=lambda entry: entry[1].optional)
        dependence.learn(prober(_BATCHES[0], sizes), together)


def _describe(
    base: Shapes, dependence: _Dependence, batching: bool, doing: str
) -> Iterator[TensorSpec]:
    lead = 1 if batching else 0
    for name, (shape, dtype) in base.items():
        varies = dependence.varies[name]
        dims: Dims = tuple(-1 if varies[axis] else size for axis, size in enumerate(shape))
        yield TensorSpec(
            name,
            dtype_of_array(dtype, f"{doing}: output '{name}'", Code.UNSUPPORTED),
            dims[lead:],
            follows=tuple(dependence.follows[name][lead:]),
        )
