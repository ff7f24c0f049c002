# SPDX-License-Identifier: Apache-2.0
"""Figures as rows: the same on the terminal and in the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rich.table import Table

from benchmarks.competitors import COMPETITORS
from benchmarks.plan import targets
from benchmarks.results import Cell, Target, ratio
from tritonserver_jax.tuning.perf_analyzer import Measurement


@dataclass
class Rows:
    """A table.

    Attributes:
        title: One line.
        columns: Their heads.
        rows: Of text.
        sections: Numbers of rows after which a line is drawn.
    """

    title: str
    columns: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    sections: set[int] = field(default_factory=set)

    def rich(self) -> Table:
        """For a terminal."""
        table = Table(title=self.title)
        for number, name in enumerate(self.columns):
            right = all(_is_figure(row[number]) for row in self.rows)
            table.add_column(name, justify="right" if right else "left")
        for number, row in enumerate(self.rows):
            table.add_row(*row, end_section=number in self.sections)
        return table

    def markdown(self) -> str:
        """For a document."""
        right = [all(_is_figure(row[i]) for row in self.rows) for i in range(len(self.columns))]
        lines = [
            "| " + " | ".join(self.columns) + " |",
            "|" + "|".join("---:" if one else "---" for one in right) + "|",
            *("| " + " | ".join(row) + " |" for row in self.rows),
        ]
        return "\n".join(lines)


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _is_figure(text: str) -> bool:
    return not text or text.lstrip("≤≥ ")[:1].isdigit()


def figure_rows(found: Mapping[Cell, Measurement]) -> Rows:
    """Throughput and latencies of every cell."""
    table = Rows(
        "Medians",
        ("model", "client", "c", "competitor", "infer/s", "p50 µs", "p99 µs"),
    )
    previous = None
    for cell, measured in found.items():
        group = (cell.model, cell.client, cell.concurrency)
        if previous not in (None, group):
            table.sections.add(len(table.rows) - 1)
        previous = group
        table.rows.append(
            (
                *(cell.model, cell.client, str(cell.concurrency)),
                COMPETITORS[cell.competitor].title,
                *(_rate(measured.throughput), f"{measured.p50:,.0f}", f"{measured.p99:,.0f}"),
            )
        )
    return table


def throughput_rows(found: Mapping[Cell, Measurement], model: str, client: str) -> Rows:
    """One line per competitor, one column of throughput, p50 and p99 per concurrency."""
    cells = [cell for cell in found if (cell.model, cell.client) == (model, client)]
    concurrencies = sorted({cell.concurrency for cell in cells})
    heads = [f"c{n} {name}" for n in concurrencies for name in ("infer/s", "p50 ms", "p99 ms")]
    table = Rows(f"{model}, {client}", ("competitor", *heads))
    for name, competitor in COMPETITORS.items():
        figures: list[str] = []
        for concurrency in concurrencies:
            one = found.get(Cell(name, model, client, concurrency))
            if one is None:
                figures += ["", "", ""]
            else:
                figures += [
                    _rate(one.throughput),
                    f"{one.p50 / 1000:.2f}",
                    f"{one.p99 / 1000:.2f}",
                ]
        if any(figures):
            table.rows.append((competitor.title, *figures))
    return table


def _other(target: Target) -> str:
    names = COMPETITORS[target.against[0]].title
    if len(target.against) > 1:
        names = f"the best of {names} and its other forms"
    return f"its own {target.against_figure}" if target.against_figure else names


def ratio_rows(found: Mapping[Cell, Measurement]) -> Rows:
    """Every ratio that was to be reached, and was measured."""
    table = Rows(
        "This backend ÷ others",
        ("model", "client", "c", "figure", "÷", "ratio", "target", "result"),
    )
    for target in targets():
        value = ratio(target, found)
        if value is None:
            continue
        table.rows.append(
            (
                *(target.model, target.client, str(target.concurrency), target.figure),
                *(_other(target), f"{value:.2f}"),
                f"{'≥' if target.at_least else '≤'} {target.limit:g}",
                "met" if target.met(value) else "not met",
            )
        )
    return table
