# SPDX-License-Identifier: Apache-2.0
"""What all commands share: options, output for people and machines, errors and exit codes."""

from __future__ import annotations

import functools
import inspect
import itertools
import json
import math
import os
import shlex
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass
from enum import IntEnum
from types import FrameType
from typing import Annotated, Any, Final

import typer

from tritonserver_jax.findings import Finding, Status

__all__ = [
    "EXIT_CODES",
    "Command",
    "CommandFailedError",
    "Example",
    "ExitCode",
    "Output",
    "Terminated",
    "UsageError",
    "command",
    "command_of",
    "next_step_of",
]

_ATTRIBUTE: Final = "__tritonserver_jax_command__"


class ExitCode(IntEnum):
    """How a command ended; `EXIT_CODES` says it in words."""

    OK = 0
    FAILED = 1
    USAGE = 2
    FAULT = 3
    INTERRUPTED = 130
    TERMINATED = 143


#: What the exit codes mean: shown in the documentation.
EXIT_CODES: Final = {
    ExitCode.OK: "done; all is well",
    ExitCode.FAILED: "refused or failed: the message says why, and what to do next",
    ExitCode.USAGE: "wrong options, or what they name is not there",
    ExitCode.FAULT: "a fault in this program: `--debug` shows where",
    ExitCode.INTERRUPTED: "ended by Ctrl-C before it was done",
    ExitCode.TERMINATED: "ended by SIGTERM or SIGHUP before it was done",
}


class CommandFailedError(Exception):
    """A command did not do what it was asked for.

    Args:
        message: Why, in one sentence.
        remedy: What to do next.
        result: What a machine is told besides.
        brief: What a person reads instead, who has been shown the message and what to do already.
    """

    code = ExitCode.FAILED

    def __init__(
        self,
        message: str,
        remedy: str = "",
        *,
        result: dict[str, object] | None = None,
        brief: str = "",
    ) -> None:
        super().__init__(f"{message}; {remedy}" if remedy else message)
        self.message = message
        self.remedy = remedy
        self.result = result or {}
        self.brief = brief


class UsageError(CommandFailedError):
    """A command was asked for something that cannot be, such as a file that is not there."""

    code = ExitCode.USAGE


class Terminated(BaseException):
    """The process was told to end, by SIGTERM or because its terminal is gone."""

    def __init__(self, by: str = "SIGTERM") -> None:
        super().__init__(by)


@dataclass(frozen=True, slots=True)
class Example:
    """One line to try, and what it does."""

    line: str
    about: str


@dataclass(frozen=True, slots=True)
class Command:
    """A command.

    Attributes:
        name: What a person types.
        function: What typer runs.
        examples: Shown in its help and in the documentation.
        events: Whether with ``--json`` it prints a line for each event.
    """

    name: str
    function: Callable[..., None]
    examples: tuple[Example, ...]
    events: bool = False

    def about(self) -> str:
        """Return its description, one line for each paragraph, however the source is broken."""
        paragraphs = inspect.cleandoc(self.function.__doc__ or "").split("\n\n")
        return "\n\n".join(" ".join(one.split()) for one in paragraphs)

    def epilog(self) -> str:
        """Return the examples as its help shows them."""
        shown = [f"[dim]{one.about}:[/dim]\n{one.line}" for one in self.examples]
        return "\n\n".join(["[bold]Examples[/bold]", *shown]) if shown else ""


class Output:
    """Where a command says things.

    For a person, results go to standard output and what happens on the way to standard error. For
    a machine (``--json``), standard output gets JSON and nothing else.
    """

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self._machine = sys.stdout
        self._result: dict[str, object] = {}

    def alone(self) -> AbstractContextManager[object]:
        """Keep what authors' code prints away from what a machine reads."""
        return redirect_stdout(sys.stderr) if self.as_json else nullcontext()

    def progress(self, text: str) -> None:
        """Say what is being done."""
        self._write(sys.stderr, text, "dim")

    def line(self, text: str = "", style: str = "") -> None:
        """Say something to a person; a machine is given it by `result`."""
        if not self.as_json:
            self._write(sys.stdout, text, style)

    def log(self, text: str, style: str) -> None:
        """Show a line of another program's log."""
        self._write(sys.stderr, text, style)

    def finding(self, finding: Finding) -> None:
        """Show a line of a report to a person."""
        if self.as_json:
            return
        styles = {Status.OK: "green", Status.NOTE: "cyan", Status.WARN: "yellow"}
        text = self._styled(f"{finding.status.value:4}", styles.get(finding.status, "bold red"))
        detail = finding.detail.replace("\n", "\n     ")
        print(f"{text} {finding.name}: {detail}", file=sys.stdout, flush=True)
        if finding.remedy and finding.status is not Status.OK:
            remedy = finding.remedy.replace("\n", "\n        ")
            print(f"     -> {remedy}", file=sys.stdout, flush=True)

    def findings(self, findings: Iterable[Finding]) -> list[Finding]:
        """Show lines as they come, and return them."""
        shown = []
        for finding in findings:
            self.finding(finding)
            shown.append(finding)
        return shown

    def result(self, **values: object) -> None:
        """Add to what a machine is told at the end."""
        self._result.update(values)

    def event(self, name: str, **values: object) -> None:
        """Tell a machine at once, in a line of its own; for commands that go on."""
        if self.as_json:
            print(json.dumps({"event": name, **values}), file=self._machine, flush=True)

    def error(self, error: CommandFailedError) -> None:
        """Say why a command failed."""
        brief = "" if self.as_json else error.brief
        text = f"error: {brief or error.message}"
        self._write(sys.stderr, text, "bold red", only=len("error:"))
        if error.remedy and not brief:
            self._write(sys.stderr, f"  -> {error.remedy}", "")
        self.result(**error.result)

    def close(self, code: int, error: CommandFailedError | None, *, events: bool) -> None:
        """Tell a machine how it ended."""
        if not self.as_json:
            return
        ended: dict[str, object] = {"ok": code == ExitCode.OK, "exit_code": int(code)}
        ended.update(self._result)
        if error is not None:
            ended["error"] = {"message": error.message, "remedy": error.remedy}
        if events:
            self.event("end", **ended)
        else:
            print(json.dumps(ended, indent=2), file=self._machine, flush=True)

    @staticmethod
    def _write(stream: Any, text: str, style: str, *, only: int | None = None) -> None:
        """Write a line, its first characters styled, all of them by default."""
        cut = len(text) if only is None else only
        head = Output._styled(text[:cut], style, stream) if style else text[:cut]
        print(head + text[cut:], file=stream, flush=True)

    @staticmethod
    def _styled(text: str, style: str, stream: Any = None) -> str:
        """Colour a text where a person reads it on a terminal that has colours."""
        if not (stream or sys.stdout).isatty() or "NO_COLOR" in os.environ:
            return text
        from rich.color import ColorSystem
        from rich.style import Style

        return Style.parse(style).render(text, color_system=ColorSystem.STANDARD)


@contextmanager
def _termination_raises() -> Iterator[None]:
    """Make SIGTERM and SIGHUP exceptions, so that what was begun is put back."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _frame: FrameType | None) -> None:
        raise Terminated(signal.Signals(number).name)

    # Whoever wants it to outlive its terminal has the signal ignored (nohup).
    before = {
        one: signal.signal(one, end)
        for one in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(one) != signal.SIG_IGN
    }
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def command(
    *examples: tuple[str, str], expected: Sequence[type[Exception]] = (), events: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function a command.

    The function's first parameter is an `Output`; the others are typer's. It gets ``--json`` and
    ``--debug`` besides. What it raises is shown in one line and becomes an exit code.

    Args:
        *examples: Pairs of what to type after ``tritonserver-jax`` and what that does.
        expected: Exceptions of its own that are no fault of this program.
        events: Whether with ``--json`` it prints a line for each event, because it goes on.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(function, eval_str=True)
        out, *parameters = signature.parameters.values()

        @functools.wraps(function)
        def run(json: bool, debug: bool, **arguments: Any) -> None:
            output = Output(as_json=json)

            def call() -> None:
                for name, value in arguments.items():
                    if isinstance(value, float) and not math.isfinite(value):
                        raise UsageError(f"--{name}: expected a number of seconds, got {value}")
                function(output, **arguments)

            raise typer.Exit(_run(call, output, expected, debug, events=events))

        shared = [
            _flag("json", "Print JSON, for machines." if not events else "Print JSON lines."),
            _flag("debug", "Show the traceback of an error."),
        ]
        new = signature.replace(parameters=[*parameters, *shared])
        # typer reads both; the function's own has the output, which no one types.
        run.__signature__ = new  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in new.parameters.values()}
        del run.__wrapped__
        name = function.__name__
        shown = [Example(f"tritonserver-jax {line}", about) for line, about in examples]
        setattr(run, _ATTRIBUTE, Command(name.replace("_", "-"), run, tuple(shown), events))
        assert out.annotation is Output, f"{name}: the first parameter is the output"  # noqa: S101
        return run

    return decorate


def command_of(function: object) -> Command | None:
    """Return the command that a function is, or None if it is not one."""
    found = getattr(function, _ATTRIBUTE, None)
    return found if isinstance(found, Command) else None


def _flag(name: str, text: str) -> inspect.Parameter:
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=False,
        annotation=Annotated[bool, typer.Option(f"--{name}", help=text)],
    )


def _run(
    call: Callable[[], None],
    output: Output,
    expected: Sequence[type[Exception]],
    debug: bool,
    *,
    events: bool,
) -> int:
    """Run a command, show what it raises, and return the exit code."""
    failure: CommandFailedError | None = None
    try:
        try:
            with _termination_raises(), output.alone():
                call()
            code = ExitCode.OK
        except BrokenPipeError:
            raise
        except (KeyboardInterrupt, Terminated) as end:
            stopped = isinstance(end, KeyboardInterrupt)
            code = ExitCode.INTERRUPTED if stopped else ExitCode.TERMINATED
            failure = CommandFailedError("interrupted" if stopped else f"told to end by {end}")
        except SystemExit as end:  # nothing of ours does this
            code = ExitCode.FAILED
            failure = CommandFailedError(
                f"code that was imported ended this command: sys.exit({end.code!r})",
                "take that out of the module, or put it below if __name__ == '__main__'",
            )
        except CommandFailedError as error:
            code, failure = error.code, error
        except Exception as error:
            if debug:
                traceback.print_exc()
            if isinstance(error, (*_expected(), *expected)):
                failure = _failure(error)
                code = failure.code
            else:
                code = ExitCode.FAULT
                failure = CommandFailedError(
                    f"unexpected {type(error).__name__}: {error}",
                    "" if debug else "run it again with --debug, and report what that shows",
                )
        if failure is not None:
            output.error(failure)
        output.close(code, failure, events=events)
    except BrokenPipeError:
        # Whoever read has enough; there is no place left to write to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.FAILED
    return code


def _expected() -> tuple[type[Exception], ...]:
    """Return what may go wrong without anything being wrong with this program."""
    # Not before it is needed: a command that ends well does not wait for these imports.
    from tritonserver_jax.artifacts import VerificationError
    from tritonserver_jax.elf import ElfError
    from tritonserver_jax.installation import InstallationError
    from tritonserver_jax.releases import ReleaseDataError, UnknownReleaseError
    from tritonserver_jax.server import ServerError

    return (
        ElfError,
        InstallationError,
        OSError,
        ReleaseDataError,
        ServerError,
        UnknownReleaseError,
        VerificationError,
    )


def _failure(error: Exception) -> CommandFailedError:
    """Return an exception as a failure, its next step apart."""
    from tritonserver_jax.installation import ArtifactNotFoundError

    message, remedy = next_step_of(_in_words(error))
    kind = UsageError if isinstance(error, ArtifactNotFoundError) else CommandFailedError
    return kind(message, remedy)


def next_step_of(words: str) -> tuple[str, str]:
    """Take a message and its next step apart.

    All messages of this project end with the next step, after a semicolon, or in lines that begin
    with "What may help".
    """
    message, _, more = words.partition("\n  What may help: ")
    if more:
        first, *lines = more.split("\n")
        going_on = list(itertools.takewhile(lambda line: line.startswith(" "), lines))
        step = " ".join([first, *(line.strip() for line in going_on)])
        return "\n".join([message, *lines[len(going_on) :]]), step
    message, _, step = words.rpartition("; ")
    return (message, step) if message and "\n" not in words else (words, "")


def _in_words(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error.args[0]) if isinstance(error, LookupError) and error.args else str(error)


def quoted(words: Iterable[object]) -> str:
    """Return a command line that can be pasted into a shell."""
    return shlex.join(map(str, words))
