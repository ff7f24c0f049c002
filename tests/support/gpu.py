# SPDX-License-Identifier: Apache-2.0
"""GPUs for tests: whether there are any, and how much of their memory is free.

Nothing here needs a package or a program of NVIDIA's: what asks is JAX in the backend's
environment, and the driver's own library, each in a process that is gone afterwards.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

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
