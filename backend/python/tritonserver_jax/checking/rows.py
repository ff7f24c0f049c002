# SPDX-License-Identifier: Apache-2.0
"""Whether a row's answer is its own: whatever shares its batch, and however that is padded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from tritonserver_jax.checking.data import TOPS, Arrays, random_rows
from tritonserver_jax.checking.steps import Step, all_equations, line_of, run_in_steps
from tritonserver_jax.checking.trial import CheckedModel, answers, batch_answers
from tritonserver_jax.findings import Finding, Status
from tritonserver_jax.runtime.errors import BackendError
from tritonserver_jax.runtime.instance import Instance
from tritonserver_jax.runtime.tensors import TensorSpec, dims_agree

__all__ = ["Difference", "compare", "look_at_rows", "tolerance"]

#: What rounding may explain, as a share of the largest value, by the least exact type in a model.
_TOLERANCES: Final = {"float64": 1e-9, "float32": 1e-4, "float16": 2e-2, "bfloat16": 5e-2}
#: A GPU multiplies FP32 with fewer bits, unless it is told not to.
_TF32: Final = 1e-2
#: The most rows that are tried: enough to be padded, and quick.
_MOST_ROWS: Final = 8
#: For tracing: numbers of rows of which one divides no dimension of the model.
_PRIMES: Final = (7, 11, 13, 17, 19, 23, 29, 31, 37)
#: The rows beside one are made larger than usual, so that what they do to it shows.
_LOUD: Final = 4.0
_PADDED_SHARE: Final = 0.75
#: How much of its length each request of a ragged batch has.
_RAGGED_SHARES: Final = (0.5, 1.0, 0.25, 0.75)
#: How many times a quarter of the values a value may be, and still be one of them.
_FAR: Final = 1e4

_MATES = "rows"
_PADDING = "padding"
_LENGTHS = "lengths"
_OWN = (
    "compute each row from itself alone: reduce over the dimensions after the first, use stored "
    "statistics in place of the batch's own (train=False), or write the function of one row and "
    "jax.vmap it; or set max_batch_size to 0"
)
_ANY_SIZE = (
    "make the answer independent of how many rows a batch has (x.shape[0], sums and means over the "
    "first dimension)"
)


class Difference:
    """How far an output is from what it should be.

    Attributes:
        output: Its name.
        row: The row that differs most; None in a model without rows.
        text: In words.
    """

    def __init__(self, output: str, row: int | None, text: str) -> None:
        self.output = output
        self.row = row
        self.text = text


def _floats(array: np.ndarray[Any, Any]) -> bool:
    return bool(array.dtype.kind == "f" or array.dtype == ml_dtypes.bfloat16)


def _is_finite(array: np.ndarray[Any, Any]) -> bool:
    return not _floats(array) or bool(np.isfinite(array.astype(np.float64)).all())


def compare(
    expected: Arrays, got: Arrays, tolerance: float, *, batching: bool
) -> Difference | None:
    """Return the first output that differs by more than rounding explains, or None.

    Args:
        expected: The outputs by name.
        got: The same ones.
        tolerance: As a share of an output's largest value that is no mask, or of the value itself;
            whole numbers and strings have to be equal.
        batching: Whether the first dimension is rows.
    """
    for name, one in expected.items():
        other = got[name]
        if one.shape != other.shape:
            text = f"output '{name}' has the shape {list(other.shape)} instead of {list(one.shape)}"
            return Difference(name, None, text)
        if one.size == 0:
            continue
        if not _floats(one):
            wrong = np.asarray(one != other)
            if not wrong.any():
                continue
            place = tuple(int(index) for index in np.argwhere(wrong)[0])
            text = f"output '{name}' is {other[place]} instead of {one[place]}"
            return Difference(name, place[0] if batching else None, text)
        first, second = one.astype(np.float64), other.astype(np.float64)
        size = np.where(np.isfinite(first), np.abs(first), 0.0)
        allowed = tolerance * np.maximum(size, _scale(size))
        with np.errstate(invalid="ignore"):
            away = np.where(first == second, 0.0, np.abs(first - second))
        # Not a number where it was not one before is no difference.
        away = np.where(np.isnan(first) & np.isnan(second), 0.0, away)
        away = np.where(np.isnan(away), np.inf, away)
        if (away <= allowed).all():
            continue
        worst = int((away / allowed).argmax())
        place = tuple(int(index) for index in np.unravel_index(worst, away.shape))
        text = (
            f"output '{name}' changes by {away[place]:.3g} (from {first[place]:.6g} to "
            f"{second[place]:.6g})"
        )
        return Difference(name, place[0] if batching else None, text)
    return None


def _scale(size: np.ndarray[Any, Any]) -> float:
    """Return how large the values are from which rounding in the others may come.

    The largest, but for those that are far from the rest: a mask of -1e9 is in no sum with them.
    """
    some = size[size > 0]
    if some.size == 0:
        return 1.0
    return float(min(some.max(), _FAR * np.quantile(some, 0.25)))


def tolerance(model: CheckedModel, instance: Instance, arrays: Arrays) -> float:
    """Return what rounding may explain in a model, by the types that it computes with.

    Args:
        model: The model.
        instance: Of it, which says where it runs.
        arrays: Inputs that it can be traced with.
    """
    names = {"float64"} if model.x64 else {"float32"}
    if not any(spec.dtype.is_bytes for spec in model.all_inputs) and not model.runs_on_the_host:
        names |= _float_types(model.traced(arrays)[0].jaxpr)
    else:
        leaves = jax.tree.leaves(model.device_params())
        names |= {str(leaf.dtype) for leaf in leaves if str(leaf.dtype) in _TOLERANCES}
    worst = max(_TOLERANCES[name] for name in names)
    precise = model.predict.parameters.matmul_precision == "highest"
    on_cpu = instance.device_name.startswith("cpu")
    return worst if on_cpu or precise else max(worst, _TF32)


def _float_types(jaxpr: Any) -> set[str]:
    names = (
        str(getattr(variable.aval, "dtype", ""))
        for equation in all_equations(jaxpr)
        for variable in (*equation.invars, *equation.outvars)
    )
    return {name for name in names if name in _TOLERANCES}


def _picked(arrays: Arrays, rows: Sequence[int]) -> Arrays:
    return {name: array[list(rows)] for name, array in arrays.items()}


def _rows_of(arrays: Arrays) -> int:
    return len(next(iter(arrays.values())))


def _number_of_rows(count: int) -> str:
    return f"{count} row{'' if count == 1 else 's'}"


def _same(one: Arrays, row: int, other: Arrays, other_row: int) -> bool:
    """Whether two rows are the same."""
    return all(
        array[row].shape == other[name][other_row].shape
        and bool(np.asarray(array[row] == other[name][other_row]).all())
        for name, array in one.items()
        if name in other
    )


def _cut(spec: TensorSpec, array: np.ndarray[Any, Any], share: float) -> np.ndarray[Any, Any]:
    """A part of each dimension that varies."""
    sizes = (
        max(1, int(size * share)) if dim == -1 else size
        for size, dim in zip(array.shape[1:], spec.dims, strict=True)
    )
    return array[(slice(None), *map(slice, sizes))]


def _merged(kept: Arrays, row: int, others: Arrays) -> Arrays:
    """One row among others."""
    made = {name: array.copy() for name, array in others.items()}
    for name, array in made.items():
        array[row] = kept[name][row]
    return made


class _Rows:
    """The looks at one model."""

    def __init__(
        self,
        model: CheckedModel,
        instance: Instance,
        rows: Callable[[int | None, int, float, int], Arrays],
        *,
        own: Arrays | None,
    ) -> None:
        self._model = model
        self._instance = instance
        self._source = rows
        self._own = own
        self._top = TOPS[0]
        largest = min(_MOST_ROWS, model.max_batch_size) if model.batching else 0
        self._count = largest
        self._first = self._rows(largest or None, 0, 1.0)
        self._tolerance = tolerance(model, instance, self._first)

    def _rows(self, count: int | None, seed: int, share: float) -> Arrays:
        return self._source(count, seed, share, self._top)

    def _answers(self, arrays: Arrays) -> Arrays:
        return answers(self._model, self._instance, arrays)

    def _mates_of(self, count: int, seed: int, kept: Arrays, row: int) -> Arrays | None:
        """Rows to put beside one; None where the author's are all like it."""
        if self._own is not None:
            other = next(
                (n for n in range(_rows_of(self._own)) if not _same(self._own, n, kept, row)), None
            )
            return None if other is None else _picked(self._own, [other] * count)
        return {
            name: (array * _LOUD).astype(array.dtype) if _floats(array) else array
            for name, array in self._rows(count, seed, 1.0).items()
        }

    def _compare(self, expected: Arrays, got: Arrays) -> Difference | None:
        return compare(expected, got, self._tolerance, batching=self._model.batching)

    def look(self) -> Iterator[Finding]:
        """Yield what is found."""
        expected = self._sound_answers()
        yield from self._as_declared(expected)
        again = self._compare(expected, self._answers(self._first))
        if again is not None:
            yield Finding(
                _MATES,
                Status.WARN,
                f"the same request has another answer each time: {again.text}; so nothing else "
                "can be told of its rows",
                "take random numbers and the time out of predict, or make them from an input",
            )
            return
        yield from self._finite(expected)
        if self._count > 1:
            yield from self._mates(expected)
            yield from self._padding(expected)
            yield from self._ragged()
        elif self._model.batching:
            yield Finding(_MATES, Status.OK, "a batch has one row, and is never padded")
        if any(spec.dim_lengths and -1 in spec.dims for spec in self._model.all_inputs):
            yield from self._lengths()

    def _as_declared(self, found: Arrays) -> Iterator[Finding]:
        """Whether outputs have the dimensions that clients are told: host code may make others."""
        lead = 1 if self._model.batching else 0
        for spec in self._model.outputs:
            dims = found[spec.name].shape[lead:]
            if not dims_agree(dims, spec.dims):
                yield Finding(
                    "outputs",
                    Status.FAIL,
                    f"clients are told that output '{spec.name}' is {spec}, but it is "
                    f"{spec.dtype.name}{list(dims)} for these rows",
                    "have preprocess and postprocess make the same dimensions of every request; or "
                    f"write dims with -1 for output '{spec.name}' in config.pbtxt",
                )

    def _sound_answers(self) -> Arrays:
        """Answers to data that the model can take: where numbers have to be small, to small ones.

        What is looked up and is not there becomes no number, which would hide all differences.
        """
        found = first = self._answers(self._first)
        for top in () if self._own is not None else TOPS[1:]:
            if all(map(_is_finite, found.values())):
                return found
            self._top = top
            self._first = self._rows(self._count or None, 0, 1.0)
            found = self._answers(self._first)
        if not all(map(_is_finite, found.values())):
            self._top = TOPS[0]
            self._first = self._rows(self._count or None, 0, 1.0)
            return first
        return found

    def _finite(self, found: Arrays) -> Iterator[Finding]:
        for name, array in found.items():
            if not _is_finite(array):
                yield Finding(
                    "numbers",
                    Status.WARN,
                    f"output '{name}' is not finite (infinite, or not a number) for ordinary data, "
                    "so that what follows says nothing of those numbers",
                    "look at what divides or takes logarithms in predict; where only certain data "
                    "are sound, give some with --data",
                )

    def _mates(self, expected: Arrays) -> Iterator[Finding]:
        """Whether an answer depends on the rows beside it, or on its place among them."""
        count = self._count
        for row in (0, count - 1):
            others = self._mates_of(count, 1, self._first, row)
            if others is None:
                yield Finding(
                    _MATES,
                    Status.NOTE,
                    "the rows of --data are all the same, so that nobody can tell whether an "
                    "answer depends on the other rows of a batch",
                    "save some that differ",
                )
                return
            given = _merged(self._first, row, others)
            got = self._answers(given)
            difference = self._compare(_picked(expected, [row]), _picked(got, [row]))
            if difference is not None:
                place = self._culprit(row)
                yield Finding(
                    _MATES,
                    Status.FAIL,
                    f"row {row} of {count}: {difference.text} when other rows share its batch"
                    f"{place}; a client would get an answer that depends on other clients",
                    _OWN,
                )
                return
        order = [*range(1, count), 0]
        turned = self._answers(_picked(self._first, order))
        difference = self._compare(_picked(expected, order), turned)
        if difference is not None:
            yield Finding(
                _MATES,
                Status.FAIL,
                f"{difference.text} when the same rows come in another order: an answer depends "
                "on its place in the batch",
                "leave the number of a row out of what predict computes (jnp.arange over the "
                "batch, random numbers of the batch's shape)",
            )
            return
        tried = count if self._own is None else min(count, _rows_of(self._own))
        yield Finding(
            _MATES,
            Status.OK,
            f"answers depend neither on the other rows of a batch nor on their order ({tried} "
            "rows tried)",
        )

    def _culprit(self, row: int) -> str:
        """The line that mixes rows, as a part of a sentence; or nothing, where none is found."""
        model = self._model
        if model.runs_on_the_host or any(spec.dtype.is_bytes for spec in model.all_inputs):
            return ""
        try:
            step = self._mixing_step(row)
        except Exception:
            return ""
        if step is None:
            return ""
        line = line_of(step, model.code_directory)
        return f" ({step.equation.primitive.name}{f' in {line}' if line else ''} mixes them)"

    def _mixing_step(self, row: int) -> Step | None:
        model = self._model
        leaves = jax.tree.leaves(model.device_params())
        shapes = [np.shape(leaf) for leaf in leaves]
        shapes += [array.shape[1:] for array in self._first.values()]
        sizes = {size for shape in shapes for size in shape if size}
        count = next(n for n in _PRIMES if all(size % n for size in sizes))
        kept = self._rows(count, 2, 1.0)
        row = 0 if row == 0 else count - 1
        others = self._mates_of(count, 3, kept, row)
        if others is None:
            return None
        program, given = model.traced(kept)
        mixed = _merged(kept, row, others)
        parameters = given[: len(leaves)]
        changed = [*parameters, *self._in_order(mixed, given[len(leaves) :])]
        with model.predict.tracing("running predict step by step"):
            for one, other in zip(
                run_in_steps(program, given), run_in_steps(program, changed), strict=False
            ):
                if one.equation is not other.equation:
                    return None
                if any(
                    _row_differs(first, second, count, row)
                    for first, second in zip(one.outputs, other.outputs, strict=True)
                ):
                    return one
        return None

    def _in_order(self, arrays: Arrays, given: Sequence[Any]) -> list[Any]:
        """The arrays in the place of what `traced` gave for other ones: masks stay."""
        masks = iter(given)
        made: list[Any] = []
        for spec in self._model.all_inputs:
            next(masks)
            made.append(arrays[spec.name])
            if self._model.predict.wants_masks and -1 in spec.dims:
                made.append(next(masks))
        return made

    def _padding(self, expected: Arrays) -> Iterator[Finding]:
        """Whether the copies that a batch is filled up with change the real rows, or its size."""
        sizes = self._model.bucket_sizes
        padded = [
            (rows, next(size for size in sizes if size >= rows))
            for rows in range(1, self._count + 1)
        ]
        padded = [(rows, bucket) for rows, bucket in padded if bucket > rows]
        if not padded:
            of_size = self._of_size(expected)
            yield of_size or Finding(_PADDING, Status.OK, "no batch is ever padded")
            return
        # Copies of a single row are too much like it to show what they do.
        rows, bucket = max(padded, key=lambda one: (one[0] > 1, one[1] - one[0], one[0]))
        given = _picked(self._first, range(rows))
        exact = answers(self._model, self._model.unpadded(rows, given), given)
        difference = self._compare(exact, self._answers(given))
        if difference is not None:
            yield Finding(
                _PADDING,
                Status.FAIL,
                f"{rows} rows padded to {bucket}: {difference.text} against the same rows "
                "without padding",
                _ANY_SIZE,
            )
            return
        yield self._of_size(expected) or Finding(
            _PADDING,
            Status.OK,
            f"{rows} rows padded to {bucket} have the answers that they have without padding",
        )

    def _of_size(self, expected: Arrays) -> Finding | None:
        """What is found in a batch of any of the sizes that the model is compiled for."""
        for size in self._model.bucket_sizes:
            if size == self._count:
                continue  # as expected, and tried twice
            kept = range(min(size, self._count))
            given = _picked(self._first, [row % self._count for row in range(size)])
            got = _picked(self._answers(given), kept)
            difference = self._compare(_picked(expected, kept), got)
            if difference is not None:
                return Finding(
                    _PADDING,
                    Status.FAIL,
                    f"{_number_of_rows(size)} at once: {difference.text} against {self._count} of "
                    "them: the answer depends on the size of the batch",
                    _ANY_SIZE,
                )
        return None

    def _ragged(self) -> Iterator[Finding]:
        """Whether requests of other lengths in the same batch change an answer."""
        ragged = [spec.name for spec in self._model.all_inputs if spec.ragged and -1 in spec.dims]
        if not ragged or self._own is not None:
            return
        shares = [_RAGGED_SHARES[n % len(_RAGGED_SHARES)] for n in range(self._count)]
        whole = [self._rows(1, 20 + n, 1.0) for n in range(self._count)]
        requests = [
            {
                spec.name: _cut(spec, one[spec.name], share) if spec.ragged else one[spec.name]
                for spec in self._model.all_inputs
            }
            for one, share in zip(whole, shares, strict=True)
        ]
        named = ", ".join(f"'{name}'" for name in ragged)
        what = f"{named} of different lengths in one batch"
        together = batch_answers(self._model, self._instance, requests)
        for request, got in zip(requests, together, strict=True):
            difference = self._compare(self._answers(request), got)
            if difference is not None:
                lengths = list(request[ragged[0]].shape[1:])
                yield Finding(
                    _LENGTHS,
                    Status.FAIL,
                    f"{what}: {difference.text} for the request of {lengths} against the same "
                    "request alone",
                    "take the argument masks in predict, and of each row use its own mask only; "
                    "or leave allow_ragged_batch out of config.pbtxt",
                )
                return
        yield Finding(_LENGTHS, Status.OK, f"{what}: each has the answer that it has alone")

    def _lengths(self) -> Iterator[Finding]:
        """Whether the zeros after a short request change its answer."""
        rows = self._count or None
        given = self._rows(rows, 4, _PADDED_SHARE)
        lead = 1 if self._model.batching else 0
        padded = [
            f"'{spec.name}' {list(given[spec.name].shape[lead:])}"
            for spec in self._model.all_inputs
            if spec.dim_lengths
            and any(
                dim == -1 and size not in spec.dim_lengths
                for size, dim in zip(given[spec.name].shape[lead:], spec.dims, strict=True)
            )
        ]
        if not padded:
            return
        what = ", ".join(padded)
        try:
            exact = answers(self._model, self._model.unpadded(rows, given), given)
        except BackendError:
            yield Finding(
                _LENGTHS,
                Status.NOTE,
                f"{what}: the model cannot be compiled for just this length, so that its answer "
                "without padding is not known",
            )
            return
        difference = self._compare(exact, self._answers(given))
        if difference is not None:
            yield Finding(
                _LENGTHS,
                Status.FAIL,
                f"{what}: {difference.text} once the zeros that it is padded with are there",
                "take the argument masks in predict, and leave out what it says is not real "
                "(jnp.where(masks[...], x, 0), attention masks); or give no lengths",
            )
            return
        yield Finding(
            _LENGTHS, Status.OK, f"{what}: padding to a length does not change the answer"
        )


def _row_differs(first: Any, second: Any, count: int, row: int) -> bool:
    """Whether what belongs to a row differs; all of an array that has no rows."""
    if not hasattr(first, "shape") or jnp.issubdtype(first.dtype, jax.dtypes.extended):
        return False
    one, other = np.asarray(first), np.asarray(second)
    axis = next((n for n, size in enumerate(one.shape) if size and size % count == 0), None)
    if axis is not None:
        block = one.shape[axis] // count
        part = slice(row * block, (row + 1) * block)
        index = (*(slice(None),) * axis, part)
        one, other = one[index], other[index]
    found = compare({"": one}, {"": other}, _TOLERANCES["float32"], batching=False)
    return found is not None


def look_at_rows(
    model: CheckedModel,
    instance: Instance,
    *,
    size: int,
    given: Mapping[str, np.ndarray[Any, Any]] | None,
) -> Iterator[Finding]:
    """Yield whether each row has the answer that it has alone.

    Args:
        model: The model.
        instance: Of it, compiled.
        size: For dimensions that vary and have no lengths.
        given: Rows of the author's; None for random ones.

    Raises:
        BackendError: The model fails on the data.
    """

    def rows(count: int | None, seed: int, share: float, top: int) -> Arrays:
        if given is None:
            random = np.random.default_rng(seed)
            return random_rows(model.all_inputs, count, random, size=size, share=share, top=top)
        if count is None:
            return given
        # Where there are enough, other ones for another seed.
        there = _rows_of(given)
        return _picked(given, [(seed * count + index) % there for index in range(count)])

    yield from _Rows(model, instance, rows, own=given).look()
