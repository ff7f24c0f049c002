# SPDX-License-Identifier: Apache-2.0
"""How a model answers as its load grows: one measurement, or several, of each load."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tritonserver_jax.tuning.choice import median
from tritonserver_jax.tuning.perf_analyzer import Load, Measurement, PerfAnalyzer

__all__ = ["Curve", "Point", "measure_curve"]

#: Before anything counts: connections, and what a processor has to get used to.
_WARM_UP_SECONDS: Final = 0.5


@dataclass(slots=True)
class Point:
    """One load, and what was measured of it.

    Attributes:
        concurrency: Requests under way.
        measured: In each round.
    """

    concurrency: int
    measured: list[Measurement] = field(default_factory=list)

    @property
    def median(self) -> Measurement:
        """The median of every figure."""
        return median(self.measured)


@dataclass(frozen=True, slots=True)
class Curve:
    """Loads in rising order.

    Attributes:
        load: What was sent; its concurrency is that of the first point.
        points: What was measured.
    """

    load: Load
    points: Sequence[Point]

    @property
    def best(self) -> Point:
        """The one with the most throughput."""
        return max(self.points, key=lambda one: one.median.throughput)

    def summary(self) -> str:
        """Say in one line what came out."""
        best = self.best
        found, lightest = best.median, self.points[0]
        return (
            f"{found.throughput:,.0f} infer/s at {best.concurrency} requests under way, p99 "
            f"{found.p99 / 1000:.2f} ms; p50 {lightest.median.p50 / 1000:.2f} ms at "
            f"{lightest.concurrency}"
        )

    def as_json(self) -> list[dict[str, Any]]:
        """Return the points in JSON's types; times are microseconds."""
        return [
            {
                "concurrency": one.concurrency,
                "throughput": one.median.throughput,
                "average_us": one.median.average,
                "p50_us": one.median.p50,
                "p90_us": one.median.p90,
                "p99_us": one.median.p99,
                "rounds": len(one.measured),
            }
            for one in self.points
        ]


#: Told of what is measured next, or what was, and which part of everything is done.
Tell = Callable[[str, Measurement | None, float], None]


def measure_curve(
    analyzer: PerfAnalyzer,
    url: str,
    load: Load,
    concurrencies: Sequence[int],
    *,
    rounds: int = 1,
    tell: Tell = lambda _text, _measured, _share: None,
) -> Curve:
    """Measure a served model under several loads, in turn.

    Args:
        analyzer: The load generator.
        url: ``host:port`` of the protocol.
        load: What to send; its concurrency does not count.
        concurrencies: The loads.
        rounds: How often each is measured: what else the machine does then falls on all alike.
        tell: Told of what is done.

    Raises:
        PerfAnalyzerError: Nothing could be measured.
    """
    points = [Point(concurrency) for concurrency in sorted(set(concurrencies))]
    load = replace(load, concurrency=points[0].concurrency)
    tell("warming up", None, 0.0)
    analyzer.measure(
        url, replace(load, concurrency=points[-1].concurrency, seconds=_WARM_UP_SECONDS)
    )
    done = 0
    for _ in range(rounds):
        for point in points:
            text = f"{point.concurrency:4} under way"
            tell(text, None, done / (rounds * len(points)))
            measured = analyzer.measure(url, replace(load, concurrency=point.concurrency))
            point.measured.append(measured)
            done += 1
            tell(text, measured, done / (rounds * len(points)))
    return Curve(load, points)
