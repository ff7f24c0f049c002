# SPDX-License-Identifier: Apache-2.0
"""Asking a Prometheus by its HTTP API."""

from __future__ import annotations

import http.client
import json
import math
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

__all__ = ["Prometheus", "QueryError", "Series"]

_SECONDS: Final = 10.0


class QueryError(RuntimeError):
    """Prometheus did not answer, or not with what was asked for."""


@dataclass(frozen=True, slots=True)
class Series:
    """One series of an answer.

    Attributes:
        labels: Its labels, and ``__name__`` where it has one.
        points: Its values with their times, those left out that are no numbers.
    """

    labels: dict[str, str]
    points: tuple[tuple[float, float], ...]

    @property
    def last(self) -> float:
        """Its latest value."""
        return self.points[-1][1]


class Prometheus:
    """A Prometheus that runs at an address."""

    def __init__(self, address: str) -> None:
        self.address = address

    def query(self, expression: str) -> list[Series]:
        """Return what an expression is now; without series that have no number.

        Raises:
            QueryError: It is no expression, or has no series for its value.
        """
        data = self._ask("/api/v1/query", query=expression)
        if data["resultType"] not in ("vector", "scalar"):
            raise QueryError(f"{expression}: expected a vector, got a {data['resultType']}")
        if data["resultType"] == "scalar":
            return _series([{"metric": {}, "values": [data["result"]]}])
        return _series([{**one, "values": [one["value"]]} for one in data["result"]])

    def query_range(
        self, expression: str, *, start: float, end: float, step: float
    ) -> list[Series]:
        """Return what an expression was at each step of a time."""
        data = self._ask(
            "/api/v1/query_range",
            query=expression,
            start=f"{start:.3f}",
            end=f"{end:.3f}",
            step=f"{step:g}",
        )
        return _series(data["result"])

    def alerts(self) -> list[dict[str, Any]]:
        """Return the alerts that are pending or firing."""
        found: list[dict[str, Any]] = self._ask("/api/v1/alerts")["alerts"]
        return found

    def rules(self) -> list[dict[str, Any]]:
        """Return every rule, with its health and its last error."""
        groups: list[dict[str, Any]] = self._ask("/api/v1/rules")["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def targets(self) -> dict[str, str]:
        """Return the health of each target: ``up``, ``down`` or ``unknown``, by its instance."""
        active = self._ask("/api/v1/targets", state="active")["activeTargets"]
        return {one["labels"]["instance"]: one["health"] for one in active}

    def _ask(self, path: str, **parameters: str) -> Any:
        # Not urllib: it would follow http_proxy.
        connection = http.client.HTTPConnection(self.address, timeout=_SECONDS)
        try:
            connection.request("GET", f"{path}?{urlencode(parameters)}" if parameters else path)
            answer = json.loads(connection.getresponse().read())
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise QueryError(f"Prometheus at {self.address}{path}: {error!r}") from error
        finally:
            connection.close()
        if answer.get("status") != "success":
            raise QueryError(f"{parameters.get('query', path)}: {answer.get('error', answer)}")
        return answer["data"]


def _series(result: list[dict[str, Any]]) -> list[Series]:
    found = []
    for one in result:
        points = [(float(time), float(value)) for time, value in one["values"]]
        numbers = tuple(point for point in points if not math.isnan(point[1]))
        if numbers:
            found.append(Series(one["metric"], numbers))
    return found
