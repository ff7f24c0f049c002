# SPDX-License-Identifier: Apache-2.0
"""Reading Prometheus text."""

from __future__ import annotations

import re

_SAMPLE = re.compile(r"^(?P<name>\w+)\{(?P<labels>[^}]*)\} (?P<value>\S+)$")
_LABEL = re.compile(r'(\w+)="([^"]*)"')


def sample(text: str, name: str, **labels: str) -> float | None:
    """The value of the metric with exactly these labels, or None if there is none."""
    for line in text.splitlines():
        match = _SAMPLE.match(line)
        if match and match["name"] == name and dict(_LABEL.findall(match["labels"])) == labels:
            return float(match["value"])
    return None


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
