# SPDX-License-Identifier: Apache-2.0
"""The check of symbols, on real libraries compiled for it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ci.symbols import (
    SymbolError,
    check_core,
    check_functions,
    exported,
    required,
    unknown_to,
)
from tritonserver_jax.releases import load_releases

RELEASES = load_releases()
OLDEST = next(iter(RELEASES.values()))

Compile = Callable[[str], Path]


@pytest.fixture
def compile_library(tmp_path: Path) -> Compile:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler: apt-get install gcc")

    def compiled(source: str) -> Path:
        library = tmp_path / "libtriton_jax.so"
        command = [compiler, "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)]
        subprocess.run(command, input=source, text=True, check=True)
        return library

    return compiled


def test_names_given_and_taken(compile_library: Compile) -> None:
    library = compile_library(
        "void TRITONSERVER_B(void); static void hidden(void) {}"
        "void TRITONBACKEND_A(void) { hidden(); TRITONSERVER_B(); }"
    )
    assert exported(library) == {"TRITONBACKEND_A"}
    assert "TRITONSERVER_B" in required(library)
    check_core(library, OLDEST, RELEASES.values())


def test_another_export_is_named(compile_library: Compile) -> None:
    library = compile_library("void TRITONBACKEND_A(void) {} int leaked = 1;")
    with pytest.raises(SymbolError, match=r"expected to export TRITONBACKEND_.* got leaked"):
        check_core(library, OLDEST, RELEASES.values())


def test_no_export_at_all_is_an_error(compile_library: Compile) -> None:
    library = compile_library("static int nothing; ")
    with pytest.raises(SymbolError, match="got nothing"):
        check_core(library, OLDEST, RELEASES.values())


def test_python_in_the_core_is_named(compile_library: Compile) -> None:
    library = compile_library(
        "void Py_Initialize(void); void TRITONBACKEND_A(void) { Py_Initialize(); }"
    )
    with pytest.raises(SymbolError, match="no symbol of Python, got Py_Initialize"):
        check_core(library, OLDEST, RELEASES.values())


def test_a_function_that_came_later_is_named(compile_library: Compile) -> None:
    newer = next(
        release
        for release in RELEASES.values()
        if release is not OLDEST and release.c_api_functions_added
    )
    assert newer.c_api_functions_added
    function = newer.c_api_functions_added[0]
    library = compile_library(f"void {function}(void); void f(void) {{ {function}(); }}")
    with pytest.raises(SymbolError, match=rf"cannot be loaded by {OLDEST.release}.*{function}"):
        check_functions(library, OLDEST, RELEASES.values())
    check_functions(library, newer, RELEASES.values())


def test_only_later_releases_count() -> None:
    newest = list(RELEASES.values())[-1]
    added = {name for r in RELEASES.values() for name in r.c_api_functions_added or ()}
    assert unknown_to(newest, added, RELEASES.values()) == []
    assert set(unknown_to(OLDEST, added, RELEASES.values())) == added - set(
        OLDEST.c_api_functions_added or ()
    )


def test_a_file_that_is_no_library_is_named(tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("text", encoding="utf-8")
    with pytest.raises(SymbolError, match=r"cannot read the symbols of .*text\.so"):
        exported(tmp_path / "text.so")
