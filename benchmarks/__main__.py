# SPDX-License-Identifier: Apache-2.0
"""The command line: ``python -m benchmarks --quick``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import wrk
from benchmarks.checks import check_answers
from benchmarks.competitors import COMPETITORS, LARGE, LARGE_ELEMENTS, Running
from benchmarks.errors import BenchmarkError
from benchmarks.plan import CLIENTS, Plan
from benchmarks.results import Cell, Run, medians
from benchmarks.tables import ratio_table, throughput_table
from benchmarks.workplace import Workplace, prepare
from ci import toolchain
from ci.artifacts import ARTIFACT_ERRORS
from ci.installation import InstallationError
from ci.process import fail
from tritonserver_jax.releases import DEFAULT_RELEASE
from tritonserver_jax.server import ServerError
from tritonserver_jax.tuning.perf_analyzer import Load, Measurement, PerfAnalyzerError

ERRORS = (
    *ARTIFACT_ERRORS,
    BenchmarkError,
    InstallationError,
    PerfAnalyzerError,
    ServerError,
)


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
        seconds=seconds,
        output_bytes=4 * LARGE_ELEMENTS if cell.model == LARGE else None,
    )
    return work.perf_analyzer.measure(url, load)


def run_plan(work: Workplace, plan: Plan, console: Console) -> list[Run]:
    """Start everybody, check their answers, and measure round by round."""
    runs: list[Run] = []
    with ExitStack() as stack:
        running = {}
        for name in plan.competitors:
            with console.status(f"starting {COMPETITORS[name].title}"):
                running[name] = stack.enter_context(COMPETITORS[name].start(work))
                check_answers(COMPETITORS[name], running[name])
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
            runs.append(Run(cell, number, found))
            progress.advance(task)
    return runs


def _names(text: str, known: Sequence[str]) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in known:
            raise argparse.ArgumentTypeError(f"expected some of {', '.join(known)}; got {name!r}")
    return [name for name in known if name in names]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="./ci/nox -s bench --", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, gRPC and wrk only")
    parser.add_argument(
        "--only",
        type=lambda text: _names(text, list(COMPETITORS)),
        metavar="NAMES",
        help=f"competitors, separated by commas: {', '.join(COMPETITORS)}",
    )
    parser.add_argument(
        "--clients",
        type=lambda text: _names(text, CLIENTS["triton"]),
        metavar="NAMES",
        help=f"some of {', '.join(CLIENTS['triton'])}",
    )
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=float, help="how long each run measures")
    parser.add_argument("--release", default=DEFAULT_RELEASE)
    parser.add_argument("--artifact", type=Path, help="a tarball to measure, instead of building")
    options = parser.parse_args(arguments)
    console = Console()
    plan = Plan()
    if options.quick:
        plan = replace(plan, clients=("grpc", "wrk"), rounds=3, seconds=1.2, large=False)
    changes = {
        "competitors": options.only,
        "clients": options.clients,
        "rounds": options.rounds,
        "seconds": options.seconds,
    }
    plan = replace(plan, **{name: value for name, value in changes.items() if value is not None})
    try:
        if "wrk" in plan.clients:
            toolchain.ensure([wrk.requirement()])
        work = prepare(options.release, tarball=options.artifact)
        console.print(f"{len(list(plan.runs()))} runs, about {plan.expected_seconds():.0f} s")
        runs = run_plan(work, plan, console)
    except ERRORS as error:
        return fail(error)
    found = medians(runs)
    console.print(throughput_table(found))
    console.print(ratio_table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
