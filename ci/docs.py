# SPDX-License-Identifier: Apache-2.0
"""Tables in the documentation, made from where their contents are declared.

A page has a pair of comments, ``<!-- table NAME -->`` and ``<!-- end table -->``; what is between
them is made here. ``python -m ci.docs`` writes it, ``--check`` says where it is out of date.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import yaml

from ci.chart_files import value_table
from ci.command_docs import command_reference, exit_codes
from ci.deploy.variables import variable_descriptions
from ci.derived import write_or_check
from ci.guides.blocks import REASONS
from ci.image_sizes import recorded_sizes
from ci.locks import PYTHONS, lock_path, pinned
from ci.monitoring.alerts import alerts
from ci.monitoring.metrics import TRITON, Metric, own_metrics
from ci.monitoring.records import records
from ci.monitoring.thresholds import described
from ci.process import ROOT
from tritonserver_jax.releases import SUPPORT_LEVELS, load_catalog, load_releases
from tritonserver_jax.runtime.dtypes import DTYPES
from tritonserver_jax.runtime.parameters import PARAMETERS, Parameter
from tritonserver_jax.runtime.settings import SETTINGS
from tritonserver_jax.variables import VARIABLES

DOCS = ROOT / "docs"
PIPELINE = ROOT / ".gitlab-ci.yml"

_BLOCK = re.compile(r"(<!-- table (\w+) -->\n).*?(<!-- end table -->)", re.DOTALL)


class DocsError(RuntimeError):
    """A page asks for a table that nobody makes."""


def _pipeline_variables() -> str:
    settings = yaml.safe_load(PIPELINE.read_text(encoding="utf-8"))
    return _table(
        ("variable", "meaning", "default"),
        [
            (f"`{name}`", one["description"], f"`{one['value']}`" if one["value"] else "")
            for name, one in settings["variables"].items()
            if isinstance(one, dict)
        ],
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _parameters(declared: Sequence[Parameter]) -> str:
    return _table(
        ("key", "meaning", "value"),
        [(f"`{one.key}`", one.meaning, one.expected) for one in declared],
    )


def _dtypes() -> str:
    return _table(
        ("Triton, in a request", "in config.pbtxt", "NumPy", "JAX"),
        [
            (
                f"`{one.name}`",
                f"`{one.config_name}`",
                "`object` (of `bytes`)" if one.is_bytes else f"`{one.numpy.name}`",
                "`Strings`"
                if one.is_bytes
                else f"`{one.numpy.name}`" + (" (64-bit mode)" if one.needs_x64 else ""),
            )
            for one in DTYPES
        ],
    )


def _metrics() -> str:
    return _table(
        ("metric", "kind", "labels", "meaning"),
        [(f"`{one.name}`", one.kind, _labels(one), one.meaning) for one in own_metrics()],
    )


def _triton_metrics() -> str:
    return _table(
        ("metric", "kind", "labels", "meaning", "needs"),
        [(f"`{one.name}`", one.kind, _labels(one), one.meaning, _needs(one)) for one in TRITON],
    )


def _needs(metric: Metric) -> str:
    return f"release {metric.since} or newer" if metric.since else metric.needs or "nothing"


def _labels(metric: Metric) -> str:
    return ", ".join(f"`{label}`" for label in metric.labels) or "none"


def _alerts() -> str:
    return _table(
        ("alert", "severity", "when", "for"),
        [
            (f"[{one.name}](#{one.name.lower()})", one.severity, one.when, one.hold or "at once")
            for one in alerts()
        ],
    )


def _releases() -> str:
    return _table(
        ("release", "server version", "support", "backend API", "Ubuntu", "Python", "CUDA"),
        [
            (
                one.release,
                one.server_version,
                one.support,
                str(one.backend_api or "not known"),
                one.ubuntu,
                one.python,
                one.cuda or "not known",
            )
            for one in load_releases().values()
        ],
    )


def _images() -> str:
    return _table(
        ("release", "server", "SDK"),
        [
            (
                one.release,
                f"`{one.image}`" + (f"<br>`{one.image_digest}`" if one.image_digest else ""),
                f"`{one.sdk_image}`"
                + (f"<br>`{one.sdk_image_digest}`" if one.sdk_image_digest else ""),
            )
            for one in load_releases().values()
        ],
    )


def _features() -> str:
    catalog = load_catalog()
    return _table(
        ("Triton's behaviour", "since", "name in `releases.toml`"),
        [
            (
                text,
                next(one.release for one in catalog.releases.values() if name in one.features),
                f"`{name}`",
            )
            for name, text in catalog.features.items()
        ],
    )


def _pythons() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (declared,) = (one for one in project["dependencies"] if re.match(r"jax\W", one))
    return _table(
        ("Python", "JAX in the lock", "supported"),
        [(python, pinned(lock_path(python))["jax"], f"`{declared}`") for python in PYTHONS],
    )


def _image_sizes() -> str:
    return _table(
        ("image", "made from", "base, MB", "image, MB", "added, MB"),
        [
            (
                f"`{one.tag}`",
                one.base,
                *(f"{size / 1e6:.0f}" for size in (one.size.base, one.size.image, one.size.added)),
            )
            for one in recorded_sizes()
        ],
    )


TABLES: dict[str, Callable[[], str]] = {
    "chart_values": lambda: _table(
        ("value", "default", "meaning"),
        [(f"`{path}`", f"`{default}`", text) for path, default, text in value_table()],
    ),
    "commands": command_reference,
    "deploy_variables": lambda: _table(
        ("variable", "meaning"), [(f"`{name}`", text) for name, text in variable_descriptions()]
    ),
    "dtypes": _dtypes,
    "image_sizes": _image_sizes,
    "exit_codes": lambda: _table(("exit code", "meaning"), exit_codes()),
    "features": _features,
    "alerts": _alerts,
    "metrics": _metrics,
    "not_run": lambda: _table(
        ("reason", "meaning"), [(f"`{name}`", text) for name, text in REASONS.items()]
    ),
    "recorded": lambda: _table(
        ("series", "meaning"), [(f"`{one.name}`", one.meaning) for one in records()]
    ),
    "thresholds": lambda: _table(
        ("threshold", "value", "meaning"),
        [(f"`{name}`", value, meaning) for name, value, meaning in described()],
    ),
    "triton_metrics": _triton_metrics,
    "parameters": lambda: _parameters(PARAMETERS),
    "pipeline_variables": _pipeline_variables,
    "release_images": _images,
    "pythons": _pythons,
    "releases": _releases,
    "settings": lambda: _parameters(SETTINGS),
    "support": lambda: _table(
        ("support", "meaning"), [(f"`{level}`", text) for level, text in SUPPORT_LEVELS.items()]
    ),
    "variables": lambda: _table(
        ("variable", "meaning"), [(f"`{name}`", text) for name, text in VARIABLES.items()]
    ),
}


def filled(text: str, page: str) -> str:
    """The text of a page with its tables made anew.

    Raises:
        DocsError: It asks for a table that there is not.
    """

    def fill(match: re.Match[str]) -> str:
        table = TABLES.get(match[2])
        if table is None:
            raise DocsError(f"{page}: table {match[2]} is not one of {', '.join(TABLES)}")
        return match[1] + table() + match[3]

    return _BLOCK.sub(fill, text)


def outdated(docs: Path = DOCS, *, write: bool = False) -> list[Path]:
    """The pages whose tables are not what they should be; written anew if asked for."""
    found = []
    for page in sorted(docs.glob("**/*.md")):
        text = page.read_text(encoding="utf-8")
        new = filled(text, page.name)
        if new != text:
            found.append(page)
            if write:
                page.write_text(new, encoding="utf-8")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    return write_or_check(
        arguments,
        program="python -m ci.docs",
        description=__doc__,
        outdated=lambda write: outdated(write=write),
        difference="tables differ from their declarations",
    )


if __name__ == "__main__":
    sys.exit(main())
