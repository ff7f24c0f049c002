# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ci import matrix
from ci.matrix import Job, MatrixError, Result, parallel_runs, results, run_jobs, table

TESTS = """
import pytest

@pytest.mark.parametrize("release", ["23.04", "24.10"])
def test_each(release):
    assert release != "23.04"

@pytest.mark.parametrize(("release", "other"), [("24.10", "x")])
def test_two(release, other):
    pass

@pytest.mark.parametrize("number", ["124.10", "24.105"])
def test_no_release(number):
    pass

def test_skipped():
    pytest.skip("not here")
"""


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    """A run of real tests, of which one fails."""
    monkeypatch.setattr(matrix, "OUTPUT", tmp_path / "output")
    (tmp_path / "output").mkdir()
    path = tmp_path / "test_some.py"
    path.write_text(TESTS, encoding="utf-8")
    return Job("contract", [str(path), f"--rootdir={tmp_path}", "-p", "no:cacheprovider"])


def test_a_report_is_read_by_release(job: Job, capfd: pytest.CaptureFixture[str]) -> None:
    took = run_jobs([job], parallel=2)
    assert took["contract"] > 0
    found = results(job.report)
    assert set(found) == {"", "23.04", "24.10"}
    assert (found["23.04"].passed, len(found["23.04"].failed)) == (0, 1)
    assert found["24.10"].passed == 2
    assert found["24.10"].green
    assert (found[""].passed, found[""].skipped) == (2, 1)
    said = capfd.readouterr().out
    assert "contract: 4 passed, 1 FAILED" in said
    assert "test_each[23.04]" in said


def test_a_run_that_ends_without_a_report_is_an_error(
    job: Job, capfd: pytest.CaptureFixture[str]
) -> None:
    broken = Job("24.10", ["--no-such-option"])
    took = run_jobs([broken, job], parallel=1)
    assert set(took) == {"24.10", "contract"}
    assert "24.10: ended with status 4, see" in capfd.readouterr().out
    with pytest.raises(MatrixError, match="expected the report of a run of pytest"):
        results(broken.report)


def test_the_table_says_green_red_and_no_server() -> None:
    text = table(
        {
            "24.09": {"contract": Result(passed=3, seconds=0.4), "integration": Result(0, ["a"])},
            "24.11": {"contract": Result(passed=3)},
        },
        ["contract", "integration"],
    )
    lines = text.splitlines()
    assert lines[0].split() == ["release", "support", "contract", "integration"]
    assert lines[2].startswith("24.09    tested   green 0 s (3 passed)")
    assert lines[2].endswith("RED 0 s (0 passed, 1 failed)")
    assert lines[3].endswith("no server")


def test_nothing_tested_is_not_green() -> None:
    assert not Result(skipped=12).green


def test_at_least_one_runs_at_a_time() -> None:
    assert 1 <= parallel_runs() <= 1024
    assert sys.executable
