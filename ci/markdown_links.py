# SPDX-License-Identifier: Apache-2.0
"""Checks the links of Markdown as it is read in the repository, without any site."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from ci.process import ROOT, capture

__all__ = ["anchor_of", "anchors_of", "broken_links", "pages"]

_SPACE: Final = re.compile(r"[\s-]+")
_PUNCTUATION: Final = re.compile(r"[^\w\s-]")


def pages(root: Path = ROOT) -> list[Path]:
    """Return every page of Markdown that is in git, or is not yet."""
    listing = capture(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"], cwd=root
    )
    names = (listing or "").split("\0")
    return sorted(root / name for name in names if name and (root / name).is_file())


def anchor_of(heading: str) -> str:
    """Return what a heading is linked to by: GitLab's rule, which is the site's as well."""
    return _SPACE.sub("-", _PUNCTUATION.sub("", heading.strip().lower()))


def _text(token: Token) -> str:
    return "".join(child.content for child in token.children or ())


@cache
def anchors_of(page: Path) -> frozenset[str]:
    """Return the anchors of the headings of a page; one that is there already gets a number."""
    found: set[str] = set()
    tokens = MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8"))
    for opening, content in pairwise(tokens):
        if opening.type == "heading_open":
            anchor, number = anchor_of(_text(content)), 0
            while (one := f"{anchor}-{number}" if number else anchor) in found:
                number += 1
            found.add(one)
    return frozenset(found)


def _links(page: Path) -> Iterator[str]:
    parser = MarkdownIt("commonmark").enable("table")
    for token in parser.parse(page.read_text(encoding="utf-8")):
        for child in token.children or ():
            for name in ("href", "src"):
                if (link := child.attrGet(name)) is not None:
                    yield str(link)


def broken_links(page: Path, root: Path = ROOT) -> list[str]:
    """Return the links of a page that lead to no file of the repository, or to no part of one."""
    wrong = []
    for link in _links(page):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.is_relative_to(root) or not target.exists():
            wrong.append(f"{page.relative_to(root)}: {link}: expected a file, found none")
        elif anchor and target.suffix == ".md" and anchor not in anchors_of(target):
            wrong.append(f"{page.relative_to(root)}: {link}: {path or 'it'} has no such heading")
    return wrong
