# SPDX-License-Identifier: Apache-2.0
"""Triton's log, for the runtime and for everything in Python that uses `logging`."""

from __future__ import annotations

import enum
import logging
import sys
from collections.abc import Callable
from types import FrameType


class Level(enum.IntEnum):
    """Levels of the engine interface (``LogLevel`` in ``engine.h``)."""

    INFO = 0
    WARNING = 1
    ERROR = 2
    VERBOSE = 3


LogFunction = Callable[[int, str, int, str], None]


def _to_standard_error(level: int, file: str, line: int, message: str) -> None:
    print(f"{Level(level).name} {file}:{line} {message}", file=sys.stderr)


_write: LogFunction = _to_standard_error
_quiet = False


def printable(text: str) -> str:
    """Text as the C++ side can take it: UTF-8 without zeros."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\0")


def _emit(level: Level, message: str) -> None:
    frame: FrameType | None = sys._getframe(2)
    file, line = ("?", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)
    _write(level, file, line, printable(f"jax: {message}"))


def set_quiet(quiet: bool) -> None:
    """Whether to leave out what `detail` logs."""
    global _quiet
    _quiet = quiet


def info(message: str) -> None:
    """Log what an operator may want to know."""
    _emit(Level.INFO, message)


def detail(message: str) -> None:
    """Log what an operator may want to know, and may have asked to be spared."""
    _emit(Level.VERBOSE if _quiet else Level.INFO, message)


def warning(message: str) -> None:
    """Log what an operator should look at."""
    _emit(Level.WARNING, message)


def error(message: str) -> None:
    """Log a failure."""
    _emit(Level.ERROR, message)


def verbose(message: str) -> None:
    """Log what helps in looking for a problem (``--log-verbose=1``)."""
    _emit(Level.VERBOSE, message)


class _Handler(logging.Handler):
    """Python's `logging` into Triton's log."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR:
            level = Level.ERROR
        elif record.levelno >= logging.WARNING:
            level = Level.WARNING
        elif record.levelno >= logging.INFO:
            level = Level.INFO
        else:
            level = Level.VERBOSE
        try:
            text = printable(f"{record.name}: {self.format(record)}")
            _write(level, record.pathname, record.lineno, text)
        except Exception:
            self.handleError(record)


def install(write: LogFunction) -> None:
    """Send the runtime's log, and that of Python's `logging`, to `write`."""
    global _write
    _write = write
    root = logging.getLogger()
    if not any(isinstance(handler, _Handler) for handler in root.handlers):
        root.addHandler(_Handler())
