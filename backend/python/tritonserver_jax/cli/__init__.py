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

    from tritonserver_jax.cli.app import run

    sys.exit(run(sys.argv[1:]))
