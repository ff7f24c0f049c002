# SPDX-License-Identifier: Apache-2.0
"""Lists how many blocks each page has, and why those are not run that are not."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable

from ci.guides.blocks import DATA, REASONS, Block, GuideError, guides, parse_page
from ci.process import fail

__all__ = ["summary"]


def summary(blocks: Iterable[Block]) -> list[str]:
    """Return lines that count blocks: those that are run, and the others by their reason."""
    every = list(blocks)
    programs = [block for block in every if block.runs]
    files = [block for block in every if block.path is not None]
    data = [block for block in every if block.language in DATA and block.path is None]
    reasons = Counter(block.reason for block in every if block.reason is not None)
    languages = Counter(block.language for block in programs)
    run = ", ".join(f"{count} of {name}" for name, count in sorted(languages.items())) or "none"
    lines = [
        f"{len(every)} blocks: {len(programs)} are run ({run}), {len(files)} are files that they "
        f"use, {len(data)} are no programs, {reasons.total()} are not run:"
    ]
    lines += [f"{reasons[name]:4} {name}: {REASONS[name]}" for name in sorted(reasons)]
    return lines


def main() -> int:
    """Print the list; returns the exit status."""
    pages = {}
    try:
        for page in guides():
            pages[page] = parse_page(page)
    except GuideError as error:
        return fail(error)
    for blocks in pages.values():
        for block in blocks:
            if block.reason is not None:
                print(f"{block.where}: not run: {block.reason}")
    print("\n".join(summary(block for blocks in pages.values() for block in blocks)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
