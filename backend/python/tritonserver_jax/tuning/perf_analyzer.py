# SPDX-License-Identifier: Apache-2.0
"""Triton's own load generator: where it comes from, how it is run, what it says.

The wheel of `tritonclient` carries ``perf_analyzer``; it is downloaded once, its hash checked, and
unpacked into the cache. Two libraries that it wants come with the server of the default release.
A run is bounded: it measures for the time that it is given, and is ended and tried again when
the program hangs, which it sometimes does on a busy machine.
"""

from __future__ import annotations

import contextlib
import csv
import io
import os
import signal
import subprocess
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from tritonserver_jax.releases import DEFAULT_RELEASE, ServerWheel, find_release
from tritonserver_jax.server.distribution import default_cache_directory, obtain_server
from tritonserver_jax.server.errors import ServerError
from tritonserver_jax.server.wheels import download_wheel, locked

__all__ = [
    "PERF_ANALYZER",
    "Load",
    "Measurement",
    "PerfAnalyzer",
    "PerfAnalyzerError",
    "Protocol",
    "obtain_perf_analyzer",
    "parse_report",
]

#: The newest whose perf_analyzer runs on glibc 2.34.
PERF_ANALYZER: Final = ServerWheel(
    package="tritonclient",
    version="2.51.0",
    wheel="tritonclient-2.51.0-py3-none-manylinux1_x86_64.whl",
    sha256="c485bb0123bdf310f90bc8b03d3489b28df2ffed55b30c7eee0b795b48113d52",
)

_PROGRAM: Final = "tritonclient-2.51.0.data/data/bin/perf_analyzer"
#: By the names that the program wants: how the libraries of the server's wheel are called.
_LIBRARIES: Final = {"libb64.so.0d": "libb64-*.so.0d", "libcudart.so.12": "libcudart-*.so.12*"}

#: perf_analyzer reports after this many windows, however much they differ.
_WINDOWS: Final = 3
#: For connecting, and for the windows that it starts over.
_GRACE_SECONDS: Final = 10.0
_TRIES: Final = 3
#: Above this, requests over HTTP share threads.
_MOST_HTTP_THREADS: Final = 8

Protocol = Literal["grpc", "http", "shm"]


class PerfAnalyzerError(RuntimeError):
    """It could not be run, or measured nothing."""


@dataclass(frozen=True, slots=True)
class Load:
    """What to send.

    Attributes:
        model: The name of the model.
        protocol: ``shm`` is gRPC with the tensors in shared memory of the system.
        concurrency: How many requests are under way at any time.
        seconds: How long to measure.
        batch: Rows of each request.
        shapes: By input, for dims that vary.
        output_bytes: The size of each output, which ``shm`` has to know when it is large.
    """

    model: str
    protocol: Protocol
    concurrency: int
    seconds: float
    batch: int = 1
    shapes: Mapping[str, Sequence[int]] | None = None
    output_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a run found. Times are microseconds, as the client sees them."""

    throughput: float
    average: float
    p50: float
    p90: float
    p99: float


def parse_report(text: str) -> Measurement:
    """Read perf_analyzer's report.

    Args:
        text: Its CSV file, verbose form.

    Raises:
        PerfAnalyzerError: There is no row, or a column is missing.
    """
    rows = list(csv.DictReader(io.StringIO(text)))
    if len(rows) != 1:
        raise PerfAnalyzerError(f"perf_analyzer's report: expected one row, got {len(rows)}")
    try:
        # Inferences are counted per row: a request of 8 rows is 8 of them.
        measured = Measurement(
            throughput=float(rows[0]["Inferences/Second"]),
            average=float(rows[0]["Avg latency"]),
            p50=float(rows[0]["p50 latency"]),
            p90=float(rows[0]["p90 latency"]),
            p99=float(rows[0]["p99 latency"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise PerfAnalyzerError(
            f"perf_analyzer's report: expected a throughput and latencies, got {text!r}"
        ) from error
    if measured.throughput <= 0:
        raise PerfAnalyzerError("perf_analyzer's report: no request was answered")
    return measured


@dataclass(frozen=True, slots=True)
class PerfAnalyzer:
    """The program on this machine's disk.

    Attributes:
        program: The executable.
        libraries: A folder for ``LD_LIBRARY_PATH``.
    """

    program: Path
    libraries: Path

    def command(self, url: str, load: Load, report: Path) -> list[str]:
        """Return the command line of a run.

        Args:
            url: ``host:port`` of the protocol.
            load: What to send.
            report: Where the CSV file goes.
        """
        window = max(100, round(load.seconds * 1000 / _WINDOWS))
        shapes = load.shapes or {}
        # Over HTTP it has a thread for each request that is under way, and its own, which ends the
        # window, may never get the lock that many of them take by turns.
        threads = (
            ["--async", "--max-threads=2"]
            if load.protocol == "http" and load.concurrency > _MOST_HTTP_THREADS
            else []
        )
        shared = ["--shared-memory=system"] if load.protocol == "shm" else []
        if shared and load.output_bytes is not None:
            shared.append(f"--output-shared-memory-size={load.output_bytes}")
        return [
            str(self.program),
            *("-m", load.model, "-u", url, "-i", "http" if load.protocol == "http" else "grpc"),
            *("-b", str(load.batch), f"--concurrency-range={load.concurrency}"),
            *(f"--measurement-interval={window}", f"--max-trials={_WINDOWS}"),
            # Any three windows will do: runs are repeated, and their medians compared.
            "--stability-percentage=999",
            *(f"--shape={name}:{','.join(map(str, shape))}" for name, shape in shapes.items()),
            *threads,
            *shared,
            *("-f", str(report), "--verbose-csv"),
        ]

    def measure(self, url: str, load: Load) -> Measurement:
        """Run it, and return what it found.

        Args:
            url: ``host:port`` of the protocol.
            load: What to send.

        Raises:
            PerfAnalyzerError: It failed, or hung several times.
        """
        said = ""
        for attempt in range(_TRIES):
            # Longer each time: a window in which no request ended measures nothing.
            load = replace(load, seconds=load.seconds * 2) if attempt else load
            with tempfile.TemporaryDirectory(prefix="tritonserver-jax-perf-") as scratch:
                report = Path(scratch, "report.csv")
                try:
                    said = self._run(self.command(url, load, report), load.seconds)
                    if report.is_file():
                        return parse_report(report.read_text(encoding="utf-8"))
                except subprocess.TimeoutExpired:
                    said = f"nothing within {load.seconds + _GRACE_SECONDS:g} s"
                except PerfAnalyzerError as error:
                    said = str(error)
        lines = "\n".join(f"    {line}" for line in said.splitlines()[-8:])
        raise PerfAnalyzerError(
            f"perf_analyzer: expected a measurement of model {load.model} by {load.protocol} at "
            f"concurrency {load.concurrency}, got none in {_TRIES} tries; is the model ready at "
            f"{url}? It said last:\n{lines}"
        )

    def _run(self, command: Sequence[str], seconds: float) -> str:
        """Run it in a process group of its own, so that nothing is left of it when it hangs."""
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                env={**os.environ, "LD_LIBRARY_PATH": str(self.libraries)},
                start_new_session=True,
            )
        except OSError as error:
            raise PerfAnalyzerError(f"{command[0]}: cannot be started: {error.strerror}") from error
        try:
            said, _ = process.communicate(timeout=seconds + _GRACE_SECONDS)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return said


def obtain_perf_analyzer(*, cache_dir: Path | None = None) -> PerfAnalyzer:
    """Return perf_analyzer, downloading it when the cache does not hold it.

    Args:
        cache_dir: Where it is kept; by default that of the servers.

    Raises:
        ServerError: It, or the server whose libraries it wants, could not be had.
    """
    server = obtain_server(find_release(DEFAULT_RELEASE), cache_dir=cache_dir)
    cache = (default_cache_directory() if cache_dir is None else cache_dir).absolute()
    entry = cache / "tools" / f"perf_analyzer-{PERF_ANALYZER.version}"
    entry.parent.mkdir(parents=True, exist_ok=True)
    program, libraries = entry / "perf_analyzer", entry / "lib"
    with locked(entry.parent / f".{entry.name}.lock"):
        if not os.access(program, os.X_OK):
            _unpack(entry)
        libraries.mkdir(exist_ok=True)
        for name, pattern in _LIBRARIES.items():
            found = sorted(server.library_directory.glob(pattern))
            if not found:
                raise ServerError(
                    f"perf_analyzer: expected {pattern} in {server.library_directory}, found none"
                )
            link = libraries / name
            if not link.exists():
                link.unlink(missing_ok=True)
                link.symlink_to(found[0])
    return PerfAnalyzer(program, libraries)


def _unpack(entry: Path) -> None:
    entry.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=entry.parent, prefix=".new-") as scratch:
        wheel = download_wheel(PERF_ANALYZER, Path(scratch, "download"))
        fresh = Path(scratch, "perf_analyzer")
        try:
            with zipfile.ZipFile(wheel) as archive:
                fresh.write_bytes(archive.read(_PROGRAM))
        except (KeyError, OSError, zipfile.BadZipFile) as error:
            raise ServerError(f"{wheel.name}: expected {_PROGRAM} in it: {error}") from error
        fresh.chmod(0o755)
        fresh.replace(entry / "perf_analyzer")
