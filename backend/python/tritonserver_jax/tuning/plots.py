# SPDX-License-Identifier: Apache-2.0
"""Throughput against p99: as a picture, and in characters."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tritonserver_jax.tuning.pictures import load_pyplot, save, style
from tritonserver_jax.tuning.search import Result, Trial

__all__ = ["draw", "text_plot"]

_WIDTH: Final = 64
_HEIGHT: Final = 14


def _points(result: Result) -> list[tuple[Trial, str]]:
    """Every configuration with its mark; those that matter last, so that they are on top."""
    finals = {str(trial.candidate) for trial in result.finalists}
    points = [(one, "tried") for one in result.tried if str(one.candidate) not in finals]
    points += [(one, "finalist") for one in result.finalists if one is not result.best]
    points.append((result.default, "as it is"))
    if result.best:
        points.append((result.best, "best"))
    return points


def text_plot(result: Result) -> str:
    """Return a plot for a terminal: throughput to the right, p99 upwards."""
    marks = {"tried": "·", "finalist": "o", "as it is": "D", "best": "B"}
    points = [
        (one.median.throughput, one.median.p99 / 1000, marks[kind]) for one, kind in _points(result)
    ]
    left, right = (pick(x for x, _, _ in points) for pick in (min, max))
    low, high = (pick(y for _, y, _ in points) for pick in (min, max))
    grid = [[" "] * _WIDTH for _ in range(_HEIGHT)]
    for x, y, mark in points:
        column = round((x - left) / (right - left or 1) * (_WIDTH - 1))
        row = round((high - y) / (high - low or 1) * (_HEIGHT - 1))
        grid[row][column] = mark
    lines = []
    for number, line in enumerate(grid):
        label = {0: f"{high:.1f}", _HEIGHT - 1: f"{low:.1f}"}.get(number, "")
        lines.append(f"{label:>8} |{''.join(line).rstrip()}")
    lines.append(f"{'p99 ms':>8} +{'-' * _WIDTH}")
    lines.append(f"{'':8}  {left:<{_WIDTH // 2},.0f}{right:>{_WIDTH // 2},.0f} infer/s")
    lines.append(f"{'':8}  D as it is, B best, o finalist, · tried once")
    return "\n".join(lines)


def draw(result: Result, path: Path, title: str) -> bool:
    """Draw a picture, where matplotlib is installed.

    Args:
        result: What was found.
        path: The file to write; its ending says as what.
        title: Over the picture.

    Returns:
        Whether it was drawn.
    """
    plt = load_pyplot()
    if plt is None:
        return False
    styles = {
        "tried": ("o", "#bbbbbb", 28),
        "finalist": ("o", "", 46),
        "as it is": ("D", "#444444", 60),
        "best": ("*", "#d1792b", 200),
    }
    figure, axes = plt.subplots(figsize=(9, 6), layout="constrained")
    shades = iter(("#1b6ca8", "#7fb3d9", "#2f8a4c"))
    named = False
    for trial, kind in _points(result):
        marker, colour, size = styles[kind]
        found = trial.median
        label = "tried once"
        if kind != "tried":
            label = f"{kind}: {trial.candidate}" if kind != "as it is" else kind
        axes.scatter(
            found.throughput,
            found.p99 / 1000,
            s=size,
            c=next(shades) if kind == "finalist" else colour,
            marker=marker,
            label=None if kind == "tried" and named else label,
        )
        named = named or kind == "tried"
    axes.set_xlabel("throughput, inferences per second (to the right is better)")
    axes.set_ylabel("p99 of the latency, ms (down is better)")
    axes.set_title(title, fontsize=11)
    style(axes)
    axes.margins(0.1)
    figure.legend(loc="outside lower left", frameon=False, fontsize=9)
    save(plt, figure, path)
    return True
