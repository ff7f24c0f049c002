# SPDX-License-Identifier: Apache-2.0
"""How the core's own tests are run; tests/native runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci import native


def program(directory: Path, name: str, body: str) -> Path:
    path = directory / name
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_status_and_all_output_come_back(tmp_path: Path) -> None:
    tests = program(tmp_path, "tests", 'echo "$1 $TSAN_OPTIONS"; echo two >&2; exit 66')
    status, output = native.run_tests(tests, "--test-case=a*")
    assert status == 66
    assert output.split() == ["--test-case=a*", native.SANITIZER_OPTIONS["TSAN_OPTIONS"], "two"]


def test_addresses_are_not_spread_where_that_is_too_wide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "setarch", 'shift; NARROW=1 exec "$@"')
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    tests = program(
        tmp_path,
        "tests",
        'test -n "$NARROW" && exit 0; echo "FATAL: ThreadSanitizer: unexpected memory mapping"; '
        "exit 66",
    )
    assert native.run_tests(tests) == (0, "")
