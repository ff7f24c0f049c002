# SPDX-License-Identifier: Apache-2.0
"""Which of two configurations is better, when every measurement is a little wrong."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tritonserver_jax.tuning.perf_analyzer import Measurement

__all__ = ["Verdict", "compare", "median"]

#: A gain below this is none, however quiet the machine is.
SMALLEST_GAIN: Final = 0.02


def median(measured: Sequence[Measurement]) -> Measurement:
    """Return the median of every figure."""
    return Measurement(
        **{
            name: statistics.median(getattr(one, name) for one in measured)
            for name in Measurement.__dataclass_fields__
        }
    )


def noise(measured: Sequence[Measurement]) -> float:
    """Return how far single throughputs lie from their median, typically, as a share of it."""
    middle = statistics.median(one.throughput for one in measured)
    away = statistics.median(abs(one.throughput - middle) for one in measured)
    return away / middle


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a candidate compares with the default.

    Attributes:
        gain: Of throughput: 0.1 is ten per cent more.
        margin: What the gain has to exceed.
        p99: The candidate's ÷ the default's.
        better: Whether it is better: more throughput than the noise explains, and no worse p99.
        reason: In words.
    """

    gain: float
    margin: float
    p99: float
    better: bool
    reason: str


def compare(default: Sequence[Measurement], candidate: Sequence[Measurement]) -> Verdict:
    """Compare measurements that were taken in turn, one of each per round.

    Args:
        default: Of the configuration as it is.
        candidate: Of another one, round by round.
    """
    before, after = median(default), median(candidate)
    gain = after.throughput / before.throughput - 1
    margin = max(SMALLEST_GAIN, 2 * noise(default), 2 * noise(candidate))
    p99 = after.p99 / before.p99
    # Of three rounds it has to win all, of seven all but one.
    needed = len(default) - len(default) // 4
    won = sum(b.throughput > a.throughput for a, b in zip(default, candidate, strict=True))
    if gain <= margin:
        reason = f"throughput {gain:+.1%} is within the noise of {margin:.1%}"
    elif won < needed:
        reason = f"it was faster in only {won} of {len(default)} rounds"
    elif p99 > 1:
        reason = f"its p99 is {p99 - 1:.0%} worse"
    else:
        reason = f"throughput {gain:+.1%}, p99 {p99 - 1:+.0%}"
    better = gain > margin and won >= needed and p99 <= 1
    return Verdict(gain, margin, p99, better, reason)
