# SPDX-License-Identifier: Apache-2.0
"""The files of an operator follow from what is declared, and name nothing that there is not."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from ci.monitoring import files, metrics
from ci.monitoring.alerts import CLIENT_CODES, SERVER_CODES, SERVER_JOBS, alerts
from ci.monitoring.dashboard import UID, shown_panels
from ci.monitoring.files import DASHBOARD, FOLDER, RULES
from ci.monitoring.metrics import CODES, MetricError, check_names, names_in, own_metrics
from ci.monitoring.panels import ROWS, VARIABLES
from ci.monitoring.records import records
from ci.monitoring.rules import rules_document
from ci.monitoring.thresholds import THRESHOLDS
from ci.process import ROOT

GUIDE = (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")


def test_the_files_are_up_to_date() -> None:
    assert files.outdated() == []


@pytest.mark.parametrize("renamed", [metric.name for metric in own_metrics()])
def test_a_renamed_metric_is_noticed(
    renamed: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = tmp_path / "metrics.cc"
    text = metrics.SOURCE.read_text(encoding="utf-8")
    source.write_text(text.replace(f'"{renamed}"', f'"{renamed}_now"'), encoding="utf-8")
    monkeypatch.setattr(metrics, "SOURCE", source)
    assert files.main(["--check"]) == 1
    said = capsys.readouterr().err
    # A histogram has series of longer names.
    assert f"got {renamed}" in said
    assert f"did you mean {renamed}_now" in said


def test_every_metric_of_ours_is_shown() -> None:
    shown = {
        name for panel in shown_panels(DASHBOARD) for e, _ in panel.queries for name in names_in(e)
    }
    for metric in own_metrics():
        assert shown & set(metric.series), f"no panel shows {metric.name}"


def test_expressions_are_read_for_what_they_name() -> None:
    expression = 'sum(rate(jax_real_rows{model="jax_other"}[5m])) / model_version:nv_x:rate5m'
    assert names_in(expression) == ["jax_real_rows"]
    assert metrics.recorded_in(expression) == ["model_version:nv_x:rate5m"]
    with pytest.raises(
        MetricError, match=r"mine: expected .*a rule records, got model_version:nv_x"
    ):
        check_names("mine", "model_version:nv_x:rate5m", ["model_version:nv_y:rate5m"])
    with pytest.raises(
        MetricError, match="got nv_cpu_utilisation; did you mean nv_cpu_utilization"
    ):
        check_names("mine", "max(nv_cpu_utilisation)")


def test_what_is_written_is_what_is_declared() -> None:
    assert yaml.safe_load(RULES.read_text(encoding="utf-8")) == rules_document()
    content: dict[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    assert content["uid"] == UID
    shown = [(one.row, one.title, one.kind, one.unit) for one in shown_panels(DASHBOARD)]
    assert shown == [
        (row.title, panel.title, panel.kind, panel.unit) for row in ROWS for panel in row.panels
    ]


def test_the_dashboard_stands_on_its_own() -> None:
    """It asks the data source that is chosen, and each panel has a number and a place."""
    content: dict[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    numbers = [panel["id"] for panel in content["panels"]]
    assert len(set(numbers)) == len(numbers)
    places: set[tuple[int, int]] = set()
    for panel in content["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not places & cells, f"{panel['title']} lies over another panel"
        assert place["x"] + place["w"] <= 24
        places |= cells
        if panel["type"] != "row":
            assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            assert panel["description"]
    variables = {one["name"]: one for one in content["templating"]["list"]}
    assert list(variables) == ["datasource", *(one.name for one in VARIABLES)]
    # Other jobs have targets too, which are no servers.
    assert variables["job"]["allValue"] == SERVER_JOBS
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(content["panels"])))
    assert used <= {*variables, "__rate_interval"}
    assert "id" not in content or content["id"] is None


def test_every_threshold_is_in_an_alert() -> None:
    text = RULES.read_text(encoding="utf-8")
    for one in fields(THRESHOLDS):
        value = getattr(THRESHOLDS, one.name)
        number = value * 1e6 if one.metadata["unit"] == "s" else value
        assert re.search(rf"(> |<= ){number:.6g}".replace("5e+05", "500000"), text), one.name


def test_every_code_belongs_to_one_of_the_two_alerts() -> None:
    assert {*SERVER_CODES, *CLIENT_CODES, "CANCELLED"} == CODES
    assert not set(SERVER_CODES) & set(CLIENT_CODES)


def test_the_guide_has_a_section_about_each_alert() -> None:
    sections = re.findall(r"^### (TritonJax\w+)$", GUIDE, re.MULTILINE)
    assert sections == [alert.name for alert in alerts()]


def test_rules_are_only_those_of_the_document() -> None:
    groups = rules_document()["groups"]
    assert [rule["record"] for rule in groups[0]["rules"]] == [one.name for one in records()]
    assert [rule["alert"] for rule in groups[1]["rules"]] == [one.name for one in alerts()]


def test_compose_gives_each_program_its_files() -> None:
    """Every file that compose.yaml mounts is there; prometheus.yml names its services."""
    folder = ROOT / "packaging" / "docker"
    services = yaml.safe_load((folder / "compose.yaml").read_text(encoding="utf-8"))["services"]
    for name in ("prometheus", "blackbox", "grafana"):
        for volume in services[name]["volumes"]:
            assert (folder / volume.split(":")[0]).exists(), volume
    config = yaml.safe_load((FOLDER / "prometheus.yml").read_text(encoding="utf-8"))
    text = json.dumps(config["scrape_configs"])
    assert set(re.findall(r"(\w+):(?:8000|8002|9115)", text)) == {"tritonserver", "blackbox"}
    source = yaml.safe_load((FOLDER / "grafana" / "datasource.yml").read_text(encoding="utf-8"))
    assert source["datasources"][0]["url"] == "http://prometheus:9090"
    interval = config["global"]["scrape_interval"]
    assert source["datasources"][0]["jsonData"]["timeInterval"] == interval
