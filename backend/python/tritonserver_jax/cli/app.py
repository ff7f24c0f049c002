# SPDX-License-Identifier: Apache-2.0
"""Puts the commands together."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from typing import Annotated

import typer

from tritonserver_jax import __version__
from tritonserver_jax.cli import commands
from tritonserver_jax.cli.command import Command, command_of

__all__ = ["find_commands", "make_app"]


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
