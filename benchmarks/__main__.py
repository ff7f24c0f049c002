# SPDX-License-Identifier: Apache-2.0
"""The command line: ``python -m benchmarks --quick``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from benchmarks import wrk
from benchmarks.competitors import COMPETITORS
from benchmarks.errors import BenchmarkError
from benchmarks.knobs import keep_knobs, measure_knobs
from benchmarks.plan import CLIENTS, QUICK, Plan
from benchmarks.plots import draw
from benchmarks.report import (
    Report,
    batch_rows,
    document,
    memory_rows,
    other_rows,
    start_rows,
    write,
)
from benchmarks.results import medians
from benchmarks.session import run
from benchmarks.tables import figure_rows, ratio_rows
from benchmarks.workplace import DIRECTORY, prepare
from ci import toolchain
from ci.artifacts import ARTIFACT_ERRORS
from ci.installation import InstallationError
from ci.process import ROOT, fail
from tritonserver_jax.releases import DEFAULT_RELEASE
from tritonserver_jax.server import ServerError
from tritonserver_jax.tuning.perf_analyzer import PerfAnalyzerError

ERRORS = (
    *ARTIFACT_ERRORS,
    BenchmarkError,
    InstallationError,
    PerfAnalyzerError,
    ServerError,
)


def _names(text: str, known: Sequence[str]) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in known:
            raise argparse.ArgumentTypeError(f"expected some of {', '.join(known)}; got {name!r}")
    return [name for name in known if name in names]


def show(report: Report, console: Console) -> None:
    """Print the tables of a report."""
    found = medians(report.runs)
    tables = [figure_rows(found), ratio_rows(found), memory_rows(report)]
    if report.batches:
        tables.append(batch_rows(report))
    if report.starts:
        tables.append(start_rows(report))
    if report.batches or report.starts:
        tables.append(other_rows(report))
    for table in tables:
        if table.rows:
            console.print(table.rich())


def keep(report: Report, console: Console, *, docs: bool) -> None:
    """Write a report, its table and its plots; into the documentation too where that is wanted."""
    write(report, DIRECTORY / "report.json")
    (DIRECTORY / "report.md").write_text(document(report), encoding="utf-8")
    made = draw(report.runs, DIRECTORY / "images", formats=("png", "svg"))
    if docs:
        (ROOT / "docs" / "benchmarks.md").write_text(document(report), encoding="utf-8")
        made += draw(report.runs, ROOT / "docs" / "images", formats=("svg",))
    for path in (DIRECTORY / "report.json", DIRECTORY / "report.md", *made):
        console.print(f"wrote {path.relative_to(ROOT)}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="./ci/nox -s bench --", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="some three minutes: gRPC and wrk")
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
    parser.add_argument("--release", default=DEFAULT_RELEASE, help="default: %(default)s")
    parser.add_argument("--artifact", type=Path, help="a tarball to measure, instead of building")
    parser.add_argument("--knobs", action="store_true", help="the figures of docs/tuning.md")
    parser.add_argument("--runs-only", action="store_true", help="no timers, no starts")
    parser.add_argument("--report", action="store_true", help="write docs/benchmarks.md")
    parser.add_argument("--from-json", type=Path, help="measure nothing: use an earlier report")
    options = parser.parse_args(arguments)
    # A log has room for whole lines.
    console = Console(width=None if sys.stdout.isatty() else 120)
    plan = QUICK if options.quick else Plan()
    changes = {
        "competitors": options.only,
        "clients": options.clients,
        "rounds": options.rounds,
        "seconds": options.seconds,
    }
    plan = replace(plan, **{name: value for name, value in changes.items() if value is not None})
    if options.runs_only or "ours" not in plan.competitors:
        plan = replace(plan, batches=False, starts=0)
    try:
        if options.from_json:
            report = Report.from_json(options.from_json.read_text(encoding="utf-8"))
        else:
            if "wrk" in plan.clients:
                toolchain.ensure([wrk.requirement()])
            work = prepare(options.release, tarball=options.artifact)
            if options.knobs:
                rounds, seconds = options.rounds or 3, options.seconds or 1.2
                figures = measure_knobs(work, console, rounds=rounds, seconds=seconds)
                keep_knobs(figures, DIRECTORY, docs=options.report)
                return 0
            console.print(f"{len(list(plan.runs()))} runs, about {plan.expected_seconds():.0f} s")
            report = run(work, plan, console, lambda one: write(one, DIRECTORY / "report.json"))
    except (*ERRORS, OSError, ValueError) as error:
        return fail(error)
    show(report, console)
    keep(report, console, docs=options.report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
