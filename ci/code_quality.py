# SPDX-License-Identifier: Apache-2.0
"""The report on code quality that GitLab reads: what ruff and hadolint find, in one file.

Both write GitLab's format themselves. A finding fails no job here; the checks of `ci.lint` do that.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ci.process import ROOT, CommandError

__all__ = ["write_report"]


def _findings(command: Sequence[str | Path]) -> list[dict[str, Any]]:
    """Run a tool that prints findings as JSON; its status only says whether there are any."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words,
        cwd=ROOT,
        # ruff writes paths as seen from there.
        env={**os.environ, "CI_PROJECT_DIR": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        found = json.loads(done.stdout)
    except ValueError as error:
        raise CommandError(
            f"{words[0]}: expected findings as JSON, got {done.stdout[:200]!r}; it said "
            f"{done.stderr[:500]!r}"
        ) from error
    if not isinstance(found, list):
        raise CommandError(f"{words[0]}: expected a list of findings, got {type(found).__name__}")
    return found


def write_report(path: Path, dockerfiles: Sequence[Path]) -> None:
    """Write the report.

    Args:
        path: The file; its folder is made if it is not there.
        dockerfiles: What hadolint reads.

    Raises:
        CommandError: A tool did not print findings.
    """
    found = _findings(["ruff", "check", "--output-format=gitlab", "."])
    found += _findings(["hadolint", "--no-fail", "--format=gitlab_codeclimate", *dockerfiles])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
