# SPDX-License-Identifier: Apache-2.0
"""The one table of data types: Triton's, NumPy's and JAX's.

Source: Triton's model configuration, "Datatypes"
(https://docs.nvidia.com/deeplearning/triton-inference-server/user-guide/docs/user_guide/model_configuration.html#datatypes).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from tritonserver_jax.runtime.errors import Code, refuse


@dataclass(frozen=True)
class DType:
    """A data type.

    Attributes:
        name: Triton's name in requests, such as ``FP32``.
        number: Triton's ``TRITONSERVER_DataType``.
        numpy: the element type in NumPy, and in JAX but for BYTES, which NumPy has as objects.
    """

    name: str
    number: int
    numpy: np.dtype[Any]

    @property
    def config_name(self) -> str:
        """The name in a model configuration, such as ``TYPE_FP32``."""
        return "TYPE_STRING" if self.is_bytes else f"TYPE_{self.name}"

    @property
    def needs_x64(self) -> bool:
        """Whether JAX has this type only in its 64-bit mode."""
        return self.numpy.itemsize == 8 and not self.is_bytes

    @property
    def is_bytes(self) -> bool:
        """Whether elements are byte strings, of which each has its own length."""
        return self.name == "BYTES"


DTYPES: tuple[DType, ...] = (
    DType("BOOL", 1, np.dtype(np.bool_)),
    DType("UINT8", 2, np.dtype(np.uint8)),
    DType("UINT16", 3, np.dtype(np.uint16)),
    DType("UINT32", 4, np.dtype(np.uint32)),
    DType("UINT64", 5, np.dtype(np.uint64)),
    DType("INT8", 6, np.dtype(np.int8)),
    DType("INT16", 7, np.dtype(np.int16)),
    DType("INT32", 8, np.dtype(np.int32)),
    DType("INT64", 9, np.dtype(np.int64)),
    DType("FP16", 10, np.dtype(np.float16)),
    DType("FP32", 11, np.dtype(np.float32)),
    DType("FP64", 12, np.dtype(np.float64)),
    DType("BYTES", 13, np.dtype(np.object_)),
    DType("BF16", 14, np.dtype(ml_dtypes.bfloat16)),
)

_BY_NAME = {dtype.name: dtype for dtype in DTYPES}
_BY_CONFIG_NAME = {dtype.config_name: dtype for dtype in DTYPES}
_BY_NUMPY = {dtype.numpy: dtype for dtype in DTYPES}


def dtype_of_config(name: str, tensor: str) -> DType | None:
    """The type that a model configuration names, or None where it leaves it open."""
    if name in ("", "TYPE_INVALID"):
        return None
    dtype = _BY_CONFIG_NAME.get(name)
    if dtype is None:
        refuse(f"{tensor}: unknown data_type {name} in the model configuration")
    return dtype


def dtype_of_array(numpy_dtype: Any, tensor: str, code: Code = Code.UNSUPPORTED) -> DType:
    """The type of a NumPy or JAX array, or a refusal naming `tensor`."""
    try:
        known = np.dtype(numpy_dtype).newbyteorder("=")
    except TypeError:  # such as JAX's typed random keys
        refuse(f"{tensor}: Triton has no data type for {numpy_dtype}", code)
    dtype = _BY_NAME["BYTES"] if known.kind in "SU" else _BY_NUMPY.get(known)
    if dtype is None:
        refuse(
            f"{tensor}: Triton has no data type for {known.name}; expected one of "
            + ", ".join(one.numpy.name for one in DTYPES if not one.is_bytes),
            code,
        )
    return dtype


def dtype_of_author(given: Any, tensor: str) -> DType:
    """The type that a model author wrote: Triton's name, or anything NumPy takes for a dtype."""
    if isinstance(given, DType):
        return given
    if isinstance(given, str) and given.upper().removeprefix("TYPE_") in {*_BY_NAME, "STRING"}:
        name = given.upper().removeprefix("TYPE_")
        return _BY_NAME["BYTES" if name == "STRING" else name]
    try:
        if given is None:  # which NumPy takes for float64
            raise TypeError
        numpy_dtype = np.dtype(given)
    except TypeError:
        refuse(
            f"{tensor}: {given!r} is no data type; expected one of "
            + ", ".join(_BY_NAME)
            + ", or a NumPy dtype"
        )
    return dtype_of_array(numpy_dtype, tensor)
