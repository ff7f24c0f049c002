# SPDX-License-Identifier: Apache-2.0
"""PyTriton's environment, apart from all others: it needs NumPy 1, and so an older JAX."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Final

from benchmarks.errors import BenchmarkError
from ci.process import ROOT, run

#: Made by ``uv pip compile --generate-hashes`` from the .in file beside it.
LOCK: Final = ROOT / "benchmarks" / "locks" / "pytriton.txt"


def pytriton_python(directory: Path) -> Path:
    """Return the Python of the environment, made from its lock when it is not there.

    Args:
        directory: Of the environment.
    """
    uv = os.environ.get("UV") or shutil.which("uv")
    if uv is None:
        raise BenchmarkError("uv: expected on PATH or in $UV, found neither; ./ci/nox brings it")
    python = directory / "bin" / "python"
    made_from = directory / ".made-from"
    wanted = LOCK.read_text(encoding="utf-8") + sys.version
    if made_from.is_file() and made_from.read_text(encoding="utf-8") == wanted:
        return python
    run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, directory])
    run([uv, "pip", "sync", "--quiet", "--require-hashes", "--python", python, LOCK])
    made_from.write_text(wanted, encoding="utf-8")
    return python
