# SPDX-License-Identifier: Apache-2.0
"""``serve``: a model repository on a server of this machine."""

from __future__ import annotations

import contextlib
import json
import logging
import re
import tempfile
import time
from collections import deque
from collections.abc import Mapping
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
from tritonserver_jax.cli.options import (
    ArtifactOption,
    BackendsOption,
    PythonOption,
    Repository,
    ServedReleaseOption,
    ServerOption,
    check_repository,
    check_sources,
    refuse_model,
)
from tritonserver_jax.findings import Status, failure

if TYPE_CHECKING:
    from tritonserver_jax.server import ModelState, TritonServer
    from tritonserver_jax.server.log_lines import LogLine

#: Triton's own, of HTTP, gRPC and metrics: taken where they are free.
_USUAL_PORTS: Final = (8000, 8001, 8002)
_LAST_PORT: Final = 65535
_STYLES: Final = {"warning": "yellow", "error": "red"}
_POLL_SECONDS: Final = 0.2
#: A request with more elements than these is not shown.
_MOST_ELEMENTS: Final = 64
#: How many lines of the log are shown with ``--quiet`` when it is needed.
_KEPT_LINES: Final = 40
_LOG_ABOVE: Final = "its log is above"
#: What Triton writes of a model that it does not try to load.
_REFUSED: Final = (
    re.compile(r"Poll failed for model directory '(?P<name>[^']+)': (?P<reason>.+)"),
    re.compile(r"failed to (?:poll|load) model '(?P<name>[^']+)': (?P<reason>.+)"),
)


@command(
    ("serve models --release 24.10", "Serve the models in a folder, until Ctrl-C"),
    (
        "serve examples -- --model-control-mode=explicit --load-model=add_sub",
        "Of a checkout, the example that needs no weights",
    ),
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
    repository: Annotated[Path, Repository],
    server_options: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="-- OPTIONS",
            help="More options of tritonserver; ports among them are taken as those below.",
            show_default=False,
        ),
    ] = None,
    release: Annotated[str | None, ServedReleaseOption] = None,
    artifact: Annotated[str | None, ArtifactOption] = None,
    backends: Annotated[Path | None, BackendsOption] = None,
    server: Annotated[Path | None, ServerOption] = None,
    python: Annotated[str | None, PythonOption] = None,
    http_port: Annotated[
        int | None,
        typer.Option(
            help="Default: 8000, or one that is free.", metavar="PORT", min=1, max=_LAST_PORT
        ),
    ] = None,
    grpc_port: Annotated[
        int | None,
        typer.Option(
            help="Default: 8001, or one that is free.", metavar="PORT", min=1, max=_LAST_PORT
        ),
    ] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            help="Default: 8002, or one that is free.", metavar="PORT", min=1, max=_LAST_PORT
        ),
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

    check_repository(repository)
    refuse_model(repository, "serve")
    if not any(path.is_dir() for path in repository.iterdir()):
        raise UsageError(
            f"{repository}: expected models in it, found no folder",
            "a model is a folder there, with config.pbtxt and a version such as 1/model.py",
        )
    check_sources(
        release=release, artifact=artifact, backends=backends, server=server, python=python
    )
    options = list(server_options or [])
    own = {"--http-port": http_port, "--grpc-port": grpc_port, "--metrics-port": metrics_port}
    named, options = take_ports(own, options)
    wanted = _wanted_ports(*named)
    _refuse_without_http(options)
    _refuse_without_version(out, repository, options)
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
    if (bad := failure(ready.findings)) is not None:
        raise CommandFailedError(bad.detail, bad.remedy)
    out.progress(f"starting tritonserver {ready.distribution.release.release}")
    with tempfile.TemporaryDirectory(prefix="tritonserver-jax-") as scratch:
        log = Path(scratch, "server.log")
        running = TritonServer(
            ready.distribution,
            [repository],
            backend_directory=ready.backends,
            # A model that fails is to be named, and Triton would be gone before it could be asked.
            extra_args=["--exit-on-error=false", *options],
            log_path=log,
            ports=wanted if any(named) else _free_ports(out, wanted),
        )
        shown = _Shown(out, quiet=quiet)
        try:
            with LogFollower(log, shown.show):
                _serve(out, running, timeout, options)
        except CommandFailedError as error:
            if error.remedy == _LOG_ABOVE:
                shown.reveal()
            raise
    # After the last line of the server's log.
    out.event("stopped")
    out.progress("stopped")


def _serve(out: Output, server: TritonServer, timeout: float, options: list[str]) -> None:
    from tritonserver_jax.server import ServerError

    ready = False
    begun = time.monotonic()
    with server:
        try:
            try:
                server.wait_ready(timeout)
            except ServerError as error:
                raise _not_ready(out, server, error) from error
            _check_models(out, server, options)
            ready = True
            _announce(out, server, time.monotonic() - begun)
            while server.returncode is None:
                time.sleep(_POLL_SECONDS)
        except (KeyboardInterrupt, Terminated):
            out.progress("stopping")
            if not ready:
                # It is ended while it loads models, however it takes that.
                with contextlib.suppress(ServerError):
                    server.stop()
                out.event("stopped")
                raise
            code = server.stop()
            if code != 0:
                raise CommandFailedError(
                    f"the server ended with status {code}, expected 0", _LOG_ABOVE
                ) from None
            return
        code = server.returncode
        server.stop()
        raise CommandFailedError(f"the server ended by itself, with status {code}", _LOG_ABOVE)


def _not_ready(out: Output, server: TritonServer, error: Exception) -> CommandFailedError:
    """Name the models that failed; where there are none, say what the server's process did."""
    from tritonserver_jax.server import ServerError

    try:
        failed = [one for one in server.model_index() if one.failed]
    except ServerError:
        failed = []
    failed += refused_models(server.log_text(), {one.name for one in failed})
    server.stop()
    if not failed:
        return CommandFailedError(str(error).partition("\n")[0].rstrip("."), _LOG_ABOVE)
    return _failed(out, failed)


def _failed(
    out: Output, failed: list[ModelState], remedy: str = "correct it and serve again"
) -> CommandFailedError:
    for one in failed:
        out.event("model_failed", model=one.name, version=one.version, reason=one.reason)
    named = []
    for one in failed:
        version = f" version {one.version}" if one.version else ""
        named.append(f"model {one.name}{version}: {one.reason}")
    return CommandFailedError(
        "\n".join(named),
        remedy,
        result={
            "failed_models": [
                {"model": one.name, "version": one.version, "reason": one.reason} for one in failed
            ]
        },
    )


def _check_models(out: Output, server: TritonServer, options: list[str]) -> None:
    """See whether a server that is ready serves what it was asked for; stop it if not.

    Triton is ready without the models that it does not even try to load, as those whose
    configuration cannot be read.
    """
    index = server.model_index()
    served = {one.name for one in index if one.state == "READY"}
    failed = refused_models(server.log_text(), served)
    known = {one.name for one in failed}
    for name in loaded_models(options):
        if name not in served and name not in known:
            known.add(name)
            failed.append(_state(name, "expected in the repository, found no such model"))
    if failed:
        server.stop()
        raise _failed(out, failed)
    if not served and control_mode(options) == "none":
        server.stop()
        raise CommandFailedError("the server found no model that it can serve", _LOG_ABOVE)


def _state(name: str, reason: str) -> ModelState:
    from tritonserver_jax.server import ModelState

    return ModelState(name=name, version="", state="UNAVAILABLE", reason=reason)


def refused_models(log: str, but: set[str]) -> list[ModelState]:
    """Return the models that a server's log says were refused before they had a version.

    Args:
        log: The log.
        but: Models that are known already.
    """
    from tritonserver_jax.server.log_lines import LogLine

    found: dict[str, str] = {}
    for line in map(LogLine.parse, log.splitlines()):
        for pattern in _REFUSED:
            match = pattern.search(line.text)
            if match is not None and match["name"] not in but:
                found.setdefault(match["name"], match["reason"])
    return [_state(name, reason) for name, reason in found.items()]


def control_mode(options: list[str]) -> str:
    """Return the model control mode that options of tritonserver choose."""
    return (_values(options, "--model-control-mode") or ["none"])[-1]


def loaded_models(options: list[str]) -> list[str]:
    """Return the models that options of tritonserver name."""
    return [name for name in _values(options, "--load-model") if name != "*"]


def _values(options: list[str], name: str, shortest: str = "") -> list[str]:
    return _taken(options, name, shortest)[0]


def _taken(options: list[str], name: str, shortest: str = "") -> tuple[list[str], list[str]]:
    """Return the values of an option of tritonserver, and all other options.

    Args:
        options: As they are typed, ``--name=value`` or ``--name value``.
        name: Of the option.
        shortest: What it may be shortened to, as long as no other option begins so.
    """
    found: list[str] = []
    others: list[str] = []
    words = iter(options)
    for option in words:
        typed, equals, value = option.partition("=")
        if typed != name and not (
            shortest and typed.startswith(shortest) and name.startswith(typed)
        ):
            others.append(option)
        elif equals:
            found.append(value)
        else:
            found.append(next(words, ""))
    return found, others


def take_ports(
    own: Mapping[str, int | None], options: list[str]
) -> tuple[list[int | None], list[str]]:
    """Take the ports out of what is handed on to tritonserver: this command has to know them.

    Args:
        own: What the options of the same names said before ``--``.
        options: What comes after it.

    Returns:
        Each port, None where nothing names it; and what is left to hand on.

    Raises:
        UsageError: One is no port, or is named twice.
    """
    ports: list[int | None] = []
    for name, port in own.items():
        values, options = _taken(options, name, name.removesuffix("ort"))
        for value in values:
            if not value.isdecimal() or not 1 <= int(value) <= _LAST_PORT:
                raise UsageError(
                    f"{name}: expected a port from 1 to {_LAST_PORT} after --, got {value!r}",
                    f"write it as {name}=8000, or leave it out for one that is free",
                )
        given = {int(value) for value in values} | (set() if port is None else {port})
        if len(given) > 1:
            raise UsageError(
                f"{name}: expected one port, got {' and '.join(map(str, sorted(given)))}",
                "leave one out",
            )
        ports.append(next(iter(given), None))
    return ports, options


def _refuse_without_http(options: list[str]) -> None:
    """Refuse a server that could not be asked whether it is ready."""
    if any(value.lower() in ("false", "0") for value in _values(options, "--allow-http")):
        raise UsageError(
            "--allow-http=false: expected a server that answers HTTP, by which this command asks "
            "whether the models are ready",
            "leave it out: only this machine can reach the server",
        )


def _refuse_without_version(out: Output, repository: Path, options: list[str]) -> None:
    """Refuse models without a version: Triton would say so in its log alone, and go on waiting."""
    named = loaded_models(options)
    everything = control_mode(options) == "none" or "*" in _values(options, "--load-model")
    failed = []
    for model in sorted(path for path in repository.iterdir() if path.is_dir()):
        if not everything and model.name not in named:
            continue
        if not (model / "config.pbtxt").is_file():
            continue
        if any(one.is_dir() and one.name.isdigit() for one in model.iterdir()):
            continue
        makers = [one for one in ("make.py", "train.py") if (model / one).is_file()]
        makes = f"; {model / makers[0]} makes it" if makers else ""
        reason = f"expected a version folder, such as 1/, found none{makes}"
        failed.append(_state(model.name, reason))
    if failed:
        raise _failed(
            out,
            failed,
            "make it, or serve others: -- --model-control-mode=explicit --load-model=NAME",
        )


def _wanted_ports(*wanted: int | None) -> list[int]:
    """Return Triton's usual ports, but those that are named.

    Raises:
        UsageError: Two are the same.
    """
    ports = [port or usual for port, usual in zip(wanted, _USUAL_PORTS, strict=True)]
    if len(set(ports)) != len(ports):
        raise UsageError(
            f"ports: expected three different ones, of HTTP, gRPC and metrics; got {ports}",
            "choose others with --http-port, --grpc-port and --metrics-port",
        )
    return ports


def _free_ports(out: Output, ports: list[int]) -> list[int] | None:
    """Return these ports, or None to choose others, if another process has one."""
    from tritonserver_jax.server import ServerError
    from tritonserver_jax.server.ports import PortReservation

    try:
        PortReservation(len(ports), ports).release()
    except ServerError:
        out.progress(f"one of the ports {ports} is taken: choosing others")
        return None
    return ports


class _Shown:
    """Shows the server's log, or with ``--quiet`` its end, once a message points to it."""

    def __init__(self, out: Output, *, quiet: bool) -> None:
        self._out = out
        self._quiet = quiet
        self._kept: deque[LogLine] = deque(maxlen=_KEPT_LINES)

    def show(self, line: LogLine) -> None:
        """Show a line, or keep it for later."""
        if self._quiet and line.level not in _STYLES:
            self._kept.append(line)
        else:
            self._show(line)

    def reveal(self) -> None:
        """Show what was kept."""
        while self._kept:
            self._show(self._kept.popleft())

    def _show(self, line: LogLine) -> None:
        if self._out.as_json:
            self._out.event("log", level=line.level, where=line.where, text=line.text)
            return
        # A model's traceback comes in one line, its line ends written out.
        first, *more = line.text.replace("\\n", "\n").split("\n")
        shown = f"{line.time} {line.level:7} {first}" if line.level else f"  {first}"
        out, style = self._out, _STYLES.get(line.level, "dim")
        out.log("\n    ".join([shown, *more]), style)


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
    from tritonserver_jax.server.model_paths import curl_takes, model_path

    if not curl_takes(model):
        return ["curl", "-s", _v2(server)]
    address = f"{_v2(server)}/models/{model_path(model)}"
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
