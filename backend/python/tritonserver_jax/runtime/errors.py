# SPDX-License-Identifier: Apache-2.0
"""Exceptions as Triton status codes and messages that a client or an operator can act on."""

from __future__ import annotations

import enum
import os
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from tritonserver_jax.runtime import log


class Code(enum.IntEnum):
    """Triton's error codes (``TRITONSERVER_Error_Code``)."""

    UNKNOWN = 0
    INTERNAL = 1
    NOT_FOUND = 2
    INVALID_ARG = 3
    UNAVAILABLE = 4
    UNSUPPORTED = 5
    ALREADY_EXISTS = 6
    CANCELLED = 7


class BackendError(Exception):
    """A failure that is already in words: what it concerns, expected, got, what to do.

    Attributes:
        code: for the client.
        fatal: whether nothing on the device can be expected to work after it.
    """

    def __init__(self, code: Code, message: str, *, fatal: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.fatal = fatal


def refuse(message: str, code: Code = Code.INVALID_ARG) -> NoReturn:
    """Raise a `BackendError`."""
    raise BackendError(code, message)


# What XLA says when a device or the host has no memory left.
_OUT_OF_MEMORY = ("RESOURCE_EXHAUSTED", "Out of memory", "out of memory")


# What XLA says of a device that does not recover: every later call on it fails too.
_DEVICE_LOST = (
    "CUDA_ERROR_ILLEGAL_ADDRESS",
    "CUDA_ERROR_LAUNCH_FAILED",
    "CUDA_ERROR_ECC_UNCORRECTABLE",
    "CUDA_ERROR_HARDWARE_STACK_ERROR",
    "CUDA_ERROR_ILLEGAL_INSTRUCTION",
    "CUDA_ERROR_MISALIGNED_ADDRESS",
    "CUDA_ERROR_INVALID_PC",
    "CUDA_ERROR_ASSERT",
    "CUDA_ERROR_DEVICE_UNAVAILABLE",
    "CUDA_ERROR_SYSTEM_NOT_READY",
    "an illegal memory access was encountered",
    "unspecified launch failure",
    "uncorrectable ECC error",
    "device-side assert triggered",
)


# What JAX raises where code asks for a value that is only traced.
_TRACED_VALUES = (
    "ConcretizationTypeError",
    "NonConcreteBooleanIndexError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
)

_MEMORY_ERRORS = ("MemoryError", "_ArrayMemoryError")
_TRACEBACK = "Traceback (most recent call last)"
_RUNTIME_ERRORS = ("JaxRuntimeError", "XlaRuntimeError")


def _raised(error: BaseException) -> tuple[str, str]:
    """Name and text of what was raised first.

    XLA puts the traceback of a failed callback into the text of an error of its own; an older one
    only the text.
    """
    name, text = type(error).__name__, str(error)
    if name in _RUNTIME_ERRORS and (_TRACEBACK in text or "callback" in text.lower()):
        # The last line that begins at the margin is the exception's own.
        for line in reversed(text.splitlines()):
            found = re.match(r"([A-Za-z_][\w.]*)(?:: (.*))?$", line)
            if found:
                return found[1].rpartition(".")[2], found[2] or ""
        return "", text
    return name, text


def _says(error: BaseException, signs: tuple[str, ...]) -> bool:
    # Only what the runtime of JAX raises: a model's own exception may say anything.
    name, text = _raised(error)
    return name in _RUNTIME_ERRORS and any(sign in text for sign in signs)


def _is_out_of_memory(error: BaseException) -> bool:
    # numpy raises a MemoryError of its own kind.
    of_host = isinstance(error, MemoryError) or _raised(error)[0] in _MEMORY_ERRORS
    return of_host or _says(error, _OUT_OF_MEMORY)


def _is_fatal(error: BaseException) -> bool:
    return _says(error, _DEVICE_LOST)


def _code_of(error: BaseException) -> Code:
    if _is_out_of_memory(error) or _is_fatal(error):
        return Code.UNAVAILABLE
    return Code.INTERNAL


def _place(error: BaseException, directory: Path) -> str:
    """The line of the model's own code that an error came from, as ``model.py:12``, or nothing."""
    if isinstance(error, SyntaxError) and error.filename:
        path, line = error.filename, error.lineno
        if Path(path).is_relative_to(directory):
            return f"{os.path.relpath(path, directory)}:{line}"
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if Path(frame.filename).is_relative_to(directory):
            return f"{os.path.relpath(frame.filename, directory)}:{frame.lineno}"
    return ""


def _summary(error: BaseException) -> str:
    # A SyntaxError's own text ends with the path of the file, which _place says better.
    text = str(error.msg) if isinstance(error, SyntaxError) else str(error)
    lines = [line for line in text.strip().splitlines() if line.strip()]
    # XLA puts the traceback of a failed callback into the message; its last line is the exception.
    if len(lines) > 1 and any(_TRACEBACK in line for line in lines):
        lines = [lines[0].split(":", 1)[0], lines[-1].strip()]
        text = ": ".join(lines)
    elif type(error).__name__ in _TRACED_VALUES:
        text = lines[0]  # the rest tells of the backend's own functions
    else:
        text = "\n".join(lines)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def model_code_error(doing: str, error: BaseException, directory: Path) -> BackendError:
    """What to tell the client when a model's own code failed; the traceback goes to the log, once.

    Args:
        doing: what was being done, such as ``"model 'm' version 1: predict"``.
        error: what the code raised.
        directory: where the model's code is, to name the line.
    """
    log.error(f"{doing} failed\n" + "".join(traceback.format_exception(error)).rstrip())
    place = _place(error, directory)
    hint = ""
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    if missing:
        hint = "; add the package to the environment: setup_env.sh --requirements FILE"
    if missing and ((directory / missing).is_dir() or (directory / f"{missing}.py").is_file()):
        hint = f"; it is beside model.py: import it as `from . import {missing}`"
    if type(error).__name__ in _TRACED_VALUES:
        hint = "; predict is traced: its values are not known yet, so use jax.numpy (jnp.where, …)"
    where = f" ({place})" if place else ""
    message = f"{doing} raised {_summary(error)}{where}{hint}"
    return BackendError(_code_of(error), message, fatal=_is_fatal(error))


@contextmanager
def model_code(doing: str, directory: Path) -> Iterator[None]:
    """Turn anything that a model's own code raises into a `BackendError`.

    ``SystemExit`` and ``KeyboardInterrupt`` too: a model must not be able to end the server.
    """
    try:
        yield
    except BackendError:
        raise
    except BaseException as error:
        raise model_code_error(doing, error, directory) from error


def describe(error: BaseException) -> tuple[int, str, bool]:
    """Code, message, and whether it is fatal, of any exception, for the C++ side.

    An exception that is no `BackendError` is a bug of this runtime: its traceback goes to the log.
    """
    if isinstance(error, BackendError):
        return int(error.code), log.printable(str(error)), error.fatal
    log.error("unexpected error\n" + "".join(traceback.format_exception(error)).rstrip())
    return int(_code_of(error)), log.printable(_summary(error)), _is_fatal(error)
