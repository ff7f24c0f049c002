# SPDX-License-Identifier: Apache-2.0
"""JAX's 64-bit mode, which is the thread's, for the code of a model that wants it."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import jax

__all__ = ["in_mode", "stream_in_mode", "x64_mode"]

# Moved out of jax.experimental in JAX 0.8.
_x64_home = jax if hasattr(jax, "enable_x64") else importlib.import_module("jax.experimental")
_enable_x64: Callable[[bool], AbstractContextManager[None]] = _x64_home.enable_x64

_Function = TypeVar("_Function", bound=Callable[..., Any])


def x64_mode(enabled: bool) -> AbstractContextManager[None]:
    """JAX's 64-bit mode as a model wants it, on this thread, whatever the process has."""
    return _enable_x64(enabled)


def in_mode(function: _Function, x64: bool) -> _Function:
    """Make a function run in the 64-bit mode; as it is, without."""
    if not x64:
        return function

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        with x64_mode(True):
            return function(*arguments, **named)

    return call  # type: ignore[return-value]  # it takes and returns the same


def stream_in_mode(function: Callable[..., Any], x64: bool) -> Callable[..., Any]:
    """Make a function that returns an iterator run in the 64-bit mode, each step of it."""
    if not x64:
        return function

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Iterator[Any]:
        with x64_mode(True):
            responses = iter(function(*arguments, **named))
        try:
            while True:
                # The mode is the thread's, and between two steps the thread is not the model's.
                with x64_mode(True):
                    try:
                        response = next(responses)
                    except StopIteration:
                        return
                yield response
        finally:
            close = getattr(responses, "close", None)
            if close is not None:
                with x64_mode(True):
                    close()

    return call
