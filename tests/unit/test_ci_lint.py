# SPDX-License-Identifier: Apache-2.0
"""The lint session goes on after a failure and names every one; and its inputs are complete."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ci import lint
from ci.lint import Check
from ci.process import ROOT, CommandError


def fails() -> None:
    raise CommandError("found something")


def test_all_checks_run_and_the_failed_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    ran = []
    selected = [
        Check("first", fails),
        Check("second", lambda: ran.append("second")),
        Check("third", fails),
    ]
    assert lint.lint(selected) == ["first", "third"]
    assert ran == ["second"]
    assert capsys.readouterr().err.count("error: found something") == 2


def test_fix_repairs_before_it_checks() -> None:
    done: list[str] = []
    check = Check("one", lambda: done.append("check"), lambda: done.append("fix"))
    assert lint.lint([check]) == []
    assert lint.lint([check], fix=True) == []
    assert done == ["check", "fix", "check"]


def test_a_bug_is_not_taken_for_a_finding() -> None:
    def broken() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        lint.lint([Check("broken", broken)])


def test_files_are_sorted_and_relative(tmp_path: Path) -> None:
    for name in ("b.sh", "a.sh", "sub/c.sh", "d.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    assert lint.files("**/*.sh", "*.sh", root=tmp_path) == [
        Path("a.sh"),
        Path("b.sh"),
        Path("sub/c.sh"),
    ]


def test_only_what_is_compiled_is_parsed(tmp_path: Path) -> None:
    sources = tmp_path / "backend" / "src"
    sources.mkdir(parents=True)
    for name in ("a.cc", "b.cc", "left_out.cc"):
        (sources / name).touch()
    build = tmp_path / "build"
    build.mkdir()
    commands = [
        {"directory": str(build), "file": str(sources / "b.cc")},
        {"directory": str(build), "file": "../backend/src/a.cc"},
    ]
    (build / "compile_commands.json").write_text(json.dumps(commands), encoding="utf-8")
    assert lint.compiled_sources(build, root=tmp_path) == [
        Path("backend/src/a.cc"),
        Path("backend/src/b.cc"),
    ]


def test_every_shell_script_is_checked() -> None:
    scripts = set(lint.shell_scripts())
    for folder in (".ci", "ci", "packaging", "examples", "tests", "docs"):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and path.suffix in {"", ".sh"}:
                with path.open("rb") as file:
                    first = file.readline()
                if first.startswith(b"#!") and first.rstrip().endswith((b"sh",)):
                    assert path.relative_to(ROOT) in scripts


def test_every_python_file_is_type_checked() -> None:
    targets = [target for run in lint.mypy_targets() for target in run]
    for folder in ("backend", "ci", "examples", "packaging", "tests"):
        for path in (ROOT / folder).rglob("*.py"):
            relative = path.relative_to(ROOT)
            assert any(relative.is_relative_to(target) for target in targets), relative
    assert Path("noxfile.py") in targets


def test_each_example_is_type_checked_alone() -> None:
    for run in lint.mypy_targets()[1:]:
        assert len({path.parts[1] for path in run}) == 1
