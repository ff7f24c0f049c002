# SPDX-License-Identifier: Apache-2.0
"""Arrays in memory of a GPU, as JAX and the C++ side hand them to each other without a copy.

Inputs come as addresses, and go to JAX by DLPack. Who waits for whom: what is at an address is
complete before it is given, and the memory is left alone until the outputs of the run are complete,
which `outputs_ready` waits for; so nobody needs the other one's streams.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import jax
import ml_dtypes
import numpy as np

from tritonserver_jax.runtime.devices import platform_of
from tritonserver_jax.runtime.x64 import x64_mode

#: Address, bytes, dimensions, number of the GPU, and what holds the memory.
GpuOutput = tuple[int, int, tuple[int, ...], int, Any]


# DLPack's C structures, of the version that all of JAX's releases take.
class _DlDevice(ctypes.Structure):
    _fields_ = (("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32))


class _DlDataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _DlTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _DlDevice),
        ("ndim", ctypes.c_int32),
        ("dtype", _DlDataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),  # null: row-major
        ("byte_offset", ctypes.c_uint64),
    )


class _DlManagedTensor(ctypes.Structure):
    _fields_ = (
        ("tensor", _DlTensor),
        ("manager_context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),  # of the structure; the consumer calls it, on any thread
    )


_DEVICE_TYPES = {"cpu": 1, "cuda": 2}
_TYPE_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
_BFLOAT = 4

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)

# The structure is of the C library's memory, whose `free` ends it without Python and its lock.
_c = ctypes.CDLL(None)
_malloc = _c.malloc
_malloc.restype = ctypes.c_void_p
_malloc.argtypes = (ctypes.c_size_t,)
_FREE = ctypes.cast(_c.free, ctypes.c_void_p)


class SharedInput:
    """One input of a plan, wherever its bytes are on a device."""

    def __init__(self, shape: Sequence[int], dtype: np.dtype[Any], device: jax.Device) -> None:
        """Describe the input.

        Args:
            shape: of the padded batch.
            dtype: of its elements.
            device: where it is; a GPU of CUDA, or the CPU.
        """
        platform = platform_of(device)
        self._device = (
            _DEVICE_TYPES[platform],
            0 if platform == "cpu" else int(device.local_hardware_id),
        )
        code = _BFLOAT if dtype == ml_dtypes.bfloat16 else _TYPE_CODES[dtype.kind]
        self._shape = (ctypes.c_int64 * len(shape))(*shape)
        self._managed = _DlManagedTensor(
            _DlTensor(
                None,
                _DlDevice(*self._device),
                len(shape),
                _DlDataType(code, 8 * dtype.itemsize, 1),
                self._shape,
            ),
            None,
            _FREE,
        )

    def array(self, address: int) -> jax.Array:
        """The array whose bytes are at an address: valid as long as they are left as they are."""
        self._managed.tensor.data = address
        with x64_mode(True):  # or JAX would narrow 64-bit types
            array: jax.Array = jax.dlpack.from_dlpack(self)
        return array

    def __dlpack__(self, **_: Any) -> Any:
        """What JAX asks for; it is complete, so the consumer's stream does not matter."""
        size = ctypes.sizeof(self._managed)
        managed = _malloc(size)
        if not managed:
            raise MemoryError
        ctypes.memmove(managed, ctypes.addressof(self._managed), size)
        return _new_capsule(managed, b"dltensor", None)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Type and number of the device."""
        return self._device


def number_of(device: jax.Device) -> int:
    """CUDA's number of a device, which is Triton's too; -1 for any other."""
    return int(device.local_hardware_id) if platform_of(device) == "cuda" else -1


def outputs_ready(outputs: Sequence[Any]) -> Sequence[Any]:
    """Wait for the outputs of a run. Then its inputs are not read any more either."""
    ready: Sequence[Any] = jax.block_until_ready(outputs)
    return ready


def shared_output(array: jax.Array, gpu: int) -> GpuOutput | np.ndarray[Any, Any]:
    """An output for the C++ side, which reads it where it is.

    Args:
        array: complete.
        gpu: the number of the GPU that it is on; negative where the C++ side does not read there,
            and gets a copy on the host.
    """
    if gpu < 0 or array.size == 0:
        return np.ascontiguousarray(np.asarray(array)).reshape(array.shape)
    return array.unsafe_buffer_pointer(), array.nbytes, array.shape, gpu, array
