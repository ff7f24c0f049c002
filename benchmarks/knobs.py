# SPDX-License-Identifier: Apache-2.0
"""What each knob does: the figures of docs/tuning.md.

All settings are served at once, each as a model of its own (the network of the benchmark with some
more lines in its config.pbtxt), on one server per set of server options. They are measured in turn,
round by round, by perf_analyzer over gRPC.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.competitor_models import mlp
from benchmarks.competitor_models.weights import MAX_BATCH
from benchmarks.competitors import Running, fresh, serve, write_model
from benchmarks.errors import BenchmarkError
from benchmarks.machine import describe_machine, describe_software
from benchmarks.tables import Rows
from benchmarks.workplace import Workplace
from ci.process import ROOT
from tritonserver_jax.tuning.choice import median
from tritonserver_jax.tuning.perf_analyzer import (
    Load,
    Measurement,
    PerfAnalyzerError,
    Protocol,
)

DOCUMENT: Final = ROOT / "docs" / "tuning.md"
_PLACE: Final = re.compile(r"(<!-- measured (\w+) -->\n).*?(<!-- end measured -->)", re.DOTALL)


@dataclass(frozen=True)
class Setting:
    """One position of a knob.

    Attributes:
        knob: Which; the name of its table in the document.
        label: The position, as the document has it.
        config: Lines for config.pbtxt, beside the name of the backend.
        args: Options of tritonserver.
        protocol: By which requests come.
        concurrencies: Of the load.
        rows: Of each request.
    """

    knob: str
    label: str
    config: str = ""
    args: tuple[str, ...] = ()
    protocol: Protocol = "grpc"
    concurrencies: tuple[int, ...] = (8, 32)
    rows: int = 1

    @property
    def model(self) -> str:
        """Its name as a model."""
        return re.sub(r"\W+", "_", f"{self.knob} {self.label}").strip("_").lower()


def _parameter(key: str, value: str) -> str:
    return f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'


def _instances(count: int, limiter: str = "") -> str:
    return f"instance_group {{ count: {count} kind: KIND_CPU{limiter} }}\n"


_ONE_AT_A_TIME: Final = (
    ' rate_limiter { resources { name: "processor" global: true count: 1 } priority: 1 }'
)
_ALL: Final = (1, 8, 32)

SETTINGS: Final[Sequence[Setting]] = (
    Setting("instances", "count: 1 (default)", concurrencies=_ALL),
    Setting("instances", "count: 2", _instances(2), concurrencies=_ALL),
    Setting("instances", "count: 4", _instances(4), concurrencies=_ALL),
    Setting("delay", "0 (default)", concurrencies=_ALL),
    *(
        Setting(
            "delay",
            str(micros),
            f"dynamic_batching {{ max_queue_delay_microseconds: {micros} }}\n",
            concurrencies=_ALL,
        )
        for micros in (100, 500, 2000)
    ),
    Setting("preferred", "none (default)"),
    *(
        Setting(
            "preferred",
            f"{size}, with a delay of 500",
            # Triton compares it with a largest batch before the backend has completed that.
            f"max_batch_size: {MAX_BATCH}\ndynamic_batching {{ preferred_batch_size: {size} "
            "max_queue_delay_microseconds: 500 }\n",
        )
        for size in (8, 16, 32)
    ),
    Setting("buckets", "powers of two (default)", concurrencies=_ALL),
    *(
        Setting("buckets", text, _parameter("buckets", text), concurrencies=_ALL)
        for text in ("1,8,64", "64", "1,2,3,4,6,8,12,16,24,32,48,64")
    ),
    Setting("max_batch", "64 (the model's)"),
    Setting("max_batch", "16", "max_batch_size: 16\n"),
    Setting("max_batch", "4", "max_batch_size: 4\n"),
    Setting("rows", "1 row a request"),
    Setting("rows", "8 rows a request", rows=8),
    Setting("rows", "64 rows a request", rows=64),
    Setting("xla", "none (default)", rows=64),
    *(
        Setting("xla", flags, _parameter("xla_flags", flags), rows=64)
        for flags in ("--xla_cpu_multi_thread_eigen=false", "--xla_cpu_enable_fast_math=true")
    ),
    Setting("donate", "false (default)"),
    Setting("donate", "true", _parameter("donate", "true")),
    Setting("limiter", "off (default), 2 instances", _instances(2)),
    Setting(
        "limiter",
        "one instance of two at a time",
        _instances(2, _ONE_AT_A_TIME),
        args=("--rate-limit=execution_count",),
    ),
    Setting("http_threads", "8 (default)", protocol="http"),
    *(
        Setting("http_threads", str(n), args=(f"--http-thread-count={n}",), protocol="http")
        for n in (2, 16)
    ),
    Setting("grpc_pool", "8 (default)"),
    Setting("grpc_pool", "64", args=("--grpc-infer-allocation-pool-size=64",)),
    Setting("pinned", "256 MiB (default)"),
    Setting("pinned", "0", args=("--pinned-memory-pool-byte-size=0",)),
    Setting("metrics", "on (default)"),
    Setting("metrics", "off", args=("--allow-metrics=false",)),
)


@dataclass(frozen=True)
class Figure:
    """A setting at one concurrency: medians."""

    knob: str
    label: str
    concurrency: int
    throughput: float
    p50: float
    p99: float


def _served(work: Workplace, stack: ExitStack, console: Console) -> dict[tuple[str, ...], Running]:
    running = {}
    for number, args in enumerate(dict.fromkeys(one.args for one in SETTINGS)):
        repository = fresh(Path(work.directory, "models", f"knobs_{number}"))
        for one in SETTINGS:
            if one.args == args:
                config = f'backend: "jax"\n{one.config}'
                write_model(
                    repository, one.model, config=config, source=Path(mlp.__file__), params=True
                )
        with console.status(f"starting a server with {' '.join(args) or 'no options'}"):
            running[args] = stack.enter_context(serve(work, repository, work.backends, args=args))
    return running


def measure_knobs(
    work: Workplace, console: Console, *, rounds: int, seconds: float
) -> dict[str, Any]:
    """Measure every setting, and return the report.

    Args:
        work: What to serve with.
        console: Where progress goes.
        rounds: How often each is measured.
        seconds: How long each measurement takes.
    """
    found: dict[tuple[Setting, int], list[Measurement]] = defaultdict(list)
    with ExitStack() as stack:
        running = _served(work, stack, console)
        todo = [(one, n) for one in SETTINGS for n in one.concurrencies]
        progress = stack.enter_context(
            Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                console=console,
            )
        )
        task = progress.add_task("measuring", total=rounds * len(todo))
        for number in range(rounds):
            for one, concurrency in todo if number % 2 == 0 else reversed(todo):
                what = f"round {number + 1}: {one.knob} {one.label} c{concurrency}"
                progress.update(task, description=f"{what:52.52}")
                server = running[one.args]
                url = server.http if one.protocol == "http" else server.grpc
                assert url is not None  # noqa: S101 - every tritonserver has both
                load = Load(one.model, one.protocol, concurrency, seconds, batch=one.rows)
                try:
                    found[one, concurrency].append(work.perf_analyzer.measure(url, load))
                except PerfAnalyzerError as error:
                    console.print(f"left out: {what}: {error}", markup=False)
                progress.advance(task)
    figures = []
    for (one, concurrency), measured in found.items():
        middle = median(measured)
        figures.append(
            Figure(
                *(one.knob, one.label, concurrency),
                *(middle.throughput, middle.p50, middle.p99),
            )
        )
    return {
        "machine": describe_machine(),
        "software": describe_software(work.distribution.release.release),
        "rounds": rounds,
        "seconds": seconds,
        "figures": [asdict(one) for one in figures],
    }


def knob_rows(figures: Sequence[Figure], knob: str) -> Rows:
    """Return the table of a knob: a line per setting, figures per concurrency."""
    of = [one for one in figures if one.knob == knob]
    if not of:
        raise BenchmarkError(f"{knob}: expected figures of this knob, found none")
    concurrencies = sorted({one.concurrency for one in of})
    heads = [f"c{n} {name}" for n in concurrencies for name in ("infer/s", "p50 ms", "p99 ms")]
    table = Rows(knob, ("setting", *heads))
    for label in dict.fromkeys(one.label for one in of):
        by = {one.concurrency: one for one in of if one.label == label}
        cells = [text for n in concurrencies for text in _cells(by.get(n))]
        table.rows.append((f"`{label}`" if label.startswith("--") else label, *cells))
    return table


def _cells(figure: Figure | None) -> tuple[str, str, str]:
    if figure is None:  # no run of it came to a result
        return ("-", "-", "-")
    return (
        f"{figure.throughput:,.0f}",
        f"{figure.p50 / 1000:.2f}",
        f"{figure.p99 / 1000:.2f}",
    )


def filled(text: str, report: Mapping[str, Any]) -> str:
    """Return the document with its measured places filled.

    Args:
        text: The document.
        report: What `measure_knobs` returned.
    """
    figures = [Figure(**one) for one in report["figures"]]
    facts = {**report["machine"], **report["software"]}
    about = (
        f"{facts['processor']}, {facts['processors']} processors; kernel {facts['kernel']}; "
        f"tritonserver {facts['tritonserver']}, {facts['tritonserver-jax']}, JAX {facts['jax']}; "
        f"medians of {report['rounds']} rounds of {report['seconds']:g} s, in turn."
    )

    def place(match: re.Match[str]) -> str:
        name = match[2]
        made = about if name == "on" else knob_rows(figures, name).markdown()
        return f"{match[1]}{made}\n{match[3]}"

    return _PLACE.sub(place, text)


def keep_knobs(report: Mapping[str, Any], directory: Path, *, docs: bool) -> None:
    """Write the figures, and into the document where that is wanted."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "knobs.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    if docs:
        text = DOCUMENT.read_text(encoding="utf-8")
        DOCUMENT.write_text(filled(text, report), encoding="utf-8")
