# SPDX-License-Identifier: Apache-2.0
"""Starts the process in which a model is looked at, and reads what it says. Imports no JAX."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from tritonserver_jax.checking.results import ModelReport
from tritonserver_jax.findings import Finding, Status

__all__ = ["check_in_process"]

#: Of what a model printed before it ended its process, how many lines are shown.
_LAST_LINES: Final = 12
_POLL_SECONDS: Final = 0.1

#: Where this package is found.
_PACKAGES: Final = Path(__file__).resolve().parents[2]

#: Told of what the process is doing ("doing"), and of the lines of its log (their level).
Tell = Callable[[str, str], None]


def check_in_process(
    directory: Path,
    *,
    version: int | None = None,
    on_cpu: bool = False,
    data: Path | None = None,
    timeout: float = 600,
    tell: Tell = lambda _kind, _text: None,
) -> list[ModelReport]:
    """Look at a model in a process of its own.

    Args:
        directory: Of the model.
        version: The one to look at; by default those that the version policy chooses.
        on_cpu: On the CPU, whatever the configuration says.
        data: Rows to try, an ``.npz`` file.
        timeout: Seconds for everything.
        tell: Told what happens.

    Returns:
        A report for each version; with the reason, where the process did not live to make one.
    """
    request = {
        "directory": str(directory.resolve()),
        "version": version,
        "on_cpu": on_cpu,
        "data": None if data is None else str(data.resolve()),
        "settings": {"platforms": "cpu"} if on_cpu else {},
    }
    reports: list[ModelReport] = []
    doing = f"{directory.name}: starting"
    late = threading.Event()
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as printed:
        process = subprocess.Popen(
            # As in the server, models find what the environment has, and nothing else.
            [sys.executable, "-P", "-s", "-m", "tritonserver_jax.checking.worker"],
            env={**os.environ, "PYTHONPATH": str(_PACKAGES)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=printed,
            text=True,
            errors="replace",
            # So that nothing is left of it, nor of what it started.
            start_new_session=True,
        )

        def end() -> None:
            late.set()
            _kill(process)

        timer = threading.Timer(timeout, end)
        timer.start()
        try:
            assert process.stdin is not None  # noqa: S101 - a pipe, as asked for
            assert process.stdout is not None  # noqa: S101
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(json.dumps(request) + "\n")
                process.stdin.close()
            for line in _lines(process):
                try:
                    event: dict[str, Any] = json.loads(line)
                    kind = event.pop("event")
                except (ValueError, KeyError, TypeError, AttributeError):
                    tell("printed", line)  # by a model that writes to what is not its own
                    continue
                if kind == "report":
                    reports.append(ModelReport.from_json(event))
                elif kind == "doing":
                    doing = event["text"]
                    tell("doing", doing)
                else:
                    tell(event["level"], event["text"])
            process.wait()
        finally:
            timer.cancel()
            _kill(process)
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        printed.seek(0)
        text = printed.read()
    for line in text.splitlines():
        tell("printed", line)
    if not reports:
        why = f"took longer than {timeout:g} s" if late.is_set() else _ended(process.returncode)
        last = "\n".join(text.splitlines()[-_LAST_LINES:])
        finding = Finding(
            "process",
            Status.FAIL,
            f"the process {why} (last it said: {doing}); in a server, that would be the server"
            + (f"\n{last}" if last else ""),
            "raise --timeout"
            if late.is_set()
            else "take out of the model what ends a process (os._exit, sys.exit, a C extension "
            "that crashes), or give the machine more memory",
        )
        reports = [ModelReport(directory.name, version, [finding])]
    return reports


def _lines(process: subprocess.Popen[str]) -> Iterator[str]:
    """Read lines until the process has ended, whoever else holds the other end of the pipe.

    A process that a model started may live on, out of reach.
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


def _kill(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _ended(code: int | None) -> str:
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            return f"was ended by {signal.Signals(-code).name}"
    return f"ended with status {code}"
