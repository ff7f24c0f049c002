# SPDX-License-Identifier: Apache-2.0
"""Reading Prometheus text."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TypeVar

_SAMPLE = re.compile(r"^(?P<name>\w+)\{(?P<labels>[^}]*)\} (?P<value>\S+)$")
_LABEL = re.compile(r'(\w+)="([^"]*)"')

T = TypeVar("T")


def counted(read: Callable[[], T], expected: object, seconds: float = 10) -> T:
    """Read one of Triton's own counts until it is what is expected, or time is over.

    Triton counts a request right after its answer was sent, and maybe after that has arrived.
    """
    deadline = time.monotonic() + seconds
    while (value := read()) != expected and time.monotonic() < deadline:
        time.sleep(0.001)
    return value


def sample(text: str, name: str, **labels: str) -> float | None:
    """The sum of a metric over everything that has these labels, or None if nothing has."""
    matches = [match for line in text.splitlines() if (match := _SAMPLE.match(line))]
    values = [
        float(match["value"])
        for match in matches
        if match["name"] == name and labels.items() <= dict(_LABEL.findall(match["labels"])).items()
    ]
    return sum(values) if values else None


def family(text: str, name: str) -> tuple[str, str]:
    """Kind and help of a metric.

    Raises:
        AssertionError: There is no such metric.
    """
    kind = re.search(rf"^# TYPE {name} (\w+)$", text, re.MULTILINE)
    about = re.search(rf"^# HELP {name} (.*)$", text, re.MULTILINE)
    assert kind, f"no metric {name}"
    assert about, f"metric {name} has no help"
    return kind[1], about[1]
