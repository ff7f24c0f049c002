# SPDX-License-Identifier: Apache-2.0
"""The dashboard as Grafana reads it, made from `ci.monitoring.panels` by Grafana's own SDK."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from grafana_foundation_sdk.builders import common as options
from grafana_foundation_sdk.builders import dashboard as grafana
from grafana_foundation_sdk.builders import heatmap, prometheus, stat, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as choices
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from ci.image_plan import SOURCE_URL
from ci.monitoring.metrics import check_names
from ci.monitoring.panels import ROWS, VARIABLES, Panel, Row

__all__ = ["UID", "ShownPanel", "dashboard_file", "shown_panels"]

#: By which Grafana knows it, also after its title has changed.
UID: Final = "tritonserver-jax"
_TITLE: Final = "Triton: models in JAX"
_SOURCE: Final = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
_HEIGHT: Final = {"stat": 4, "timeseries": 8, "heatmap": 8}

_AnyPanel = timeseries.Panel | stat.Panel | heatmap.Panel


def _variables() -> Iterator[grafana.DatasourceVariable | grafana.QueryVariable]:
    yield grafana.DatasourceVariable("datasource").label("Prometheus").type("prometheus")
    for one in VARIABLES:
        check_names(f"variable {one.name}", one.query)
        yield (
            grafana.QueryVariable(one.name)
            .label(one.label)
            .query(one.query)
            .datasource(_SOURCE)
            .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
            .sort(models.VariableSort.ALPHABETICAL_ASC)
            .multi(True)
            .include_all(True)
            .all_value(one.every)
            .current(models.VariableOption(selected=True, text="All", value="$__all"))
        )


def _drawn(panel: Panel) -> _AnyPanel:
    if panel.kind == "stat":
        last = options.ReduceDataOptions().calcs(["lastNotNull"])
        return stat.Panel().reduce_options(last).graph_mode(choices.BigValueGraphMode.AREA)
    if panel.kind == "heatmap":
        return heatmap.Panel().calculate(False).show_tooltip()
    drawn = (
        timeseries.Panel()
        .line_width(1)
        .fill_opacity(30 if panel.stacked else 10)
        .show_points(choices.VisibilityMode.NEVER)
        .legend(
            options.VizLegendOptions()
            .display_mode(choices.LegendDisplayMode.LIST)
            .placement(choices.LegendPlacement.BOTTOM)
            .show_legend(True)
        )
        .tooltip(
            options.VizTooltipOptions()
            .mode(choices.TooltipDisplayMode.MULTI)
            .sort(choices.SortOrder.DESCENDING)
        )
    )
    if panel.stacked:
        drawn.stacking(options.StackingConfig().mode(choices.StackingMode.NORMAL).group("A"))
    if panel.limit is not None:
        drawn.thresholds_style(
            options.GraphThresholdsStyleConfig().mode(choices.GraphTresholdsStyleMode.LINE)
        )
    return drawn


def _built(panel: Panel, number: int) -> _AnyPanel:
    built = (
        _drawn(panel)
        .id(number)
        .title(panel.title)
        .description(panel.description)
        .datasource(_SOURCE)
        .unit(panel.unit)
        .min(0)
        .span(panel.width)
        .height(_HEIGHT[panel.kind])
    )
    steps = [models.Threshold(color="green", value=None)]
    if panel.limit is not None:
        steps.append(models.Threshold(color="red", value=panel.limit))
    built.thresholds(grafana.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps))
    for letter, query in zip("ABCDEFGH", panel.queries, strict=False):
        check_names(panel.title, query.expr)
        target = prometheus.Dataquery().ref_id(letter).expr(query.expr)
        target.legend_format(query.legend).range()
        if panel.kind == "heatmap":
            target.format(PromQueryFormat.HEATMAP)
        built.with_target(target)
    return built


def dashboard_file(rows: tuple[Row, ...] = ROWS) -> str:
    """Return the dashboard as JSON.

    Raises:
        MetricError: A panel asks for a metric that there is not.
    """
    board = (
        grafana.Dashboard(_TITLE)
        .uid(UID)
        .description(f"Made from {SOURCE_URL}/-/blob/main/ci/monitoring/panels.py")
        .tags(["triton", "jax"])
        .time("now-1h", "now")
        .refresh("30s")
        .timezone("browser")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .editable()
    )
    for variable in _variables():
        board.with_variable(variable)
    number = 0
    for row in rows:
        number += 1
        board.with_row(grafana.Row(row.title).id(number))
        for panel in row.panels:
            number += 1
            board.with_panel(_built(panel, number))
    return JSONEncoder(sort_keys=True, indent=2).encode(board.build()) + "\n"


@dataclass(frozen=True, slots=True)
class ShownPanel:
    """A panel as it is in the file.

    Attributes:
        row: The heading that it is under.
        title: Over it.
        kind: Its type in Grafana.
        unit: Of its values.
        stacked: Whether its lines are drawn upon one another.
        queries: Expression and legend of each of its questions.
    """

    row: str
    title: str
    kind: str
    unit: str
    stacked: bool
    queries: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return f"{self.row}: {self.title}"


def shown_panels(path: Path) -> list[ShownPanel]:
    """Read the panels of a dashboard's file, in their order."""
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    shown, row = [], ""
    for panel in content["panels"]:
        if panel["type"] == "row":
            row = panel["title"]
            continue
        defaults = panel["fieldConfig"]["defaults"]
        stacking = defaults.get("custom", {}).get("stacking", {})
        shown.append(
            ShownPanel(
                row=row,
                title=panel["title"],
                kind=panel["type"],
                unit=defaults["unit"],
                stacked=stacking.get("mode") == "normal",
                queries=tuple((one["expr"], one["legendFormat"]) for one in panel["targets"]),
            )
        )
    return shown
