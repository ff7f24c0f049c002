# SPDX-License-Identifier: Apache-2.0
"""The process in which a model is looked at: its code may do anything, and end it.

It reads a request, a line of JSON, and writes a line for each event:
``{"event": "doing" | "log" | "report", ...}``. What the model prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, TextIO

from tritonserver_jax.findings import Finding, Status

__all__ = ["main"]

_WARNING = 1
_LEVELS = ("info", "warning", "error", "verbose")
#: Of the runtime's own warnings, what is said in a finding of its own.
_SAID_ELSEWHERE = ("which JAX narrows",)


class _Pipe:
    """Writes events."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.warnings: list[str] = []

    def send(self, event: str, **values: Any) -> None:
        """Write an event at once."""
        print(json.dumps({"event": event, **values}), file=self._stream, flush=True)

    def log(self, level: int, _file: str, _line: int, message: str) -> None:
        """Take a line of the runtime's log."""
        text = message.removeprefix("jax: ")
        self.send("log", level=_LEVELS[level], text=text)
        if level == _WARNING and not any(one in text for one in _SAID_ELSEWHERE):
            self.warnings.append(text)


def main() -> int:
    """Look at one model."""
    # Before anything of the model's runs: what it prints must not get among the events.
    own = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    request = json.loads(sys.stdin.readline())
    pipe = _Pipe(own)
    pipe.send("doing", text=f"{Path(request['directory']).name}: starting JAX")

    from tritonserver_jax.checking.results import ModelReport
    from tritonserver_jax.runtime import entry
    from tritonserver_jax.runtime.errors import BackendError

    directory = Path(request["directory"])
    try:
        entry.initialize(pipe.log, json.dumps(request["settings"]))
    except BackendError as error:
        finding = Finding("environment", Status.FAIL, str(error))
        pipe.send("report", **ModelReport(directory.name, None, [finding]).as_json())
        return 0
    pipe.warnings.clear()  # of JAX's own start
    from tritonserver_jax.checking.model_check import Options, check_model

    reports = check_model(
        directory,
        request["version"],
        Options(
            on_cpu=request["on_cpu"],
            data=Path(request["data"]) if request["data"] else None,
        ),
        lambda text: pipe.send("doing", text=text),
    )
    said = [Finding("log", Status.WARN, text) for text in dict.fromkeys(pipe.warnings)]
    reports[0].findings += said
    for report in reports:
        pipe.send("report", **report.as_json())
    # Threads that a model left behind must not keep the process.
    own.flush()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
