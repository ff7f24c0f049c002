# SPDX-License-Identifier: Apache-2.0
"""BYTES tensors in NumPy, and in the form that XLA can work on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tritonserver_jax.runtime.errors import Code, refuse


class Strings(NamedTuple):
    """Byte strings inside a compiled function: `predict` gets and returns them as this pair.

    Attributes:
        bytes: ``uint8[*dims, length]``: each string, and zeros after its end.
        lengths: ``int32[*dims]``: how many bytes of each are real.
    """

    bytes: Any
    lengths: Any


def to_objects(elements: list[bytes], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Byte strings as a NumPy array of objects, as host code sees them."""
    flat = np.empty(len(elements), np.object_)
    flat[:] = elements
    return flat.reshape(shape)


def to_strings(
    elements: list[bytes], shape: tuple[int, ...], allowed: Sequence[int], name: str
) -> Strings:
    """Byte strings as NumPy arrays for a compiled function.

    Args:
        elements: the strings, in row-major order; missing ones at the end are empty.
        shape: of the tensor.
        allowed: lengths to pad to, in rising order.
        name: of the input, for messages.

    Raises:
        BackendError: INVALID_ARG where a string is longer than the longest allowed length.
    """
    count = math.prod(shape)
    lengths = np.zeros(count, np.int32)
    lengths[: len(elements)] = [len(element) for element in elements]
    longest = int(lengths.max(initial=0))
    width = next((length for length in allowed if length >= longest), None)
    if width is None:
        refuse(f"input '{name}': a string of {longest} bytes, the longest allowed is {allowed[-1]}")
    # NumPy's fixed-width strings are the wanted matrix: each element, and zeros up to the width.
    matrix = np.zeros(count, f"S{width}")
    matrix[: len(elements)] = elements
    return Strings(matrix.view(np.uint8).reshape(*shape, width), lengths.reshape(shape))


def from_strings(strings: Strings) -> np.ndarray[Any, Any]:
    """A compiled function's strings as a NumPy array of objects."""
    matrix = np.ascontiguousarray(np.asarray(strings.bytes))
    width = matrix.shape[-1]
    # Whatever a model makes of them, no string reaches into the next one's bytes.
    lengths = np.clip(np.asarray(strings.lengths), 0, width)
    data = matrix.tobytes()
    elements = [
        data[index * width : index * width + length]
        for index, length in enumerate(lengths.ravel().tolist())
    ]
    return to_objects(elements, lengths.shape)


#: Strings for the C++ side: a flat list and dimensions; or a matrix of bytes, dimensions and
#: ``int32`` lengths, a row and a length for each string.
Elements = tuple[list[Any], tuple[int, ...]] | tuple[Any, tuple[int, ...], Any]


def to_elements(array: np.ndarray[Any, Any] | Strings, name: str) -> Elements:
    """Strings as the C++ side takes them, without a loop over them in Python.

    Text is encoded as UTF-8, and that every element is a string is checked, where they are read.
    """
    if isinstance(array, Strings):
        lengths = np.ascontiguousarray(np.asarray(array.lengths), np.int32)
        return np.ascontiguousarray(np.asarray(array.bytes)), lengths.shape, lengths
    if array.dtype.kind == "S" and array.size > 0:
        lengths = np.char.str_len(array).astype(np.int32)
        matrix = np.ascontiguousarray(array).reshape(-1, 1).view(np.uint8)
        return matrix, tuple(array.shape), lengths
    if array.dtype.kind not in "OSU":
        refuse(
            f"output '{name}': expected byte strings, got an array of {array.dtype.name}",
            Code.INTERNAL,
        )
    return array.ravel().tolist(), tuple(array.shape)
