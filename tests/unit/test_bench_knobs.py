# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import re
from dataclasses import asdict

import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.knobs import DOCUMENT, SETTINGS, Figure, filled, knob_rows

FIGURES = [
    Figure("delay", "0", 8, 1000.0, 500.0, 2500.0),
    Figure("delay", "0", 32, 3000.0, 800.0, 4500.0),
    Figure("delay", "100", 8, 900.0, 600.0, 2600.0),
    Figure("delay", "100", 32, 3100.0, 700.0, 4400.0),
]
FACTS = {
    "machine": {"processor": "some", "processors": "2", "kernel": "6"},
    "software": {"tritonserver": "24.10", "tritonserver-jax": "0.1.0, commit abc", "jax": "1"},
    "rounds": 3,
    "seconds": 1.2,
}


def test_the_document_has_a_place_for_every_knob_and_no_other() -> None:
    places = re.findall(r"<!-- measured (\w+) -->", DOCUMENT.read_text(encoding="utf-8"))
    assert sorted(places) == sorted({"on", *(one.knob for one in SETTINGS)})


def test_every_setting_is_a_model_of_its_own() -> None:
    names = [one.model for one in SETTINGS]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9_]+", name) for name in names)


def test_every_knob_begins_with_what_it_is_without_it() -> None:
    first = {one.knob: one for one in reversed(SETTINGS)}
    for one in first.values():
        assert not one.args, one.knob


def test_a_table_has_a_line_for_each_setting() -> None:
    assert knob_rows(FIGURES, "delay").markdown().splitlines() == [
        "| setting | c8 infer/s | c8 p50 ms | c8 p99 ms | c32 infer/s | c32 p50 ms | c32 p99 ms |",
        "|---:|---:|---:|---:|---:|---:|---:|",
        "| 0 | 1,000 | 0.50 | 2.50 | 3,000 | 0.80 | 4.50 |",
        "| 100 | 900 | 0.60 | 2.60 | 3,100 | 0.70 | 4.40 |",
    ]


def test_a_run_without_a_result_is_a_gap() -> None:
    lines = knob_rows(FIGURES[:3], "delay").markdown().splitlines()
    assert lines[3] == "| 100 | 900 | 0.60 | 2.60 | - | - | - |"


def test_filling_a_place_again_changes_nothing_else() -> None:
    report = {**FACTS, "figures": [asdict(one) for one in FIGURES]}
    text = "# T\n\n<!-- measured on -->\nold\n<!-- end measured -->\n\nsome text\n\n"
    text += "<!-- measured delay -->\n<!-- end measured -->\n\nmore text\n"
    once = filled(text, report)
    assert "old" not in once
    assert "some, 2 processors" in once
    assert once.endswith("<!-- end measured -->\n\nmore text\n")
    assert filled(once, report) == once


def test_a_place_without_figures_is_an_error() -> None:
    text = "<!-- measured other -->\n<!-- end measured -->\n"
    with pytest.raises(BenchmarkError, match="other: expected figures"):
        filled(text, {**FACTS, "figures": []})
