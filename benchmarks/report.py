# SPDX-License-Identifier: Apache-2.0
"""The report of a run: JSON for machines, and the document that is made from it."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.competitors import COMPETITORS, LARGE, MLP
from benchmarks.overhead import BatchTimes
from benchmarks.plots import TITLES
from benchmarks.results import Run, medians, spread
from benchmarks.starts import Start
from benchmarks.tables import Rows, ratio_rows, throughput_rows

_SCHEMA: Final = 2

#: Microseconds in the engine and JAX, and the ratio of compile times: what was to be reached.
_TARGET_PYTHON: Final = 45.0
_TARGET_WARM: Final = 5.0
#: Of an execution, in their order.
_PHASES: Final = ("read", "gather", "run", "scatter", "send", "finish")


@dataclass
class Report:
    """Everything that one run of the benchmark found."""

    date: str
    machine: Mapping[str, str]
    software: Mapping[str, str]
    rounds: int
    seconds: float
    minutes: float = 0.0
    runs: list[Run] = field(default_factory=list)
    memory: dict[str, dict[str, float]] = field(default_factory=dict)
    ready_seconds: dict[str, float] = field(default_factory=dict)
    batches: list[BatchTimes] = field(default_factory=list)
    copy_us: float = 0.0
    instance_mib: float | None = None
    starts: list[Start] = field(default_factory=list)

    def to_json(self) -> str:
        """As a file."""
        data: dict[str, Any] = {
            "schema": _SCHEMA,
            "date": self.date,
            "machine": dict(self.machine),
            "software": dict(self.software),
            "rounds": self.rounds,
            "seconds": self.seconds,
            "minutes": self.minutes,
            "memory": self.memory,
            "ready_seconds": self.ready_seconds,
            "batches": [one.to_json() for one in self.batches],
            "copy_us": self.copy_us,
            "instance_mib": self.instance_mib,
            "starts": [one.to_json() for one in self.starts],
            "runs": [one.to_json() for one in self.runs],
        }
        return json.dumps(data, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Report:
        """Back from a file."""
        data = json.loads(text)
        if data.pop("schema", None) != _SCHEMA:
            raise ValueError(f"expected a report with schema {_SCHEMA}")
        data["runs"] = [Run.from_json(one) for one in data["runs"]]
        data["batches"] = [BatchTimes(**one) for one in data["batches"]]
        data["starts"] = [Start(**one) for one in data["starts"]]
        return cls(**data)


def batch_rows(report: Report) -> Rows:
    """Where the time of a batch goes."""
    found = {name for one in report.batches for name in one.phases}
    phases = [name for name in _PHASES if name in found] + sorted(found - set(_PHASES))
    table = Rows(
        "A batch of this backend, µs",
        ("model", "concurrency", "rows", *phases, "sum", "bare call", "run - bare call"),
    )
    for one in report.batches:
        table.rows.append(
            (
                *(one.model, str(one.concurrency), f"{one.rows:.1f}"),
                *(f"{one.phases.get(name, 0.0):.1f}" for name in phases),
                *(f"{one.total:.1f}", f"{one.bare_call:.1f}"),
                f"{one.phases.get('run', 0.0) - one.bare_call:.1f}",
            )
        )
    return table


def start_rows(report: Report) -> Rows:
    """Cold and warm starts, and what the compile cache saves."""
    table = Rows(
        "Starts with a compile cache",
        ("model", "start", "ready s", "compile s", "of it XLA s", "programs", "from the cache"),
    )
    for kind in ("cold", "warm"):
        for model in dict.fromkeys(one.model for one in report.starts):
            of = [one for one in report.starts if (one.model, one.kind) == (model, kind)]
            middle = sorted(of, key=lambda one: one.compile_seconds)[len(of) // 2]
            table.rows.append(
                (
                    *(model, kind, f"{middle.ready_seconds:.2f}"),
                    *(f"{middle.compile_seconds:.3f}", f"{middle.xla_seconds:.3f}"),
                    *(str(middle.programs), str(middle.cache_hits)),
                )
            )
    table.rows.sort(key=lambda row: row[0])
    return table


def memory_rows(report: Report) -> Rows:
    """Memory of each competitor after the runs, and how long it took to be ready."""
    table = Rows("Memory and start", ("competitor", "RSS MiB", "private MiB", "ready after s"))
    for name, one in report.memory.items():
        ready = report.ready_seconds[name]
        table.rows.append(
            (COMPETITORS[name].title, f"{one['rss']:.0f}", f"{one['private']:.0f}", f"{ready:.1f}")
        )
    return table


def other_rows(report: Report) -> Rows:
    """What was to be reached and is no ratio between competitors."""
    table = Rows("Other targets", ("figure", "found", "target", "result"))

    def add(name: str, value: float, target: float, *, at_least: bool, unit: str) -> None:
        met = value >= target if at_least else value <= target
        table.rows.append(
            (
                *(name, f"{value:.1f}{unit}", f"{'≥' if at_least else '≤'} {target:g}{unit}"),
                "met" if met else "not met",
            )
        )

    for one in report.batches:
        if (one.model, one.concurrency) == (MLP, 1):
            run = one.phases.get("run", one.total)
            add("engine and JAX per batch at c1", run, _TARGET_PYTHON, at_least=False, unit=" µs")
    for model in dict.fromkeys(one.model for one in report.starts):
        cold, warm = (
            statistics.median(
                one.xla_seconds for one in report.starts if (one.model, one.kind) == (model, kind)
            )
            for kind in ("cold", "warm")
        )
        name = f"XLA's part of the compile time, cold ÷ warm, {model}"
        add(name, cold / warm, _TARGET_WARM, at_least=True, unit="")
    return table


def document(report: Report) -> str:
    """Return docs/benchmarks.md."""
    found = medians(report.runs)
    spreads = [spread(report.runs, cell) for cell in found]
    facts = [f"- {key}: {value}" for key, value in {**report.machine, **report.software}.items()]
    parts = [
        "# Benchmarks",
        "Made by `./ci/nox -s bench -- --report`; do not edit. The figures of one whole run "
        f"({report.date}, {report.minutes:.0f} minutes): {report.rounds} rounds of "
        f"{report.seconds:g} s each, medians. In a round every competitor is measured once, the "
        "next round goes the other way; between the slowest and the fastest round of a cell lie "
        f"{sorted(spreads)[len(spreads) // 2]:.0%} of its median in the middle of all cells. "
        "Before it is measured, every competitor's answers are compared with plain JAX.",
        "Client and server share the processors, so every microsecond that a server saves is "
        "also one that the client gets, and the other way round. Compare within this page only.",
        "\n".join(facts),
        "## What was to be reached",
        ratio_rows(found).markdown(),
    ]
    if report.batches or report.starts:
        parts.append(other_rows(report).markdown())
    parts.append("## Who is compared")
    measured = {cell.competitor for cell in found}
    parts.append(
        "\n".join(
            f"- **{one.title}**: {one.description}"
            for one in COMPETITORS.values()
            if one.name in measured
        )
    )
    parts.append(
        "The network has 64 → 256 → 256 → 10 units in FP32, one row per request. FastAPI is sent "
        "the bytes of a row and answers bytes, which is the best that it can be given; Triton's "
        "HTTP gets the same bytes after some words of JSON, as its protocol has it. perf_analyzer "
        "speaks only Triton's protocols, so both are measured by wrk."
    )
    for client, title in TITLES.items():
        table = throughput_rows(found, MLP, client)
        if table.rows:
            picture = f"![{title}](images/benchmark_{client}.svg)"
            parts += [f"## {title}", picture, table.markdown()]
    large = [throughput_rows(found, LARGE, client) for client in TITLES]
    if any(one.rows for one in large):
        parts += [
            "## 16 MiB in, 16 MiB out",
            "One is added to four million numbers, so that XLA writes an output of its own. The "
            "copy-only backend copies in and out, as every backend has to.",
        ]
        for client, table in zip(TITLES, large, strict=True):
            if table.rows:
                parts += [f"{TITLES[client]}:", table.markdown()]
    if report.batches:
        parts += [
            "## Where the time of a batch goes",
            "From this backend's own timers (the parameter `phase_times`), under load. The bare "
            "call is the compiled program called from Python with a batch of that size, alone on "
            "the machine, and its output read: what remains of `run` is the way there and back, "
            "and the competition for the processors. The responses of a batch of several requests "
            "are sent by a thread of their own, beside the next batch.",
            batch_rows(report).markdown(),
            "The network comes by gRPC, the large model by shared memory. One copy of its 16 MiB "
            f"takes {report.copy_us:,.0f} µs here. What is gathered is copied once, into memory "
            "that XLA takes as it is, and what is scattered is copied once, out of what XLA wrote.",
        ]
    if report.starts:
        parts += [
            "## Cold and warm starts",
            "What `jax_xla_compilation_time` says, over all batch sizes: tracing, lowering and "
            "compiling. XLA's part is what a cache can save; the rest is the model's own Python "
            "and JAX, which have to run before it is known which program they make. Medians of "
            f"{len(report.starts) // 4} starts.",
            start_rows(report).markdown(),
        ]
    if report.memory:
        parts += [
            "## Memory",
            "After the runs, all processes of a competitor. RSS counts pages that several "
            "processes share, such as JAX's code, in each of them; private are those that no "
            "other has.",
            memory_rows(report).markdown(),
        ]
        if report.instance_mib is not None:
            parts.append(
                f"One more instance of the network takes {report.instance_mib:.1f} MiB of RSS in "
                "this backend: parameters and programs are shared."
            )
    return "\n\n".join(parts) + "\n"


def write(report: Report, path: Path) -> None:
    """Write the JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(report.to_json(), encoding="utf-8")
