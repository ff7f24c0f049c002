# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci import golden
from ci.golden import changed, difference, expected, merged, only_what_is_said
from tritonserver_jax.releases import load_releases

NAMES = st.text("abc", min_size=1, max_size=2)
ANSWERS = st.recursive(
    st.integers(1, 3) | st.text("xyz", min_size=1, max_size=2) | st.lists(st.integers(1, 2)),
    lambda inner: st.dictionaries(NAMES, inner, min_size=1, max_size=3),
    max_leaves=6,
)


@given(ANSWERS, ANSWERS)
def test_an_answer_with_its_difference_is_the_other(one: Any, other: Any) -> None:
    assert changed(one, difference(one, other)) == other
    assert difference(one, one) == {}


def test_what_is_empty_is_not_said() -> None:
    config = {
        "a": 0,
        "b": "",
        "c": [],
        "d": {"e": False, "f": {}},
        "g": [{"h": 1, "i": ""}, 0],
        "j": True,
    }
    assert only_what_is_said(config) == {"g": [{"h": 1}, 0], "j": True}


def test_what_most_say_is_common_and_the_rest_is_by_value() -> None:
    recorded = {
        "23.04": {"q": {"a": 1, "b": {"c": 2}}, "r": "x"},
        "23.10": {"q": {"a": 1, "b": {"c": 3}}, "r": "x"},
        "24.10": {"q": {"a": 1, "b": {"c": 3}}, "r": "y"},
    }
    common, differences = merged(recorded)
    assert common == {"q": {"a": 1, "b": {"c": 3}}, "r": "x"}
    assert differences == {"23.04": {"q": {"/b/c": 2}}, "24.10": {"r": {"": "y"}}}


def test_the_files_name_releases_and_questions_that_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = json.loads((golden.GOLDEN / "answers.json").read_text(encoding="utf-8"))
    differences = json.loads((golden.GOLDEN / "differences.json").read_text(encoding="utf-8"))
    served = {name for name, release in load_releases().items() if release.server}
    assert set(differences) <= served
    for questions in differences.values():
        assert set(questions) <= set(answers)
    # Few: what differs is Triton's own, and worth a look when it grows.
    assert sum(len(places) for found in differences.values() for places in found.values()) < 100
    assert expected("24.10").keys() == answers.keys()
