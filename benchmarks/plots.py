# SPDX-License-Identifier: Apache-2.0
"""Plots of a report: throughput and tail latency, by client."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl

from benchmarks.competitors import COMPETITORS, MLP
from benchmarks.results import Cell, Run, medians
from tritonserver_jax.tuning.perf_analyzer import Measurement

mpl.use("Agg")
# The same figures give the same file.
mpl.rcParams["svg.hashsalt"] = "tritonserver-jax"

import matplotlib.pyplot as plt  # noqa: E402 - after the choice of what draws

_COLOURS: Final = {
    "ours": "#1b6ca8",
    "ours_2": "#7fb3d9",
    "copy_only": "#444444",
    "copy_only_2": "#999999",
    "python_backend": "#d1792b",
    "python_naive": "#f0b98a",
    "pytriton": "#7a4fa3",
    "fastapi": "#8fc48f",
    "fastapi_batching": "#2f8a4c",
    "fastapi_batching_2": "#17542b",
}
TITLES: Final = {
    "grpc": "gRPC, perf_analyzer",
    "http": "HTTP, perf_analyzer",
    "shm": "gRPC with shared memory, perf_analyzer",
    "wrk": "HTTP, wrk",
}


def _bars(
    axes: Any,
    found: Mapping[Cell, Measurement],
    runs: Mapping[Cell, list[Measurement]],
    client: str,
    figure: str,
    scale: float,
) -> None:
    cells = [cell for cell in found if (cell.model, cell.client) == (MLP, client)]
    concurrencies = sorted({cell.concurrency for cell in cells})
    names = [name for name in COMPETITORS if any(cell.competitor == name for cell in cells)]
    width = 0.85 / len(names)
    for number, name in enumerate(names):
        places, heights, low, high = [], [], [], []
        for group, concurrency in enumerate(concurrencies):
            cell = Cell(name, MLP, client, concurrency)
            if cell not in found:
                continue
            value = getattr(found[cell], figure) / scale
            single = [getattr(one, figure) / scale for one in runs[cell]]
            places.append(group + (number - (len(names) - 1) / 2) * width)
            heights.append(value)
            low.append(value - min(single))
            high.append(max(single) - value)
        axes.bar(
            places,
            heights,
            width * 0.92,
            yerr=(low, high),
            color=_COLOURS[name],
            label=COMPETITORS[name].title,
            error_kw={"elinewidth": 0.8, "ecolor": "#222222"},
        )
    axes.set_xticks(range(len(concurrencies)), [f"concurrency {n}" for n in concurrencies])
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)


def draw(runs: Iterable[Run], directory: Path, *, formats: Iterable[str]) -> list[Path]:
    """Draw one picture per client: throughput beside p99; bars are medians, lines the extremes.

    Args:
        runs: What was measured.
        directory: Where the pictures go.
        formats: File name endings, such as ``svg``.
    """
    all_runs = list(runs)
    found = medians(all_runs)
    by_cell: dict[Cell, list[Measurement]] = {}
    for run in all_runs:
        by_cell.setdefault(run.cell, []).append(run.measured)
    made = []
    directory.mkdir(parents=True, exist_ok=True)
    for client, title in TITLES.items():
        if not any((cell.model, cell.client) == (MLP, client) for cell in found):
            continue
        figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.4), layout="constrained")
        _bars(left, found, by_cell, client, "throughput", 1000.0)
        left.set_title("throughput, thousand inferences per second (more is better)", fontsize=10)
        _bars(right, found, by_cell, client, "p99", 1000.0)
        right.set_title("p99 of the latency, ms, logarithmic (less is better)", fontsize=10)
        right.set_yscale("log")
        figure.suptitle(title)
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4)
        for ending in formats:
            path = directory / f"benchmark_{client}.{ending}"
            # Without a date, the file depends on the figures alone.
            figure.savefig(path, dpi=140, metadata={"Date": None} if ending == "svg" else {})
            made.append(path)
        plt.close(figure)
    return made
