# SPDX-License-Identifier: Apache-2.0
"""Running other programs: shown as they are run, and never through a shell."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

#: The root of the checkout.
ROOT = Path(__file__).resolve().parent.parent


class CommandError(RuntimeError):
    """A program could not be started, or ended with another status than zero."""


def run(
    command: Sequence[str | Path], *, cwd: Path = ROOT, env: Mapping[str, str] | None = None
) -> None:
    """Shows a command, and runs it with its output going where ours goes.

    Args:
        command: The program and its arguments.
        cwd: The directory to run it in; the root of the checkout when not given.
        env: The whole environment of the program; ours when not given.

    Raises:
        CommandError: It is not there, or it failed. Its own output says why.
    """
    words = [str(word) for word in command]
    print(f"$ {shlex.join(words)}", flush=True)
    try:
        result = subprocess.run(words, cwd=cwd, env=env, check=False)
    except OSError as error:
        raise CommandError(f"cannot start {words[0]} in {cwd}: {error.strerror}") from error
    if result.returncode != 0:
        raise CommandError(
            f"{shlex.join(words)} ended with status {result.returncode}; its output is above"
        )


def capture(command: Sequence[str | Path], *, cwd: Path = ROOT) -> str | None:
    """Returns what a command printed, or None when it is not there or failed.

    This is for questions that may have no answer (which commit is this? which compiler?), so
    what it says on standard error is dropped.
    """
    words = [str(word) for word in command]
    try:
        result = subprocess.run(
            words,
            cwd=cwd,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            errors="replace",
        )
    except OSError:
        return None
    return result.stdout.strip() if result.returncode == 0 else None


def fail(error: Exception) -> int:
    """Prints an error as one plain message, and returns the exit status to end with."""
    print(f"error: {error}", file=sys.stderr, flush=True)
    return 1
