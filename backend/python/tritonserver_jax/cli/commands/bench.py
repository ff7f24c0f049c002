# SPDX-License-Identifier: Apache-2.0
"""``bench``: how a model answers as its load grows."""

from __future__ import annotations

import contextlib
import http.client
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from tritonserver_jax.cli.command import (
    CommandFailedError,
    Output,
    UsageError,
    command,
    next_step_of,
)
from tritonserver_jax.cli.options import (
    ArtifactOption,
    BackendsOption,
    ModelOption,
    ProtocolOption,
    PythonOption,
    RowsOption,
    ServedReleaseOption,
    ServerOption,
    ShapesOption,
    check_name,
    check_protocol,
    check_repository,
    check_sources,
    named_model,
    refuse_model,
    shapes_of,
)
from tritonserver_jax.findings import failure

_LOAD_SECONDS = 300
_PROBE_SECONDS = 5
#: What matplotlib can write, by the ending of the name.
_PLOTS = (".png", ".svg", ".pdf")


@dataclass(frozen=True, slots=True)
class _Served:
    """A model that is served.

    Attributes:
        url: ``host:port`` of the protocol.
        where: For people.
        config: Its complete configuration, where it is known.
    """

    url: str
    where: str
    config: dict[str, Any] = field(default_factory=dict)


@command(
    ("bench models --model mine", "Serve a model, and measure it under four loads"),
    (
        "bench models --model mine --concurrency 1,16,64 --rows 8 --plot bench.svg",
        "Under others, with eight rows in each request",
    ),
    (
        "bench --url localhost:8001 --model mine --json",
        "Of a server that runs, by gRPC; for machines",
    ),
    ("bench --url localhost:8000 --model mine --protocol http", "The same by HTTP"),
)
def bench(
    out: Output,
    repository: Annotated[
        Path | None,
        typer.Argument(
            metavar="REPOSITORY", help="The folder that holds the models.", show_default=False
        ),
    ] = None,
    model: Annotated[str | None, ModelOption] = None,
    url: Annotated[
        str | None,
        typer.Option(
            help="A server that runs, in place of a repository: the port of the protocol.",
            metavar="HOST:PORT",
        ),
    ] = None,
    concurrency: Annotated[
        str,
        typer.Option(
            help="Requests that clients have under way; several, separated by commas.",
            metavar="NUMBERS",
        ),
    ] = "1,4,16,32",
    protocol: Annotated[str, ProtocolOption] = "grpc",
    rows: Annotated[int, RowsOption] = 1,
    shape: Annotated[list[str] | None, ShapesOption] = None,
    seconds: Annotated[float, typer.Option(help="How long a measurement takes.", min=0.3)] = 3.0,
    rounds: Annotated[
        int, typer.Option(help="How often each load is measured; medians count.", min=1)
    ] = 1,
    plot: Annotated[
        Path,
        typer.Option(
            help="Where the plot goes, as .png, .svg or .pdf; it needs matplotlib.", metavar="FILE"
        ),
    ] = Path("bench.png"),
    release: Annotated[str | None, ServedReleaseOption] = None,
    artifact: Annotated[str | None, ArtifactOption] = None,
    backends: Annotated[Path | None, BackendsOption] = None,
    server: Annotated[Path | None, ServerOption] = None,
    python: Annotated[str | None, PythonOption] = None,
) -> None:
    """Measure a served model: throughput and latency, as its load grows.

    The model is served as it is, or is on a server that runs already; Triton's perf_analyzer sends
    requests with random data. The result is a table and a plot. A client on the same machine takes
    processors away from the server: compare such figures with each other only, and let the machine
    do nothing else meanwhile.
    """
    check_protocol(protocol)
    loads = _loads(concurrency)
    shapes = shapes_of(shape or ())
    _refuse_plot(plot)
    check_sources(
        release=release, artifact=artifact, backends=backends, server=server, python=python
    )
    if (repository is None) == (url is None):
        raise UsageError(
            "expected a model repository or --url, "
            + ("got neither" if url is None else "got both"),
            "name a folder of models, or a server that runs",
        )
    if url is not None:
        if model is None:
            raise UsageError("--model: expected with --url", "say which model to measure")
        if any((release, artifact, backends, server, python)):
            raise UsageError(
                "--url: a server that runs has its release and backend already",
                "leave out --release, --artifact, --backends, --server and --python",
            )
    else:
        assert repository is not None  # noqa: S101 - one of the two is given
        check_repository(repository)
        refuse_model(repository, "bench")
        model = named_model(repository, model)
    check_name(model, protocol, load=url is None)

    from rich.console import Console

    from tritonserver_jax.tuning.curve import measure_curve
    from tritonserver_jax.tuning.curve_display import draw_curve, show_curve
    from tritonserver_jax.tuning.display import progress
    from tritonserver_jax.tuning.loads import largest_output, shape_problem
    from tritonserver_jax.tuning.perf_analyzer import (
        Load,
        PerfAnalyzerError,
        obtain_perf_analyzer,
    )

    with contextlib.ExitStack() as stack:
        if url is not None:
            served = _running(url, model, protocol)
        else:
            assert repository is not None  # noqa: S101 - one of the two is given
            served = stack.enter_context(
                _started(
                    out,
                    repository,
                    model,
                    protocol,
                    release=release,
                    artifact=artifact,
                    backends=backends,
                    server=server,
                    python=python,
                )
            )
        problem = shape_problem(served.config, shapes)
        if problem:
            raise UsageError(*next_step_of(problem))
        load = Load(
            model=model,
            protocol=protocol,  # type: ignore[arg-type]  # one of the three
            concurrency=loads[0],
            seconds=seconds,
            batch=rows,
            shapes=shapes,
            output_bytes=largest_output(served.config, rows),
        )
        try:
            with progress(Console(file=sys.stderr)) as tell:
                curve = measure_curve(
                    obtain_perf_analyzer(), served.url, load, loads, rounds=rounds, tell=tell
                )
        except PerfAnalyzerError as error:
            raise CommandFailedError(str(error)) from error
    out.result(
        model=model,
        server=served.where,
        protocol=protocol,
        rows=rows,
        seconds=seconds,
        points=curve.as_json(),
    )
    if not out.as_json:
        show_curve(curve, Console())
    row = "1 row" if rows == 1 else f"{rows} rows"
    title = f"{model} on {served.where}: {row} per request, {protocol}"
    if draw_curve(curve, plot, title):
        out.progress(f"wrote {plot}")
        out.result(plot=str(plot))
    else:
        out.progress(f"{plot} was not drawn, which needs matplotlib: pip install matplotlib")


def _loads(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise UsageError(
            f"--concurrency: expected numbers > 0 separated by commas, got {text!r}",
            "such as 1,4,16",
        )
    return [int(part) for part in parts]


def _refuse_plot(path: Path) -> None:
    if path.suffix not in _PLOTS:
        raise UsageError(
            f"--plot: expected a name that ends in {', '.join(_PLOTS)}, got {path}",
            "name it so, such as bench.svg",
        )


@contextlib.contextmanager
def _started(
    out: Output, repository: Path, model: str, protocol: str, **sources: Any
) -> Iterator[_Served]:
    """Serve the model of a repository."""
    from tritonserver_jax.server import TritonServer
    from tritonserver_jax.server.local import prepare

    ready = prepare(**sources, force=False, say=out.progress)
    if (bad := failure(ready.findings)) is not None:
        raise CommandFailedError(bad.detail, bad.remedy)
    out.progress(f"starting tritonserver {ready.distribution.release.release}")
    running = TritonServer(
        ready.distribution,
        [repository],
        backend_directory=ready.backends,
        extra_args=["--model-control-mode=explicit"],
    )
    with running:
        running.wait_live()
        running.load_model(model, timeout=_LOAD_SECONDS)
        yield _Served(
            url=running.http_url if protocol == "http" else running.grpc_url,
            where=f"tritonserver {ready.distribution.release.release}",
            config=running.model_config(model),
        )


def _asked(url: str, path: str) -> tuple[int, bytes]:
    """Return the status and the content of an answer."""
    from tritonserver_jax.server.model_paths import PlainConnection

    connection = PlainConnection(url, timeout=_PROBE_SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def _running(url: str, model: str, protocol: str) -> _Served:
    """See whether a server that is named is there and has the model, as far as HTTP tells."""
    from tritonserver_jax.server.model_paths import model_path

    host, colon, port = url.rpartition(":")
    if not colon or not host or not port.isdecimal() or "/" in host:
        raise UsageError(
            f"--url: expected HOST:PORT of the protocol, got {url!r}",
            "such as localhost:8001 for gRPC, localhost:8000 for HTTP",
        )
    if protocol == "http":
        path = f"/v2/models/{model_path(model)}"
        try:
            status, _ = _asked(url, f"{path}/ready")
            if status != http.client.OK:
                raise CommandFailedError(
                    f"{url}: the model {model} is not ready there (status {status})",
                    "load it, or name another with --model",
                )
            config: dict[str, Any] = json.loads(_asked(url, f"{path}/config")[1])
        except (OSError, http.client.HTTPException) as error:
            raise CommandFailedError(
                f"{url}: no server answers there by HTTP ({error})",
                "start one with `tritonserver-jax serve`, or correct --url",
            ) from error
        except ValueError as error:
            raise CommandFailedError(
                f"{url}: expected a Triton server there, got an answer that is no JSON",
                "name the port of its HTTP, or --protocol grpc with that of gRPC",
            ) from error
        return _Served(url=url, where=url, config=config)
    return _Served(url=url, where=url)
