# SPDX-License-Identifier: Apache-2.0
"""Where the time of a batch goes in this backend: by its own timers, under load."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.competitor_models import large, mlp
from benchmarks.competitor_models.weights import bucket_of
from benchmarks.competitors import (
    LARGE,
    LARGE_CONFIG,
    LARGE_ELEMENTS,
    MLP,
    fresh,
    serve,
    write_model,
)
from benchmarks.errors import BenchmarkError
from benchmarks.workplace import Workplace
from ci.process import ROOT
from tritonserver_jax.tuning.perf_analyzer import Load

#: The parameter that switches the timers on.
_PHASE_TIMES: Final = """\
parameters { key: "phase_times" value { string_value: "true" } }
"""
_CONFIG: Final = f'backend: "jax"\n{_PHASE_TIMES}'
_SAMPLE: Final = re.compile(r"^(\w+)\{([^}]*)\} (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class BatchTimes:
    """A batch at one concurrency, on average.

    Attributes:
        model: By name.
        concurrency: Of the requests, by gRPC.
        rows: Of a batch.
        phases: Microseconds in each phase of an execution.
        bare_call: Microseconds of a call of the compiled program for such a batch, alone.
    """

    model: str
    concurrency: int
    rows: float
    phases: dict[str, float]
    bare_call: float

    @property
    def total(self) -> float:
        """Microseconds of the whole execution."""
        return sum(self.phases.values())

    def to_json(self) -> dict[str, Any]:
        """As it goes into the report."""
        return {
            "model": self.model,
            "concurrency": self.concurrency,
            "rows": self.rows,
            "phases": self.phases,
            "bare_call": self.bare_call,
        }


def read_counters(page: str, model: str) -> dict[str, float]:
    """Return this backend's counters of a model, a phase's by ``jax_phase_time:<phase>``.

    Args:
        page: Of the server's metrics.
        model: By name.
    """
    found: dict[str, float] = {}
    for name, labels, value in _SAMPLE.findall(page):
        if not name.startswith("jax_") or f'model="{model}"' not in labels:
            continue
        phase = re.search(r'phase="(\w+)"', labels)
        key = f"{name}:{phase[1]}" if phase else name
        found[key] = found.get(key, 0.0) + float(value)
    return found


@dataclass(frozen=True)
class BareCalls:
    """Microseconds of what no server can save.

    Attributes:
        by_rows: Of a call of the compiled program, by model and batch size.
        copy: Of one copy of a tensor of the large model.
    """

    by_rows: dict[str, dict[int, float]]
    copy: float


def bare_calls(work: Workplace) -> BareCalls:
    """Measure bare calls, in the backend's environment."""
    python = work.environment / "bin" / "python"
    done = subprocess.run(
        [python, "-m", "benchmarks.bare_call"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise BenchmarkError(f"benchmarks.bare_call ended with {done.returncode}:\n{done.stderr}")
    found = json.loads(done.stdout)
    by_rows = {
        model: {int(size): float(value) for size, value in found[model].items()}
        for model in (MLP, LARGE)
    }
    return BareCalls(by_rows, float(found["copy"]))


def measure_batches(
    work: Workplace, concurrencies: tuple[int, ...], seconds: float
) -> tuple[list[BatchTimes], float]:
    """Serve the network with timers, and read them before and after some load.

    Args:
        work: What to serve with.
        concurrencies: Of the load.
        seconds: Of each load.

    Returns:
        The times, and the microseconds of one copy of a tensor of the large model.
    """
    bare = bare_calls(work)
    repository = fresh(Path(work.directory, "models", "timed"))
    found = []
    write_model(repository, MLP, config=_CONFIG, source=Path(mlp.__file__), params=True)
    config = f"{LARGE_CONFIG}{_PHASE_TIMES}"
    write_model(repository, LARGE, config=config, source=Path(large.__file__))
    loads = [Load(MLP, "grpc", concurrency, seconds) for concurrency in concurrencies]
    loads.append(Load(LARGE, "shm", 1, seconds, output_bytes=4 * LARGE_ELEMENTS))
    with serve(work, repository, work.backends) as running:
        assert running.server is not None  # noqa: S101 - serve() starts one
        assert running.grpc is not None  # noqa: S101
        for load in loads:
            work.perf_analyzer.measure(running.grpc, load)  # until the processor is warm
            before = read_counters(running.server.metrics(), load.model)
            work.perf_analyzer.measure(running.grpc, load)
            after = read_counters(running.server.metrics(), load.model)
            calls = bare.by_rows[load.model]
            found.append(batch_times(load.model, load.concurrency, before, after, calls))
    return found, bare.copy


def batch_times(
    model: str,
    concurrency: int,
    before: dict[str, float],
    after: dict[str, float],
    bare: dict[int, float],
) -> BatchTimes:
    """Return what happened per batch between two readings of the counters."""
    passed = {name: value - before.get(name, 0.0) for name, value in after.items()}
    calls = passed.get("jax_predict_calls", 0.0)
    if calls <= 0:
        raise BenchmarkError("jax_predict_calls: expected to grow under load, it did not")
    prefix = "jax_phase_time:"
    phases = {
        name.removeprefix(prefix): seconds * 1e6 / calls
        for name, seconds in passed.items()
        if name.startswith(prefix)
    }
    rows = passed["jax_real_rows"] / calls
    return BatchTimes(model, concurrency, rows, phases, bare[bucket_of(max(1, round(rows)))])
