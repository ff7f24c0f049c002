# SPDX-License-Identifier: Apache-2.0
"""``check``: what a server will say of models, before there is one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tritonserver_jax.cli.command import CommandFailedError, Output, UsageError, command
from tritonserver_jax.cli.jax_python import EnvOption, go_where_jax_is
from tritonserver_jax.cli.options import ModelsOption, Repository, check_repository, refuse_model
from tritonserver_jax.findings import Status

if TYPE_CHECKING:
    from tritonserver_jax.checking.results import ModelReport


@command(
    ("check models", "Look at every model of a repository"),
    ("check models --model mine", "Look at one"),
    (
        "check models --env /opt/tritonserver/backends/jax/env",
        "With the very packages that the server will have",
    ),
    ("check models --model mine --data rows.npz", "With rows of your own in place of random ones"),
    ("check models --strict --json", "For machines; what is only doubtful fails too"),
)
def check(
    out: Output,
    repository: Annotated[Path, Repository],
    model: Annotated[list[str] | None, ModelsOption] = None,
    version: Annotated[
        int | None,
        typer.Option(
            help="The version to look at. Default: those that a server would load.",
            metavar="NUMBER",
            min=1,
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="An .npz file of numpy.savez with rows of each input, by its name. Default: "
            "random rows.",
            metavar="FILE",
        ),
    ] = None,
    cpu: Annotated[
        bool, typer.Option("--cpu", help="Look at it on the CPU, whatever config.pbtxt says.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Let warnings fail the check as well.")
    ] = False,
    timeout: Annotated[float, typer.Option(help="Seconds for each model.", min=1)] = 600,
    log: Annotated[
        bool, typer.Option("--log", help="Show the log, and what models print.")
    ] = False,
    env: Annotated[Path | None, EnvOption] = None,
) -> None:
    """Look at models as a server will, without one.

    Each model is loaded by the code that the server runs, in a process of its own: its signature,
    what config.pbtxt says against it, packages and files that are missing, what its code raises.
    Every batch size is compiled and timed. Then it is given rows: whether numbers fit their types,
    an answer depends on the other rows of its batch, and padding changes it. Nothing is written.
    It ends with 1 when a model would not load, or would answer wrongly.
    """
    from tritonserver_jax.checking.process import check_in_process
    from tritonserver_jax.checking.repository import find_models

    check_repository(repository)
    refuse_model(repository, "check")
    if data is not None and not data.is_file():
        raise UsageError(
            f"--data: expected a file, found none: {data}",
            "write it with numpy.savez('rows.npz', NAME=array of rows)",
        )
    there = find_models(repository)
    names = model or there
    for name in names:
        if name not in there:
            raise UsageError(
                f"--model: expected a model in {repository}, got {name}",
                f"there are {', '.join(there) or 'none'}",
            )
    if not names:
        raise UsageError(
            f"{repository}: expected models in it, found no folder",
            "make one with `tritonserver-jax init`",
        )
    if (version is not None or data is not None) and len(names) > 1:
        option = "--version" if version is not None else "--data"
        raise UsageError(f"{option}: expected with one model", "name it with --model")
    go_where_jax_is(env)

    def tell(kind: str, text: str) -> None:
        if kind == "doing":
            out.progress(text)
        elif log:
            out.log(f"  {text}", "red" if kind == "error" else "dim")

    reports: list[ModelReport] = []
    for name in names:
        found = check_in_process(
            repository / name,
            version=version,
            on_cpu=cpu,
            data=data,
            timeout=timeout,
            tell=tell,
        )
        for report in found:
            show(out, report)
        reports += found
    conclude(out, reports, strict=strict)


def show(out: Output, report: ModelReport) -> None:
    """Show a person what was found of a version of a model."""
    version = "" if report.version is None else f" version {report.version}"
    out.line(f"{report.model}{version}", "bold")
    out.findings(report.findings)
    if report.loaded and not out.as_json:
        from rich.console import Console

        from tritonserver_jax.checking.display import show_programs

        show_programs(report, Console(file=sys.stdout))
    out.line()


def conclude(out: Output, reports: list[ModelReport], *, strict: bool) -> None:
    """Say how it went in all.

    Raises:
        CommandFailedError: A model is not well.
    """
    out.result(models=[one.as_json() for one in reports])
    bad = [one for one in reports if one.count(Status.FAIL) or (strict and one.count(Status.WARN))]
    if bad:
        names = ", ".join(dict.fromkeys(one.model for one in bad))
        of = {one.model for one in reports}
        raise CommandFailedError(
            f"{len({one.model for one in bad})} of {len(of)} models are not well: {names}",
            "what is marked above says what to do" if not out.as_json else "see findings",
        )
    warned = sum(one.count(Status.WARN) for one in reports)
    out.line(
        f"{len({one.model for one in reports})} looked at, {warned} to think about"
        if warned
        else "all is well"
    )
