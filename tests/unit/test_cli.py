# SPDX-License-Identifier: Apache-2.0
"""The command line as a whole: help, errors, exit codes, JSON, and what it costs to start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from ci.command_docs import command_reference
from ci.process import ROOT
from tritonserver_jax import __version__
from tritonserver_jax.cli.app import find_commands, make_app
from tritonserver_jax.cli.command import (
    EXIT_CODES,
    CommandFailedError,
    ExitCode,
    Output,
    Terminated,
    UsageError,
    command,
)
from tritonserver_jax.findings import Finding, Status, failure
from tritonserver_jax.server import ServerError

PROGRAM = [sys.executable, "-m", "tritonserver_jax.cli"]
ENV = {**os.environ, "PYTHONPATH": str(ROOT / "backend" / "python"), "NO_COLOR": "1"}


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *arguments], env=ENV, capture_output=True, text=True, check=False, timeout=60
    )


def test_every_command_shows_its_options_and_examples() -> None:
    names = [one.name for one in find_commands()]
    assert {"bench", "check", "doctor", "export", "init", "install", "serve", "verify"} <= set(
        names
    )
    for one in find_commands():
        result = CliRunner().invoke(make_app(), [one.name, "--help"], env={"COLUMNS": "200"})
        assert result.exit_code == 0
        assert one.examples, one.name
        for example in one.examples:
            assert example.line in result.output
        for shared in ("--json", "--debug", "--help"):
            assert shared in result.output


def test_the_examples_have_only_options_that_there_are() -> None:
    group = typer.main.get_command(make_app())
    for one in find_commands():
        declared = group.commands[one.name].params  # type: ignore[attr-defined]
        known = {option for param in declared for option in param.opts}
        for example in one.examples:
            words = example.line.partition(" -- ")[0].split()
            assert words[:2] == ["tritonserver-jax", one.name]
            assert {word for word in words if word.startswith("-")} <= known


def test_the_documentation_has_every_command() -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert command_reference() in page
    for code in EXIT_CODES:
        assert f"| {int(code)} |" in page


#: A command line of typer with nothing in it, and ours: each tells what its help imported.
BARE = """
import sys, typer
app = typer.Typer(rich_markup_mode="rich")
app.command()(lambda: None)
try:
    app(["--help"])
finally:
    print("imported:", *sorted({name.partition(".")[0] for name in sys.modules}))
"""
OURS = """
import sys
from tritonserver_jax.cli.app import make_app
try:
    make_app()(["--help"])
finally:
    print("imported:", *sorted({name.partition(".")[0] for name in sys.modules}))
"""


def imported(code: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", code], env=ENV, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    *_, names = done.stdout.rpartition("imported:")
    return set(names.split()) - sys.stdlib_module_names


def test_help_imports_nothing_that_typer_does_not() -> None:
    """Typer with rich takes a third of a second; what we would add to it is libraries."""
    assert imported(OURS) - imported(BARE) == {"tritonserver_jax"}


def test_the_version_is_the_projects() -> None:
    assert run("--version").stdout.startswith(f"tritonserver-jax {__version__} (Python 3.")


def test_without_a_command_the_help_is_shown() -> None:
    done = run()
    assert done.returncode == ExitCode.USAGE
    assert "install" in done.stdout + done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_can_complete(shell: str) -> None:
    done = subprocess.run(
        PROGRAM,
        env={**ENV, **completing(shell)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "serve" in done.stdout, done.stderr


def completing(shell: str) -> dict[str, str]:
    words = {"COMP_WORDS": "tritonserver-jax se", "COMP_CWORD": "1"}
    arguments = {"_TYPER_COMPLETE_ARGS": "tritonserver-jax se"}
    fish = {"_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    variable = {"_TRITONSERVER_JAX_COMPLETE": f"complete_{shell}"}
    return {**variable, **words, **arguments, **(fish if shell == "fish" else {})}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["instal"], "instal"),
        (["install"], "--backends"),
        (["install", "--backends"], "--backends"),
        (["verify"], "PATH"),
        (["verify", "/no/such/file"], "/no/such/file: expected an artifact"),
        (["verify", str(ROOT), "--sha256", "0"], "--sha256: expected with one artifact"),
        (["doctor", "--backends", "/no/such"], "found no folder /no/such"),
        (["serve", "/no/such"], "/no/such: expected a folder that holds models, found none"),
        (["install", "--backends", "/no/such"], "found no folder /no/such"),
    ],
)
def test_wrong_usage_is_named_and_ends_with_2(arguments: list[str], said: str) -> None:
    done = run(*arguments)
    assert done.returncode == ExitCode.USAGE, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_an_artifact_that_is_nowhere_is_explained(tmp_path: Path) -> None:
    done = subprocess.run(
        [*PROGRAM, "install", "--backends", str(tmp_path), "--json"],
        env={**ENV, "TRITONSERVER_JAX_RELEASES_PAGE": "https://example.org/releases"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == ExitCode.FAILED
    answer = json.loads(done.stdout)
    assert (answer["ok"], answer["exit_code"]) == (False, 1)
    assert "from https://example.org/releases" in answer["error"]["remedy"]
    assert "as an argument or in $TRITONSERVER_JAX_ARTIFACT" in answer["error"]["remedy"]


# -- what a command may do -------------------------------------------------------------------------


class OwnError(Exception):
    pass


RAISES: dict[str, BaseException | None] = {
    "nothing": None,
    "failed": CommandFailedError("it is broken", "mend it", result={"part": "leg"}),
    "usage": UsageError("no such thing"),
    "server": ServerError("no server"),
    "os": FileNotFoundError(2, "No such file or directory", "/there"),
    "own": OwnError("mine"),
    "fault": ZeroDivisionError("division by zero"),
    "interrupt": KeyboardInterrupt(),
    "terminated": Terminated(),
    "hung up": Terminated("SIGHUP"),
    "exits": SystemExit(0),
}


@command(("probe nothing", "Try it"), expected=[OwnError])
def probe(out: Output, what: Annotated[str, typer.Argument(help="What to raise.")]) -> None:
    """Raise something."""
    out.finding(Finding("a", Status.WARN, "so so", "do this"))
    out.line("for a person")
    out.progress("on the way")
    out.result(answer=42)
    error = RAISES[what]
    if error is not None:
        raise error


def invoke(*arguments: str) -> tuple[int, str, str]:
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command("probe")(probe)
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize(
    ("what", "code", "said"),
    [
        ("nothing", 0, ""),
        ("failed", 1, "error: it is broken\n  -> mend it\n"),
        ("usage", 2, "error: no such thing\n"),
        ("server", 1, "error: no server\n"),
        ("os", 1, "error: /there: No such file or directory\n"),
        ("own", 1, "error: mine\n"),
        ("fault", 3, "error: unexpected ZeroDivisionError: division by zero\n  -> run it again"),
        ("interrupt", 130, "error: interrupted\n"),
        ("terminated", 143, "error: told to end by SIGTERM\n"),
        ("hung up", 143, "error: told to end by SIGHUP\n"),
        ("exits", 1, "error: code that was imported ended this command: sys.exit(0)\n  -> take"),
    ],
)
def test_what_is_raised_becomes_a_line_and_a_code(what: str, code: int, said: str) -> None:
    got, out, err = invoke(what)
    assert got == code
    assert out == "warn a: so so\n     -> do this\nfor a person\n"
    assert err.startswith(f"on the way\n{said}")
    assert "Traceback" not in err
    assert code in {int(one) for one in EXIT_CODES}

    got, out, err = invoke(what, "--json")
    assert got == code
    answer = json.loads(out)
    assert (answer["ok"], answer["exit_code"], answer["answer"]) == (code == 0, code, 42)
    assert ("error" in answer) == (code != 0)
    if what == "failed":
        assert answer["error"] == {"message": "it is broken", "remedy": "mend it"}
        assert answer["part"] == "leg"


@command(("noisy", "Try it"))
def noisy(
    _out: Output,
    seconds: Annotated[float, typer.Option(help="How long.", min=1)] = 1,
) -> None:
    """Run what an author wrote."""
    print("from an author's module")


def test_what_authors_print_is_no_json() -> None:
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command("noisy")(noisy)
    result = CliRunner().invoke(app, ["--json"])
    assert json.loads(result.stdout)["ok"]
    assert result.stderr == "from an author's module\n"
    assert CliRunner().invoke(app, []).stdout == "from an author's module\n"


@pytest.mark.parametrize("number", ["nan", "inf"])
def test_a_number_that_is_none_is_refused(number: str) -> None:
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command("noisy")(noisy)
    result = CliRunner().invoke(app, ["--seconds", number])
    assert result.exit_code == ExitCode.USAGE
    assert f"--seconds: expected a number of seconds, got {number}" in result.stderr


def test_debug_shows_where_a_fault_is() -> None:
    code, _, err = invoke("fault", "--debug")
    assert code == ExitCode.FAULT
    assert "Traceback" in err
    assert "raise error" in err
    assert "--debug" not in err.splitlines()[-1]


def test_who_reads_only_a_line_gets_no_traceback() -> None:
    shell = f"{sys.executable} -m tritonserver_jax.cli doctor --timeout 1 | head -1"
    done = subprocess.run(
        ["bash", "-c", shell], env=ENV, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout.startswith("ok   program")
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("options", ["", "--json"])
def test_a_stream_that_is_closed_changes_no_exit_code(
    tmp_path: Path, closed: str, options: str
) -> None:
    (tmp_path / "SHA256SUMS").touch()
    for words, code in (
        (f"verify {tmp_path}", ExitCode.FAILED),
        ("verify /no/such/file", ExitCode.USAGE),
        ("--version", ExitCode.OK),
    ):
        if words == "--version" and options:
            continue
        shell = f"{sys.executable} -m tritonserver_jax.cli {words} {options} {closed}"
        done = subprocess.run(
            ["bash", "-c", shell], env=ENV, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr


def test_a_module_without_its_command_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tritonserver_jax.cli import commands

    (tmp_path / "stray.py").write_text("def other(): ...\n", encoding="utf-8")
    monkeypatch.setattr(commands, "__path__", [*commands.__path__, str(tmp_path)])
    with pytest.raises(TypeError, match=r"stray: expected a function stray decorated by @command"):
        find_commands()


def test_one_file_is_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tritonserver_jax.cli import commands

    (tmp_path / "greet.py").write_text(
        "from tritonserver_jax.cli.command import Output, command\n"
        "@command(('greet', 'Say hello'))\n"
        "def greet(out: Output, name: str = 'you') -> None:\n"
        '    """Say hello."""\n'
        "    out.line(f'hello {name}')\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(commands, "__path__", [*commands.__path__, str(tmp_path)])
    result = CliRunner().invoke(make_app(), ["greet", "--name", "all"])
    assert (result.exit_code, result.stdout) == (0, "hello all\n")


def test_the_first_failure_counts() -> None:
    assert failure([]) is None
    findings = [Finding("a", status, "") for status in Status if status is not Status.FAIL]
    assert failure(findings) is None
    first, second = Finding("b", Status.FAIL, "1"), Finding("b", Status.FAIL, "2")
    assert failure([*findings, first, second]) is first
