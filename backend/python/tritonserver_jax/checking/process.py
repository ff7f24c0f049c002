# SPDX-License-Identifier: Apache-2.0
"""Starts the process in which a model is looked at, and reads what it says. Imports no JAX."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tritonserver_jax.checking.results import ModelReport
from tritonserver_jax.findings import Finding, Status
from tritonserver_jax.worker_process import PACKAGES, how_it_ended, kill_group, lines_of

__all__ = ["check_in_process"]

#: Of what a model printed before it ended its process, how many lines are shown.
_LAST_LINES: Final = 12

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
            env={**os.environ, "PYTHONPATH": str(PACKAGES)},
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
            kill_group(process)

        timer = threading.Timer(timeout, end)
        timer.start()
        try:
            assert process.stdin is not None  # noqa: S101 - a pipe, as asked for
            assert process.stdout is not None  # noqa: S101
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(json.dumps(request) + "\n")
                process.stdin.close()
            for line in lines_of(process):
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
            kill_group(process)
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        printed.seek(0)
        text = printed.read()
    for line in text.splitlines():
        tell("printed", line)
    if not reports:
        why = (
            f"took longer than {timeout:g} s" if late.is_set() else how_it_ended(process.returncode)
        )
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
