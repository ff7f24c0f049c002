# SPDX-License-Identifier: Apache-2.0
"""When an alert is raised, and what it tells the operator.

Those that ask whether something happened in one server (a compilation, a model that is gone) look
at each of them; the others at a model version over all servers that have it, as it was recorded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ci.image_plan import SOURCE_URL
from ci.monitoring.records import TIMING, Timing
from ci.monitoring.thresholds import THRESHOLDS, Thresholds

__all__ = [
    "CLIENT_CODES",
    "MODEL_READY",
    "SERVER_CODES",
    "SERVER_JOBS",
    "Alert",
    "alerts",
]

#: The jobs that are servers, and those that ask whether models are ready, by their names.
SERVER_JOBS: Final = ".*tritonserver.*"
MODEL_READY: Final = ".*model-ready.*"

#: Codes of failures (of the label ``code``) that are the server's or the model's fault, and those
#: that say that a client sent what is wrong. Nobody is at fault when a client cancels.
SERVER_CODES: Final = ("INTERNAL", "UNAVAILABLE", "UNKNOWN")
CLIENT_CODES: Final = ("ALREADY_EXISTS", "INVALID_ARG", "NOT_FOUND", "UNSUPPORTED")

# What tells a model version in a server from others. `namespace` is there in Kubernetes.
_MODEL_HERE: Final = "job, namespace, instance, model, version"


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert.

    Attributes:
        name: Of the alert; in the operator's guide it has a section of this name.
        when: In short, when it is raised.
        expr: What is asked; an alert for each series of the answer.
        hold: For how long it has to be so; empty when it is raised at once.
        severity: ``critical`` where requests are lost or nearly so, else ``warning``.
        summary: One line, a template of Prometheus.
        description: What it means, likewise.
    """

    name: str
    when: str
    expr: str
    hold: str
    severity: str
    summary: str
    description: str

    @property
    def runbook(self) -> str:
        """Where it says what to do about it."""
        return f"{SOURCE_URL}/-/blob/main/docs/monitoring.md#{self.name.lower()}"


def _number(value: float) -> str:
    """A number as PromQL and people write it."""
    return str(int(value)) if value == int(value) else f"{value:g}"


def alerts(timing: Timing = TIMING, thresholds: Thresholds = THRESHOLDS) -> list[Alert]:
    """Return the alerts."""
    window, past = timing.window, timing.past

    def hold(usual: str) -> str:
        return timing.hold or usual

    def here(function: str, metric: str) -> str:
        return f"sum by ({_MODEL_HERE}) ({function}({metric}[{window}]))"

    def share(value: float) -> str:
        return f"{value * 100:g} %"

    failures = f"model_version_code:jax_request_failures:ratio{window}"
    padding = f"model_version:jax_padded_rows:ratio{window}"
    queue = f"model_version:nv_inference_queue_duration_us:mean{window}"
    model = "{{ $labels.model }} version {{ $labels.version }}"
    server = "{{ $labels.instance }}"
    share_now = "{{ $value | humanizePercentage }}"
    place = "job, namespace, instance, model"
    return [
        Alert(
            name="TritonJaxServerDown",
            when="a server's metrics cannot be read",
            expr=f'up{{job=~"{SERVER_JOBS}"}} == 0',
            hold=hold("1m"),
            severity="critical",
            summary=f"{server} does not answer",
            description="Prometheus cannot read the metrics of this server. It ended, is still "
            "loading its models, or cannot be reached.",
        ),
        Alert(
            name="TritonJaxModelNotReady",
            when="a server or model that is probed is not ready",
            expr=f'probe_success{{job=~"{MODEL_READY}"}} == 0',
            hold=hold("5m"),
            severity="critical",
            summary=f"{server} is not ready",
            description="A model failed to load, is still being compiled, or was given up after a "
            "fatal error of its device; or the server is down.",
        ),
        Alert(
            name="TritonJaxModelGone",
            when=f"a server has no version of a model that it had in the last {past}",
            expr=f"group by ({place}) (last_over_time(jax_predict_calls[{past}]))\n"
            f"unless group by ({place}) (jax_predict_calls)\n"
            "and on (job, instance) up == 1",
            hold=hold("1m"),
            severity="warning",
            summary=f"{{{{ $labels.model }}}} is gone from {server}",
            description=f"The server had this model in the last {past}, and has no version of it "
            "now. It was unloaded, or its reload failed.",
        ),
        Alert(
            name="TritonJaxModelStuck",
            when="requests wait, and none is answered",
            expr=f"sum by ({_MODEL_HERE}) (nv_inference_pending_request_count) > 0\n"
            f"and {here('rate', 'nv_inference_request_success')}\n"
            f"  + {here('rate', 'nv_inference_request_failure')} == 0",
            hold=hold("5m"),
            severity="critical",
            summary=f"{model} on {server} answers nothing",
            description="Requests wait, and for five minutes not one was answered.",
        ),
        Alert(
            name="TritonJaxCompileInTraffic",
            when=f"a request waited for a compilation in the last {window}",
            # What is compiled while a model is loaded is not counted.
            expr=f"{here('increase', 'jax_xla_compilations_in_traffic')} > 0",
            hold=hold(""),
            severity="warning",
            summary=f"{model} compiles while it serves",
            description=f"In the last {window}, programs were compiled on {server}: "
            "requests bring shapes that were not compiled beforehand, and waited for it.",
        ),
        Alert(
            name="TritonJaxRequestsFail",
            when=f"over {share(thresholds.failure_share)} of a model's requests fail by its fault",
            expr=f'{failures}{{code=~"{"|".join(SERVER_CODES)}"}}'
            f" > {_number(thresholds.failure_share)}",
            hold=hold("2m"),
            severity="critical",
            summary=f"{share_now} of the requests of {model} fail",
            description="They end with {{ $labels.code }}: a fault of the model, of its device, or "
            "of the server.",
        ),
        Alert(
            name="TritonJaxRequestsRefused",
            when=f"over {share(thresholds.refusal_share)} of a model's requests are refused",
            expr=f'{failures}{{code=~"{"|".join(CLIENT_CODES)}"}}'
            f" > {_number(thresholds.refusal_share)}",
            hold=hold("10m"),
            severity="warning",
            summary=f"{share_now} of the requests of {model} are refused",
            description="They end with {{ $labels.code }}: clients send what the model does not "
            "take.",
        ),
        Alert(
            name="TritonJaxPaddingWaste",
            when=f"over {share(thresholds.padding_share)} of a model's rows are padding",
            expr=f"{padding} > {_number(thresholds.padding_share)}",
            hold=hold("15m"),
            severity="warning",
            summary=f"{share_now} of the rows of {model} are padding",
            description="Batches are padded to the next of the model's buckets, and these do not "
            "fit the traffic.",
        ),
        Alert(
            name="TritonJaxQueueTimeGrowing",
            when=f"requests wait over {thresholds.queue_seconds * 1e3:g} ms, and ever longer",
            expr=f"{queue} > {_number(thresholds.queue_seconds * 1e6)}\n"
            f"unless {queue} <= {_number(thresholds.queue_growth)} * ({queue} offset {past})",
            hold=hold("5m"),
            severity="warning",
            summary=f"Requests of {model} wait longer and longer",
            description="They wait {{ $value | humanize }} microseconds in the queue, more than "
            f"{_number(thresholds.queue_growth)} times of {past} ago: more requests come than are "
            "answered.",
        ),
        Alert(
            name="TritonJaxLatencyP99High",
            when=f"the p99 of a model is over {thresholds.p99_seconds * 1e3:g} ms",
            expr="model_version:nv_inference_request_summary_us:p99"
            f" > {_number(thresholds.p99_seconds * 1e6)}",
            hold=hold("5m"),
            severity="warning",
            summary=f"The p99 of {model} is over its target",
            description="It is {{ $value | humanize }} microseconds; the target is "
            f"{_number(thresholds.p99_seconds * 1e6)}.",
        ),
        Alert(
            name="TritonJaxMemoryHigh",
            when=f"over {share(thresholds.memory_share)} of the machine's memory is in use",
            expr="max by (job, namespace, instance)"
            " (nv_cpu_memory_used_bytes / nv_cpu_memory_total_bytes)"
            f" > {_number(thresholds.memory_share)}",
            hold=hold("10m"),
            severity="warning",
            summary=f"{share_now} of the memory of {server} is in use",
            description="The system will end processes when there is no more. It is the machine's "
            "memory: a container may have a smaller limit.",
        ),
        Alert(
            name="TritonJaxGpuMemoryHigh",
            when=f"over {share(thresholds.gpu_memory_share)} of a GPU's memory is in use",
            expr="max by (job, namespace, instance, gpu_uuid)"
            " (nv_gpu_memory_used_bytes / nv_gpu_memory_total_bytes)"
            f" > {_number(thresholds.gpu_memory_share)}",
            hold=hold("10m"),
            severity="warning",
            summary=f"{share_now} of the memory of {{{{ $labels.gpu_uuid }}}} is in use",
            description="A model that is loaded now, or a larger batch, may find none on this GPU "
            f"of {server}.",
        ),
    ]
