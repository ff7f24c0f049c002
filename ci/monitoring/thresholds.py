# SPDX-License-Identifier: Apache-2.0
"""From where on something is wrong: every number that an alert compares with, declared once.

For other numbers, change them here, and make the files anew: ``python -m ci.monitoring.files``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Final

__all__ = ["THRESHOLDS", "Thresholds", "described"]


@dataclass(frozen=True)
class Thresholds:
    """The numbers. What each of them means is its field's metadata, which goes into the docs."""

    failure_share: float = field(
        default=0.01,
        metadata={
            "unit": "%",
            "meaning": "Share of requests that may fail by the model's fault",
        },
    )
    refusal_share: float = field(
        default=0.1,
        metadata={
            "unit": "%",
            "meaning": "Share of requests that may be refused",
        },
    )
    padding_share: float = field(
        default=0.4,
        metadata={"unit": "%", "meaning": "Share of a batch's rows that may be padding"},
    )
    p99_seconds: float = field(
        default=0.5,
        metadata={"unit": "s", "meaning": "Target of the p99 of the latency"},
    )
    queue_seconds: float = field(
        default=0.05,
        metadata={"unit": "s", "meaning": "Time that a request may wait in the queue"},
    )
    queue_growth: float = field(
        default=1.5,
        metadata={"unit": "times", "meaning": "Growth of that time that does not count as growing"},
    )
    memory_share: float = field(
        default=0.9,
        metadata={"unit": "%", "meaning": "Share of the machine's memory that may be in use"},
    )
    gpu_memory_share: float = field(
        default=0.95,
        metadata={"unit": "%", "meaning": "Share of a GPU's memory that may be in use"},
    )


THRESHOLDS: Final = Thresholds()


def described(thresholds: Thresholds = THRESHOLDS) -> list[tuple[str, str, str]]:
    """Return name, value for people, and meaning of each threshold."""
    rows = []
    for one in fields(thresholds):
        value, unit = getattr(thresholds, one.name), one.metadata["unit"]
        shown = f"{value * 100:g} %" if unit == "%" else f"{value:g} {unit}"
        rows.append((one.name, shown, one.metadata["meaning"]))
    return rows
