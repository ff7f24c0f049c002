# SPDX-License-Identifier: Apache-2.0
"""The blocks of code of a page, and what its author says of each.

A block is run unless the line above it says why not::

    <!-- not run: docker -->

A block of text right after one that is run is the output that it has to have; ``...`` in it stands
for anything. A block whose first line is a comment with a path (``# models/mine/1/model.py``) is
written to that file. Python that a page needs and a reader does not goes into a comment::

    <!-- setup
    import numpy as np
    -->
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from ci.process import ROOT

__all__ = [
    "DATA",
    "PROGRAMS",
    "REASONS",
    "Block",
    "GuideError",
    "guides",
    "parse_page",
    "parse_text",
]

#: Why a block is not run: every reason that there is. Such blocks are still looked at: their
#: syntax, the options of our own commands, the names of sessions.
REASONS: Final = {
    "checkout": "changes the checkout that the tests run from",
    "cluster": "needs a Kubernetes cluster",
    "docker": "needs a container engine and the released images; `tests/images` runs the like",
    "example": "one line of several to choose from, with names of the reader's own",
    "gpu": "needs a GPU",
    "minutes": "takes minutes; it has tests of its own",
    "pipeline": "needs GitLab: its variables, its runner or its API",
    "published": "needs what only a publisher has: the project's registry, key or identity",
    "session": "a session of nox, which CI runs as it is",
    "system": "changes the system: packages or services",
}

#: What is run.
PROGRAMS: Final = ("console", "python", "sh")
#: What is not a program.
DATA: Final = (
    "dockerfile",
    "ini",
    "json",
    "mermaid",
    "pbtxt",
    "promql",
    "text",
    "toml",
    "yaml",
)

_NOTE: Final = re.compile(r"<!-- not run: (?P<reason>.*?) -->", re.DOTALL)
_SETUP: Final = re.compile(r"<!-- setup\n(?P<code>.*)-->", re.DOTALL)
_FILE: Final = re.compile(r"# (?P<path>[\w.-]+(?:/[\w.-]+)+)\n")


class GuideError(Exception):
    """A block is not as it should be, or did not do what its page says."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code.

    Attributes:
        page: The page, as a path from the root.
        line: Where its first line of code is.
        language: What it is written in.
        code: Its text.
        output: What it has to print, if the page says so.
        reason: Why it is not run; None if it is.
        path: The file that it is the text of, from the folder of the page; None if it is none.
        hidden: Whether readers do not see it.
    """

    page: str
    line: int
    language: str
    code: str
    output: str | None = None
    reason: str | None = None
    path: str | None = None
    hidden: bool = False

    @property
    def where(self) -> str:
        """The page and the line, as editors understand them."""
        return f"{self.page}:{self.line}"

    @property
    def runs(self) -> bool:
        """Whether it is a program that is run."""
        return self.language in PROGRAMS and self.reason is None and self.path is None


def guides() -> list[Path]:
    """Return every page whose blocks are run."""
    elsewhere = ("README.md", "CONTRIBUTING.md", "examples/README.md")
    return [*(ROOT / name for name in elsewhere), *sorted(ROOT.glob("docs/*.md"))]


def parse_page(path: Path) -> list[Block]:
    """Return the blocks of a page.

    Raises:
        GuideError: What is said of a block is not understood.
    """
    return parse_text(path.read_text(encoding="utf-8"), str(path.relative_to(ROOT)))


def parse_text(text: str, page: str) -> list[Block]:
    """Return the blocks of a page, in order.

    Args:
        text: The page.
        page: Its name, for messages.

    Raises:
        GuideError: What is said of a block is not understood.
    """
    blocks: list[Block] = []
    note: tuple[str, int] | None = None
    last: Token | None = None
    for token in MarkdownIt("commonmark").parse(text):
        if note is not None and token.type != "fence":
            raise _unused(page, note[1])
        if token.type == "fence":
            if last is not None and last.type == "fence" and _takes_output(blocks, token):
                blocks[-1] = _with_output(blocks[-1], token.content)
            else:
                blocks.append(_block(token, page, None if note is None else note[0]))
            note = None
        elif token.type == "html_block":
            for one in _comments(token, page):
                if isinstance(one, Block):
                    blocks.append(one)
                else:
                    note = (one, _line(token))
        last = token
    if note is not None:
        raise _unused(page, note[1])
    return blocks


def _line(token: Token) -> int:
    return token.map[0] + 1 if token.map else 0


def _comments(token: Token, page: str) -> Iterator[Block | str]:
    line = _line(token)
    if (setup := _SETUP.fullmatch(token.content.strip())) is not None:
        yield Block(page, line + 1, "python", setup["code"], hidden=True)
    elif (note := _NOTE.fullmatch(token.content.strip())) is not None:
        if note["reason"] not in REASONS:
            raise GuideError(
                f"{page}:{line}: {note['reason']!r} is no reason not to run a block; "
                f"expected one of {', '.join(REASONS)}"
            )
        yield note["reason"]
    elif token.content.startswith(("<!-- not run", "<!-- setup")):
        raise GuideError(
            f"{page}:{line}: expected a comment such as <!-- not run: docker -->, alone in its "
            f"lines, got {token.content.splitlines()[0]}"
        )


def _unused(page: str, line: int) -> GuideError:
    return GuideError(f"{page}:{line}: expected a block of code right after `not run`, found none")


def _block(token: Token, page: str, reason: str | None) -> Block:
    language = token.info.strip()
    line = _line(token) + 1
    if language not in (*PROGRAMS, *DATA):
        raise GuideError(
            f"{page}:{line - 1}: expected a block of {', '.join(PROGRAMS)} (which are run), or of "
            f"{', '.join(DATA)}; got {language or 'none of them'}"
        )
    if reason is not None and language not in PROGRAMS:
        raise GuideError(f"{page}:{line - 1}: {language} is never run, and needs no reason")
    file = _FILE.match(token.content)
    return Block(
        page,
        line,
        language,
        token.content,
        reason=reason,
        path=file["path"] if file is not None and reason is None else None,
    )


def _takes_output(blocks: list[Block], token: Token) -> bool:
    return token.info.strip() == "text" and blocks[-1].runs and blocks[-1].output is None


def _with_output(block: Block, output: str) -> Block:
    return Block(block.page, block.line, block.language, block.code, output=output)
