# SPDX-License-Identifier: Apache-2.0
"""What Prometheus, Grafana and KEDA are given: the rules and the dashboard as they are tested."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from ci.monitoring.alerts import SERVER_JOBS
from ci.monitoring.files import DASHBOARD, RULES
from ci.monitoring.metrics import check_names
from ci.monitoring.programs import promtool
from tests.chart.conftest import Render
from tests.support.kubernetes import named


def test_the_rules_are_those_that_are_tested(objects: Render) -> None:
    rule = named(objects("monitoring"), "PrometheusRule")
    assert rule["spec"] == yaml.safe_load(RULES.read_text())
    assert rule["metadata"]["labels"]["release"] == "prometheus"


def test_the_dashboard_is_the_one_that_is_tested(objects: Render) -> None:
    config = named(objects("monitoring"), "ConfigMap")
    (text,) = config["data"].values()
    assert json.loads(text) == json.loads(DASHBOARD.read_text())
    assert config["metadata"]["labels"]["grafana_dashboard"] == "1"


@pytest.mark.parametrize(
    ("values", "kind", "endpoints", "interval"),
    [
        ("monitoring", "PodMonitor", "podMetricsEndpoints", "5s"),
        ("service-monitor", "ServiceMonitor", "endpoints", "15s"),
    ],
)
def test_the_rules_find_what_the_monitor_reads(
    objects: Render, values: str, kind: str, endpoints: str, interval: str
) -> None:
    rendered = objects(values)
    (endpoint,) = named(rendered, kind)["spec"][endpoints]
    assert (endpoint["port"], endpoint["interval"]) == ("metrics", interval)
    (job,) = [one["replacement"] for one in endpoint["relabelings"] if one["targetLabel"] == "job"]
    assert re.fullmatch(SERVER_JOBS, job)
    # It has the quantiles that a rule asks for.
    (container,) = named(rendered, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert "--metrics-config=summary_latencies=true" in container["args"]


def test_nothing_of_others_is_there_unless_it_is_asked_for(objects: Render) -> None:
    assert not any(
        "." in one["apiVersion"].partition("/")[0].replace(".k8s.io", "") for one in objects()
    )


def test_keda_asks_for_a_metric_that_there_is(objects: Render, tmp_path: Path) -> None:
    spec = named(objects("keda"), "ScaledObject")["spec"]
    (trigger,) = spec["triggers"]
    query = trigger["metadata"]["query"]
    check_names("the ScaledObject", query)
    assert 'namespace="models",pod=~"jax-tritonserver-jax-.+"' in query
    rules = {"groups": [{"name": "keda", "rules": [{"record": "queue", "expr": query}]}]}
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(rules))
    assert "1 rules found" in promtool("check", "rules", "rules.yml", cwd=tmp_path)
    assert trigger["metadata"]["threshold"] == "20"
    # A mean must not be divided by the number of servers.
    assert trigger["metricType"] == "Value"
    assert trigger["authenticationRef"] == {"name": "prometheus"}


#: Two servers with 10 requests a second each: they wait 40 ms in one, and 20 ms in the other.
SERIES = """
  - series: nv_inference_queue_duration_us{namespace="models",pod="jax-tritonserver-jax-a"}
    values: 0+6000000x10
  - series: nv_inference_queue_duration_us{namespace="models",pod="jax-tritonserver-jax-b"}
    values: 0+3000000x10
  - series: nv_inference_request_success{namespace="models",pod="jax-tritonserver-jax-a"}
    values: 0+150x10
  - series: nv_inference_request_success{namespace="models",pod="jax-tritonserver-jax-b"}
    values: 0+150x10
  - series: nv_inference_queue_duration_us{namespace="others",pod="jax-tritonserver-jax-c"}
    values: 0+90000000x10
"""


def test_keda_is_told_the_mean_time_in_the_queue(objects: Render, tmp_path: Path) -> None:
    (trigger,) = named(objects("keda"), "ScaledObject")["spec"]["triggers"]
    test = {
        "evaluation_interval": "15s",
        "tests": [
            {
                "interval": "15s",
                "input_series": yaml.safe_load(SERIES),
                "promql_expr_test": [
                    {
                        "expr": trigger["metadata"]["query"],
                        "eval_time": "2m",
                        "exp_samples": [{"labels": "{}", "value": 30}],
                    }
                ],
            }
        ],
    }
    (tmp_path / "test.yml").write_text(yaml.safe_dump(test))
    promtool("test", "rules", "test.yml", cwd=tmp_path)
