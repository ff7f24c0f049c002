# SPDX-License-Identifier: Apache-2.0
"""Every alert by promtool, both ways: what it fires for, and what it has to keep quiet about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from ci.monitoring.alerts import alerts
from ci.monitoring.files import CONFIG, FOLDER, RULES
from ci.monitoring.programs import ProgramError, promtool
from ci.monitoring.rules import rules_document
from ci.monitoring.site import adapted_config

#: Series by their labels, with their values at each minute: promtool's ``first+stepxtimes``.
Input = Mapping[str, str]

SERVER = 'job="tritonserver",instance="a:8002"'
MODEL = f'{SERVER},model="digits",version="1"'
DEVICE = f'{MODEL},device="cpu:0"'
OF_SERVER = {"job": "tritonserver", "instance": "a:8002"}
OF_MODEL = {"job": "tritonserver", "model": "digits", "version": "1"}
READY = "http://a:8000/v2/models/digits/ready"


@dataclass(frozen=True)
class Case:
    """An alert, what it fires for, and what not.

    Attributes:
        at: The minute that is looked at.
        since: The minute from which on it is so, where it fires.
        fires: What is the case when it fires.
        quiet: By their names, cases that are nearly so.
        labels: Of the alert.
        summary: What the operator reads.
        description: Likewise.
    """

    at: int
    since: int
    fires: Input
    quiet: Mapping[str, Input]
    labels: Mapping[str, str]
    summary: str
    description: str


def up(values: str = "1+0x60", job: str = "tritonserver") -> Input:
    return {f'up{{job="{job}",instance="a:8002"}}': values}


def requests(answered: str, failed: str) -> Input:
    return {
        f"nv_inference_request_success{{{MODEL}}}": answered,
        f'nv_inference_request_failure{{{MODEL},reason="BACKEND"}}': failed,
        f'nv_inference_request_failure{{{MODEL},reason="OTHER"}}': "0+0x60",
    }


def failures(code: str, failed: int, of: int) -> Input:
    """So many of so many requests a minute end with the code."""
    return {
        f'jax_request_failures{{{DEVICE},code="{code}"}}': f"0+{failed}x60",
        **requests(f"0+{of - failed}x60", f"0+{failed}x60"),
    }


def compiling(compiled: str, in_traffic: str) -> Input:
    return {
        f"jax_xla_compilations{{{DEVICE}}}": compiled,
        f"jax_xla_compilations_in_traffic{{{DEVICE}}}": in_traffic,
        f"jax_predict_calls{{{DEVICE}}}": "0+60x60",
    }


def rows(real: int, padded: int) -> Input:
    return {
        f"jax_real_rows{{{DEVICE}}}": f"0+{real}x60",
        f"jax_padded_rows{{{DEVICE}}}": f"0+{padded}x60",
    }


def queue(before: int, after: int) -> Input:
    """Sixty requests a minute, which wait so many microseconds: for 20 minutes, and then."""
    first, then = before * 60, after * 60
    return {
        f"nv_inference_request_success{{{MODEL}}}": "0+60x60",
        f"nv_inference_queue_duration_us{{{MODEL}}}": f"0+{first}x20 {first * 20 + then}+{then}x40",
    }


def latency(quantile: str, microseconds: int) -> Input:
    labels = f'{MODEL},quantile="{quantile}"'
    return {f"nv_inference_request_summary_us{{{labels}}}": f"{microseconds}+0x60"}


def memory(what: str, used: int, labels: str = SERVER) -> Input:
    return {
        f"nv_{what}_memory_used_bytes{{{labels}}}": f"{used}+0x60",
        f"nv_{what}_memory_total_bytes{{{labels}}}": "100+0x60",
    }


GONE = f"jax_predict_calls{{{DEVICE}}}"
NEXT_VERSION = GONE.replace('version="1"', 'version="2"')
GPU = f'{SERVER},gpu_uuid="GPU-7"'

CASES = {
    "TritonJaxServerDown": Case(
        at=10,
        since=6,
        fires=up("1+0x5 0+0x60"),
        quiet={
            "it is up": up(),
            "it missed one scrape": up("1+0x9 0 1+0x10"),
            "another job's target is down": up("0+0x60", job="node"),
        },
        labels=OF_SERVER,
        summary="a:8002 does not answer",
        description="Prometheus cannot read the metrics of this server. It ended, is still loading "
        "its models, or cannot be reached.",
    ),
    "TritonJaxModelNotReady": Case(
        at=10,
        since=0,
        fires={f'probe_success{{job="model-ready",instance="{READY}"}}': "0+0x60"},
        quiet={
            "it is ready": {f'probe_success{{job="model-ready",instance="{READY}"}}': "1+0x60"},
            "it was compiled for four minutes": {
                f'probe_success{{job="model-ready",instance="{READY}"}}': "1+0x5 0+0x3 1+0x60"
            },
            "another probe fails": {'probe_success{job="website",instance="x"}': "0+0x60"},
        },
        labels={"job": "model-ready", "instance": READY},
        summary=f"{READY} is not ready",
        description="A model failed to load, is still being compiled, or was given up after a "
        "fatal error of its device; or the server is down.",
    ),
    "TritonJaxModelGone": Case(
        at=12,
        since=6,
        fires={GONE: "0+60x5 stale", **up()},
        quiet={
            "it is there": {GONE: "0+60x60", **up()},
            "the whole server is down": {GONE: "0+60x5 stale", **up("1+0x5 0+0x60")},
            "the next version is there": {
                GONE: "0+60x5 stale",
                NEXT_VERSION: "0+0x4 0+60x60",
                **up(),
            },
        },
        labels={**OF_SERVER, "model": "digits"},
        summary="digits is gone from a:8002",
        description="The server had this model in the last 15m, and has no version of it now. It "
        "was unloaded, or its reload failed.",
    ),
    "TritonJaxModelStuck": Case(
        at=20,
        since=10,
        fires={
            f"nv_inference_pending_request_count{{{MODEL}}}": "0+0x5 3+0x60",
            **requests("0+60x5 300+0x60", "0+0x60"),
        },
        quiet={
            "it is slow": {
                f"nv_inference_pending_request_count{{{MODEL}}}": "3+0x60",
                **requests("0+1x60", "0+0x60"),
            },
            "all fail": {
                f"nv_inference_pending_request_count{{{MODEL}}}": "3+0x60",
                **requests("0+0x60", "0+1x60"),
            },
            "nobody asks": {
                f"nv_inference_pending_request_count{{{MODEL}}}": "0+0x60",
                **requests("0+0x60", "0+0x60"),
            },
        },
        labels={**OF_SERVER, **OF_MODEL},
        summary="digits version 1 on a:8002 answers nothing",
        description="Requests wait, and for five minutes not one was answered.",
    ),
    "TritonJaxCompileInTraffic": Case(
        at=12,
        since=10,
        fires=compiling("7+0x9 8+0x60", "0+0x9 1+0x60"),
        quiet={
            "nothing is compiled": compiling("7+0x60", "2+0x60"),
            "it was reloaded under traffic": compiling("7+0x9 14+0x60", "2+0x60"),
            "the server started anew": compiling("9+0x9 2 7+0x60", "2+0x9 0+0x60"),
        },
        labels={**OF_SERVER, **OF_MODEL},
        summary="digits version 1 compiles while it serves",
        description="In the last 5m, programs were compiled on a:8002: requests bring shapes that "
        "were not compiled beforehand, and waited for it.",
    ),
    "TritonJaxRequestsFail": Case(
        at=10,
        since=1,
        fires=failures("INTERNAL", 6, of=60),
        quiet={
            "one of two hundred": failures("INTERNAL", 1, of=200),
            "clients send what is wrong": failures("INVALID_ARG", 6, of=60),
            "clients cancel": failures("CANCELLED", 6, of=60),
        },
        labels={**OF_MODEL, "code": "INTERNAL"},
        summary="10% of the requests of digits version 1 fail",
        description="They end with INTERNAL: a fault of the model, of its device, or of the "
        "server.",
    ),
    "TritonJaxRequestsRefused": Case(
        at=20,
        since=1,
        fires=failures("INVALID_ARG", 12, of=60),
        quiet={
            "one of twenty": failures("INVALID_ARG", 3, of=60),
            "it is the model's fault": failures("INTERNAL", 12, of=60),
        },
        labels={**OF_MODEL, "code": "INVALID_ARG"},
        summary="20% of the requests of digits version 1 are refused",
        description="They end with INVALID_ARG: clients send what the model does not take.",
    ),
    "TritonJaxPaddingWaste": Case(
        at=30,
        since=1,
        fires=rows(real=50, padded=50),
        quiet={"a quarter is padding": rows(real=75, padded=25), "nobody asks": rows(0, 0)},
        labels=OF_MODEL,
        summary="50% of the rows of digits version 1 are padding",
        description="Batches are padded to the next of the model's buckets, and these do not fit "
        "the traffic.",
    ),
    "TritonJaxQueueTimeGrowing": Case(
        at=32,
        since=23,
        fires=queue(1_000, 100_000),
        quiet={
            "it is as long as it was": queue(100_000, 100_000),
            "it grows, and is short": queue(100, 10_000),
        },
        labels=OF_MODEL,
        summary="Requests of digits version 1 wait longer and longer",
        description="They wait 100k microseconds in the queue, more than 1.5 times of 15m ago: "
        "more requests come than are answered.",
    ),
    "TritonJaxLatencyP99High": Case(
        at=10,
        since=0,
        fires=latency("0.99", 600_000),
        quiet={
            "it is below": latency("0.99", 400_000),
            "only the slowest of a thousand are over it": latency("0.999", 600_000),
        },
        labels=OF_MODEL,
        summary="The p99 of digits version 1 is over its target",
        description="It is 600k microseconds; the target is 500000.",
    ),
    "TritonJaxMemoryHigh": Case(
        at=15,
        since=0,
        fires=memory("cpu", 95),
        quiet={"half is in use": memory("cpu", 50)},
        labels=OF_SERVER,
        summary="95% of the memory of a:8002 is in use",
        description="The system will end processes when there is no more. It is the machine's "
        "memory: a container may have a smaller limit.",
    ),
    "TritonJaxGpuMemoryHigh": Case(
        at=15,
        since=0,
        fires=memory("gpu", 97, GPU),
        quiet={"JAX has its three quarters": memory("gpu", 75, GPU)},
        labels={**OF_SERVER, "gpu_uuid": "GPU-7"},
        summary="97% of the memory of GPU-7 is in use",
        description="A model that is loaded now, or a larger batch, may find none on this GPU of "
        "a:8002.",
    ),
}
ALERTS = {alert.name: alert for alert in alerts()}


def run_case(
    folder: Path,
    name: str,
    given: Input,
    expected: list[dict[str, object]],
    at: int | None = None,
) -> None:
    """Let promtool try our rules on some series.

    Args:
        folder: For its file.
        name: The alert.
        given: The series.
        expected: The alerts of that name.
        at: The minute to look at; by default the case's.

    Raises:
        ProgramError: The alert is not as expected.
    """
    document = {
        "rule_files": [str(RULES)],
        "evaluation_interval": "1m",
        # Otherwise promtool takes them in any order, and an alert may see what was recorded before.
        "group_eval_order": [group["name"] for group in rules_document()["groups"]],
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": k, "values": v} for k, v in given.items()],
                "alert_rule_test": [
                    {
                        "eval_time": f"{CASES[name].at if at is None else at}m",
                        "alertname": name,
                        "exp_alerts": expected,
                    }
                ],
            }
        ],
    }
    (folder / "case.yml").write_text(yaml.safe_dump(document))
    promtool("test", "rules", "case.yml", cwd=folder)


def expected_alert(name: str) -> dict[str, object]:
    case = CASES[name]
    return {
        "exp_labels": {**case.labels, "severity": ALERTS[name].severity},
        "exp_annotations": {
            "summary": case.summary,
            "description": case.description,
            "runbook_url": ALERTS[name].runbook,
        },
    }


def test_every_alert_has_its_cases() -> None:
    assert list(CASES) == list(ALERTS)


@pytest.mark.parametrize("name", CASES)
def test_it_fires(name: str, tmp_path: Path) -> None:
    run_case(tmp_path, name, CASES[name].fires, [expected_alert(name)])


@pytest.mark.parametrize(
    ("name", "what"), [(name, what) for name, case in CASES.items() for what in case.quiet]
)
def test_it_keeps_quiet(name: str, what: str, tmp_path: Path) -> None:
    run_case(tmp_path, name, CASES[name].quiet[what], [])


@pytest.mark.parametrize("name", [name for name, alert in ALERTS.items() if alert.hold])
def test_it_waits_whether_it_stays_so(name: str, tmp_path: Path) -> None:
    case, minutes = CASES[name], int(ALERTS[name].hold.removesuffix("m"))
    run_case(tmp_path, name, case.fires, [], at=case.since + minutes - 1)
    run_case(tmp_path, name, case.fires, [expected_alert(name)], at=case.since + minutes)


def test_promtool_would_say_that_an_alert_is_missing(tmp_path: Path) -> None:
    name = "TritonJaxServerDown"
    with pytest.raises(ProgramError, match=name):
        run_case(tmp_path, name, up(), [expected_alert(name)])


def test_promtool_finds_no_fault_with_the_files() -> None:
    assert "SUCCESS" in promtool("check", "rules", RULES, cwd=FOLDER)
    said = promtool("check", "config", "--lint-fatal", CONFIG, cwd=FOLDER)
    assert "1 rule files found" in said


def test_the_configuration_is_the_same_with_other_addresses() -> None:
    """What the real Prometheus of the tests reads is what is shipped, but for who is asked."""
    shipped = yaml.safe_load(CONFIG.read_text())
    adapted = adapted_config("b:1", ["http://b:2/v2/health/ready"], "b:3")
    assert adapted["rule_files"] == shipped["rule_files"]
    for ours, theirs in zip(shipped["scrape_configs"], adapted["scrape_configs"], strict=True):
        assert ours.keys() == theirs.keys()
        assert ours["job_name"] == theirs["job_name"]
    assert shipped["scrape_configs"][1]["relabel_configs"][-1]["replacement"] == "blackbox:9115"
