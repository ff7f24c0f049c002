# SPDX-License-Identifier: Apache-2.0
"""Objects of Kubernetes, compared with what the API of a version takes."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate

#: Of kinds that a cluster only knows when somebody has added them: what of them we use. Properties
#: that are not in here are errors, as in Kubernetes' own schemas.
CUSTOM = Path(__file__).with_name("custom_resources.json")

#: The versions of Kubernetes that the chart is checked against.
VERSIONS = tuple(f"1.{minor}" for minor in range(28, 38))


@functools.cache
def custom_schemas() -> dict[str, Any]:
    """Schemas by ``<apiVersion>/<kind>``."""
    found: dict[str, Any] = json.loads(CUSTOM.read_text(encoding="utf-8"))
    return found


def problems(objects: Iterable[Mapping[str, Any]], version: str) -> list[str]:
    """What the API of a version would refuse, or silently drop.

    Args:
        objects: What is given to it.
        version: As in ``1.33``.
    """
    found = [_problem(json.dumps(one, sort_keys=True), version) for one in objects]
    return [problem for problem in found if problem is not None]


@functools.cache
def _problem(text: str, version: str) -> str | None:
    """Of one object; most are the same whatever the values are, and a comparison takes long."""
    one = json.loads(text)
    name = f"{one['apiVersion']}/{one['kind']}"
    try:
        if name in custom_schemas():
            schemas = custom_schemas()
            jsonschema.validate(one, {**schemas[name], "definitions": schemas["definitions"]})
        else:
            kubernetes_validate.validate(one, version, strict=True)
    except (jsonschema.ValidationError, kubernetes_validate.ValidationError) as error:
        where = "/".join(str(part) for part in error.path)
        return f"{version}: {name} {where}: {error.message}"
    return None


def named(objects: Iterable[dict[str, Any]], kind: str, name: str | None = None) -> dict[str, Any]:
    """The one object of a kind, or the one of them that has a name."""
    found = [
        one for one in objects if one["kind"] == kind and name in (None, one["metadata"]["name"])
    ]
    assert len(found) == 1, f"expected one {kind}, got {[o['metadata']['name'] for o in found]}"
    return found[0]
