# SPDX-License-Identifier: Apache-2.0
"""Rules, alerts and dashboard as a real Prometheus sees them, which watches a real server."""

from __future__ import annotations

import re

import pytest

from ci.monitoring.alerts import alerts
from ci.monitoring.dashboard import ShownPanel, shown_panels
from ci.monitoring.files import DASHBOARD
from ci.monitoring.metrics import GPU, TRITON, Metric, own_metrics
from ci.monitoring.panels import ROWS
from ci.monitoring.records import records
from ci.monitoring.rehearsal import NOT_HERE, Observed
from tests.support.metrics import family, sample

pytestmark = [pytest.mark.integration, pytest.mark.slow]

PANELS = shown_panels(DASHBOARD)
NEED_GPU = {panel.title for row in ROWS for panel in row.panels if panel.needs == GPU}
ALERTS = [alert.name for alert in alerts()]


def test_no_alert_is_there_before_there_is_traffic(observed: Observed) -> None:
    # How much memory is in use here is not for a test to say.
    assert set(observed.before) <= {"TritonJaxMemoryHigh"}


@pytest.mark.parametrize("name", [name for name in ALERTS if name not in NOT_HERE])
def test_an_alert_fires_when_what_it_is_about_happens(observed: Observed, name: str) -> None:
    assert name in observed.fired


def test_alerts_name_what_they_are_about(observed: Observed) -> None:
    fired = observed.fired
    assert fired["TritonJaxModelNotReady"]["instance"].endswith("/v2/models/sized/ready")
    assert fired["TritonJaxCompileInTraffic"]["model"] == "growing"
    assert fired["TritonJaxLatencyP99High"]["model"] in ("slow", "stuck")
    assert fired["TritonJaxModelGone"]["model"] == "sized"
    assert fired["TritonJaxModelStuck"]["model"] == "stuck"
    assert fired["TritonJaxPaddingWaste"]["model"] == "digits"
    assert fired["TritonJaxQueueTimeGrowing"]["model"] in ("slow", "stuck")
    assert fired["TritonJaxRequestsFail"].items() >= {"model": "faulty", "code": "INTERNAL"}.items()
    assert fired["TritonJaxRequestsRefused"].items() >= (
        {"model": "sized", "code": "INVALID_ARG"}.items()
    )


def test_alerts_that_nothing_was_done_for_do_not_fire(observed: Observed) -> None:
    assert "TritonJaxGpuMemoryHigh" not in observed.fired
    assert set(observed.fired) <= set(ALERTS)


@pytest.mark.parametrize("panel", PANELS, ids=str)
def test_no_panel_is_empty_while_traffic_flows(observed: Observed, panel: ShownPanel) -> None:
    has_gpu = sample(observed.page, "nv_gpu_utilization") is not None
    for expression, _ in panel.queries:
        if panel.title in NEED_GPU and not has_gpu:
            assert observed.panels[expression] == 0
        else:
            assert observed.panels[expression] > 0, expression


@pytest.mark.parametrize("name", [record.name for record in records()])
def test_every_recording_rule_gives_something(observed: Observed, name: str) -> None:
    assert observed.records[name] > 0


def test_prometheus_evaluates_every_rule(observed: Observed) -> None:
    assert observed.refused == {}
    assert observed.faults == {}


@pytest.mark.parametrize("metric", [*own_metrics(), *TRITON], ids=lambda one: one.name)
def test_the_server_has_every_metric_that_is_declared(observed: Observed, metric: Metric) -> None:
    if metric.needs == GPU and sample(observed.page, "nv_gpu_utilization") is None:
        assert metric.name not in observed.page
        return
    assert family(observed.page, metric.name)[0] == metric.kind
    lines = observed.page.splitlines()
    for series in metric.series:
        found = [line for line in lines if re.match(rf"{series}[{{ ]", line)]
        assert found, series
        # Only the series of a summary's own name have a quantile.
        labels = set(metric.labels) - ({"quantile"} if series != metric.name else set())
        for line in found:
            assert labels <= set(re.findall(r'(\w+)="', line)), line
