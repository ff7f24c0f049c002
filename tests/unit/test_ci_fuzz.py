# SPDX-License-Identifier: Apache-2.0
"""The fuzz session: its budget, its seeds, and what it keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci import fuzz
from ci.process import ROOT, CommandError


def program(directory: Path, body: str) -> Path:
    path = directory / "fuzz_region"
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("seconds", [1, 10, 60, 600])
def test_the_budget_is_shared_and_kept_to(seconds: int) -> None:
    shares = fuzz.shares(seconds)
    assert shares.keys() == fuzz.SHARES.keys()
    assert min(shares.values()) >= 1
    assert sum(shares.values()) <= max(seconds, len(shares))


def test_every_fuzzer_has_a_source_and_seeds() -> None:
    sources = (ROOT / "tests" / "native" / "fuzz").glob("fuzz_*.cc")
    assert {path.stem.removeprefix("fuzz_") for path in sources} == fuzz.SHARES.keys()
    for name in fuzz.SHARES:
        assert any((fuzz.SEEDS / name).iterdir())


def test_a_fuzzer_that_finds_nothing(tmp_path: Path) -> None:
    quiet = program(tmp_path, 'echo "$@" >"$(dirname "$0")/words"')
    assert fuzz.fuzz("region", quiet, 7, tmp_path / "out") == []
    words = (tmp_path / "words").read_text().split()
    assert "-max_total_time=7" in words
    assert words[-2:] == [str(tmp_path / "out" / "corpus" / "region"), str(fuzz.SEEDS / "region")]


def test_a_finding_is_kept_and_an_older_one_is_not_found_again(tmp_path: Path) -> None:
    findings = tmp_path / "out" / "findings" / "region"
    findings.mkdir(parents=True)
    (findings / "crash-old").touch()
    finder = program(tmp_path, f'touch "{findings}/crash-new"; exit 77')
    assert fuzz.fuzz("region", finder, 1, tmp_path / "out") == [findings / "crash-new"]


def test_a_fuzzer_that_cannot_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="ended with status 3"):
        fuzz.fuzz("region", program(tmp_path, "exit 3"), 1, tmp_path / "out")


def test_a_budget_of_nothing_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        fuzz.main(["--seconds", "0"])
    assert "expected 1 or more" in capsys.readouterr().err
