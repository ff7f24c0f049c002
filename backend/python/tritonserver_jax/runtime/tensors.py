# SPDX-License-Identifier: Apache-2.0
"""Names, types and dimensions of a model's inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tritonserver_jax.runtime.dtypes import DType, dtype_of_author
from tritonserver_jax.runtime.errors import refuse

Dims = tuple[int, ...]


@dataclass(frozen=True)
class TensorSpec:
    """An input or output.

    Attributes:
        name: as clients use it.
        dtype: its type.
        dims: without the batch dimension; -1 where it varies.
        optional: of an input: whether a request may leave it out.
        ragged: of an input: whether requests of one batch may differ in the dimensions that vary.
        lengths: of an input: what dimensions that vary are padded to, in rising order; for BYTES,
            what each string is padded to. Empty: no padding.
        state: of an output: whether Triton keeps it for the sequence.
        follows: of an output: for each dimension, the number of the input dimension that it is as
            long as, or -1. The dimensions that vary are numbered over all inputs, in their order.
    """

    name: str
    dtype: DType
    dims: Dims
    optional: bool = False
    ragged: bool = False
    lengths: Dims = ()
    state: bool = False
    follows: Dims = ()

    @property
    def dim_lengths(self) -> Dims:
        """What dimensions that vary are padded to; nothing for BYTES, whose strings are."""
        return () if self.dtype.is_bytes else self.lengths

    def __str__(self) -> str:
        return f"{self.dtype.name}{list(self.dims)}"


def _dims(given: Any, tensor: str) -> Dims:
    if isinstance(given, Sequence) and not isinstance(given, str):
        dims = tuple(given)
        if all(
            isinstance(dim, int) and not isinstance(dim, bool) and -1 <= dim < 2**31 for dim in dims
        ):
            return dims
    refuse(f"{tensor}: dims must be a list of integers >= -1 and < 2**31, got {given!r}")


def author_spec(name: Any, given: Any, where: str) -> TensorSpec:
    """What an author wrote for one tensor in ``SIGNATURE``.

    Args:
        name: of the tensor.
        given: ``(dtype, dims)``, or an object with ``dtype`` and ``shape``, such as a
            ``jax.ShapeDtypeStruct``; dims are without the batch dimension.
        where: for messages, such as ``"model.py: SIGNATURE['inputs']"``.
    """
    if not isinstance(name, str) or not name:
        refuse(f"{where}: tensor names must be non-empty strings, got {name!r}")
    tensor = f"{where}[{name!r}]"
    if hasattr(given, "dtype") and hasattr(given, "shape"):
        dtype, dims = given.dtype, given.shape
    elif isinstance(given, Sequence) and not isinstance(given, str) and len(given) == 2:
        dtype, dims = given
    else:
        refuse(f"{tensor}: expected (data type, dims), such as ('FP32', [8, 8, 1]), got {given!r}")
    return TensorSpec(name, dtype_of_author(dtype, tensor), _dims(dims, tensor))


def author_specs(given: Any, where: str) -> tuple[TensorSpec, ...]:
    """What an author wrote for all inputs, or all outputs, in ``SIGNATURE``."""
    if not isinstance(given, Mapping):
        refuse(f"{where}: expected a dict of name -> (data type, dims), got {given!r}")
    return tuple(author_spec(name, spec, where) for name, spec in given.items())


def dims_agree(one: Dims, other: Dims) -> bool:
    """Whether two statements about dimensions can both be true; -1 leaves one open."""
    return len(one) == len(other) and all(
        a == b or -1 in (a, b) for a, b in zip(one, other, strict=True)
    )
