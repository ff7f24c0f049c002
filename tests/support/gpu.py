# SPDX-License-Identifier: Apache-2.0
"""GPUs for tests: whether there are any, how much of their memory is free, and regions of it.

Nothing here needs a package or a program of NVIDIA's: what asks is JAX in the backend's
environment, and the driver's own library, each in a process that is gone afterwards.
"""

from __future__ import annotations

import base64
import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tritonserver_jax.server import TritonServer

#: Configurations of a model on the first GPU, and on the CPU.
ON_GPU = 'backend: "jax"\ninstance_group { kind: KIND_GPU count: 1 gpus: 0 }\n'
ON_CPU = 'backend: "jax"\ninstance_group { kind: KIND_CPU count: 1 }\n'

_DEVICES = "import json, jax; print(json.dumps([d.device_kind for d in jax.devices('gpu')]))"
_FREE = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")

def call(name, *arguments):
    status = getattr(cuda, name)(*arguments)
    if status != 0:
        sys.exit(f"{name}: expected 0, got {status}")

device, context = ctypes.c_int(), ctypes.c_void_p()
free, total = ctypes.c_size_t(), ctypes.c_size_t()
call("cuInit", 0)
call("cuDeviceGet", ctypes.byref(device), int(sys.argv[1]))
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
call("cuCtxSetCurrent", context)
call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
print(free.value, total.value)
"""


def gpus(environment: Path) -> list[str]:
    """The kinds of the GPUs that JAX has in an environment; none where it has no plugin for them.

    Args:
        environment: A Python environment with JAX.
    """
    done = subprocess.run(
        [environment / "bin" / "python", "-I", "-c", _DEVICES],
        env={**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    kinds: list[str] = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else []
    return kinds


def memory(device: int = 0) -> tuple[int, int]:
    """Bytes of a GPU's memory that are free, and that it has.

    The process that asks takes some itself: compare two answers, not one with the total.
    """
    done = subprocess.run(
        [sys.executable, "-c", _FREE, str(device)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    free, total = done.stdout.split()
    return int(free), int(total)


class CudaRegion:
    """Memory of the first GPU, that another process may open."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._cuda = ctypes.CDLL("libcuda.so.1")
        self._context = ctypes.c_void_p()
        self._pointer = ctypes.c_uint64()
        device = ctypes.c_int()
        self._call("cuInit", 0)
        self._call("cuDeviceGet", ctypes.byref(device), 0)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), device)
        self._call("cuCtxSetCurrent", self._context)
        self._call("cuMemAlloc_v2", ctypes.byref(self._pointer), ctypes.c_size_t(size))

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._cuda, name)(*arguments)
        assert status == 0, f"{name}: expected 0, got {status}"

    def handle(self) -> str:
        """What Triton registers it by."""
        handle = (ctypes.c_char * 64)()
        self._call("cuIpcGetMemHandle", handle, self._pointer)
        return base64.b64encode(handle.raw).decode()

    def write(self, array: np.ndarray[Any, Any], offset: int = 0) -> None:
        """Overwrite a part of it, and wait until that is done."""
        assert offset + array.nbytes <= self.size
        source = np.ascontiguousarray(array)
        address = ctypes.c_uint64(self._pointer.value + offset)
        self._call(
            "cuMemcpyHtoD_v2",
            address,
            ctypes.c_void_p(source.ctypes.data),
            ctypes.c_size_t(source.nbytes),
        )
        self._call("cuCtxSynchronize")

    def read(self, offset: int, size: int) -> bytes:
        """What is in a part of it."""
        assert offset + size <= self.size
        data = ctypes.create_string_buffer(size)
        address = ctypes.c_uint64(self._pointer.value + offset)
        self._call("cuMemcpyDtoH_v2", data, address, ctypes.c_size_t(size))
        return data.raw

    def close(self) -> None:
        """Give the memory back."""
        self._call("cuMemFree_v2", self._pointer)


@contextmanager
def cuda_region(server: TritonServer, name: str, size: int) -> Iterator[CudaRegion]:
    """A region of the first GPU, registered with a server."""
    region = CudaRegion(size)
    path = f"/v2/cudasharedmemory/region/{name}"
    body = {"raw_handle": {"b64": region.handle()}, "device_id": 0, "byte_size": size}
    try:
        status, text = server._ask("POST", f"{path}/register", body)
        assert status == 200, text
        yield region
        server._ask("POST", f"{path}/unregister", {})
    finally:
        region.close()
