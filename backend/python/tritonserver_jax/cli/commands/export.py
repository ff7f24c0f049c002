# SPDX-License-Identifier: Apache-2.0
"""``export``: a model as an artifact of ``jax.export``, which needs no code in the server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tritonserver_jax.authoring.errors import AuthoringError
from tritonserver_jax.cli.command import CommandFailedError, Output, UsageError, command
from tritonserver_jax.cli.commands.check import show
from tritonserver_jax.cli.jax_python import EnvOption, go_where_jax_is
from tritonserver_jax.cli.options import (
    InputsOption,
    ModelOption,
    check_repository,
    named_model,
    refuse_model,
)
from tritonserver_jax.findings import Status

_PLATFORMS = ("cpu", "cuda", "rocm", "tpu")


@command(
    (
        "export models --model mine --output exported",
        "A model of a repository, into another repository",
    ),
    (
        "export models --model mine --output exported --platform cpu --platform cuda",
        "For servers with and without a GPU",
    ),
    (
        "export --from net.py:predict --checkpoint params.msgpack --input X:FP32[4] "
        "--output exported --name mine",
        "A Python object",
    ),
    expected=[AuthoringError],
)
def export(
    out: Output,
    output: Annotated[
        Path,
        typer.Option(help="The model repository to write to; it is made as well.", metavar="DIR"),
    ],
    repository: Annotated[
        Path | None,
        typer.Argument(
            metavar="REPOSITORY", help="The folder that holds the model.", show_default=False
        ),
    ] = None,
    model: Annotated[str | None, ModelOption] = None,
    version: Annotated[
        int | None,
        typer.Option(help="The version. Default: the newest.", metavar="NUMBER", min=1),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="A Python object, in place of a model: MODULE:OBJECT or FILE.py:OBJECT.",
            metavar="OBJECT",
            show_default=False,
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="The parameters of the object, as for `init`.", metavar="PATH"),
    ] = None,
    inputs: Annotated[list[str] | None, InputsOption] = None,
    max_batch_size: Annotated[
        int,
        typer.Option(
            help="The largest batch of the object; 0 for one without a batch dimension.", min=0
        ),
    ] = 8,
    name: Annotated[
        str | None,
        typer.Option(help="The name of the new model. Default: that of the model.", metavar="NAME"),
    ] = None,
    platform: Annotated[
        list[str] | None,
        typer.Option(
            help="What it is to run on: cpu, cuda, rocm or tpu; once for each. Default: cpu.",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    env: Annotated[Path | None, EnvOption] = None,
) -> None:
    """Export a model, so that a server needs neither its code nor its packages.

    The program is exported for any number of rows and each platform that is named, and its
    parameters lie beside it. It is then loaded, compared with what it was made of, and looked at as
    `check` does. What an artifact cannot hold (code of the host, strings, masks, sequences, calls
    back to Python) is refused with the reason.
    """
    if (repository is None) == (source is None):
        raise UsageError(
            "expected a model repository or --from, "
            + ("got neither" if source is None else "got both"),
            "name what to export in one of the two ways",
        )
    platforms = platform or ["cpu"]
    for one in platforms:
        if one not in _PLATFORMS:
            raise UsageError(
                f"--platform: expected {', '.join(_PLATFORMS[:-1])} or {_PLATFORMS[-1]}, got {one}"
            )
    if repository is not None:
        if inputs or checkpoint is not None:
            option = "--input" if inputs else "--checkpoint"
            raise UsageError(f"{option}: expected with --from", "a model has its own; leave it out")
        check_repository(repository)
        refuse_model(repository, "export from")
        model = named_model(repository, model)
    elif name is None:
        raise UsageError("--name: expected with --from", "say what the new model is to be called")
    go_where_jax_is(env)

    from tritonserver_jax.authoring.process import make_in_process
    from tritonserver_jax.authoring.version_folder import complete_config, new_version
    from tritonserver_jax.checking.process import check_in_process
    from tritonserver_jax.checking.repository import find_versions

    if repository is not None:
        assert model is not None  # noqa: S101 - found above
        there = find_versions(repository / model)
        if not there or (version is not None and version not in there):
            raise UsageError(
                f"--version: {repository / model} has no version {version or ''}".rstrip(),
                f"there are {', '.join(map(str, there)) or 'none'}",
            )
        version = version or there[-1]
    name = name or model
    assert name is not None  # noqa: S101 - one of the two is given
    report = None
    # Whatever ends this before the new model has been looked at takes it away again.
    with new_version(output, name) as directory:
        make_in_process(
            "export",
            {
                "version": str(directory),
                "model": None if repository is None else str(repository / str(model)),
                "of_version": version,
                "source": source,
                "checkpoint": None if checkpoint is None else str(checkpoint),
                "inputs": inputs or [],
                "max_batch_size": max_batch_size,
                "platforms": platforms,
            },
            out.progress,
        )
        if "cpu" in platforms:
            (report,) = check_in_process(directory.parent, on_cpu=True)
            if report.loaded:
                complete_config(directory, report.config)
    artifact = directory / "model.jaxexport"
    out.result(
        model=str(directory.parent),
        artifact=str(artifact),
        bytes=artifact.stat().st_size,
        platforms=platforms,
    )
    if report is not None:
        show(out, report)
        out.result(check=report.as_json())
        if report.count(Status.FAIL):
            raise CommandFailedError(
                f"{directory.parent} is written, but is not well",
                "correct what it was made of, remove it, and export again",
            )
    else:
        out.line(f"not tried, because this looks at a CPU and it is for {', '.join(platforms)}")
    out.line(f"exported: {artifact}, for {', '.join(platforms)}")
