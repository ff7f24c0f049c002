# SPDX-License-Identifier: Apache-2.0
"""What ``libtriton_jax_python.so`` calls."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path

from tritonserver_jax.runtime import log

# Modules of the standard library that wrap libraries of which the server process may hold another
# version (the server's own OpenSSL, for one). Imported with RTLD_DEEPBIND, each binds to its own.
_CLASHING_MODULES = ("ssl", "_hashlib", "lzma", "bz2", "zlib", "ctypes", "sqlite3")


def _import_clashing_modules() -> None:
    flags = sys.getdlopenflags()
    sys.setdlopenflags(os.RTLD_NOW | os.RTLD_DEEPBIND)
    try:
        for name in _CLASHING_MODULES:
            with contextlib.suppress(ImportError):  # not every Python is built with all of them
                importlib.import_module(name)
    finally:
        sys.setdlopenflags(flags)


def initialize(write_log: log.LogFunction) -> None:
    """Set JAX up, once per process; a repeated call is harmless.

    Args:
        write_log: writes a line to Triton's log: level, file, line, message.
    """
    log.install(write_log)
    _import_clashing_modules()
    import jax

    # A call returns when it is done anyway: handing it to another thread only costs time.
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    devices = ", ".join(f"{device.platform}:{device.id}" for device in jax.devices())
    log.info(
        f"Python {platform.python_version()} in {sys.prefix}, JAX {jax.__version__}, "
        f"devices {devices}"
    )


def load_model(request: str, compiled: Callable[[float], None]) -> object:
    """Load a model.

    Args:
        request: ``ModelSpec`` of ``engine.h``, as JSON.
        compiled: called with the seconds that each compilation took.

    Returns:
        A `tritonserver_jax.runtime.model.Model`.
    """
    from tritonserver_jax.runtime.model import Model

    spec = json.loads(request)
    return Model(
        name=spec["name"],
        version=spec["version"],
        directory=Path(spec["directory"]),
        config=json.loads(spec["config"]),
        complete_config=spec["complete_config"],
        default_max_batch_size=spec["default_max_batch_size"],
        compiled=compiled,
    )
