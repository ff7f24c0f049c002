# SPDX-License-Identifier: Apache-2.0
"""How much memory a competitor takes, and how much an instance of a model."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

import psutil

from benchmarks.competitor_models import mlp
from benchmarks.competitors import MLP, fresh, serve, write_model
from benchmarks.workplace import Workplace
from tritonserver_jax.tuning.perf_analyzer import Load

#: So many instances at once, for the difference to be larger than its noise.
_INSTANCES: Final = 9


def resident_mib(pid: int) -> dict[str, float]:
    """Return the memory of a process and of those below it, in MiB.

    Args:
        pid: The first process.

    Returns:
        ``rss`` as ``ps`` adds it up, and ``private``: what no other process has mapped.
    """
    total = {"rss": 0.0, "private": 0.0}
    first = psutil.Process(pid)
    for process in [first, *first.children(recursive=True)]:
        with contextlib.suppress(psutil.Error):
            found = process.memory_full_info()
            total["rss"] += found.rss / 2**20
            total["private"] += found.uss / 2**20
    return total


def instance_mib(work: Workplace) -> float:
    """Return the memory that one more instance of the network takes, in MiB of RSS."""
    found = {}
    for count in (1, _INSTANCES):
        repository = fresh(Path(work.directory, "models", f"memory_{count}"))
        config = f'backend: "jax"\ninstance_group {{ count: {count} kind: KIND_CPU }}\n'
        write_model(repository, MLP, config=config, source=Path(mlp.__file__), params=True)
        with serve(work, repository, work.backends) as running:
            assert running.grpc is not None  # noqa: S101 - every tritonserver has it
            work.perf_analyzer.measure(running.grpc, Load(MLP, "grpc", 32, 1.0))
            found[count] = resident_mib(running.pid)["rss"]
    return (found[_INSTANCES] - found[1]) / (_INSTANCES - 1)
