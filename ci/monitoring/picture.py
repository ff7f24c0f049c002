# SPDX-License-Identifier: Apache-2.0
"""A picture of the dashboard, with real data: what Grafana would ask, drawn by matplotlib.

The panels, their questions and their units are read from ``packaging/monitoring/dashboard.json``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray

from ci.monitoring.dashboard import ShownPanel, shown_panels
from ci.monitoring.files import DASHBOARD
from ci.monitoring.prometheus import Prometheus, Series
from ci.monitoring.rehearsal import filled_in

mpl.use("Agg")
# The same figures give the same file.
mpl.rcParams["svg.hashsalt"] = "tritonserver-jax"

import matplotlib.pyplot as plt  # noqa: E402 - after the choice of what draws

__all__ = ["draw"]

FloatArray = NDArray[np.float64]

_COLUMNS: Final = 3
_STEP: Final = 2.0
#: Of a legend: more of them hide the lines.
_MOST_NAMES: Final = 8
_PLACEHOLDER: Final = re.compile(r"\{\{(\w+)\}\}")
_COLOURS: Final = (
    *("#1b6ca8", "#d1792b", "#2f8a4c", "#7a4fa3", "#b23a48", "#8a6d3b"),
    *("#7fb3d9", "#f0b98a", "#8fc48f", "#b9a3d0", "#e29aa3", "#cbb58a"),
)
#: By what a value is multiplied to be shown, and what is written behind it.
_UNITS: Final = {
    "percentunit": (100.0, " %"),
    "µs": (1e-3, " ms"),
    "s": (1e3, " ms"),
    "bytes": (1 / 2**30, " GiB"),
    "reqps": (1.0, "/s"),
    "ops": (1.0, "/s"),
    "short": (1.0, ""),
    "watt": (1.0, " W"),
}


def _named(series: Series, legend: str) -> str:
    return _PLACEHOLDER.sub(lambda match: series.labels.get(match[1], ""), legend).strip()


def _at(times: FloatArray, series: Series, outside: float) -> FloatArray:
    """The values of a series at some times, and what stands where it was not there yet."""
    known = np.array(series.points)
    values: FloatArray = np.interp(times, known[:, 0], known[:, 1], left=outside, right=outside)
    return values


def _value(panel: ShownPanel, value: float) -> str:
    factor, unit = _UNITS[panel.unit]
    shown = value * factor
    return f"{shown:.0f}{unit}" if shown >= 100 or shown == int(shown) else f"{shown:.3g}{unit}"


def _stat(axes: Any, panel: ShownPanel, prometheus: Prometheus, end: float) -> None:
    (expression, _), *_ = panel.queries
    found = prometheus.query_range(filled_in(expression), start=end - _STEP, end=end, step=_STEP)
    axes.set_axis_off()
    axes.text(0.5, 0.4, _value(panel, found[0].last), fontsize=20, ha="center", va="center")
    axes.set_title(panel.title, fontsize=9)


def _lines(axes: Any, panel: ShownPanel, prometheus: Prometheus, start: float, end: float) -> None:
    factor, unit = _UNITS[panel.unit]
    times = np.arange(start, end, _STEP)
    drawn: list[tuple[str, FloatArray]] = []
    for expression, legend in panel.queries:
        for series in prometheus.query_range(
            filled_in(expression), start=start, end=end, step=_STEP
        ):
            values = _at(times, series, np.nan)
            drawn.append((_named(series, legend), values * factor))
    # What never happened is no line, unless it is all that there is.
    drawn = [one for one in drawn if np.nan_to_num(one[1]).max() > 0] or drawn
    drawn.sort(key=lambda one: one[0])
    if panel.stacked:
        stacked = [np.nan_to_num(values) for _, values in drawn]
        axes.stackplot(times - start, stacked, labels=[name for name, _ in drawn], colors=_COLOURS)
    else:
        for number, (name, values) in enumerate(drawn):
            colour = _COLOURS[number % len(_COLOURS)]
            axes.plot(times - start, values, label=name, color=colour, linewidth=1.2)
    axes.set_ylim(0, 1.35 * (axes.get_ylim()[1] or 1))
    axes.set_xlim(0, end - start)
    axes.set_title(f"{panel.title}{f' [{unit.strip()}]' if unit.strip() else ''}", fontsize=9)
    axes.grid(color="#dddddd", linewidth=0.5)
    handles, names = axes.get_legend_handles_labels()
    axes.legend(
        handles[:_MOST_NAMES],
        names[:_MOST_NAMES],
        fontsize=6,
        frameon=False,
        loc="upper left",
        ncols=2,
        labelspacing=0.2,
    )


def _heatmap(
    axes: Any, panel: ShownPanel, prometheus: Prometheus, start: float, end: float
) -> None:
    (expression, _), *_ = panel.queries
    found = prometheus.query_range(filled_in(expression), start=start, end=end, step=_STEP)
    found.sort(key=lambda one: float(one.labels["le"]))
    times = np.arange(start, end, _STEP)
    cumulative = np.array([_at(times, one, 0.0) for one in found])
    # A bucket's series counts those of the smaller ones as well.
    counts = np.diff(cumulative, axis=0, prepend=0.0).clip(0)
    axes.imshow(
        counts,
        aspect="auto",
        origin="lower",
        cmap="Blues",
        extent=(0, end - start, -0.5, len(found) - 0.5),
    )
    axes.set_yticks(range(len(found)), [one.labels["le"] for one in found], fontsize=6)
    axes.set_title(panel.title, fontsize=9)


def draw(prometheus: Prometheus, path: Path, *, start: float, end: float) -> None:
    """Draw the dashboard as it was between two times.

    Args:
        prometheus: What watched a site then.
        path: The file to write.
        start: The earlier one, in seconds of the epoch.
        end: The later one.
    """
    panels = [one for one in shown_panels(DASHBOARD) if _has_data(prometheus, one, end)]
    stats = [one for one in panels if one.kind == "stat"]
    charts = [one for one in panels if one.kind != "stat"]
    rows = -(-len(charts) // _COLUMNS)
    figure = plt.figure(figsize=(15, 1.3 + 2.5 * rows), layout="constrained")
    halves: Any = figure.subfigures(2, 1, height_ratios=(1.3, 2.5 * rows))
    top, rest = halves
    for axes, panel in zip(_flat(top.subplots(1, len(stats))), stats, strict=True):
        _stat(axes, panel, prometheus, end)
    places = _flat(rest.subplots(rows, _COLUMNS))
    for axes in places[len(charts) :]:
        axes.set_axis_off()
    for axes, panel in zip(places, charts, strict=False):
        axes.tick_params(labelsize=7)
        drawing = _heatmap if panel.kind == "heatmap" else _lines
        drawing(axes, panel, prometheus, start, end)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Without a date, the file depends on the figures alone.
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else {})
    plt.close(figure)


def _has_data(prometheus: Prometheus, panel: ShownPanel, end: float) -> bool:
    """Those of GPUs are left out where there is none."""
    return all(
        prometheus.query_range(filled_in(expression), start=end - 30, end=end, step=_STEP)
        for expression, _ in panel.queries
    )


def _flat(axes: Any) -> list[Any]:
    return list(np.asarray(axes, dtype=object).ravel())
