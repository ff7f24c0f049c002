# SPDX-License-Identifier: Apache-2.0
"""The file of rules, as Prometheus reads it: what is recorded, then the alerts."""

from __future__ import annotations

from typing import Any, Final

import yaml

from ci.monitoring.alerts import alerts
from ci.monitoring.metrics import check_names
from ci.monitoring.records import TIMING, Timing, records
from ci.monitoring.thresholds import THRESHOLDS, Thresholds

__all__ = ["rules_document", "rules_file"]


def rules_document(
    timing: Timing = TIMING, thresholds: Thresholds = THRESHOLDS
) -> dict[str, list[dict[str, Any]]]:
    """Return the content of a file of rules.

    Raises:
        MetricError: A rule asks for a metric that there is not.
    """
    recorded, raised = records(timing), alerts(timing, thresholds)
    names = [one.name for one in recorded]
    for record in recorded:
        check_names(record.name, record.expr, names)
    for alert in raised:
        check_names(alert.name, alert.expr, names)
    return {
        "groups": [
            {
                "name": "tritonserver-jax-records",
                "rules": [{"record": one.name, "expr": one.expr} for one in recorded],
            },
            {
                "name": "tritonserver-jax-alerts",
                "rules": [
                    {
                        "alert": one.name,
                        "expr": one.expr,
                        **({"for": one.hold} if one.hold else {}),
                        "labels": {"severity": one.severity},
                        "annotations": {
                            "summary": one.summary,
                            "description": one.description,
                            "runbook_url": one.runbook,
                        },
                    }
                    for one in raised
                ],
            },
        ]
    }


class _Dumper(yaml.SafeDumper):
    """Writes what has several lines as such, for those who read it."""


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)

# Long enough that no template is broken in two.
_LINE: Final = 1000

_HEAD: Final = """\
# SPDX-License-Identifier: Apache-2.0
# What Prometheus records and when it raises alerts. Made by `python -m ci.monitoring.files`; for
# other thresholds, change ci/monitoring/thresholds.py. What to do then is in docs/monitoring.md.
"""


def rules_file(timing: Timing = TIMING, thresholds: Thresholds = THRESHOLDS) -> str:
    """Return a file of rules, as Prometheus reads it."""
    document = rules_document(timing, thresholds)
    return _HEAD + yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=_LINE)
