# SPDX-License-Identifier: Apache-2.0
"""The files of the Helm chart that say what is declared elsewhere.

``values.schema.json`` declares the chart's values: type, default and meaning of each. The defaults
in ``values.yaml``, with the meanings as comments, and the table in the documentation are made from
it; the releases in it from ``releases.toml``. ``Chart.yaml`` has the project version. What
Prometheus and Grafana read is a copy, since a chart cannot read what lies outside of it.
``python -m ci.chart_files`` writes all of that, ``--check`` says what is out of date.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ci.derived import outdated_files, write_or_check
from ci.image_plan import variants
from ci.process import ROOT
from tritonserver_jax import __version__
from tritonserver_jax.releases import load_catalog

__all__ = ["CHART", "outdated", "value_table"]

CHART: Final = ROOT / "packaging" / "helm" / "tritonserver-jax"
SCHEMA: Final = CHART / "values.schema.json"
# Where ci.monitoring leaves them. It is not imported: who publishes a chart needs no Grafana SDK.
MONITORING: Final = ROOT / "packaging" / "monitoring"

_WIDTH: Final = 100
_VALUES_HEAD: Final = """\
# The values of the chart, and their defaults. Made from values.schema.json by
# `python -m ci.chart_files`; do not edit.
"""


def schema_text() -> str:
    """Return the schema with the releases that there are."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    catalog = load_catalog()
    release = schema["properties"]["image"]["properties"]["release"]
    release["enum"] = list(catalog.releases)
    release["default"] = catalog.default_release
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def values_text() -> str:
    """Return values.yaml: the defaults, each with its meaning above."""
    blocks = [
        "".join(_value_lines(name, node, ""))
        for name, node in json.loads(schema_text())["properties"].items()
        if name != "global"  # Helm's own
    ]
    return "\n".join([_VALUES_HEAD, *blocks])


def _value_lines(name: str, node: Mapping[str, Any], pad: str) -> Iterator[str]:
    if "properties" in node and "default" not in node:
        yield f"{pad}{name}:\n"
        for inner, declared in node["properties"].items():
            yield from _value_lines(inner, declared, f"{pad}  ")
        return
    for line in textwrap.wrap(node["description"], _WIDTH - len(pad) - 2):
        yield f"{pad}# {line}\n"
    # JSON is YAML, and has no surprises with numbers and words.
    yield f"{pad}{name}: {json.dumps(node['default'], ensure_ascii=False)}\n"


def value_table() -> list[tuple[str, str, str]]:
    """Return each value: its path, its default and its meaning."""
    return list(_table_rows("", json.loads(schema_text())))


def _table_rows(path: str, node: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    if "properties" in node and "default" not in node:
        for name, inner in node["properties"].items():
            if name != "global":
                yield from _table_rows(f"{path}.{name}" if path else name, inner)
        return
    default = node["default"]
    shown = default if isinstance(default, str) and default else json.dumps(default)
    yield path, shown, node["description"]


def chart_text() -> str:
    """Return Chart.yaml with the project version, as the chart's own and as the app's."""
    text = (CHART / "Chart.yaml").read_text(encoding="utf-8")
    text = re.sub(r"(?m)^version: .*$", f"version: {__version__}", text)
    return re.sub(r"(?m)^appVersion: .*$", f'appVersion: "{__version__}"', text)


def releases_text() -> str:
    """Return what the templates have to know of each release."""
    known = {
        name: {
            "variants": variants(release),
            "grpcMaxConnectionAge": "grpc_connection_age" in release.features,
        }
        for name, release in load_catalog().releases.items()
    }
    lines = ",\n".join(
        f"  {json.dumps(name)}: {json.dumps(facts)}" for name, facts in known.items()
    )
    return f"{{\n{lines}\n}}\n"


def _copy(name: str) -> Callable[[], str]:
    return lambda: (MONITORING / name).read_text(encoding="utf-8")


FILES: Final[Mapping[Path, Callable[[], str]]] = {
    CHART / "Chart.yaml": chart_text,
    SCHEMA: schema_text,
    CHART / "values.yaml": values_text,
    CHART / "files" / "releases.json": releases_text,
    CHART / "files" / "rules.yml": _copy("rules.yml"),
    CHART / "files" / "dashboard.json": _copy("dashboard.json"),
}


def outdated(*, write: bool = False) -> list[Path]:
    """Return the files that are not what they should be; written anew if asked for."""
    return outdated_files(FILES, write=write)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    return write_or_check(
        arguments,
        program="python -m ci.chart_files",
        description=__doc__,
        outdated=lambda write: outdated(write=write),
        difference="these files of the chart differ from what they are made of",
    )


if __name__ == "__main__":
    sys.exit(main())
