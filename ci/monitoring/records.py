# SPDX-License-Identifier: Apache-2.0
"""What Prometheus records of the servers: of each model version, over all servers that have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["TIMING", "Record", "Timing", "records"]

# `namespace` is there in Kubernetes.
_MODEL: Final = "job, namespace, model, version"


@dataclass(frozen=True, slots=True)
class Timing:
    """Over how long the rules look.

    Attributes:
        window: Over which rates and means are taken.
        past: How far back something is compared with what it is now.
        hold: How long every alert's condition has to last; by default what each of them says.
    """

    window: str = "5m"
    past: str = "15m"
    hold: str | None = None


TIMING: Final = Timing()


@dataclass(frozen=True, slots=True)
class Record:
    """A series that Prometheus keeps, because alerts and people ask for it again and again."""

    name: str
    expr: str
    meaning: str


def records(timing: Timing = TIMING) -> list[Record]:
    """Return what is recorded."""
    window = timing.window

    def rate(metric: str, by: str = _MODEL) -> str:
        return f"sum by ({by}) (rate({metric}[{window}]))"

    def per(metric: str, each: str) -> str:
        # Without traffic there is no mean, rather than one that is not a number.
        return f"{rate(metric)}\n/\n({rate(each)} > 0)"

    def record(of: str, operation: str, expr: str, meaning: str, level: str = "") -> Record:
        return Record(f"model_version{level}:{of}:{operation}", expr, meaning)

    requests = f"({rate('nv_inference_request_success')} + {rate('nv_inference_request_failure')})"
    means = {
        "request": "from its arrival to its answer",
        "queue": "in the queue",
        "compute_input": "while inputs are gathered",
        "compute_infer": "while the model runs",
        "compute_output": "while outputs are made into answers",
    }
    return [
        record(
            "nv_inference_request_success",
            f"rate{window}",
            rate("nv_inference_request_success"),
            "Answered requests per second",
        ),
        record(
            "nv_inference_request_failure",
            f"rate{window}",
            rate("nv_inference_request_failure"),
            "Failed requests per second",
        ),
        record(
            "nv_inference_count",
            f"rate{window}",
            rate("nv_inference_count"),
            "Inferences (rows) per second",
        ),
        *(
            record(
                f"nv_inference_{part}_duration_us",
                f"mean{window}",
                per(f"nv_inference_{part}_duration_us", "nv_inference_request_success"),
                f"Microseconds of a request {meaning}",
            )
            for part, meaning in means.items()
        ),
        record(
            "nv_inference_request_summary_us",
            "p99",
            f'max by ({_MODEL}) (nv_inference_request_summary_us{{quantile="0.99"}})',
            "p99 of the latency in microseconds, of the server where it is worst",
        ),
        record(
            "jax_real_rows",
            f"mean{window}",
            per("jax_real_rows", "jax_predict_calls"),
            "Rows of requests in a batch",
        ),
        record(
            "jax_padded_rows",
            f"ratio{window}",
            f"{rate('jax_padded_rows')}\n/\n"
            f"({rate('jax_padded_rows')} + {rate('jax_real_rows')} > 0)",
            "Share of a batch's rows that are padding",
        ),
        record(
            "jax_xla_compilations_in_traffic",
            f"increase{window}",
            f"sum by ({_MODEL}) (increase(jax_xla_compilations_in_traffic[{window}]))",
            f"Programs compiled in the last {window} that a request waited for",
        ),
        record(
            "jax_request_failures",
            f"ratio{window}",
            f"{rate('jax_request_failures', _MODEL + ', code')}\n"
            f"/ ignoring (code) group_left ()\n({requests} > 0)",
            "Share of requests that the backend answers with an error, by its code",
            level="_code",
        ),
    ]
