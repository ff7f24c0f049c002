# SPDX-License-Identifier: Apache-2.0
"""Figures as tables on a terminal."""

from __future__ import annotations

from collections.abc import Mapping

from rich.table import Table

from benchmarks.plan import targets
from benchmarks.results import Cell, ratio
from tritonserver_jax.tuning.perf_analyzer import Measurement


def throughput_table(found: Mapping[Cell, Measurement]) -> Table:
    """Throughput and latencies of every cell."""
    table = Table(title="medians")
    for column in ("model", "client", "concurrency", "competitor"):
        table.add_column(column)
    for column in ("infer/s", "p50 µs", "p99 µs"):
        table.add_column(column, justify="right")
    previous = None
    for cell, measured in found.items():
        group = (cell.model, cell.client, cell.concurrency)
        if previous not in (None, group):
            table.add_section()
        previous = group
        table.add_row(
            *(cell.model, cell.client, str(cell.concurrency), cell.competitor),
            *(f"{measured.throughput:,.0f}", f"{measured.p50:,.0f}", f"{measured.p99:,.0f}"),
        )
    return table


def ratio_table(found: Mapping[Cell, Measurement]) -> Table:
    """Every ratio that was to be reached, and was measured."""
    table = Table(title="this backend ÷ others")
    for column in ("model", "client", "concurrency", "figure", "÷"):
        table.add_column(column)
    for column in ("ratio", "target"):
        table.add_column(column, justify="right")
    table.add_column("")
    for target in targets():
        value = ratio(target, found)
        if value is None:
            continue
        table.add_row(
            *(target.model, target.client, str(target.concurrency), target.figure),
            *(" or ".join(target.against), f"{value:.2f}"),
            f"{'≥' if target.at_least else '≤'} {target.limit:g}",
            "met" if target.met(value) else "not met",
        )
    return table
