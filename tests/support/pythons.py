# SPDX-License-Identifier: Apache-2.0
"""Finding the Pythons that the backend's environment can have."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

#: Ends well in a Python of the wanted version which has its shared library.
_CHECK = """
import pathlib, sys, sysconfig
assert "%d.%d" % sys.version_info[:2] == sys.argv[1]
names = [sysconfig.get_config_var(key) or "" for key in ("INSTSONAME", "LDLIBRARY")]
folders = [sysconfig.get_config_var(key) or "" for key in ("LIBDIR", "LIBPL")]
assert any(
    ".so" in name and pathlib.Path(folder, name).is_file() for folder in folders for name in names
)
"""


def find_python(version: str) -> Path | None:
    """Find a Python with its shared library, as in ``"3.13"``; uv brings one where it can."""
    for candidate in _candidates(version):
        command = [str(candidate), "-I", "-c", _CHECK, version]
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            return candidate
    return None


def _candidates(version: str) -> Iterator[Path]:
    name = f"python{version}"
    if found := shutil.which(name):
        yield Path(found)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted(pyenv.glob(f"versions/{version}.*/bin/{name}"), reverse=True)
    uv = os.environ.get("UV") or shutil.which("uv")
    if uv is None:
        return
    for step in ("find", "install", "find"):
        command = [uv, "python", step, "--managed-python", version]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        if step == "find" and done.returncode == 0:
            yield Path(done.stdout.strip())
            return
