# SPDX-License-Identifier: Apache-2.0
"""Everything that the alerts are about, once, on a real server that a real Prometheus watches.

Before there is traffic no alert may be there. Then every kind of traffic flows at once, and while
it does, every panel of the dashboard and every rule is asked for. Then a model is unloaded, and at
last the server is stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from ci.monitoring.alerts import alerts
from ci.monitoring.dashboard import shown_panels
from ci.monitoring.files import DASHBOARD
from ci.monitoring.panels import VARIABLES
from ci.monitoring.prometheus import Prometheus, QueryError
from ci.monitoring.records import records
from ci.monitoring.site import WINDOW
from ci.monitoring.traffic import Traffic
from tritonserver_jax.server import TritonServer

__all__ = ["NOT_HERE", "Observed", "RehearsalError", "filled_in", "rehearse"]

#: What cannot be had at will: a machine or a GPU without memory.
NOT_HERE: Final = frozenset({"TritonJaxMemoryHigh", "TritonJaxGpuMemoryHigh"})
_AFTER_UNLOAD: Final = frozenset({"TritonJaxModelGone", "TritonJaxModelNotReady"})
_AFTER_STOP: Final = frozenset({"TritonJaxServerDown"})
_UNLOADED: Final = "sized"

_SETTLE_SCRAPES: Final = 4
_TRAFFIC_SECONDS: Final = 60.0
_OTHER_SECONDS: Final = 30.0
#: So that every rate of the dashboard has its points.
_LEAST_SECONDS: Final = 8.0
_POLL_SECONDS: Final = 0.5


class RehearsalError(RuntimeError):
    """Something did not come about in time."""


@dataclass
class Observed:
    """What was seen.

    Attributes:
        before: The alerts that were there without traffic.
        fired: The labels with which each alert fired first.
        panels: The number of series of each question of the dashboard, under traffic.
        records: The number of series that each recording rule gives, as it is in the file that is
            shipped, under traffic.
        refused: What Prometheus said of expressions, of those rules, that it could not evaluate.
        faults: The errors of the rules that it evaluated all the time.
        page: The server's metrics, under traffic.
    """

    before: list[str] = field(default_factory=list)
    fired: dict[str, dict[str, str]] = field(default_factory=dict)
    panels: dict[str, int] = field(default_factory=dict)
    records: dict[str, int] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    page: str = ""


def filled_in(expression: str) -> str:
    """Return an expression of the dashboard with its variables set: everything that they offer."""
    for variable in VARIABLES:
        expression = expression.replace(f'"${variable.name}"', f'"{variable.every}"')
    return expression.replace("$__rate_interval", WINDOW)


def _until(done: Callable[[], bool], seconds: float, what: Callable[[], str]) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            raise RehearsalError(f"{what()}, within {seconds:g} s")
        time.sleep(_POLL_SECONDS)


def _fires(prometheus: Prometheus, observed: Observed, expected: frozenset[str]) -> bool:
    """Note which alerts fire; returns whether all that are expected did."""
    for alert in prometheus.alerts():
        if alert["state"] == "firing":
            observed.fired.setdefault(alert["labels"]["alertname"], alert["labels"])
    return expected <= observed.fired.keys()


def _wait_for(
    prometheus: Prometheus,
    observed: Observed,
    expected: frozenset[str],
    seconds: float,
    check: Callable[[], None] = lambda: None,
) -> None:
    def done() -> bool:
        check()
        return _fires(prometheus, observed, expected)

    _until(
        done,
        seconds,
        lambda: (
            f"expected the alerts {', '.join(sorted(expected - observed.fired.keys()))}, got "
            f"{', '.join(sorted(observed.fired)) or 'none'}"
        ),
    )


def _ask(prometheus: Prometheus, observed: Observed) -> None:
    for panel in shown_panels(DASHBOARD):
        for expression, _ in panel.queries:
            observed.panels[expression] = len(prometheus.query(filled_in(expression)))
    for record in records():
        observed.records[record.name] = len(prometheus.query(record.expr))
    for alert in alerts():
        try:
            prometheus.query(alert.expr)
        except QueryError as error:
            observed.refused[alert.name] = str(error)
    observed.faults = {
        rule["name"]: rule.get("lastError") or rule["health"]
        for rule in prometheus.rules()
        if rule["health"] != "ok"
    }


def rehearse(server: TritonServer, prometheus: Prometheus) -> Observed:
    """Have all of it happen, and return what was seen. The server is stopped at the end.

    Raises:
        RehearsalError: An alert did not come.
        TrafficError: A request was not answered as it should be.
    """
    observed = Observed()
    scrapes = "min(count_over_time(up[1m])) and min(up) == 1 and min(probe_success) == 1"
    _until(
        lambda: any(one.last >= _SETTLE_SCRAPES for one in prometheus.query(scrapes)),
        _OTHER_SECONDS,
        lambda: f"expected every target to be up, got {prometheus.targets()}",
    )
    observed.before = [alert["labels"]["alertname"] for alert in prometheus.alerts()]
    every = frozenset(alert.name for alert in alerts())
    under_traffic = every - NOT_HERE - _AFTER_UNLOAD - _AFTER_STOP
    with Traffic(server) as traffic:
        started = time.monotonic()
        _wait_for(prometheus, observed, under_traffic, _TRAFFIC_SECONDS, traffic.check)
        time.sleep(max(0.0, started + _LEAST_SECONDS - time.monotonic()))
        _ask(prometheus, observed)
        observed.page = server.metrics()
        traffic.check()
    server.unload_model(_UNLOADED)
    _wait_for(prometheus, observed, _AFTER_UNLOAD, _OTHER_SECONDS)
    server.stop()
    _wait_for(prometheus, observed, _AFTER_STOP, _OTHER_SECONDS)
    return observed
