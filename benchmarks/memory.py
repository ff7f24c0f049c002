# SPDX-License-Identifier: Apache-2.0
"""How much memory a competitor takes: of all its processes, shared pages counted once."""

from __future__ import annotations

import contextlib

import psutil


def resident_mib(pid: int) -> dict[str, float]:
    """Return the memory of a process and of those below it, in MiB.

    Args:
        pid: The first process.

    Returns:
        ``rss`` as ``ps`` adds it up, and ``pss``, where what several share is divided by them.
    """
    total = {"rss": 0.0, "pss": 0.0}
    first = psutil.Process(pid)
    for process in [first, *first.children(recursive=True)]:
        with contextlib.suppress(psutil.Error):
            found = process.memory_full_info()
            total["rss"] += found.rss / 2**20
            total["pss"] += found.pss / 2**20
    return total
