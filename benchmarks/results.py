# SPDX-License-Identifier: Apache-2.0
"""What was measured: single runs, their medians, and ratios between competitors."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tritonserver_jax.tuning.perf_analyzer import Measurement


@dataclass(frozen=True, order=True)
class Cell:
    """What a figure is about.

    Attributes:
        competitor: By name.
        model: By name.
        client: ``grpc``, ``http`` or ``shm`` by perf_analyzer, or ``wrk``.
        concurrency: Requests under way at any time.
    """

    competitor: str
    model: str
    client: str
    concurrency: int


@dataclass(frozen=True)
class Run:
    """One measurement."""

    cell: Cell
    round: int
    measured: Measurement

    def to_json(self) -> dict[str, Any]:
        """As it goes into the report."""
        return {**asdict(self.cell), "round": self.round, **asdict(self.measured)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Run:
        """Back from the report."""
        cell = Cell(data["competitor"], data["model"], data["client"], data["concurrency"])
        fields = Measurement.__dataclass_fields__
        return cls(cell, data["round"], Measurement(**{name: data[name] for name in fields}))


def medians(runs: Iterable[Run]) -> dict[Cell, Measurement]:
    """Return the median of every figure, by cell."""
    grouped: dict[Cell, list[Measurement]] = defaultdict(list)
    for run in runs:
        grouped[run.cell].append(run.measured)
    return {
        cell: Measurement(
            **{
                name: statistics.median(getattr(one, name) for one in measured)
                for name in Measurement.__dataclass_fields__
            }
        )
        for cell, measured in grouped.items()
    }


def spread(runs: Iterable[Run], cell: Cell) -> float:
    """Return how far the throughput of a cell's runs lies apart, as a share of its median."""
    found = [run.measured.throughput for run in runs if run.cell == cell]
    return (max(found) - min(found)) / statistics.median(found) if found else 0.0


@dataclass(frozen=True)
class Target:
    """A ratio that this backend is to reach.

    Attributes:
        figure: ``throughput``, ``p50`` or ``p99``.
        ours: The competitor above the line; `against` is below it.
        against: One competitor, or several of which the best counts.
        model: By name.
        client: Of both sides.
        concurrency: Of both sides.
        against_figure: Of the other side, where it is another one.
        limit: What is to be reached: at least, for throughput; at most, for a latency.
    """

    figure: str
    against: tuple[str, ...]
    client: str
    concurrency: int
    limit: float
    ours: str = "ours"
    model: str = "mlp"
    against_figure: str | None = None

    @property
    def at_least(self) -> bool:
        """Whether more is better."""
        return self.figure == "throughput"

    def met(self, ratio: float) -> bool:
        """Whether a ratio reaches it."""
        return ratio >= self.limit if self.at_least else ratio <= self.limit


def ratio(target: Target, found: Mapping[Cell, Measurement]) -> float | None:
    """Return the ratio, or None when one of its sides was not measured."""

    def read(competitor: str, figure: str) -> float | None:
        measured = found.get(Cell(competitor, target.model, target.client, target.concurrency))
        return None if measured is None else float(getattr(measured, figure))

    ours = read(target.ours, target.figure)
    other = target.against_figure or target.figure
    others = [value for name in target.against if (value := read(name, other)) is not None]
    if ours is None or not others:
        return None
    return ours / (max(others) if target.at_least else min(others))
