# SPDX-License-Identifier: Apache-2.0
"""The check of symbols, on real libraries compiled for it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ci.symbols import (
    OLDEST_C_API,
    SymbolError,
    c_api,
    check_core,
    check_functions,
    check_system,
    exported,
    required,
    unknown_to,
    versioned,
)
from tritonserver_jax.releases import SystemLibraries, load_releases

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
        "void TRITONSERVER_ErrorNew(void); static void hidden(void) {}"
        "void TRITONBACKEND_A(void) { hidden(); TRITONSERVER_ErrorNew(); }"
    )
    assert exported(library) == {"TRITONBACKEND_A"}
    assert "TRITONSERVER_ErrorNew" in required(library)
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


def test_a_function_that_no_release_has_is_named(compile_library: Compile) -> None:
    library = compile_library(
        "void TRITONSERVER_ErorNew(void); void f(void) { TRITONSERVER_ErorNew(); }"
    )
    newest = list(RELEASES.values())[-1]
    with pytest.raises(SymbolError, match=r"does not have TRITONSERVER_ErorNew"):
        check_functions(library, newest, RELEASES.values())


def test_the_c_api_is_that_of_the_oldest_release_and_what_was_added() -> None:
    assert OLDEST_C_API.name == f"c_api_{OLDEST.release}.txt"
    oldest = c_api(OLDEST, RELEASES.values())
    assert len(oldest) == 224
    assert "TRITONBACKEND_ApiVersion" in oldest
    added = {name for r in RELEASES.values() for name in r.c_api_functions_added or ()}
    assert not oldest & added
    assert c_api(list(RELEASES.values())[-1], RELEASES.values()) == oldest | added


def test_a_newer_system_than_that_of_the_image_is_named(compile_library: Compile) -> None:
    library = compile_library(
        "#include <string.h>\nchar *f(char *to, const char *from) { return strcpy(to, from); }"
        "int g(void *to, const void *from, size_t n) { return memcpy(to, from, n) != 0; }"
    )
    check_system(library, OLDEST)
    assert ("GLIBC", (2, 14)) in [(s.family, s.version) for s in versioned(library)]
    older = replace(OLDEST, libraries=SystemLibraries((2, 9), (3, 4), (1, 3)))
    with pytest.raises(SymbolError) as raised:
        check_system(library, older)
    assert "has GLIBC_2.9, GLIBCXX_3.4, CXXABI_1.3 at most: it needs memcpy of GLIBC_2.14" in str(
        raised.value
    )
    assert "strcpy" not in str(raised.value)


def test_a_file_that_is_no_library_is_named(tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("text", encoding="utf-8")
    with pytest.raises(SymbolError, match=r"cannot read the symbols of .*text\.so"):
        exported(tmp_path / "text.so")
