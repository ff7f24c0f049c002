# SPDX-License-Identifier: Apache-2.0
"""A curve of loads as a table, and as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from tritonserver_jax.tuning.curve import Curve
from tritonserver_jax.tuning.pictures import load_pyplot, save, style

__all__ = ["draw_curve", "show_curve"]

_LATENCIES: Final = (("p50", "#9ecae1"), ("p90", "#4292c6"), ("p99", "#08519c"))
_THROUGHPUT: Final = "#d1792b"
#: How much of the height a word takes.
_LABEL_SHARE: Final = 0.045
#: Of the words and numbers beside points.
_LABEL: Final[dict[str, Any]] = {"textcoords": "offset points", "fontsize": 9}


def show_curve(curve: Curve, console: Console) -> None:
    """Print what was measured, and the sum of it in a line.

    Args:
        curve: What was measured.
        console: Where to.
    """
    table = Table()
    for name in ("requests under way", "infer/s", "mean ms", "p50 ms", "p90 ms", "p99 ms"):
        table.add_column(name, justify="right")
    for point in curve.points:
        found = point.median
        best = point is curve.best
        table.add_row(
            str(point.concurrency),
            f"{found.throughput:,.0f}",
            *(f"{us / 1000:.2f}" for us in (found.average, found.p50, found.p90, found.p99)),
            style="bold" if best else "",
        )
    console.print(table)
    console.print(curve.summary(), style="bold", highlight=False, markup=False)


def draw_curve(curve: Curve, path: Path, title: str) -> bool:
    """Draw throughput and latency over the load, where matplotlib is installed.

    Args:
        curve: What was measured.
        path: The file to write; its ending says as what.
        title: Over the picture.

    Returns:
        Whether it was drawn.
    """
    plt = load_pyplot()
    if plt is None:
        return False
    loads = [point.concurrency for point in curve.points]
    # One step apart, whatever the numbers: loads are chosen in factors, and few.
    places = list(range(len(loads)))
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    rates = [point.median.throughput for point in curve.points]
    left.plot(places, rates, marker="o", color=_THROUGHPUT)
    for place, rate in zip(places, rates, strict=True):
        left.annotate(f"{rate:,.0f}", (place, rate), xytext=(-5, 5), ha="right", **_LABEL)
    left.set_ylabel("throughput, inferences per second")
    latencies = {
        name: [getattr(point.median, name) / 1000 for point in curve.points]
        for name, _ in _LATENCIES
    }
    highest = max(latencies["p99"])
    lowest_label = 0.0
    for name, colour in _LATENCIES:
        times = latencies[name]
        right.plot(places, times, marker="o", color=colour)
        # Beside the line, where no other one can be: a legend would lie on some of them.
        height = max(times[-1], lowest_label)
        right.annotate(name, (places[-1], height), xytext=(9, -3), ha="left", **_LABEL)
        lowest_label = height + highest * _LABEL_SHARE
    right.set_ylabel("latency as the client sees it, ms")
    for axes, top in ((left, max(rates)), (right, highest)):
        axes.set_xticks(places, [str(load) for load in loads])
        axes.set_xlabel("requests under way")
        axes.set_xlim(-0.45, places[-1] + 0.35)
        axes.set_ylim(0, top * 1.12)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
        style(axes, grid="y")
    figure.suptitle(title, fontsize=11)
    save(plt, figure, path)
    return True
