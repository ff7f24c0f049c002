# SPDX-License-Identifier: Apache-2.0
"""Running other programs: what they say is passed on, and how they fail is named."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ci.process import ROOT, CommandError, capture, run


def test_run_shows_the_command_as_one_would_type_it(capfd: pytest.CaptureFixture[str]) -> None:
    run([sys.executable, "-c", "print('a b')"])
    assert capfd.readouterr().out == f"$ {sys.executable} -c 'print('\"'\"'a b'\"'\"')'\na b\n"


def test_run_names_command_and_status() -> None:
    with pytest.raises(CommandError, match=r"-c 'raise SystemExit\(7\)' ended with status 7"):
        run([sys.executable, "-c", "raise SystemExit(7)"])


def test_run_names_a_program_that_is_not_there(tmp_path: Path) -> None:
    absent = tmp_path / "absent"
    with pytest.raises(CommandError, match=f"cannot start {absent} .*No such file"):
        run([absent])


def test_capture_returns_what_was_printed() -> None:
    assert capture([sys.executable, "-c", "print('yes')"]) == "yes"


def test_capture_has_no_answer_from_a_failure_or_an_absent_program(tmp_path: Path) -> None:
    assert capture([sys.executable, "-c", "print('half'); raise SystemExit(1)"]) is None
    assert capture([tmp_path / "absent"]) is None


def test_root_is_the_checkout() -> None:
    assert (ROOT / "pyproject.toml").is_file()
