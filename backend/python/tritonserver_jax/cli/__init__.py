# SPDX-License-Identifier: Apache-2.0
"""The command ``tritonserver-jax``.

A command is one module of `tritonserver_jax.cli.commands`, with a function of the module's name
that `tritonserver_jax.cli.command.command` decorates; it is found there, and nothing else has to
know of it. Importing a command must stay cheap: what takes long is imported in the function.
"""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command line; what the wheel's console script calls."""
    import sys

    _open_what_is_closed()

    from tritonserver_jax.cli.app import run

    sys.exit(run(sys.argv[1:]))


def _open_what_is_closed() -> None:
    """Let a stream that the shell has closed (``>&-``) lead nowhere, as ``/dev/null`` does.

    A command then ends as it would otherwise, and none of its files gets the number of a stream.
    """
    import os
    import sys

    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # the lowest that is free: this one
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            # Of Python, for as long as it lives.
            setattr(sys, name, open(number, "r" if number == 0 else "w", closefd=False))  # noqa: SIM115
