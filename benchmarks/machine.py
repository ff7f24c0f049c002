# SPDX-License-Identifier: Apache-2.0
"""What the figures were measured on, and with."""

from __future__ import annotations

import os
import platform
import re
from importlib.metadata import version
from pathlib import Path
from typing import Final

from benchmarks.pytriton import LOCK as PYTRITON_LOCK
from ci.locks import pinned
from ci.process import capture
from tritonserver_jax import __version__
from tritonserver_jax.tuning.perf_analyzer import PERF_ANALYZER

_PACKAGES: Final = ("jax", "jaxlib", "numpy", "fastapi", "uvicorn", "uvloop", "httptools")


def _first(path: str, pattern: str) -> str:
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "unknown"
    found = re.search(pattern, text, re.MULTILINE)
    return found[1].strip() if found else "unknown"


def describe_machine() -> dict[str, str]:
    """Return what the machine is."""
    gibibytes = int(_first("/proc/meminfo", r"^MemTotal:\s+(\d+)") or 0) / 2**20
    return {
        "processor": _first("/proc/cpuinfo", r"^model name\s*:\s*(.*)$"),
        "processors": str(len(os.sched_getaffinity(0))),
        "client": "on the same processors as the server",
        "memory": f"{gibibytes:.0f} GiB",
        "virtual": capture(["systemd-detect-virt"]) or "unknown",
        "kernel": platform.release(),
        "governor": _first(
            "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", r"^(\w+)$"
        ).replace("unknown", "none visible"),
        "system": _first("/etc/os-release", r'^PRETTY_NAME="?([^"]*)"?$'),
        "glibc": platform.libc_ver()[1],
    }


def describe_software(release: str) -> dict[str, str]:
    """Return what was measured, and with what.

    Args:
        release: Of the servers.
    """
    wrk = re.search(r"wrk\s+(\S+)", capture(["dpkg-query", "--show", "wrk"]) or "")
    in_pytriton = pinned(PYTRITON_LOCK)
    return {
        "tritonserver-jax": f"{__version__}, commit {commit()}",
        "tritonserver": release,
        "Python": platform.python_version(),
        **{name: version(name) for name in _PACKAGES},
        "PyTriton": f"{in_pytriton['nvidia-pytriton']}, with jax {in_pytriton['jax']} and numpy "
        f"{in_pytriton['numpy']}",
        "perf_analyzer": PERF_ANALYZER.version,
        "wrk": wrk[1] if wrk else "unknown",
    }


def commit() -> str:
    """Return the commit that was measured, with a + when files differ from it."""
    name = capture(["git", "rev-parse", "--short=12", "HEAD"])
    changed = capture(["git", "status", "--porcelain", "--untracked-files=no"])
    return f"{name}{'+' if changed else ''}" if name else "unknown"
