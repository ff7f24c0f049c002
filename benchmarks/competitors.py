# SPDX-License-Identifier: Apache-2.0
"""What is compared: how each competitor is started, and where it answers."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

from benchmarks.competitor_models import large, mlp
from benchmarks.competitor_models.weights import MAX_BATCH, SIZES, weights
from benchmarks.errors import BenchmarkError
from benchmarks.pytriton import pytriton_python
from benchmarks.workplace import Workplace
from ci.process import ROOT
from ci.service import running_service
from tritonserver_jax.repository import save_params
from tritonserver_jax.server import TritonServer
from tritonserver_jax.server.ports import HOST, PortReservation

_MODELS: Final = ROOT / "benchmarks" / "competitor_models"
_READY_SECONDS: Final = 180

#: The models by the names that clients use.
MLP: Final = "mlp"
LARGE: Final = "large"
#: Elements of the large model's input and output: 16 MiB.
LARGE_ELEMENTS: Final = large.SIGNATURE["inputs"]["X"][1][0]  # type: ignore[index]


@dataclass(frozen=True)
class Running:
    """A competitor that answers.

    Attributes:
        pid: Of its first process; what it started is found from there.
        http: ``host:port`` of Triton's HTTP, or of FastAPI.
        grpc: ``host:port`` of gRPC; None where there is none.
        server: The tritonserver, where it is one that was started here.
        ready_seconds: From the start to the first answer.
    """

    pid: int
    http: str
    grpc: str | None
    server: TritonServer | None
    ready_seconds: float


@dataclass(frozen=True)
class Competitor:
    """One of those that are compared.

    Attributes:
        name: As in ``--only``.
        title: For tables.
        description: One line for the report.
        start: Makes what it needs, starts it, waits until it is ready, and ends it.
        kind: ``triton``, or ``fastapi``.
        instances: Of the model.
        models: The models that it serves.
    """

    name: str
    title: str
    description: str
    start: Callable[[Workplace], AbstractContextManager[Running]]
    kind: str = "triton"
    instances: int = 1
    models: tuple[str, ...] = (MLP,)


def _config(backend: str, *, instances: int = 1) -> str:
    """A whole configuration of the network, as this backend completes it by itself."""
    return (
        f'backend: "{backend}"\nmax_batch_size: {MAX_BATCH}\n'
        f'input {{ name: "X" data_type: TYPE_FP32 dims: {SIZES[0]} }}\n'
        f'output {{ name: "Y" data_type: TYPE_FP32 dims: {SIZES[-1]} }}\n'
        f"dynamic_batching {{ }}\ninstance_group {{ count: {instances} kind: KIND_CPU }}\n"
    )


def _large_config(backend: str) -> str:
    return (
        f'backend: "{backend}"\nmax_batch_size: 1\n'
        f'input {{ name: "X" data_type: TYPE_FP32 dims: {LARGE_ELEMENTS} }}\n'
        f'output {{ name: "Y" data_type: TYPE_FP32 dims: {LARGE_ELEMENTS} }}\n'
        "instance_group { count: 1 kind: KIND_CPU }\n"
    )


def fresh(directory: Path) -> Path:
    """Make a folder anew, and return it."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    return directory


def write_model(
    repository: Path, name: str, *, config: str, source: Path | None, params: bool = False
) -> Path:
    """Write a model directory, and return its version directory.

    Args:
        repository: The model repository.
        name: The model.
        config: Its config.pbtxt.
        source: What becomes its model.py; None for a model without one.
        params: Whether the weights of the network lie beside it.
    """
    version = repository / name / "1"
    version.mkdir(parents=True)
    (repository / name / "config.pbtxt").write_text(config, encoding="utf-8")
    if source is not None:
        shutil.copyfile(source, version / "model.py")
    if params:
        save_params(version, weights())
    return version


#: What large tensors in shared memory are served with: the client leaves them alone.
LARGE_CONFIG: Final = (
    'backend: "jax"\nparameters { key: "inputs_in_place" value { string_value: "true" } }\n'
)


def ours_repository(repository: Path, config: str = 'backend: "jax"\n') -> Path:
    """Write the network and the large model for this backend, and return the repository."""
    fresh(repository)
    write_model(repository, MLP, config=config, source=Path(mlp.__file__), params=True)
    write_model(repository, LARGE, config=LARGE_CONFIG, source=Path(large.__file__))
    return repository


@contextmanager
def serve(
    work: Workplace,
    repository: Path,
    backends: Path,
    *,
    args: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
) -> Iterator[Running]:
    """Serve a repository until the end of the ``with`` statement."""
    server = TritonServer(
        work.distribution,
        [repository],
        backend_directory=backends,
        extra_args=[f"--backend-config=jax,env={work.environment}", *args],
        env=env,
    )
    started = time.monotonic()
    with server:
        server.wait_ready(_READY_SECONDS)
        ready = time.monotonic() - started
        yield Running(server.pid, server.http_url, server.grpc_url, server, ready)


def _ours(instances: int) -> Callable[[Workplace], AbstractContextManager[Running]]:
    @contextmanager
    def start(work: Workplace) -> Iterator[Running]:
        config = 'backend: "jax"\n'
        if instances > 1:
            config += f"instance_group {{ count: {instances} kind: KIND_CPU }}\n"
        repository = ours_repository(work.directory / "models" / f"ours_{instances}", config)
        with serve(work, repository, work.backends) as running:
            yield running

    return start


def _copy_only(instances: int) -> Callable[[Workplace], AbstractContextManager[Running]]:
    @contextmanager
    def start(work: Workplace) -> Iterator[Running]:
        repository = fresh(work.directory / "models" / f"copy_only_{instances}")
        config = _config("copy_only", instances=instances)
        write_model(repository, MLP, config=config, source=None)
        write_model(repository, LARGE, config=_large_config("copy_only"), source=None)
        with serve(work, repository, work.copy_only) as running:
            yield running

    return start


def _python(source: str) -> Callable[[Workplace], AbstractContextManager[Running]]:
    @contextmanager
    def start(work: Workplace) -> Iterator[Running]:
        repository = fresh(work.directory / "models" / source)
        path = _MODELS / f"{source}.py"
        write_model(repository, MLP, config=_config("python"), source=path)
        backends = work.distribution.backend_directory
        with serve(work, repository, backends, env=work.python_variables()) as running:
            yield running

    return start


def _answers(url: str) -> bool:
    try:
        # No proxy of the environment stands between two programs on this machine.
        with build_opener(ProxyHandler({})).open(url, timeout=2) as answer:
            return int(answer.status) == 200
    except (URLError, OSError):
        return False


@contextmanager
def _program(
    command: Sequence[str | Path], *, log: Path, env: Mapping[str, str], ready: str
) -> Iterator[tuple[int, float]]:
    """Run a server that is not a tritonserver of ours; its process group ends with the block."""
    log.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    with running_service(
        command,
        lambda: _answers(ready),
        log,
        error=BenchmarkError,
        name=f"the server of {ready}",
        cwd=ROOT,
        env={**os.environ, **env},
        group=True,
        start_seconds=_READY_SECONDS,
        stop_seconds=20,
    ) as process:
        yield process.pid, time.monotonic() - started


def _fastapi(
    factory: str, workers: int = 1
) -> Callable[[Workplace], AbstractContextManager[Running]]:
    @contextmanager
    def start(work: Workplace) -> Iterator[Running]:
        ports = PortReservation(1)
        try:
            (port,) = ports.ports
            command = [
                *(sys.executable, "-m", "uvicorn", "--factory"),
                f"benchmarks.competitor_models.fastapi_app:{factory}",
                *("--host", HOST, "--port", str(port), "--loop", "uvloop", "--http", "httptools"),
                *("--no-access-log", "--log-level", "warning", "--workers", str(workers)),
            ]
            log = work.directory / "logs" / f"{factory}_{workers}.log"
            env = {"PYTHONPATH": str(ROOT)}
            ready = f"http://{HOST}:{port}/openapi.json"
            with _program(command, log=log, env=env, ready=ready) as (pid, seconds):
                yield Running(pid, f"{HOST}:{port}", None, None, seconds)
        finally:
            ports.release()

    return start


@contextmanager
def _pytriton(work: Workplace) -> Iterator[Running]:
    python = pytriton_python(work.pytriton)
    ports = PortReservation(3)
    try:
        http, grpc, metrics = ports.ports
        command: list[str | Path] = [
            python,
            _MODELS / "pytriton_server.py",
            *(str(port) for port in (http, grpc, metrics)),
        ]
        log = work.directory / "logs" / "pytriton.log"
        env = {
            **work.python_variables(),
            "PYTHONPATH": str(ROOT),
            "PYTRITON_HOME": str(work.directory / "pytriton-home"),
            "PATH": os.pathsep.join([str(python.parent), os.environ.get("PATH", "")]),
        }
        ready = f"http://{HOST}:{http}/v2/models/{MLP}/ready"
        with _program(command, log=log, env=env, ready=ready) as (pid, seconds):
            yield Running(pid, f"{HOST}:{http}", f"{HOST}:{grpc}", None, seconds)
    finally:
        ports.release()


COMPETITORS: Final = {
    one.name: one
    for one in (
        Competitor(
            "ours",
            "this backend",
            "its defaults: config.pbtxt names the backend, and nothing else",
            _ours(1),
            models=(MLP, LARGE),
        ),
        Competitor(
            "ours_2",
            "this backend, 2 instances",
            "the same with two instances",
            _ours(2),
            instances=2,
        ),
        Competitor(
            "copy_only",
            "copy-only backend",
            "C++ that copies inputs in and answers out, and computes nothing: the limit",
            _copy_only(1),
            models=(MLP, LARGE),
        ),
        Competitor(
            "copy_only_2",
            "copy-only backend, 2 instances",
            "the same with two instances",
            _copy_only(2),
            instances=2,
        ),
        Competitor(
            "python_backend",
            "python backend, well written",
            "Triton's python backend: programs compiled per bucket, batches in one call, DLPack, "
            "no asynchronous dispatch, garbage collector frozen",
            _python("python_backend"),
        ),
        Competitor(
            "python_naive",
            "python backend, naive",
            "Triton's python backend as examples show it: a jitted call for each request",
            _python("python_naive"),
        ),
        Competitor(
            "pytriton",
            "PyTriton",
            "PyTriton 0.7.0 with its own JAX 0.7.1: the same compiled programs, @batch",
            _pytriton,
        ),
        Competitor(
            "fastapi",
            "FastAPI",
            "uvicorn with uvloop and httptools, bytes in and out, a call for each request",
            _fastapi("create_app"),
            kind="fastapi",
        ),
        Competitor(
            "fastapi_batching",
            "FastAPI, batching",
            "the same with an asyncio batcher: what waits is one call",
            _fastapi("create_batching_app"),
            kind="fastapi",
        ),
        Competitor(
            "fastapi_batching_2",
            "FastAPI, batching, 2 workers",
            "the same in two processes, each with a JAX and a batcher of its own",
            _fastapi("create_batching_app", workers=2),
            kind="fastapi",
            instances=2,
        ),
    )
}
