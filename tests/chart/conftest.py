# SPDX-License-Identifier: Apache-2.0
"""The chart, rendered once for each set of values."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

import pytest

from ci.chart import KUBERNETES, VALUE_SETS, documents, render

#: Renders a set of values, with more values by path.
Render = Callable[..., list[dict[str, Any]]]


@functools.cache
def _rendered(values: str, sets: str, kubernetes: str) -> str:
    return render(VALUE_SETS[values], sets=json.loads(sets), kubernetes=kubernetes)


@pytest.fixture(scope="session")
def objects() -> Render:
    """What a set of values is rendered to; each call gives objects of its own."""

    def rendered(
        values: str = "minimal", kubernetes: str = KUBERNETES, **sets: object
    ) -> list[dict[str, Any]]:
        paths = {name.replace("__", "."): value for name, value in sets.items()}
        return documents(_rendered(values, json.dumps(paths), kubernetes))

    return rendered
