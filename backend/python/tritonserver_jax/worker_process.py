# SPDX-License-Identifier: Apache-2.0
"""What is known of a process in which authors' code runs, which may do anything."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["PACKAGES", "how_it_ended", "kill_group", "lines_of"]

#: Where this package is found.
PACKAGES: Final = Path(__file__).resolve().parents[1]
_POLL_SECONDS: Final = 0.1


def lines_of(process: subprocess.Popen[str]) -> Iterator[str]:
    """Read lines until the process has ended, whoever else holds the other end of the pipe.

    A process that an author's code started may live on, out of reach.
    """
    assert process.stdout is not None  # noqa: S101 - a pipe, as asked for
    pipe = process.stdout.fileno()
    rest = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while True:
            ended = process.poll() is not None
            if selector.select(0 if ended else _POLL_SECONDS):
                data = os.read(pipe, 1 << 16)
                if not data:
                    return
                rest += data
                if b"\n" in data:  # a report may be long
                    *whole, rest = rest.split(b"\n")
                    yield from (line.decode("utf-8", "replace") for line in whole)
            elif ended:
                return


def kill_group(process: subprocess.Popen[str]) -> None:
    """End a process that leads its group, and what it started in that."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def how_it_ended(code: int | None) -> str:
    """Say how a process ended, as in ``was ended by SIGSEGV``."""
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            return f"was ended by {signal.Signals(-code).name}"
    return f"ended with status {code}"
