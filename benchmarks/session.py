# SPDX-License-Identifier: Apache-2.0
"""One run of the benchmark: everybody is started, checked, and measured round by round."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import wrk
from benchmarks.checks import check_answers
from benchmarks.competitors import COMPETITORS, LARGE, LARGE_ELEMENTS, Running
from benchmarks.machine import describe_machine, describe_software
from benchmarks.memory import instance_mib, resident_mib
from benchmarks.overhead import measure_batches
from benchmarks.plan import Plan
from benchmarks.report import Report
from benchmarks.results import Cell, Run
from benchmarks.starts import measure_starts
from benchmarks.workplace import Workplace
from tritonserver_jax.tuning.perf_analyzer import Load, Measurement

#: The least that a run of the large model measures.
LARGE_SECONDS: Final = 2.0


def measure(work: Workplace, running: Running, cell: Cell, seconds: float) -> Measurement:
    """Measure one cell once."""
    if cell.client == "wrk":
        return wrk.measure(
            running.http,
            triton=COMPETITORS[cell.competitor].kind == "triton",
            concurrency=cell.concurrency,
            seconds=seconds,
        )
    url = running.http if cell.client == "http" else running.grpc
    assert url is not None  # noqa: S101 - every tritonserver has both
    load = Load(
        model=cell.model,
        protocol=cell.client,  # type: ignore[arg-type]
        concurrency=cell.concurrency,
        # A request takes long enough for a short run to have few of them.
        seconds=max(seconds, LARGE_SECONDS) if cell.model == LARGE else seconds,
        output_bytes=4 * LARGE_ELEMENTS if cell.model == LARGE else None,
    )
    return work.perf_analyzer.measure(url, load)


def _measure_rounds(work: Workplace, plan: Plan, report: Report, console: Console) -> None:
    with ExitStack() as stack:
        running = {}
        for name in plan.competitors:
            with console.status(f"starting {COMPETITORS[name].title}"):
                running[name] = stack.enter_context(COMPETITORS[name].start(work))
                check_answers(COMPETITORS[name], running[name])
            report.ready_seconds[name] = running[name].ready_seconds
            console.print(f"{COMPETITORS[name].title}: answers as plain JAX does")
        todo = list(plan.runs())
        progress = stack.enter_context(
            Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                console=console,
            )
        )
        task = progress.add_task("measuring", total=len(todo))
        for number, cell in todo:
            what = f"round {number + 1}: {cell.competitor} {cell.client} c{cell.concurrency}"
            progress.update(task, description=f"{what:44}")
            found = measure(work, running[cell.competitor], cell, plan.seconds)
            report.runs.append(Run(cell, number, found))
            progress.update(task, advance=1, description=f"{what:36} {found.throughput:8,.0f}/s")
        for name, one in running.items():
            report.memory[name] = resident_mib(one.pid)


def run(work: Workplace, plan: Plan, console: Console, save: Callable[[Report], None]) -> Report:
    """Run the benchmark.

    Args:
        work: What the competitors are made from.
        plan: What to measure.
        console: Where progress goes.
        save: Keeps what is found, before what comes after can fail.
    """
    began = time.monotonic()
    report = Report(
        date=datetime.now(UTC).date().isoformat(),
        machine=describe_machine(),
        software=describe_software(work.distribution.release.release),
        rounds=plan.rounds,
        seconds=plan.seconds,
    )
    _measure_rounds(work, plan, report, console)
    save(report)
    # With nobody else running: the other servers have ended.
    if plan.batches:
        console.print("where the time of a batch goes")
        report.batches, report.copy_us = measure_batches(
            work, tuple(plan.concurrencies), plan.seconds
        )
    if plan.starts:
        console.print("memory of an instance")
        report.instance_mib = instance_mib(work)
        console.print("cold and warm starts")
        report.starts = measure_starts(work, plan.starts)
    report.minutes = (time.monotonic() - began) / 60
    return report
