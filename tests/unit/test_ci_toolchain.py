# SPDX-License-Identifier: Apache-2.0
"""What a build needs is found, or a person is told how to get it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ci import toolchain
from ci.toolchain import Requirement, ToolchainError


def requirement(name: str, found: str | None) -> Requirement:
    return Requirement(name, ">= 1", f"lib{name}-dev", lambda: found)


def program(directory: Path, name: str, output: str) -> Path:
    path = directory / name
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{output}\nEND\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def user_without_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who has apt-get and a sudo that asks for a password."""
    program(tmp_path, "apt-get", "")
    sudo = program(tmp_path, "sudo", "")
    sudo.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cmake version 3.25.1\n\nCMake suite", (3, 25, 1)),
        ("12.2.0", (12, 2, 0)),
        ("14", (14,)),
        ("Apple clang version 15.0 (clang-1500)", (15, 0)),
        ("no number", None),
        ("", None),
    ],
)
def test_parse_version(text: str, expected: tuple[int, ...] | None) -> None:
    assert toolchain.parse_version(text) == expected


def test_versions_compare_as_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    cmake = program(tmp_path, "cmake", "cmake version 3.9.6")
    assert toolchain.find_cmake() is None
    program(tmp_path, "cmake", "cmake version 4.1.0")
    assert toolchain.find_cmake() == f"{cmake} 4.1.0"


def test_a_compiler_that_is_too_old_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = program(tmp_path, "g++-8", "8.3.0")
    monkeypatch.setenv("CXX", str(old))
    assert toolchain.find_compiler() is None
    new = program(tmp_path, "g++-13", "13.1.0")
    monkeypatch.setenv("CXX", str(new))
    assert toolchain.find_compiler() == f"{new} 13.1.0"


def test_the_json_header_is_asked_of_the_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing = program(tmp_path, "g++", "")
    refusing.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    monkeypatch.setenv("CXX", str(refusing))
    assert toolchain.find_json() is None


def test_python_header(tmp_path: Path) -> None:
    assert toolchain.find_python_header({"include": str(tmp_path)}) is None
    (tmp_path / "Python.h").touch()
    assert toolchain.find_python_header({"include": str(tmp_path)}) == f"{tmp_path}/Python.h"


def test_libpython_is_found_by_the_name_the_loader_uses(tmp_path: Path) -> None:
    variables = {
        "LIBDIR": str(tmp_path),
        "INSTSONAME": "libpython3.12.so.1.0",
        "LDLIBRARY": "libpython3.12.so",
        "MULTIARCH": "x86_64-linux-gnu",
    }
    assert toolchain.find_libpython(variables) is None
    library = tmp_path / "x86_64-linux-gnu" / "libpython3.12.so.1.0"
    library.parent.mkdir()
    library.touch()
    assert toolchain.find_libpython(variables) == str(library)


def test_a_static_python_has_no_shared_library(tmp_path: Path) -> None:
    (tmp_path / "libpython3.12.a").touch()
    names = {"LIBDIR": str(tmp_path), "INSTSONAME": "libpython3.12.a", "LDLIBRARY": None}
    assert toolchain.find_libpython(names) is None


def test_the_table_shows_what_is_missing_and_its_package() -> None:
    rows = toolchain.table([requirement("here", "/usr/bin/here 2"), requirement("gone", None)])
    lines = rows.splitlines()
    assert lines[1].split() == ["here", ">=", "1", "/usr/bin/here", "2"]
    assert lines[2].endswith("MISSING (package libgone-dev)")


@pytest.mark.parametrize(
    ("user", "has_apt", "has_sudo", "expected"),
    [
        (0, True, False, ["apt-get"]),
        (1000, True, True, ["sudo", "-n", "apt-get"]),
        (1000, True, False, None),
        (0, False, False, None),
    ],
)
def test_how_apt_get_is_called(
    user: int, has_apt: bool, has_sudo: bool, expected: list[str] | None
) -> None:
    assert toolchain.apt_command(user=user, has_apt=has_apt, has_sudo=has_sudo) == expected


@pytest.mark.usefixtures("user_without_root")
def test_a_user_without_root_is_told_the_command() -> None:
    with pytest.raises(ToolchainError) as caught:
        toolchain.ensure([requirement("b", None), requirement("here", "2"), requirement("a", None)])
    assert str(caught.value) == (
        "missing: b (>= 1), a (>= 1); "
        "run: sudo apt-get update && sudo apt-get install -y liba-dev libb-dev"
    )


@pytest.mark.usefixtures("user_without_root")
def test_nothing_is_run_when_nothing_is_missing() -> None:
    toolchain.ensure([requirement("here", "2")])


def test_no_apt_get_is_said_plainly() -> None:
    assert toolchain.advice(["liba-dev"], has_apt=False).startswith("there is no apt-get here")


def test_what_is_installed_is_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    apt = program(tmp_path, "apt-get", "")
    apt.write_text('#!/bin/sh\necho "apt $*"\n', encoding="utf-8")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(ToolchainError, match=r"still missing after libgone-dev was installed"):
        toolchain.ensure([requirement("gone", None)])
    said = capfd.readouterr().out
    assert "apt update" in said
    assert said.rstrip().endswith("install -y -qq --no-install-recommends libgone-dev")


def test_every_requirement_has_a_package_and_a_probe_that_runs() -> None:
    for needed in toolchain.requirements():
        assert needed.package
        assert needed.find() is None or isinstance(needed.find(), str)


def test_headers_are_found_where_the_compiler_looks() -> None:
    assert toolchain.find_header("vector") == "vector"
    assert toolchain.find_header("no/such/header.h") is None


def test_the_fuzzers_runtime_is_named_after_the_clang_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    program(tmp_path, "clang++", "19.1.7")
    assert toolchain.find_clang() == f"{tmp_path}/clang++ 19.1.7"
    (needed,) = toolchain.fuzzer_requirements()
    assert needed.package == "libclang-rt-19-dev"
    assert needed.find() is None
    program(tmp_path, "clang++", "13.0.1")
    assert toolchain.find_clang() is None
