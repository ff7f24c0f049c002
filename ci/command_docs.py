# SPDX-License-Identifier: Apache-2.0
"""The reference of the command line, made from the commands themselves for `ci.docs`."""

from __future__ import annotations

from typing import Any, Final

import typer

from tritonserver_jax.cli.app import find_commands, make_app
from tritonserver_jax.cli.command import EXIT_CODES, Command

__all__ = ["command_reference", "exit_codes"]

#: What `ci.guides` is told of each example: its options are checked, and it is not run.
NOT_RUN: Final = "<!-- not run: example -->"


def exit_codes() -> list[tuple[str, str]]:
    """Return each exit code, and what it means."""
    return [(str(int(code)), meaning) for code, meaning in EXIT_CODES.items()]


def command_reference() -> str:
    """Return a section for each command: what it does, its options, examples."""
    group: Any = typer.main.get_command(make_app())
    return "\n".join(_section(one, group.commands[one.name]) for one in find_commands())


def _section(described: Command, command: Any) -> str:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option"]
    words = [one.metavar if one.required else _optional(one.metavar) for one in arguments]
    needed = [f"{one.opts[0]} {one.metavar}" for one in options if one.required]
    usage = " ".join(["tritonserver-jax", described.name, *words, *needed, "[OPTIONS]"])
    lines = [f"### `{described.name}`", "", described.about(), "", "```text", usage, "```", ""]
    lines += ["| | |", "|---|---|"]
    lines += [f"| `{_name(one)}` | {_help(one)} |" for one in [*arguments, *options]]
    lines += [""]
    for example in described.examples:
        lines += [f"{example.about}:", "", NOT_RUN, "", "```sh", example.line, "```", ""]
    return "\n".join(lines)


def _optional(metavar: str) -> str:
    return metavar if metavar.startswith("[") else f"[{metavar}]"


def _name(param: Any) -> str:
    if param.param_type_name == "argument":
        return str(param.metavar)
    return param.opts[0] if param.is_flag else f"{param.opts[0]} {param.metavar or 'NUMBER'}"


def _help(param: Any) -> str:
    text = str(param.help).replace("|", "\\|")
    if param.param_type_name == "option" and not param.is_flag and param.default is not None:
        text += f" Default: {param.default}."
    return text + (" Required." if param.required else "")
