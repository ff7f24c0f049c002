# SPDX-License-Identifier: Apache-2.0
"""A program that others ask, while it runs: started, waited for, and stopped."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

__all__ = ["running_service"]

_POLL_SECONDS: Final = 0.05
_LOG_LINES: Final = 15


@contextlib.contextmanager
def running_service(
    command: Sequence[str | Path],
    answers: Callable[[], bool],
    log: Path,
    *,
    error: type[Exception],
    name: str | None = None,
    remedy: str = "",
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    group: bool = False,
    start_seconds: float = 30,
    stop_seconds: float = 10,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program for a while, from when it answers.

    Args:
        command: The program and its arguments.
        answers: Says whether it answers by now.
        log: Where what it says goes.
        error: What to raise where it does not start; its last lines are in the message.
        name: What it is called there; by default the program's name.
        remedy: What may be done about it.
        cwd: Where it runs; by default where we do.
        env: Its variables; by default ours.
        group: Whether it has a process group of its own, so that a Ctrl-C is not for it. What is
            left of the group is killed in the end.
        start_seconds: How long it may take to answer.
        stop_seconds: How long it may take to end.

    Yields:
        The process.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(word) for word in command],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=env,
            start_new_session=group,
        )
    try:
        deadline = time.monotonic() + start_seconds
        while not answers():
            code = process.poll()
            if code is not None or time.monotonic() > deadline:
                said = log.read_text(encoding="utf-8", errors="replace").splitlines()
                shown = "\n".join(f"    {line}" for line in said[-_LOG_LINES:])
                state = (
                    f"ended with {code}"
                    if code is not None
                    else f"has not answered in {start_seconds:.0f} s"
                )
                called = name or Path(command[0]).name
                after = f"; {remedy}" if remedy else ""
                raise error(f"{called} {state}{after}. What it said ({log}):\n{shown}")
            time.sleep(_POLL_SECONDS)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(stop_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if group:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
