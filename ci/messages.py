# SPDX-License-Identifier: Apache-2.0
"""Every message that the backend gives to a person, as the sources have it.

What is put in when it is given is ``…`` here, so that the documentation can quote messages, and
tests can compare both ways: what is quoted is in the sources, and what is there has an entry.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ci.process import ROOT

__all__ = ["HOLE", "Message", "matches", "messages", "quoted"]

#: What stands for what differs from one time to the next.
HOLE: Final = "…"
RUNTIME: Final = ROOT / "backend" / "python" / "tritonserver_jax" / "runtime"
NATIVE: Final = (
    ROOT / "backend" / "src" / "core",
    ROOT / "backend" / "src" / "engine",
    ROOT / "backend" / "src" / "engine" / "python_loader",
    ROOT / "backend" / "src" / "engine" / "python",
)
#: Calls whose text goes to a client, to who loads a model, or as a warning to the log; and which of
#: their arguments it is.
_CALLS: Final = {"refuse": 0, "BackendError": 1, "log.warning": 0}
_NATIVE_CALL: Final = re.compile(
    r"\b(?:StatusError\(|Status(?:::Fatal)?\(|Refuse\()|(?:\bFail\(|\breturn |= )\{(?=Code::)"
)
_LITERAL: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class Message:
    """A message.

    Attributes:
        text: With `HOLE` for what is put in.
        where: The file and the line that give it.
    """

    text: str
    where: str


def messages() -> list[Message]:
    """Return every message of the backend."""
    found = [one for path in sorted(RUNTIME.glob("*.py")) for one in _of_python(path)]
    for folder in NATIVE:
        found += [one for path in sorted(folder.glob("*.*")) for one in _of_native(path)]
    return found


def _joined(pieces: list[str]) -> str:
    return re.sub(f"{HOLE}[{HOLE}]*", HOLE, "".join(pieces))


def _text(node: ast.expr, function: ast.FunctionDef) -> str:
    """The text of an expression, with a hole for whatever is not written in its function."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return _joined([_text(one, function) for one in values])
        case ast.FormattedValue(value=ast.Name() as name, conversion=-1):
            assigned = _values(name, function)
            if len(assigned) == 1 and name.id not in ast.unparse(assigned[0]):
                return _text(assigned[0], function)
            return HOLE
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _joined([_text(left, function), _text(right, function)])
    return HOLE


def _of_python(path: Path) -> Iterator[Message]:
    for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func).removeprefix("errors.")
            number = _CALLS.get(called)
            if number is None or number >= len(node.args):
                continue
            for given in _values(node.args[number], function):
                text = _text(given, function)
                if text.strip(f"{HOLE} :"):  # else it is put together elsewhere
                    yield Message(text, f"{path.relative_to(ROOT)}:{node.lineno}")


def _values(given: ast.expr, function: ast.FunctionDef) -> list[ast.expr]:
    """An argument; or what its function assigns to the variable that it is."""
    if not isinstance(given, ast.Name):
        return [given]
    return [
        node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id == given.id
    ]


def _of_native(path: Path) -> Iterator[Message]:
    source = path.read_text(encoding="utf-8")
    for call in _NATIVE_CALL.finditer(source):
        expression = _enclosed(source, call.end())
        text = _text_of_native(expression)
        if text.strip(f"{HOLE} :"):
            yield Message(
                text, f"{path.relative_to(ROOT)}:{source.count(chr(10), 0, call.end()) + 1}"
            )


def _enclosed(source: str, begin: int) -> str:
    """What is between here and the bracket that closes it."""
    depth, at = 1, begin
    while depth:
        if (literal := _LITERAL.match(source, at)) is not None:
            at = literal.end()
            continue
        depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(source[at], 0)
        at += 1
    return source[begin : at - 1]


def _text_of_native(expression: str) -> str:
    """The literals of an expression, with a hole where anything else is added to them."""
    pieces: list[str] = []
    end = 0
    for literal in _LITERAL.finditer(expression):
        between = expression[end : literal.start()].strip()
        if (pieces and between) or "+" in between:
            pieces.append(HOLE)
        pieces.append(re.sub(r"\\(.)", r"\1", literal[1]))
        end = literal.end()
    if pieces and "+" in expression[end:]:
        pieces.append(HOLE)
    return _joined(pieces)


def quoted(page: str) -> list[str]:
    """Return the messages that a page quotes: headings, and items of lists, in backticks alone."""
    return re.findall(r"^(?:#{3,4}|-) `(.+)`$", page, re.MULTILINE)


def matches(quotation: str, message: str) -> bool:
    """Whether a quotation is of a message: its pieces are in it, in order."""
    pieces = [re.escape(piece) for piece in quotation.split(HOLE)]
    return re.search(".*".join(pieces), message, re.DOTALL) is not None
