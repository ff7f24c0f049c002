# SPDX-License-Identifier: Apache-2.0
"""Starts the process in which a model is made, and takes its answer. Imports no JAX.

Making one runs what its author wrote, which may do anything, and end the process that it is in.
Whoever asked for the model lives on, says so, and takes away what was begun.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from tritonserver_jax.authoring.errors import AuthoringError
from tritonserver_jax.worker_process import PACKAGES, how_it_ended, kill_group, lines_of

__all__ = ["REFUSED", "make_in_process"]

#: The kind of failure that is in words already; others have the name of an exception.
REFUSED: Final = "refused"


def make_in_process(
    job: str,
    request: Mapping[str, object],
    tell: Callable[[str], None] = lambda _text: None,
) -> dict[str, Any]:
    """Do one of the jobs of `tritonserver_jax.authoring.worker` in a process of its own.

    What an author's code prints goes to standard error, as it comes.

    Args:
        job: Its name.
        request: What it is given, in JSON's types.
        tell: Told what is being done.

    Returns:
        What it answers.

    Raises:
        AuthoringError: It was refused, or the author's code ended the process.
        OSError: A file could not be read or written.
    """
    with subprocess.Popen(
        # An author's modules are found as they are where this command runs.
        [sys.executable, "-P", "-m", "tritonserver_jax.authoring.worker"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(PACKAGES), *_own_path()])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
        # A signal from the keyboard is for the one who waits; it then ends all of this.
        start_new_session=True,
    ) as process:
        answer: dict[str, Any] | None = None
        try:
            assert process.stdin is not None  # noqa: S101 - a pipe, as asked for
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(json.dumps({"job": job, **request}) + "\n")
                process.stdin.close()
            for line in lines_of(process):
                event = _event(line)
                if event is None:
                    continue  # of a model that writes to what is not its own
                if event["event"] == "doing":
                    tell(str(event["text"]))
                else:
                    answer = event
                    break
            if answer is None:
                process.wait()
        finally:
            kill_group(process)
    if answer is None:
        raise AuthoringError(
            f"code that was loaded ended its process, which {how_it_ended(process.returncode)}; "
            "take out of it what ends one (os._exit, a C extension that crashes), or give the "
            "machine more memory"
        )
    if answer["event"] == "failed":
        raise _failure(answer)
    return answer


def _own_path() -> list[str]:
    before = os.environ.get("PYTHONPATH", "")
    return [before] if before else []


def _event(line: str) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except ValueError:
        return None
    known = isinstance(event, dict) and event.get("event") in ("doing", "done", "failed")
    return event if known else None


def _failure(answer: Mapping[str, Any]) -> Exception:
    """Return what was raised there, as far as it can be said here."""
    kind, message = str(answer["kind"]), str(answer["message"])
    error: Exception
    if kind == REFUSED:
        error = AuthoringError(message)
    elif kind == "OSError":
        error = OSError(*answer["arguments"])
    else:  # of the name that it had, so that a fault of ours is reported by it
        error = type(kind, (Exception,), {})(message)
    error.add_note(str(answer["traceback"]))
    return error
