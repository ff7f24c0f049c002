# SPDX-License-Identifier: Apache-2.0
"""Builds the core's own tests with sanitizers, and runs them: no failure and no finding."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ci.native import PRESETS, build_tests, run_tests

# Most of it is compiling, on a machine that may do other things too.
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module", params=PRESETS)
def program(request: pytest.FixtureRequest) -> Path:
    """The tests, built with one of the sanitizers."""
    preset: str = request.param
    return build_tests(preset)


def test_the_core_under_a_sanitizer(program: Path) -> None:
    status, output = run_tests(program)
    assert status == 0, output
    assert re.search(r"test cases: +\d{2,} \| +\d{2,} passed \| +0 failed", output), output
    assert "Sanitizer" not in output, output


@pytest.mark.parametrize(
    ("preset", "fault", "words"),
    [
        ("tsan", "a race", "ThreadSanitizer: data race"),
        ("asan", "one byte too many", "AddressSanitizer: heap-buffer-overflow"),
        ("asan", "a leak", "LeakSanitizer: detected memory leaks"),
        ("asan", "an overflow", "runtime error: signed integer overflow"),
    ],
)
def test_the_sanitizers_are_at_work(preset: str, fault: str, words: str) -> None:
    status, output = run_tests(build_tests(preset), f"--test-case=fault: {fault}", "--no-skip")
    assert status != 0
    assert words in output
