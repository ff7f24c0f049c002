# SPDX-License-Identifier: Apache-2.0
"""The metrics on a server's endpoint: our own, read from the core's source, and Triton's.

Everything else that names a metric asks here whether there is one of that name.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ci.process import ROOT

__all__ = [
    "CODES",
    "GPU",
    "SUMMARIES",
    "TRITON",
    "Metric",
    "MetricError",
    "check_names",
    "names_in",
    "own_metrics",
    "recorded_in",
    "series_names",
]

SOURCE: Final = ROOT / "backend" / "src" / "core" / "metrics.cc"

_DECLARATION: Final = re.compile(
    r"\{MetricId::k\w+,\s*(\w+),\s*\"(\w+)\",\s*((?:\"[^\"]*\"\s*)+)\}", re.DOTALL
)
_KINDS: Final = {
    "TRITONSERVER_METRIC_KIND_COUNTER": "counter",
    "TRITONSERVER_METRIC_KIND_GAUGE": "gauge",
    "kHistogram": "histogram",
}
#: Of every metric of ours, and of those that have one more.
_LABELS: Final = ("model", "version", "device")
_MORE_LABELS: Final = {"jax_request_failures": ("code",), "jax_phase_time": ("phase",)}

#: The series that a metric of a kind has beside, or in place of, the one of its own name.
_SUFFIXES: Final = {
    "counter": ("",),
    "gauge": ("",),
    "histogram": ("_bucket", "_count", "_sum"),
    "summary": ("", "_count", "_sum"),
}

_TEXT: Final = re.compile(r'"[^"]*"')
_NAME: Final = re.compile(r"\b(?:jax|nv)_[a-z0-9_]+\b(?!:)")
_RECORDED: Final = re.compile(r"\b[a-z_]+:[a-z0-9_]+:[a-z0-9_]+\b")
_CODE: Final = re.compile(r'return "([A-Z_]+)";')


class MetricError(ValueError):
    """Something names a metric that no server has."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    Attributes:
        name: On the server's endpoint.
        kind: ``counter``, ``gauge``, ``histogram`` or ``summary``.
        labels: What tells its series apart.
        meaning: For people.
        needs: Without what it is not there; empty when it always is.
        since: The first release that showed it, of those with a server here; empty when all do.
    """

    name: str
    kind: str
    labels: tuple[str, ...]
    meaning: str
    needs: str = ""
    since: str = ""

    @property
    def series(self) -> tuple[str, ...]:
        """The names of its series in Prometheus."""
        return tuple(self.name + suffix for suffix in _SUFFIXES[self.kind])


def own_metrics() -> list[Metric]:
    """Return the metrics of the backend, as the core declares them."""
    return [
        Metric(
            name,
            _KINDS[kind],
            _LABELS + _MORE_LABELS.get(name, ()),
            "".join(re.findall(r"\"([^\"]*)\"", text)),
        )
        for kind, name, text in _DECLARATION.findall(SOURCE.read_text(encoding="utf-8"))
    ]


def _codes() -> frozenset[str]:
    """The values of the label ``code``, as the core declares them."""
    return frozenset(_CODE.findall(SOURCE.read_text(encoding="utf-8")))


CODES: Final = _codes()

SUMMARIES: Final = "--metrics-config=summary_latencies=true"
GPU: Final = "a GPU that Triton sees"

_MODEL: Final = ("model", "version")

#: Those of Triton's own that the rules and the dashboard use.
TRITON: Final = (
    Metric("nv_inference_request_success", "counter", _MODEL, "Requests that were answered"),
    Metric(
        "nv_inference_request_failure",
        "counter",
        (*_MODEL, "reason"),
        "Requests that failed; with the label `reason` from release 24.07 on",
    ),
    Metric("nv_inference_count", "counter", _MODEL, "Inferences: rows of requests"),
    Metric("nv_inference_exec_count", "counter", _MODEL, "Batches that were executed"),
    Metric(
        "nv_inference_request_duration_us",
        "counter",
        _MODEL,
        "Cumulative microseconds from a request's arrival to its answer",
    ),
    Metric(
        "nv_inference_queue_duration_us",
        "counter",
        _MODEL,
        "Of these, those that requests waited in the queue",
    ),
    Metric(
        "nv_inference_compute_input_duration_us",
        "counter",
        _MODEL,
        "Of these, those in which inputs were gathered",
    ),
    Metric(
        "nv_inference_compute_infer_duration_us",
        "counter",
        _MODEL,
        "Of these, those in which the model ran",
    ),
    Metric(
        "nv_inference_compute_output_duration_us",
        "counter",
        _MODEL,
        "Of these, those in which outputs were made into answers",
    ),
    Metric(
        "nv_inference_pending_request_count",
        "gauge",
        _MODEL,
        "Requests that wait to be executed",
        since="23.10",
    ),
    Metric(
        "nv_inference_request_summary_us",
        "summary",
        (*_MODEL, "quantile"),
        "Quantiles of the microseconds from a request's arrival to its answer",
        SUMMARIES,
    ),
    Metric("nv_cpu_utilization", "gauge", (), "Share of the machine's processors that is busy"),
    Metric("nv_cpu_memory_total_bytes", "gauge", (), "Memory of the machine"),
    Metric("nv_cpu_memory_used_bytes", "gauge", (), "Memory of the machine that is in use"),
    Metric(
        "nv_pinned_memory_pool_total_bytes",
        "gauge",
        (),
        "Pinned memory that Triton keeps for copies to GPUs",
        since="24.01",
    ),
    Metric(
        "nv_pinned_memory_pool_used_bytes",
        "gauge",
        (),
        "Of that, what is in use",
        since="24.01",
    ),
    Metric("nv_gpu_utilization", "gauge", ("gpu_uuid",), "Share of time that a GPU is busy", GPU),
    Metric("nv_gpu_memory_total_bytes", "gauge", ("gpu_uuid",), "Memory of a GPU", GPU),
    Metric(
        "nv_gpu_memory_used_bytes", "gauge", ("gpu_uuid",), "Memory of a GPU that is in use", GPU
    ),
    Metric("nv_gpu_power_usage", "gauge", ("gpu_uuid",), "Watts that a GPU takes", GPU),
)


def series_names() -> dict[str, Metric]:
    """Return every series that there may be, with its metric."""
    return {name: metric for metric in (*own_metrics(), *TRITON) for name in metric.series}


def names_in(expression: str) -> list[str]:
    """Return the names of metrics in an expression of PromQL, without those that were recorded."""
    return sorted(set(_NAME.findall(_RECORDED.sub("", _TEXT.sub("", expression)))))


def recorded_in(expression: str) -> list[str]:
    """Return the names of recorded series in an expression of PromQL."""
    return sorted(set(_RECORDED.findall(_TEXT.sub("", expression))))


def check_names(what: str, expression: str, recorded: Iterable[str] = ()) -> None:
    """Check that an expression names only series that there are.

    Args:
        what: Whose expression it is, for the message.
        expression: In PromQL.
        recorded: The series that rules record.

    Raises:
        MetricError: It names another one.
    """
    known = series_names()
    for found, of, where in (
        (names_in(expression), known, f"{SOURCE.name}, or TRITON in {__name__}, declares"),
        (recorded_in(expression), recorded, "a rule records"),
    ):
        for name in sorted(set(found) - set(of)):
            near = difflib.get_close_matches(name, of, n=1)
            meant = f"; did you mean {near[0]}?" if near else ""
            raise MetricError(f"{what}: expected a metric that {where}, got {name}{meant}")
