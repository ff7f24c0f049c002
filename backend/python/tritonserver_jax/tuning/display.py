# SPDX-License-Identifier: Apache-2.0
"""The search on a terminal: its progress, and what it found."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from tritonserver_jax.tuning.perf_analyzer import Measurement
from tritonserver_jax.tuning.plots import text_plot
from tritonserver_jax.tuning.search import Options, Result, Tell, Trial

__all__ = ["progress", "show", "summary"]


@contextmanager
def progress(console: Console) -> Iterator[Tell]:
    """Show what is tried, what it reached, and how much of the time is used."""
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=console,
    ) as shown:
        task = shown.add_task("starting", total=1.0)

        def tell(text: str, measured: Measurement | None, share: float) -> None:
            shown.update(task, description=text, completed=min(share, 1.0))
            if measured is not None:
                figures = f"{measured.throughput:9,.0f} infer/s  p99 {measured.p99 / 1000:7.2f} ms"
                shown.console.print(f"{figures}  {text}", highlight=False)

        yield tell


def summary(result: Result, options: Options) -> str:
    """Say in one line what came out."""
    at = f"concurrency {options.concurrency}, {options.protocol}"
    best = result.best
    if best is None:
        return f"nothing tried beats the configuration as it is ({at}): keep it"
    before, after = result.default.median, best.median
    return (
        f"{best.candidate}: {before.throughput:,.0f} -> {after.throughput:,.0f} infer/s "
        f"({after.throughput / before.throughput - 1:+.0%}), p99 {before.p99 / 1000:.2f} -> "
        f"{after.p99 / 1000:.2f} ms ({at}; medians of {result.rounds} rounds)"
    )


def _row(trial: Trial, verdict: str) -> tuple[str, ...]:
    found = trial.median
    return (
        str(trial.candidate),
        f"{found.throughput:,.0f}",
        f"{found.p50 / 1000:.2f}",
        f"{found.p99 / 1000:.2f}",
        verdict,
    )


def show(result: Result, options: Options, console: Console) -> None:
    """Print the finalists, the plot, and the fragment of config.pbtxt."""
    table = Table(title=f"medians of {result.rounds} rounds, measured in turn")
    for name in ("configuration", "infer/s", "p50 ms", "p99 ms", "compared with it as it is"):
        table.add_column(name, justify="right" if name[0] in "ip" else "left")
    table.add_row(*_row(result.default, ""), end_section=True)
    for trial, verdict in zip(result.finalists, result.verdicts, strict=True):
        table.add_row(*_row(trial, verdict.reason))
    console.print(table)
    for candidate, reason in result.failed:
        console.print(f"not loaded: {candidate}: {reason}", style="yellow", highlight=False)
    if result.tried:
        console.print(text_plot(result), highlight=False, markup=False)
    console.print()
    console.print(summary(result, options), style="bold", highlight=False, markup=False)
    if result.best:
        console.print("Put this into config.pbtxt, in place of what it says of the same:")
        console.print(result.fragment(), style="green", highlight=False, markup=False)
