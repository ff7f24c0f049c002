# SPDX-License-Identifier: Apache-2.0
"""Puts the commands together."""

from __future__ import annotations

import importlib
import itertools
import pkgutil
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from tritonserver_jax import __version__
from tritonserver_jax.cli import commands
from tritonserver_jax.cli.command import Command, Output, UsageError, command_of

__all__ = ["find_commands", "make_app", "run"]


def find_commands() -> list[Command]:
    """Return every command, by name."""
    found = []
    for module in pkgutil.iter_modules(commands.__path__):
        name = module.name
        function = getattr(importlib.import_module(f"{commands.__name__}.{name}"), name, None)
        described = command_of(function)
        if described is None:
            raise TypeError(
                f"{commands.__name__}.{name}: expected a function {name} decorated by @command"
            )
        found.append(described)
    return sorted(found, key=lambda one: one.name)


def _show_version(wanted: bool) -> None:
    if wanted:
        python = ".".join(map(str, sys.version_info[:3]))
        typer.echo(f"tritonserver-jax {__version__} (Python {python})")
        raise typer.Exit


def make_app() -> typer.Typer:
    """Make the command line."""
    app = typer.Typer(
        no_args_is_help=True,
        # Errors are shown by `command`: in one line, and with a traceback by --debug alone.
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def tritonserver_jax(
        version: Annotated[
            bool,
            typer.Option("--version", callback=_show_version, is_eager=True, help="Show it."),
        ] = False,
    ) -> None:
        """Serve JAX models on NVIDIA Triton Inference Server."""

    for one in find_commands():
        app.command(one.name, help=one.about(), epilog=one.epilog())(one.function)
    return app


def run(arguments: Sequence[str]) -> int:
    """Run the command line, and return the exit code.

    Args:
        arguments: What comes after the name of the program.
    """
    app, own = make_app(), list(itertools.takewhile(lambda word: word != "--", arguments))
    if "--json" not in own:
        app(list(arguments), prog_name="tritonserver-jax")
        return 0  # never: it exits
    # What typer refuses is told to a machine, too.
    try:
        code = app(list(arguments), prog_name="tritonserver-jax", standalone_mode=False)
    except Exception as error:
        if not isinstance(error, typer.BadParameter.__mro__[1]):  # click's UsageError
            raise
        named = next((one for one in find_commands() if one.name in own[:1]), None)
        out = Output(as_json=True)
        name = "" if named is None else f" {named.name}"
        failure = UsageError(
            error.format_message(),  # type: ignore[attr-defined]
            f"see tritonserver-jax{name} --help",
        )
        out.error(failure)
        out.close(failure.code, failure, events=named is not None and named.events)
        return int(failure.code)
    return int(code or 0)
