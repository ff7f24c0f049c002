# SPDX-License-Identifier: Apache-2.0
"""What a block of shell calls: its lines, our own commands in them, and the sessions of nox."""

from __future__ import annotations

import ast
import re
import shlex
from functools import cache
from typing import Any, Final

import typer

from ci.guides.blocks import Block, GuideError
from ci.process import ROOT
from tritonserver_jax.cli.app import make_app
from tritonserver_jax.releases import load_catalog

__all__ = ["check_calls", "lines_of", "session_names"]

PROGRAM: Final = "tritonserver-jax"
_SESSION: Final = re.compile(r"\./ci/nox\s+-s\s+([\w.<>-]+)")
_PROMPT: Final = "$ "


def lines_of(code: str) -> list[str]:
    """Return the lines of a script, those that a backslash goes on in joined, without comments."""
    joined = re.sub(r"[ \t]*\\\n[ \t]*", " ", code)
    lines = [line.strip() for line in joined.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def words_of(line: str) -> list[str]:
    """Return the words of a line; none of one that the shell alone can take apart."""
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return []


@cache
def session_names() -> frozenset[str]:
    """Return the names of all sessions of the noxfile, which is read and not run."""
    catalog = load_catalog()
    releases = {
        "RELEASES": list(catalog.releases),
        "SERVED": [name for name, one in catalog.releases.items() if one.server],
    }
    names = set()
    for node in ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.FunctionDef):
            continue
        for decorator in node.decorator_list:
            text = ast.unparse(decorator)
            if text == "nox.session":
                names.add(node.name)
            elif (named := re.match(r"nox\.session\(.*name='([^']+)'", text)) is not None:
                names.add(named[1])
            elif text.startswith("nox.session("):
                names.add(node.name)
            elif (each := re.fullmatch(r"each_release\('(\w+)', (\w+)\)", text)) is not None:
                names.update(f"{each[1]}-{release}" for release in releases[each[2]])
    return frozenset(names)


@cache
def _commands() -> dict[str, Any]:
    group: Any = typer.main.get_command(make_app())
    return dict(group.commands)


def _check_command(block: Block, line: str, words: list[str]) -> None:
    """Let the command line itself read the options of a call, without running it."""
    if not words or words[0].startswith("-") or not words[0].islower():
        return  # an option of the program itself, or COMMAND
    name, *arguments = words
    command = _commands().get(name)
    if command is None:
        raise GuideError(
            f"{block.where}: {line}: expected a command, one of {', '.join(_commands())}"
        )
    context = command.context_class(command, info_name=name)
    try:
        command.make_parser(context).parse_args(arguments)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        raise GuideError(f"{block.where}: {line}: {error.format_message()}") from error


def check_calls(block: Block) -> None:
    """Look at the calls of our own in a block, whether it is run or not.

    Raises:
        GuideError: A session, a command or an option is not there.
    """
    if block.language == "python":
        return
    for line in lines_of(block.code):
        words = words_of(line.removeprefix(_PROMPT))
        if PROGRAM in words:
            after = words[words.index(PROGRAM) + 1 :]
            ends = [at for at, word in enumerate(after) if word in {"|", "&&", ">", "||"}]
            _check_command(block, line, after[: ends[0]] if ends else after)
        for name in _SESSION.findall(line):
            if name not in session_names() and "<" not in name:
                raise GuideError(f"{block.where}: {line}: there is no session {name}")
