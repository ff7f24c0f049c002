# SPDX-License-Identifier: Apache-2.0
"""Settings of the whole backend, ``--backend-config=jax,key=value``: declared and validated."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonserver_jax.runtime import log
from tritonserver_jax.runtime.errors import refuse
from tritonserver_jax.runtime.parameters import Parameter, absolute_path, positive

# What Triton itself gives to every backend.
_TRITONS = (
    "auto-complete-config",
    "backend-directory",
    "default-max-batch-size",
    "min-compute-capability",
)
_LOG_DETAILS = ("quiet", "normal", "detailed")


def _text(text: str) -> str:
    if not text:
        raise ValueError
    return text


def _log_detail(text: str) -> str:
    if text not in _LOG_DETAILS:
        raise ValueError
    return text


def _fraction(text: str) -> float:
    fraction = float(text)
    if not 0 < fraction <= 1:
        raise ValueError
    return fraction


def _bool(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


def _platforms(text: str) -> str:
    names = [part.strip().lower() for part in text.split(",")]
    if not all(name.isidentifier() for name in names):
        raise ValueError
    return ",".join(names)


SETTINGS: tuple[Parameter, ...] = (
    Parameter(
        "env",
        "The Python environment of the backend. By default env beside the backend's libraries.",
        "a path",
        _text,
    ),
    Parameter(
        "compile-cache",
        "Directory for compiled programs of all models that do not name their own.",
        "an absolute path",
        absolute_path,
    ),
    Parameter(
        "log-detail",
        "quiet leaves out what is logged at each compilation; detailed adds what JAX itself logs.",
        "quiet, normal or detailed",
        _log_detail,
    ),
    Parameter(
        "platforms",
        "Which of JAX's platforms to open: with cpu, a server whose models are all KIND_CPU takes "
        "nothing of a GPU. By default those of JAX_PLATFORMS, or all that JAX finds.",
        "names separated by commas, the preferred one first, such as cuda,cpu",
        _platforms,
    ),
    Parameter(
        "memory-fraction",
        "Share of a GPU's memory that JAX takes for itself. All models of a server share it.",
        "a number > 0 and <= 1, such as 0.5",
        _fraction,
    ),
    Parameter(
        "preallocate",
        "Whether JAX takes that share when it starts, or only when it needs it.",
        "true or false",
        _bool,
    ),
    Parameter(
        "cpu-devices",
        "How many devices JAX makes of the CPU, for instance groups that are to be apart.",
        "an integer > 0",
        positive,
    ),
)


@dataclass(frozen=True)
class Settings:
    """The values of this server. See `SETTINGS`."""

    compile_cache: Path | None = None
    log_detail: str = "normal"
    platforms: str | None = None
    memory_fraction: float | None = None
    preallocate: bool | None = None
    cpu_devices: int | None = None


_current = Settings()


def current() -> Settings:
    """The settings of this server."""
    return _current


def parse_settings(given: Mapping[str, str]) -> Settings:
    """The settings that the server was started with.

    A key that resembles one of ours is refused; what resembles none may be a newer Triton's, and is
    warned of.

    Raises:
        BackendError: INVALID_ARG naming the key.
    """
    known: dict[str, Callable[[str], Any]] = {one.key: one.parse for one in SETTINGS}
    values: dict[str, Any] = {}
    for key, text in given.items():
        if key in _TRITONS:
            continue
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            if close:
                refuse(f"--backend-config=jax,{key}={text}: did you mean '{close[0]}'?")
            log.warning(
                f"--backend-config=jax,{key}={text} is unknown and has no effect; known are "
                + ", ".join(known)
            )
            continue
        try:
            values[key.replace("-", "_")] = known[key](text)
        except (ValueError, KeyError):
            expected = next(one.expected for one in SETTINGS if one.key == key)
            refuse(f"--backend-config=jax,{key}: expected {expected}, got {text!r}")
    values.pop("env", None)  # the core's
    return Settings(**values)


def apply(settings: Settings) -> None:
    """Make the settings those of this server; before JAX is imported."""
    global _current
    _current = settings
    log.set_quiet(settings.log_detail == "quiet")
    if settings.memory_fraction is not None:
        os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = str(settings.memory_fraction)
    if settings.preallocate is not None:
        os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = str(settings.preallocate).lower()
