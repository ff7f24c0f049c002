# SPDX-License-Identifier: Apache-2.0
"""What ``libtriton_jax_python.so`` calls."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import json
import logging
import os
import platform
import sys
from pathlib import Path

from tritonserver_jax.runtime import log, preflight, settings
from tritonserver_jax.runtime.errors import Code, refuse
from tritonserver_jax.runtime.events import Observe

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


def initialize(write_log: log.LogFunction, given_settings: str) -> None:
    """Set JAX up, once per process; a repeated call is harmless.

    Args:
        write_log: writes a line to Triton's log: level, file, line, message.
        given_settings: what the server was started with, by key, as JSON.

    Raises:
        BackendError: INVALID_ARG naming a setting that is not right; UNAVAILABLE where the
            environment's JAX is too old, or does not start.
    """
    log.install(write_log)
    chosen = settings.parse_settings(json.loads(given_settings))
    settings.apply(chosen)
    preflight.check_versions()
    preflight.check_xla_flags()
    _import_clashing_modules()
    import jax  # only now that the log, the libraries and the environment's variables are in place

    # A call returns when it is done anyway: handing it to another thread only costs time.
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    if chosen.cpu_devices is not None:
        jax.config.update("jax_num_cpu_devices", chosen.cpu_devices)
    if chosen.log_detail == "detailed":
        logging.getLogger("jax").setLevel(logging.DEBUG)
    if chosen.platforms is not None:
        jax.config.update("jax_platforms", chosen.platforms)
    try:
        found = jax.devices()
    except RuntimeError as error:  # a platform that was asked for is not there, or does not start
        refuse(f"JAX finds no device to run on: {error}", Code.UNAVAILABLE)
    devices = ", ".join(f"{device.platform}:{device.id}" for device in found)
    log.info(
        f"Python {platform.python_version()} in {sys.prefix}, JAX {jax.__version__}, "
        f"devices {devices}"
    )


@functools.cache
def _freeze_what_was_imported() -> None:
    """Keep Python's garbage collector from going through JAX's modules, once per process.

    They hold most of the objects of the process and stay to its end: a collection while requests
    wait would look at all of them, for some hundred milliseconds. What models make is looked at as
    ever, so that it goes when they are unloaded.
    """
    gc.collect()
    gc.freeze()


def load_model(request: str, observe: Observe) -> object:
    """Load a model.

    Args:
        request: ``ModelSpec`` of ``engine.h``, as JSON.
        observe: told of what happens to the model's programs.

    Returns:
        A `tritonserver_jax.runtime.model.Model`.
    """
    from tritonserver_jax.runtime.model import Model  # imports JAX

    _freeze_what_was_imported()
    spec = json.loads(request)
    return Model(
        name=spec["name"],
        version=spec["version"],
        directory=Path(spec["directory"]),
        config=json.loads(spec["config"]),
        complete_config=spec["complete_config"],
        default_max_batch_size=spec["default_max_batch_size"],
        observe=observe,
    )


def forget_unloaded_models() -> None:
    """Give up now what models held that are unloaded, or that failed to load.

    Code and its globals, compiled programs and tracebacks refer to one another in circles, which
    only the garbage collector finds. Left to itself it may come after ten reloads: of a model with
    a large table in its globals, the memory would hold ten. The time grows with what loaded models
    hold, without what JAX holds (`_freeze_what_was_imported`).
    """
    from tritonserver_jax.runtime.static_objects import empty_those_kept  # imports JAX

    gc.collect()
    empty_those_kept()
