# SPDX-License-Identifier: Apache-2.0
"""Running the scripts that an artifact carries."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path


def run_script(
    script: Path, *arguments: str | Path, env: Mapping[str, str] | None = None, timeout: float = 600
) -> tuple[int, str]:
    """Run a script by itself; return its exit status and all that it printed."""
    done = subprocess.run(
        [str(script), *map(str, arguments)],
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=timeout,
        check=False,
    )
    return done.returncode, done.stdout
