# SPDX-License-Identifier: Apache-2.0
"""What a stock server is given for a backend with AddressSanitizer."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ci import sanitize
from ci.process import ROOT, CommandError


def test_the_libraries_can_be_loaded_before_any_program(tmp_path: Path) -> None:
    libraries = sanitize.runtime_libraries(tmp_path)
    assert [Path(library).name.split(".")[0] for library in libraries] == [
        "libasan_preload",
        "libasan",
        "libstdc++",
    ]
    variables = sanitize.server_environment(libraries, tmp_path / "log")
    done = subprocess.run(["/bin/true"], env=variables, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert sanitize.findings(tmp_path / "log") == []


def test_what_a_sanitizer_writes_is_found(tmp_path: Path) -> None:
    source, fault = tmp_path / "fault.cc", tmp_path / "fault"
    source.write_text("int main(int n, char**) { int* p = new int[2]; delete[] p; return p[n]; }")
    subprocess.run(
        ["c++", "-fsanitize=address", "-w", source, "-o", fault], check=True, capture_output=True
    )
    variables = sanitize.server_environment(sanitize.runtime_libraries(tmp_path), tmp_path / "log")
    assert subprocess.run([fault], env=variables, check=False).returncode != 0
    (found,) = sanitize.findings(tmp_path / "log")
    assert "heap-use-after-free" in found.read_text()


def test_a_compiler_without_the_sanitizer_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = tmp_path / "poor"
    compiler.write_text("#!/bin/sh\nexit 0\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    with pytest.raises(CommandError, match=r"poor: expected it to have libasan\.so, found none"):
        sanitize.runtime_libraries(tmp_path)


def test_the_tests_that_are_named_exist() -> None:
    for name in sanitize.TESTS:
        assert (ROOT / "tests" / "integration" / f"{name}.py").is_file()
