# SPDX-License-Identifier: Apache-2.0
"""``init``: a model of what its author has."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tritonserver_jax.authoring.errors import AuthoringError
from tritonserver_jax.cli.command import CommandFailedError, Output, UsageError, command
from tritonserver_jax.cli.commands.check import show
from tritonserver_jax.cli.jax_python import EnvOption, go_where_jax_is
from tritonserver_jax.cli.options import InputsOption
from tritonserver_jax.findings import Status


@command(
    ("init mine --template", "A small model that works, to write yours into"),
    (
        "init mine --from net.py:predict --checkpoint params.msgpack --input X:FP32[4]",
        "Of a function of parameters and inputs, or a module of flax linen or Haiku",
    ),
    (
        "init mine --from net.py:network --input IMAGE:FP32[28,28,1]",
        "Of a network that holds its weights: a module of flax nnx or Equinox",
    ),
    (
        "init mine --checkpoint checkpoint.orbax --input X:FP32[4] --repository /models",
        "With parameters, to write the network to",
    ),
    ("init mine --exported model.jaxexport", "Of a program that jax.export wrote"),
    expected=[AuthoringError],
)
def init(
    out: Output,
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="The name of the model.", show_default=False),
    ],
    repository: Annotated[
        Path, typer.Option(help="The model repository; it is made as well.", metavar="DIR")
    ] = Path("models"),
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="A Python object: MODULE:OBJECT or FILE.py:OBJECT.",
            metavar="OBJECT",
            show_default=False,
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Parameters: a file of flax.serialization, a .safetensors file, or an Orbax "
            "directory.",
            metavar="PATH",
        ),
    ] = None,
    exported: Annotated[
        Path | None, typer.Option(help="An artifact of jax.export.", metavar="FILE")
    ] = None,
    template: Annotated[
        bool, typer.Option("--template", help="A model to write yours into.")
    ] = False,
    inputs: Annotated[list[str] | None, InputsOption] = None,
    max_batch_size: Annotated[
        int,
        typer.Option(help="The largest batch; 0 for a model without a batch dimension.", min=0),
    ] = 8,
    env: Annotated[Path | None, EnvOption] = None,
) -> None:
    """Make a model of what you have, and look at it.

    It writes NAME/1/model.py, the parameters beside it, and a complete NAME/config.pbtxt into the
    repository. The module of an object is copied beside model.py, where it is a file of its own.
    The new model is then looked at as `check` does. Nothing that is there is ever replaced.
    """
    _refuse_mixed(source, checkpoint, exported, template, inputs)
    go_where_jax_is(env)

    from tritonserver_jax.authoring.process import make_in_process
    from tritonserver_jax.authoring.version_folder import complete_config, new_version
    from tritonserver_jax.checking.process import check_in_process

    # Whatever ends this before the model has been looked at takes it away again.
    with new_version(repository, name) as version:
        made = make_in_process(
            "make",
            {
                "version": str(version),
                "template": template,
                "exported": None if exported is None else str(exported),
                "source": source,
                "checkpoint": None if checkpoint is None else str(checkpoint),
                "inputs": inputs or (["X:FP32[4]"] if template else []),
                "max_batch_size": max_batch_size,
            },
        )
        model = version.parent
        out.progress(f"wrote {model}; looking at it")
        (report,) = check_in_process(model)
        if report.loaded:
            complete_config(version, report.config)
    show(out, report)
    files = sorted(str(path.relative_to(model)) for path in model.rglob("*") if path.is_file())
    out.result(model=str(model), files=files, check=report.as_json())
    if needed := made["needs"]:
        out.line(
            f"note: it imports {needed}, which the server needs as well: scripts/setup_env.sh "
            "--requirements FILE",
            "cyan",
        )
    if report.count(Status.FAIL):
        raise CommandFailedError(
            f"{model} is written, but is not well",
            f"correct it, and run tritonserver-jax check {repository} --model {name}",
        )
    out.line(f"made: {model}")
    out.line("next:")
    out.line(f"  tritonserver-jax check {repository} --model {name}")
    out.line(f"  tritonserver-jax serve {repository}")


def _refuse_mixed(
    source: str | None,
    checkpoint: Path | None,
    exported: Path | None,
    template: bool,
    inputs: list[str] | None,
) -> None:
    """Refuse what says nothing of the model, or several things."""
    given = [
        option
        for option, value in (
            ("--template", template),
            ("--exported", exported),
            ("--from", source),
            ("--checkpoint", checkpoint if source is None else None),
        )
        if value
    ]
    if not given:
        raise UsageError(
            "expected what to make the model of, got nothing",
            "give --template, --from, --checkpoint or --exported",
        )
    if len(given) > 1 or (checkpoint is not None and given[0] in ("--template", "--exported")):
        several = [
            *given,
            *(["--checkpoint"] if checkpoint and "--checkpoint" not in given else []),
        ]
        raise UsageError(f"{' and '.join(several)}: expected one of them", "leave the others out")
    if exported is not None and inputs:
        raise UsageError("--input: an artifact of jax.export has its own inputs", "leave it out")
