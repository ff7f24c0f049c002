# SPDX-License-Identifier: Apache-2.0
"""wrk: one client for FastAPI and for Triton's HTTP, so that both bear the same load.

The body of a request is one row: the bytes alone for FastAPI, and for Triton those bytes after the
few words of JSON that its binary form wants.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.competitor_models.weights import SIZES
from benchmarks.competitors import MLP
from benchmarks.errors import BenchmarkError
from ci.toolchain import Requirement
from tritonserver_jax.tuning.perf_analyzer import Measurement

#: A new enough wrk has had these words for years; its report is made by our own script anyway.
_SCRIPT: Final = """\
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/octet-stream"
%s
local file = io.open("%s", "rb")
wrk.body = file:read("*a")
file:close()

function done(summary, latency, requests)
    local wrong = summary.errors.connect + summary.errors.read + summary.errors.write
        + summary.errors.status + summary.errors.timeout
    io.write(string.format("measured %%d %%d %%d %%.1f %%d %%d %%d\\n", summary.requests,
        summary.duration, wrong, latency.mean, latency:percentile(50), latency:percentile(90),
        latency:percentile(99)))
end
"""
_REPORT: Final = re.compile(
    r"^measured (\d+) (\d+) (\d+) ([\d.]+) (\d+) (\d+) (\d+)$", re.MULTILINE
)
_GRACE_SECONDS: Final = 15.0
_TRIES: Final = 2


def find_wrk() -> str | None:
    """Find wrk on PATH."""
    return shutil.which("wrk")


def requirement() -> Requirement:
    """Return wrk as something that the toolchain can install."""
    return Requirement("wrk", "wrk", "wrk", find_wrk)


def parse_report(text: str) -> Measurement:
    """Read what our script printed.

    Args:
        text: The output of wrk.

    Raises:
        BenchmarkError: There is no such line, or requests failed.
    """
    found = _REPORT.search(text)
    if found is None:
        raise BenchmarkError(f"wrk: expected a line of figures, got {text!r}")
    requests, duration, wrong = (int(found[number]) for number in (1, 2, 3))
    if wrong or not requests or not duration:
        raise BenchmarkError(f"wrk: expected every request to be answered, {wrong} were not")
    return Measurement(
        throughput=requests * 1e6 / duration,
        average=float(found[4]),
        p50=float(found[5]),
        p90=float(found[6]),
        p99=float(found[7]),
    )


def _body(row: bytes, triton: bool) -> tuple[str, str, bytes]:
    """The path, a line that sets a header, and the body."""
    if not triton:
        return "/infer", "", row
    given = {
        "inputs": [
            {
                "name": "X",
                "shape": [1, SIZES[0]],
                "datatype": "FP32",
                "parameters": {"binary_data_size": len(row)},
            }
        ],
        "parameters": {"binary_data_output": True},
    }
    words = json.dumps(given, separators=(",", ":")).encode()
    header = f'wrk.headers["Inference-Header-Content-Length"] = "{len(words)}"'
    return f"/v2/models/{MLP}/infer", header, words + row


def measure(url: str, *, triton: bool, concurrency: int, seconds: float) -> Measurement:
    """Run wrk.

    Args:
        url: ``host:port``.
        triton: Whether it is Triton's HTTP that answers there.
        concurrency: Connections, each with one request under way.
        seconds: How long.

    Raises:
        BenchmarkError: It failed, hung, or got other answers than 200.
    """
    path, header, body = _body(bytes(range(256))[: SIZES[0] * 4], triton)
    said = ""
    with tempfile.TemporaryDirectory(prefix="tritonserver-jax-wrk-") as scratch:
        Path(scratch, "body").write_bytes(body)
        script = Path(scratch, "post.lua")
        script.write_text(_SCRIPT % (header, Path(scratch, "body")), encoding="utf-8")
        command = [
            *("wrk", "--threads=1", f"--connections={concurrency}", "--timeout=10s"),
            *(f"--duration={max(1, round(seconds))}s", f"--script={script}"),
            f"http://{url}{path}",
        ]
        for _ in range(_TRIES):
            try:
                done = subprocess.run(
                    command,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    timeout=seconds + _GRACE_SECONDS,
                    check=False,
                )
                said = done.stdout + done.stderr
                return parse_report(said)
            except subprocess.TimeoutExpired:
                said = f"nothing within {seconds + _GRACE_SECONDS:g} s"
            except (OSError, BenchmarkError) as error:
                said = str(error)
    raise BenchmarkError(f"wrk at {url}{path}, {concurrency} connections: {said}")
