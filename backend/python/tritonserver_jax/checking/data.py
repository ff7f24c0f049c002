# SPDX-License-Identifier: Apache-2.0
"""Rows to try a model with: random ones, or those of its author."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from zipfile import BadZipFile

import numpy as np

from tritonserver_jax.runtime.dtypes import DType, dtype_of_array
from tritonserver_jax.runtime.errors import refuse
from tritonserver_jax.runtime.tensors import TensorSpec, dims_agree

__all__ = [
    "TOPS",
    "Arrays",
    "candidate_sizes",
    "extreme_rows",
    "load_rows",
    "random_rows",
    "sized",
]

#: By input: with the batch dimension first, where the model has one.
Arrays = Mapping[str, np.ndarray[Any, Any]]

#: Sizes for a dimension that varies and has no lengths; in turn, until the model takes one.
_SIZES: Final = (16, 32, 128, 4, 1)
#: Integers of 32 and 64 bits are most often numbers of something, such as words of a vocabulary:
#: these many, or fewer, where a model has no more of them.
TOPS: Final = (8, 2)
#: What such an integer may well be, where it is to be large.
_LARGE: Final = 1_000_000


def candidate_sizes(inputs: Sequence[TensorSpec]) -> Iterator[int]:
    """Yield sizes to try for dimensions that vary without lengths; one if there are none."""
    if not any(-1 in spec.dims and not spec.dim_lengths for spec in inputs):
        yield 0
        return
    yield from _SIZES


def sized(spec: TensorSpec, size: int, share: float = 1.0) -> tuple[int, ...]:
    """Return dimensions for an input.

    Args:
        spec: The input.
        size: Of a dimension that varies and has no lengths.
        share: Of the shortest length, for one that has some.
    """
    varying = max(1, int(spec.dim_lengths[0] * share)) if spec.dim_lengths else size
    return tuple(varying if dim == -1 else dim for dim in spec.dims)


def _one_of(dtype: DType, shape: tuple[int, ...], random: np.random.Generator, top: int) -> Any:
    kind = dtype.numpy.kind
    if dtype.is_bytes:
        # Digits: what makes numbers of text can take them, and so can what only reads it.
        texts = np.empty(shape, np.object_)
        for index in np.ndindex(shape):
            texts[index] = str(random.integers(0, 10_000)).encode()
        return texts
    if kind == "b":
        return np.asarray(random.integers(0, 2, shape), np.bool_)
    if kind in "iu":
        if dtype.numpy.itemsize <= 2:
            whole = np.iinfo(dtype.numpy)
            return np.asarray(random.integers(whole.min, whole.max + 1, shape), dtype.numpy)
        return np.asarray(random.integers(0, top, shape), dtype.numpy)
    return np.asarray(random.standard_normal(shape)).astype(dtype.numpy)


def random_rows(
    inputs: Sequence[TensorSpec],
    rows: int | None,
    random: np.random.Generator,
    *,
    size: int = 0,
    share: float = 1.0,
    top: int = TOPS[0],
) -> Arrays:
    """Return random data for all inputs.

    Args:
        inputs: Of the model.
        rows: Of the batch; None for a model without one.
        random: Where they come from.
        size: Of a dimension that varies and has no lengths.
        share: Of the shortest length, for one that has some.
        top: What integers of 32 and 64 bits are smaller than.
    """
    lead = () if rows is None else (rows,)
    return {
        spec.name: _one_of(spec.dtype, (*lead, *sized(spec, size, share)), random, top)
        for spec in inputs
    }


def extreme_rows(
    inputs: Sequence[TensorSpec], rows: int | None, random: np.random.Generator, *, size: int
) -> Arrays:
    """Return data as large as clients may well send: a first row of it, then a smallest one.

    Integers of 8 and 16 bits go to the ends of their types; those of 32 and 64 bits to a million.
    """
    made = dict(random_rows(inputs, rows, random, size=size))
    for spec in inputs:
        if spec.dtype.is_bytes or spec.dtype.numpy.kind not in "iu":
            continue
        whole = np.iinfo(spec.dtype.numpy)
        narrow = spec.dtype.numpy.itemsize <= 2
        array = made[spec.name].copy()
        high = whole.max if narrow else _LARGE
        low = whole.min if narrow else max(-_LARGE, int(whole.min))
        if rows is None:
            array[...] = high
        else:
            array[:1] = high
            array[1:2] = low
        made[spec.name] = array
    return made


def load_rows(path: Path, inputs: Sequence[TensorSpec], *, batching: bool) -> Arrays:
    """Read rows from an ``.npz`` file: an array for each input, by its name.

    Args:
        path: The file.
        inputs: Of the model.
        batching: Whether the arrays have a batch as their first dimension.

    Raises:
        BackendError: Says which array is missing, or what it is in place of what.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            given = {name: file[name] for name in file.files}
    # A damaged archive fails in many ways, when it is opened and when an array is read.
    except (
        OSError,
        ValueError,
        EOFError,
        KeyError,
        SyntaxError,
        BadZipFile,
        zlib.error,
    ) as problem:
        refuse(
            f"--data: cannot read {path} ({problem}); write it with numpy.savez(path, NAME=array)"
        )
    made = {}
    lead = 1 if batching else 0
    for spec in inputs:
        if spec.name not in given:
            names = ", ".join(given) or "none"
            refuse(
                f"--data: {path} has no array for input '{spec.name}' (it has {names}); save one "
                "of each input, by its name"
            )
        array = given[spec.name]
        what = f"--data: '{spec.name}' in {path}"
        dtype = dtype_of_array(array.dtype, what)
        dims = array.shape[lead:]
        if dtype != spec.dtype or not dims_agree(dims, spec.dims) or array.ndim < lead:
            rows = "rows of " if batching else ""
            got = f"{dtype.name}{list(dims)}"
            refuse(f"{what}: expected {rows}{spec}, got {got}; save it with that type and shape")
        if spec.dtype.is_bytes:
            texts = np.empty(array.shape, np.object_)
            for index in np.ndindex(array.shape):
                text = array[index]
                texts[index] = text.encode() if isinstance(text, str) else bytes(text)
            array = texts
        made[spec.name] = array
    counts = {len(array) for array in made.values()} if batching else set()
    if len(counts) > 1:
        refuse(
            f"--data: {path} has arrays of {' and '.join(map(str, sorted(counts)))} rows; expected "
            "the same number of all"
        )
    if 0 in counts:
        refuse(f"--data: the arrays in {path} have no rows; save at least one row of each")
    return made
