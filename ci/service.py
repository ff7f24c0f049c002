# SPDX-License-Identifier: Apache-2.0
"""A program that others ask, while it runs: started, waited for, and stopped."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

__all__ = ["running_service"]

_START_SECONDS: Final = 30.0
_STOP_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.05
_LOG_LINES: Final = 15


@contextlib.contextmanager
def running_service(
    command: Sequence[str | Path],
    answers: Callable[[], bool],
    log: Path,
    *,
    error: type[Exception],
    cwd: Path | None = None,
) -> Iterator[None]:
    """Run a program for a while, from when it answers.

    Args:
        command: The program and its arguments.
        answers: Says whether it answers by now.
        log: Where what it says goes.
        error: What to raise where it does not start; its last lines are in the message.
        cwd: Where it runs; by default where we do.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(word) for word in command],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        deadline = time.monotonic() + _START_SECONDS
        while not answers():
            code = process.poll()
            if code is not None or time.monotonic() > deadline:
                said = log.read_text(encoding="utf-8", errors="replace").splitlines()
                shown = "\n".join(f"    {line}" for line in said[-_LOG_LINES:])
                state = (
                    f"ended with status {code}"
                    if code is not None
                    else f"does not answer after {_START_SECONDS:.0f} s"
                )
                name = Path(command[0]).name
                raise error(f"{name} {state}. What it said ({log}):\n{shown}")
            time.sleep(_POLL_SECONDS)
        yield
    finally:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
