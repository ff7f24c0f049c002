# SPDX-License-Identifier: Apache-2.0
"""The rehearsal of a rollout does what the chart says, and tells a loss from what is no loss."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ci import toolchain
from ci.rollout.__main__ import CASES, complaints
from ci.rollout.load import KINDS, Tally
from ci.rollout.pod import Ended, PodError, read_spec
from ci.rollout.proxy import configuration, find_haproxy, requirement
from ci.rollout.rehearsal import Report
from tests.chart.conftest import Render


def test_a_server_is_run_as_the_chart_says(objects: Render) -> None:
    spec = read_spec(objects(drain__seconds=100))
    assert spec.arguments[0] == "tritonserver"
    assert "--exit-timeout-secs=50" in spec.arguments
    assert (spec.pre_stop, spec.grace_seconds) == (("sleep", "25"), 100)
    assert (spec.readiness.path, spec.readiness.port) == ("/v2/health/ready", 8000)
    assert spec.models_path == "/models"
    options = dict(spec.options)
    assert options.pop("tmpfs") == {
        "/tmp": f"size={10 << 30},mode=1777",
        "/cache": f"size={2 << 30},mode=1777",
    }
    assert options == {
        "user": "1000:1000",
        "read_only": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "shm_size": 256 << 20,
    }


def test_what_is_not_understood_is_refused(objects: Render) -> None:
    with pytest.raises(PodError, match="expected one Deployment"):
        read_spec([])
    with pytest.raises(PodError, match="expected httpGet, found none"):
        read_spec(objects(readiness__healthCheck=True))


@pytest.mark.parametrize("layer", ["http", "tcp"])
def test_haproxy_understands_its_configuration(objects: Render, tmp_path: Path, layer: str) -> None:
    toolchain.ensure([requirement()])
    readiness = read_spec(objects()).readiness
    ports = {"http": 21111, "grpc": 21112}
    text = configuration("http" if layer == "http" else "tcp", readiness, ports, tmp_path / "s")
    (tmp_path / "haproxy.cfg").write_text(text)
    command = [find_haproxy() or "haproxy", "-c", "-f", str(tmp_path / "haproxy.cfg")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "retries 0" in text
    assert "redispatch" not in text


def report(failed: dict[str, int], *, answered: int = 2_000, status: int = 0) -> Report:
    tallies = {name: Tally(answered) for name in KINDS}
    for name, count in failed.items():
        tallies[name].failed["reset"] = count
    return Report(tallies, (Ended(status, 20.0, killed=False),), 60.0)


def test_one_lost_request_is_one_too_many() -> None:
    assert list(complaints(CASES["proxy"], report({}))) == []
    assert list(complaints(CASES["proxy"], report({"grpc": 1}))) == [
        "grpc: 1 requests of 2000 failed"
    ]
    assert list(complaints(CASES["proxy"], report({}, answered=10)))
    assert list(complaints(CASES["proxy"], report({}, status=1)))


def test_a_rehearsal_that_could_not_fail_shows_nothing() -> None:
    (said,) = complaints(CASES["no-pre-stop"], report({}))
    assert "shows nothing" in said
    assert list(complaints(CASES["no-pre-stop"], report({"http": 3}))) == []


def test_only_what_the_documentation_says_may_be_lost_at_a_service() -> None:
    each = KINDS["http"].clients
    assert list(complaints(CASES["service"], report({"http": each}, status=1))) == []
    assert list(complaints(CASES["service"], report({"http": each + 1})))
    assert list(complaints(CASES["service"], report({"grpc": 3})))
    assert list(complaints(CASES["service"], report({"http-each": 3})))
