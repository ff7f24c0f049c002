# SPDX-License-Identifier: Apache-2.0
"""What the dashboard shows: its rows, their panels, and what each of these asks Prometheus.

Nothing here knows Grafana: `ci.monitoring.dashboard` makes it into what Grafana reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from ci.monitoring.alerts import SERVER_JOBS
from ci.monitoring.metrics import GPU
from ci.monitoring.thresholds import THRESHOLDS

__all__ = ["ROWS", "VARIABLES", "Panel", "Query", "Row", "Variable"]


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable of the dashboard.

    Attributes:
        name: In expressions, after a dollar.
        label: For people.
        query: Which values it offers.
        every: The regular expression that it stands for when all values are chosen.
    """

    name: str
    label: str
    query: str
    every: str = ".+"


VARIABLES: Final = (
    Variable("job", "Job", f'label_values(up{{job=~"{SERVER_JOBS}"}}, job)', SERVER_JOBS),
    Variable("instance", "Server", 'label_values(up{job=~"$job"}, instance)'),
    Variable(
        "model",
        "Model",
        'label_values(jax_predict_calls{job=~"$job", instance=~"$instance"}, model)',
    ),
    Variable(
        "version",
        "Version",
        'label_values(jax_predict_calls{job=~"$job", instance=~"$instance", model=~"$model"}, '
        "version)",
    ),
)

_SERVER: Final = 'job=~"$job", instance=~"$instance"'
_MODEL: Final = f'{_SERVER}, model=~"$model", version=~"$version"'
_EACH: Final = "model, version"
_LEGEND: Final = "{{model}} {{version}}"


@dataclass(frozen=True, slots=True)
class Query:
    """One question of a panel, and what its lines are called."""

    expr: str
    legend: str = _LEGEND


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel.

    Attributes:
        title: Over it.
        queries: What it shows.
        unit: Of its values, as Grafana calls it.
        description: What a person should see in it.
        kind: How it is drawn.
        width: Of the 24 columns of a row.
        stacked: Whether the lines add up to something.
        limit: The value from which on an alert is raised.
        needs: Without what it is empty; empty when it always has data under traffic.
    """

    title: str
    queries: tuple[Query, ...]
    unit: str
    description: str
    kind: Literal["timeseries", "stat", "heatmap"] = "timeseries"
    width: int = 8
    stacked: bool = False
    limit: float | None = None
    needs: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """Panels that belong together, under a heading."""

    title: str
    panels: tuple[Panel, ...]


def _rate(metric: str, by: str = "") -> str:
    """The sum of a counter's rates: over everything, or for each value of labels."""
    over = f"sum by ({by})" if by else "sum"
    return f"{over} (rate({metric}{{{_MODEL}}}[$__rate_interval]))"


def _increase(metric: str, by: str) -> str:
    return f"sum by ({by}) (increase({metric}{{{_MODEL}}}[$__rate_interval]))"


def _mean(metric: str, each: str, by: str = "") -> str:
    return f"{_rate(metric, by)} / {_rate(each, by)}"


def _padding(by: str = "") -> str:
    padded, real = _rate("jax_padded_rows", by), _rate("jax_real_rows", by)
    return f"{padded} / ({padded} + {real})"


_FAILED: Final = _rate("nv_inference_request_failure")
_ANSWERED: Final = _rate("nv_inference_request_success")

_OVERVIEW: Final = Row(
    "Overview",
    (
        Panel(
            "Servers",
            (Query(f"sum(up{{{_SERVER}}})", "up"),),
            "short",
            "Servers whose metrics can be read.",
            kind="stat",
            width=4,
        ),
        Panel(
            "Models",
            (Query(f"count(group by ({_EACH}) (jax_predict_calls{{{_MODEL}}}))", "models"),),
            "short",
            "Versions of models that this backend serves.",
            kind="stat",
            width=4,
        ),
        Panel(
            "Inferences",
            (Query(_rate("nv_inference_count"), "inferences"),),
            "reqps",
            "Inferences per second: rows of requests.",
            kind="stat",
            width=4,
        ),
        Panel(
            "Failures",
            (Query(f"{_FAILED} / ({_ANSWERED} + {_FAILED})", "failed"),),
            "percentunit",
            "Share of requests that fail, whoever is at fault.",
            kind="stat",
            width=4,
            limit=THRESHOLDS.failure_share,
        ),
        Panel(
            "p99",
            (
                Query(
                    f'max(nv_inference_request_summary_us{{{_MODEL}, quantile="0.99"}})',
                    "p99",
                ),
            ),
            "µs",
            "The p99 of the latency in the server, of the model and the server where it is worst.",
            kind="stat",
            width=4,
            limit=THRESHOLDS.p99_seconds * 1e6,
        ),
        Panel(
            "Padding",
            (Query(_padding(), "padding"),),
            "percentunit",
            "Share of the rows of batches that are padding.",
            kind="stat",
            width=4,
            limit=THRESHOLDS.padding_share,
        ),
    ),
)

_THROUGHPUT: Final = Row(
    "Throughput",
    (
        Panel(
            "Inferences",
            (Query(_rate("nv_inference_count", _EACH)),),
            "reqps",
            "Rows of requests per second.",
        ),
        Panel(
            "Requests",
            (Query(_rate("nv_inference_request_success", _EACH)),),
            "reqps",
            "Answered requests per second.",
        ),
        Panel(
            "Batches",
            (Query(_rate("nv_inference_exec_count", _EACH)),),
            "ops",
            "Executed batches per second.",
        ),
    ),
)

_LATENCY: Final = Row(
    "Latency",
    (
        Panel(
            "Where a request's time goes",
            tuple(
                Query(
                    _mean(f"nv_inference_{part}_duration_us", "nv_inference_request_success"),
                    part.replace("_", " "),
                )
                for part in ("queue", "compute_input", "compute_infer", "compute_output")
            ),
            "µs",
            "The mean over all models that are chosen: choose one to see its own. A long queue "
            "wants a second instance or a smaller queue delay; a long infer is the model itself.",
            stacked=True,
        ),
        Panel(
            "Quantiles",
            (
                Query(
                    f"max by ({_EACH}, quantile) (nv_inference_request_summary_us"
                    f'{{{_MODEL}, quantile=~"0.5|0.99"}})',
                    f"{_LEGEND} {{{{quantile}}}}",
                ),
            ),
            "µs",
            "Median and p99 of the latency in the server, where it is worst. Triton has them with "
            "--metrics-config=summary_latencies=true.",
            limit=THRESHOLDS.p99_seconds * 1e6,
        ),
        Panel(
            "Queue",
            (
                Query(
                    _mean("nv_inference_queue_duration_us", "nv_inference_request_success", _EACH)
                ),
            ),
            "µs",
            "How long a request waits before it is in a batch.",
            limit=THRESHOLDS.queue_seconds * 1e6,
        ),
        Panel(
            "Where a batch's time goes",
            (
                Query(
                    f"{_rate('jax_phase_time', _EACH + ', phase')} / on ({_EACH}) group_left "
                    f"{_rate('jax_predict_calls', _EACH)}",
                    "{{model}} {{phase}}",
                ),
            ),
            "s",
            "In the backend, of models with the parameter phase_times.",
            stacked=True,
        ),
        Panel(
            "Waiting requests",
            (
                Query(
                    f"sum by ({_EACH}) (nv_inference_pending_request_count{{{_MODEL}}})",
                ),
            ),
            "short",
            "Requests that wait to be executed.",
        ),
        Panel(
            "Busy",
            (
                Query(
                    _rate("jax_execution_time", f"{_EACH}, device"),
                    f"{_LEGEND} {{{{device}}}}",
                ),
            ),
            "percentunit",
            "Share of time in which a model's instances execute: 100 % for each instance that "
            "never rests.",
        ),
    ),
)

_BATCHES: Final = Row(
    "Batches",
    (
        Panel(
            "Rows per batch",
            (Query(_mean("jax_real_rows", "jax_predict_calls", _EACH)),),
            "short",
            "Near 1 under load: let the dynamic batcher wait a little.",
        ),
        Panel(
            "Batches by rows",
            (Query(_increase("jax_batch_rows_bucket", "le"), "{{le}}"),),
            "short",
            "How many batches had up to so many rows. From release 24.08 on.",
            kind="heatmap",
        ),
        Panel(
            "Padding",
            (Query(_padding(_EACH)),),
            "percentunit",
            "Share of rows that are padding: a model's buckets do not fit its traffic.",
            limit=THRESHOLDS.padding_share,
        ),
    ),
)

_PROGRAMS: Final = Row(
    "Compiled programs",
    (
        Panel(
            "Compilations",
            (
                Query(_increase("jax_xla_compilations", _EACH)),
                Query(_increase("jax_xla_compilations_in_traffic", _EACH), f"{_LEGEND} in traffic"),
            ),
            "short",
            "In traffic there should be none: requests wait for them.",
            width=6,
        ),
        Panel(
            "Time spent compiling",
            (Query(_increase("jax_xla_compilation_time", _EACH)),),
            "s",
            "Tracing, lowering and compiling.",
            width=6,
        ),
        Panel(
            "Compile cache",
            (
                Query(_increase("jax_compile_cache_hits", _EACH), f"{_LEGEND} hits"),
                Query(_increase("jax_compile_cache_misses", _EACH), f"{_LEGEND} misses"),
            ),
            "short",
            "Programs that the persistent cache had, and had not.",
            width=6,
        ),
        Panel(
            "Programs given up",
            (Query(_increase("jax_program_evictions", _EACH)),),
            "short",
            "They are compiled again when they are needed: raise max_programs, or give fewer "
            "lengths.",
            width=6,
        ),
    ),
)

_FAILURES: Final = Row(
    "Failures",
    (
        Panel(
            "By code",
            (Query(_rate("jax_request_failures", f"{_EACH}, code"), f"{_LEGEND} {{{{code}}}}"),),
            "reqps",
            "Requests that the backend answered with an error. Empty as long as none ever did.",
            width=12,
        ),
        Panel(
            "As Triton counts them",
            (
                Query(
                    _rate("nv_inference_request_failure", f"{_EACH}, reason"),
                    f"{_LEGEND} {{{{reason}}}}",
                ),
            ),
            "reqps",
            "With those that never reached the backend: the queue was full, or a client cancelled.",
            width=12,
        ),
    ),
)

_MACHINE: Final = Row(
    "Machine",
    (
        Panel(
            "Processors",
            (Query(f"nv_cpu_utilization{{{_SERVER}}}", "{{instance}}"),),
            "percentunit",
            "Of the machine, whatever runs on it.",
        ),
        Panel(
            "Memory",
            (
                Query(f"nv_cpu_memory_used_bytes{{{_SERVER}}}", "{{instance}} used"),
                Query(f"nv_cpu_memory_total_bytes{{{_SERVER}}}", "{{instance}} all"),
            ),
            "bytes",
            "Of the machine, whatever runs on it.",
        ),
        Panel(
            "Pinned memory",
            (
                Query(f"nv_pinned_memory_pool_used_bytes{{{_SERVER}}}", "{{instance}} used"),
                Query(f"nv_pinned_memory_pool_total_bytes{{{_SERVER}}}", "{{instance}} all"),
            ),
            "bytes",
            "What Triton keeps for copies to GPUs.",
        ),
    ),
)

_GPUS: Final = Row(
    "GPUs",
    (
        Panel(
            "GPU",
            (Query(f"nv_gpu_utilization{{{_SERVER}}}", "{{instance}} {{gpu_uuid}}"),),
            "percentunit",
            "Share of time in which something runs on it.",
            needs=GPU,
        ),
        Panel(
            "GPU memory",
            (
                Query(f"nv_gpu_memory_used_bytes{{{_SERVER}}}", "{{instance}} {{gpu_uuid}} used"),
                Query(f"nv_gpu_memory_total_bytes{{{_SERVER}}}", "{{instance}} {{gpu_uuid}} all"),
            ),
            "bytes",
            "JAX takes its share when it starts, and keeps it.",
            needs=GPU,
        ),
        Panel(
            "GPU power",
            (Query(f"nv_gpu_power_usage{{{_SERVER}}}", "{{instance}} {{gpu_uuid}}"),),
            "watt",
            "What it takes.",
            needs=GPU,
        ),
    ),
)

ROWS: Final = (
    _OVERVIEW,
    _THROUGHPUT,
    _LATENCY,
    _BATCHES,
    _PROGRAMS,
    _FAILURES,
    _MACHINE,
    _GPUS,
)
