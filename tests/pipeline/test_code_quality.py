# SPDX-License-Identifier: Apache-2.0
"""The report that GitLab shows has what the tools find, and a tool that fails is an error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ci import code_quality
from ci.code_quality import write_report
from ci.process import CommandError


def test_what_both_tools_find_is_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_quality, "ROOT", tmp_path)
    (tmp_path / "unused.py").write_text("import os\n")
    (tmp_path / "Dockerfile").write_text("FROM debian\n")
    report = tmp_path / "build" / "report.json"
    write_report(report, [Path("Dockerfile")])
    found = {(one["check_name"], one["location"]["path"]) for one in json.loads(report.read_text())}
    assert {("F401", "unused.py"), ("DL3006", "Dockerfile")} <= found


def test_a_clean_source_has_an_empty_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_quality, "ROOT", tmp_path)
    (tmp_path / "Dockerfile").write_text("FROM debian:12.12\n")
    write_report(tmp_path / "report.json", [Path("Dockerfile")])
    assert json.loads((tmp_path / "report.json").read_text()) == []


def test_a_tool_that_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_quality, "ROOT", tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\nline-length = 'long'\n")
    with pytest.raises(CommandError, match=r"ruff: expected findings as JSON"):
        write_report(tmp_path / "report.json", [])
