# SPDX-License-Identifier: Apache-2.0
"""``tune``: the configuration that serves a model best on this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tritonserver_jax.cli.command import CommandFailedError, Output, command
from tritonserver_jax.cli.options import (
    ArtifactOption,
    BackendsOption,
    ModelOption,
    ProtocolOption,
    PythonOption,
    Repository,
    RowsOption,
    ServedReleaseOption,
    ServerOption,
    ShapesOption,
    check_name,
    check_protocol,
    check_repository,
    check_sources,
    named_model,
    shapes_of,
)
from tritonserver_jax.findings import failure


@command(
    ("tune examples --model digits", "Find the best configuration for 32 requests at a time"),
    (
        "tune models --model mine --concurrency 8 --budget 600",
        "For eight requests at a time, in ten minutes",
    ),
    (
        "tune models --model mine --shape X:3,224,224",
        "A model with dims that vary: which shape to send",
    ),
)
def tune(
    out: Output,
    repository: Annotated[Path, Repository],
    model: Annotated[str | None, ModelOption] = None,
    concurrency: Annotated[
        int, typer.Option(help="Requests that clients have under way.", min=1)
    ] = 32,
    protocol: Annotated[str, ProtocolOption] = "grpc",
    rows: Annotated[int, RowsOption] = 1,
    shape: Annotated[list[str] | None, ShapesOption] = None,
    seconds: Annotated[float, typer.Option(help="How long a measurement takes.", min=0.3)] = 2.0,
    budget: Annotated[float, typer.Option(help="Seconds for everything.", min=10)] = 240.0,
    plot: Annotated[
        Path, typer.Option(help="Where the plot goes; it needs matplotlib.", metavar="FILE")
    ] = Path("tune.png"),
    release: Annotated[str | None, ServedReleaseOption] = None,
    artifact: Annotated[str | None, ArtifactOption] = None,
    backends: Annotated[Path | None, BackendsOption] = None,
    server: Annotated[Path | None, ServerOption] = None,
    python: Annotated[str | None, PythonOption] = None,
) -> None:
    """Look for the configuration that serves a model best on this machine.

    A copy of the model is served, and Triton's perf_analyzer sends requests. Numbers of instances,
    delays and preferred sizes of the batcher and sets of buckets are tried; the best few are then
    measured in turn with the configuration as it is. The result is a fragment of config.pbtxt with
    more throughput at no worse p99, or that nothing beats the configuration as it is. Your files
    are only read. Let the machine do nothing else meanwhile.
    """
    from rich.console import Console

    from tritonserver_jax.server.local import prepare
    from tritonserver_jax.tuning.display import progress, show, summary
    from tritonserver_jax.tuning.perf_analyzer import PerfAnalyzerError, obtain_perf_analyzer
    from tritonserver_jax.tuning.plots import draw
    from tritonserver_jax.tuning.search import Options, TuneError
    from tritonserver_jax.tuning.search import tune as search

    check_repository(repository)
    check_protocol(protocol)
    check_sources(
        release=release, artifact=artifact, backends=backends, server=server, python=python
    )
    options = Options(
        concurrency=concurrency,
        protocol=protocol,  # type: ignore[arg-type]  # one of the three
        rows=rows,
        shapes=shapes_of(shape or ()),
        seconds=seconds,
        budget=budget,
    )
    name = named_model(repository, model)
    check_name(name, protocol, load=True)
    ready = prepare(
        release=release,
        artifact=artifact,
        backends=backends,
        server=server,
        python=python,
        force=False,
        say=out.progress,
    )
    if (bad := failure(ready.findings)) is not None:
        raise CommandFailedError(bad.detail, bad.remedy)
    try:
        with progress(Console(file=sys.stderr)) as tell:
            result = search(
                repository,
                name,
                distribution=ready.distribution,
                backends=ready.backends,
                analyzer=obtain_perf_analyzer(),
                options=options,
                tell=tell,
            )
    except (PerfAnalyzerError, TuneError) as error:
        raise CommandFailedError(str(error)) from error
    out.result(model=name, **result.to_json())
    if not out.as_json:
        show(result, options, Console())
    if result.tried and draw(result, plot, summary(result, options)):
        out.progress(f"wrote {plot}")
        out.result(plot=str(plot))
    elif result.tried:
        out.progress(f"{plot} was not drawn, which needs matplotlib: pip install matplotlib")
