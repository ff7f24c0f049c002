# SPDX-License-Identifier: Apache-2.0
"""What a look at one thing brought: how it is, why, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Finding", "Status", "failure"]


class Status(StrEnum):
    """How a thing is, from well to badly."""

    OK = "ok"
    NOTE = "note"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of a report.

    Attributes:
        name: What was looked at, in a word or two.
        status: How it is.
        detail: What was found.
        remedy: What to do, where there is something to do.
    """

    name: str
    status: Status
    detail: str
    remedy: str = ""

    def as_json(self) -> dict[str, str]:
        """Return it in JSON's types."""
        return {
            "name": self.name,
            "status": self.status.value,
            "detail": self.detail,
            "remedy": self.remedy,
        }


def failure(findings: Iterable[Finding]) -> Finding | None:
    """Return the first finding that is a failure."""
    return next((one for one in findings if one.status is Status.FAIL), None)
