# SPDX-License-Identifier: Apache-2.0
"""``serve``: a model repository on a server of this machine."""

from __future__ import annotations

import json
import logging
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tritonserver_jax.cli.command import (
    CommandFailedError,
    Output,
    Terminated,
    UsageError,
    command,
    quoted,
)
from tritonserver_jax.cli.options import ArtifactOption
from tritonserver_jax.findings import Status, worst

if TYPE_CHECKING:
    from tritonserver_jax.server import TritonServer
    from tritonserver_jax.server.log_lines import LogLine

#: Triton's own, of HTTP, gRPC and metrics: taken where they are free.
_USUAL_PORTS: Final = (8000, 8001, 8002)
_STYLES: Final = {"warning": "yellow", "error": "red"}
_POLL_SECONDS: Final = 0.2
#: A request with more elements than these is not shown.
_MOST_ELEMENTS: Final = 64


@command(
    ("serve examples --release 24.10", "Serve the models in a folder, until Ctrl-C"),
    (
        "serve models --artifact tritonserver-jax-0.1.0-triton24.10-linux-x86_64.tar.gz",
        "The same with an artifact that was downloaded",
    ),
    (
        "serve models --backends /opt/tritonserver/backends --server /opt/tritonserver",
        "With a server and a backend that are installed",
    ),
    ("serve models -- --log-verbose=1", "With more options of tritonserver"),
    events=True,
)
def serve(
    out: Output,
    repository: Annotated[
        Path,
        typer.Argument(
            metavar="REPOSITORY", help="The folder that holds the models.", show_default=False
        ),
    ],
    server_options: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- OPTIONS]", help="More options of tritonserver.", show_default=False
        ),
    ] = None,
    release: Annotated[
        str | None,
        typer.Option(
            help="The release of the server. Default: that of the backend or artifact.",
            metavar="RELEASE",
        ),
    ] = None,
    artifact: Annotated[str | None, ArtifactOption] = None,
    backends: Annotated[
        Path | None,
        typer.Option(
            help="A backend directory in which the backend is installed, in place of an artifact.",
            metavar="DIR",
        ),
    ] = None,
    server: Annotated[
        Path | None,
        typer.Option(
            help="The folder of an installed server, as /opt/tritonserver. Default: one of the "
            "release is downloaded once.",
            metavar="DIR",
        ),
    ] = None,
    python: Annotated[
        str | None,
        typer.Option(
            help="The Python of the backend's environment; default: the first suitable one.",
            metavar="PATH",
        ),
    ] = None,
    http_port: Annotated[
        int | None, typer.Option(help="Default: 8000, or one that is free.", metavar="PORT")
    ] = None,
    grpc_port: Annotated[
        int | None, typer.Option(help="Default: 8001, or one that is free.", metavar="PORT")
    ] = None,
    metrics_port: Annotated[
        int | None, typer.Option(help="Default: 8002, or one that is free.", metavar="PORT")
    ] = None,
    timeout: Annotated[
        float, typer.Option(help="Seconds for all models to be ready.", min=1)
    ] = 300,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Show warnings and errors of the server only.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Use an artifact of another release than the server's.")
    ] = False,
) -> None:
    """Serve a model repository on a server of this machine, until Ctrl-C.

    The server of the release and the backend are kept in a cache of the project, each made once.
    When all models are ready, the addresses are shown, with a line to try. When a model is not, it
    is named with the reason, and the server is stopped. Only this machine can reach the server.
    """
    from tritonserver_jax.server import TritonServer
    from tritonserver_jax.server.local import prepare
    from tritonserver_jax.server.log_lines import LogFollower

    if not repository.is_dir():
        raise UsageError(f"{repository}: expected a folder that holds models, found none")
    if not any(path.is_dir() for path in repository.iterdir()):
        raise UsageError(
            f"{repository}: expected models in it, found no folder",
            "a model is a folder there, with config.pbtxt and a version such as 1/model.py",
        )
    if backends is not None and artifact is not None:
        raise UsageError("--artifact and --backends: expected one of them")
    with _log_shown(out):
        ready = prepare(
            release=release,
            artifact=artifact,
            backends=backends,
            server=server,
            python=python,
            force=force,
            say=out.progress,
        )
    for one in ready.findings:
        if one.status is Status.WARN:
            out.finding(one)
    if worst(ready.findings) is Status.FAIL:
        bad = next(one for one in ready.findings if one.status is Status.FAIL)
        raise CommandFailedError(bad.detail, bad.remedy)
    out.progress(f"starting tritonserver {ready.distribution.release.release}")
    with tempfile.TemporaryDirectory(prefix="tritonserver-jax-") as scratch:
        log = Path(scratch, "server.log")
        running = TritonServer(
            ready.distribution,
            [repository],
            backend_directory=ready.backends,
            # A model that fails is to be named, and Triton would be gone before it could be asked.
            extra_args=["--exit-on-error=false", *(server_options or [])],
            log_path=log,
            ports=_ports(out, http_port, grpc_port, metrics_port),
        )
        with LogFollower(log, lambda line: _show(out, line, quiet=quiet)):
            _serve(out, running, timeout)


def _serve(out: Output, server: TritonServer, timeout: float) -> None:
    from tritonserver_jax.server import ServerError

    begun = time.monotonic()
    with server:
        try:
            try:
                server.wait_ready(timeout)
            except ServerError as error:
                raise _not_ready(out, server, error) from error
            _announce(out, server, time.monotonic() - begun)
            while server.returncode is None:
                time.sleep(_POLL_SECONDS)
        except (KeyboardInterrupt, Terminated):
            out.progress("stopping")
            code = server.stop()
            if code != 0:
                raise CommandFailedError(
                    f"the server ended with status {code}, expected 0", "its log is above"
                ) from None
            out.event("stopped")
            out.progress("stopped")
            return
        code = server.returncode
        server.stop()
        raise CommandFailedError(
            f"the server ended by itself, with status {code}", "its log is above"
        )


def _not_ready(out: Output, server: TritonServer, error: Exception) -> CommandFailedError:
    """Name the models that failed; where there are none, say what the server's process did."""
    from tritonserver_jax.server import ServerError

    try:
        failed = [one for one in server.model_index() if one.failed]
    except ServerError:
        failed = []
    server.stop()
    if not failed:
        return CommandFailedError(str(error).partition("\n")[0].rstrip("."), "its log is above")
    for one in failed:
        out.event("model_failed", model=one.name, version=one.version, reason=one.reason)
    named = "\n".join(f"model {one.name} version {one.version}: {one.reason}" for one in failed)
    return CommandFailedError(
        named,
        "correct it and serve again",
        result={
            "failed_models": [
                {"model": one.name, "version": one.version, "reason": one.reason} for one in failed
            ]
        },
    )


def _ports(out: Output, *wanted: int | None) -> list[int] | None:
    from tritonserver_jax.server import ServerError
    from tritonserver_jax.server.ports import PortReservation

    ports = [port or usual for port, usual in zip(wanted, _USUAL_PORTS, strict=True)]
    if any(port is not None for port in wanted):
        return ports
    try:
        PortReservation(len(ports), ports).release()
    except ServerError:
        out.progress(f"one of the ports {ports} is taken: choosing others")
        return None
    return ports


def _show(out: Output, line: LogLine, *, quiet: bool) -> None:
    if quiet and line.level not in _STYLES:
        return
    if out.as_json:
        out.event("log", level=line.level, where=line.where, text=line.text)
        return
    shown = f"{line.time} {line.level:7} {line.text}" if line.level else f"  {line.text}"
    out.log(shown, _STYLES.get(line.level, "dim"))


def _announce(out: Output, server: TritonServer, seconds: float) -> None:
    models = [one for one in server.model_index() if one.state == "READY"]
    names = ", ".join(dict.fromkeys(one.name for one in models)) or "none"
    try_it = request_to_try(server, models[0].name) if models else ["curl", "-s", _v2(server)]
    out.event(
        "ready",
        http=f"http://{server.http_url}",
        grpc=server.grpc_url,
        metrics=f"http://{server.metrics_url}/metrics",
        models=[{"model": one.name, "version": one.version} for one in models],
        try_it=quoted(try_it),
        pid=server.pid,
        seconds=round(seconds, 3),
    )
    out.line()
    out.line(f"ready in {seconds:.1f} s", "bold green")
    out.line(f"  models   {names}")
    out.line(f"  HTTP     http://{server.http_url}")
    out.line(f"  gRPC     {server.grpc_url}")
    out.line(f"  metrics  http://{server.metrics_url}/metrics")
    out.line("try it:")
    out.line(f"  {quoted(try_it)}")
    out.line("end it with Ctrl-C")
    out.line()


def _v2(server: TritonServer) -> str:
    return f"http://{server.http_url}/v2"


def request_to_try(server: TritonServer, model: str) -> list[str]:
    """Return a command that asks a model something: for an inference, where one is short.

    Args:
        server: A running server.
        model: A model that is ready.
    """
    address = f"{_v2(server)}/models/{model}"
    inputs = []
    for tensor in server.model_metadata(model)["inputs"]:
        shape = [max(size, 1) for size in tensor["shape"]]
        count = 1
        for size in shape:
            count *= size
        kind = tensor["datatype"]
        if count > _MOST_ELEMENTS or kind in ("BF16", "FP16"):  # which JSON has no numbers for
            return ["curl", "-s", address]
        value = "0" if kind == "BYTES" else False if kind == "BOOL" else 0
        inputs.append(
            {"name": tensor["name"], "shape": shape, "datatype": kind, "data": [value] * count}
        )
    body = json.dumps({"inputs": inputs}, separators=(",", ":"))
    return ["curl", "-s", f"{address}/infer", "-d", body]


class _log_shown:  # noqa: N801  used as a function
    """Show what the package logs, such as a download, while something is made."""

    def __init__(self, out: Output) -> None:
        self._handler = logging.Handler(logging.INFO)
        self._handler.emit = lambda record: out.progress(record.getMessage())  # type: ignore[method-assign]
        self._logger = logging.getLogger("tritonserver_jax")

    def __enter__(self) -> None:
        self._level = self._logger.level
        self._logger.addHandler(self._handler)
        self._logger.setLevel(logging.INFO)

    def __exit__(self, *_: object) -> None:
        self._logger.removeHandler(self._handler)
        self._logger.setLevel(self._level)
