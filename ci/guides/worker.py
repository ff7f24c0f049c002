# SPDX-License-Identifier: Apache-2.0
"""Runs the Python of one page, block by block, in a process and a namespace of its own.

It is given a line of JSON for each block, and answers with one: what the block printed, and the
traceback of what it raised.
"""

from __future__ import annotations

import contextlib
import io
import json
import linecache
import os
import sys
import traceback
from typing import Any


def _run(code: str, where: str, line: int, namespace: dict[str, Any]) -> dict[str, str | None]:
    shown = io.StringIO()
    failure = None
    # Tracebacks name the line of the page, and show it.
    text = "\n" * (line - 1) + code
    linecache.cache[where] = (len(text), None, text.splitlines(keepends=True), where)
    try:
        with contextlib.redirect_stdout(shown):
            exec(compile(text, where, "exec", dont_inherit=True), namespace)  # noqa: S102  our page
    except BaseException:
        failure = traceback.format_exc()
    return {"output": shown.getvalue(), "failure": failure}


def main() -> None:
    """Run blocks until there are no more."""
    # Whatever else writes to standard output must not come between the answers.
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)
        namespace: dict[str, Any] = {"__name__": "__main__"}
        for line in sys.stdin:
            asked = json.loads(line)
            answer = _run(asked["code"], asked["page"], asked["line"], namespace)
            print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
