# SPDX-License-Identifier: Apache-2.0
"""The process in which a model is made: what its author wrote runs here, and may end it.

It reads a request, a line of JSON, and writes a line for each event: ``{"event": "doing"}`` any
number of times, then ``"done"`` or ``"failed"``. What an author's code prints goes to standard
error.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tritonserver_jax.authoring.errors import AuthoringError
from tritonserver_jax.authoring.process import REFUSED

__all__ = ["JOBS", "main"]

#: Says what is being done.
Say = Callable[[str], None]


def _path(value: str | None) -> Path | None:
    return None if value is None else Path(value)


def make(request: dict[str, Any], _say: Say) -> dict[str, Any]:
    """Write the code and the parameters of a model; say which package it needs besides."""
    from tritonserver_jax.authoring import new_model
    from tritonserver_jax.authoring.inputs import parse_inputs

    version = Path(request["version"])
    specs, rows = parse_inputs(request["inputs"]), int(request["max_batch_size"])
    checkpoint = _path(request["checkpoint"])
    if request["template"]:
        new_model.from_template(version, specs, rows)
    elif request["exported"] is not None:
        new_model.from_exported(version, Path(request["exported"]))
    elif request["source"] is not None:
        found = new_model.from_object(version, request["source"], specs, rows, checkpoint)
        return {"needs": "" if found.file is not None else found.module.__name__}
    else:
        assert checkpoint is not None  # noqa: S101 - one of them is given
        new_model.from_checkpoint(version, checkpoint, specs, rows)
    return {"needs": ""}


def export(request: dict[str, Any], say: Say) -> dict[str, Any]:
    """Export a model, or an object."""
    from tritonserver_jax.authoring import exporting
    from tritonserver_jax.authoring.inputs import parse_inputs

    if request["model"] is not None:
        model = Path(request["model"])
        say(f"loading {model.name}")
        of = exporting.of_model(model, int(request["of_version"]))
    else:
        of = exporting.of_object(
            request["source"],
            parse_inputs(request["inputs"]),
            int(request["max_batch_size"]),
            _path(request["checkpoint"]),
        )
    say(f"exporting {of.what} for {', '.join(request['platforms'])}")
    exporting.export_source(of, Path(request["version"]), request["platforms"])
    return {}


JOBS: Final[dict[str, Callable[[dict[str, Any], Say], dict[str, Any]]]] = {
    "make": make,
    "export": export,
}


def main() -> int:
    """Do one job."""
    # Before anything of the author's runs: what it prints must not get among the events.
    own = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    request = json.loads(sys.stdin.readline())

    def send(event: str, **values: object) -> None:
        print(json.dumps({"event": event, **values}), file=own, flush=True)

    # Whatever it was is said, and by whom: who asked is in another process.
    try:
        made = JOBS[request["job"]](request, lambda text: send("doing", text=text))
    except BaseException as error:
        send("failed", **_described(error))
    else:
        send("done", **made)
    # Threads that an author's code left behind must not keep the process.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _described(error: BaseException) -> dict[str, object]:
    from tritonserver_jax.runtime.errors import BackendError

    told: dict[str, object] = {
        "kind": type(error).__name__,
        "message": str(error),
        "traceback": "".join(traceback.format_exception(error)),
    }
    if isinstance(error, AuthoringError | BackendError):
        told["kind"] = REFUSED
    elif isinstance(error, SystemExit):
        told["kind"] = REFUSED
        told["message"] = (
            f"code that was imported ended this command: sys.exit({error.code!r}); take that out "
            "of the module, or put it below if __name__ == '__main__'"
        )
    elif isinstance(error, OSError) and error.errno is not None:
        told["kind"] = "OSError"
        name = None if error.filename is None else str(error.filename)
        told["arguments"] = [error.errno, error.strerror, *([] if name is None else [name])]
    return told


if __name__ == "__main__":
    sys.exit(main())
