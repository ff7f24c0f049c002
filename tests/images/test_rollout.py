# SPDX-License-Identifier: Apache-2.0
"""Real servers are replaced under load, with the chart's settings, and no request is lost."""

from __future__ import annotations

import contextlib
import queue
import time
from pathlib import Path
from typing import Any

import docker
import numpy as np
import pytest
import tritonclient.grpc as triton_grpc

from ci import toolchain
from ci.chart import VALUE_SETS, documents, render
from ci.rollout.__main__ import CASES, complaints
from ci.rollout.load import write_models
from ci.rollout.pod import Pod, read_spec
from ci.rollout.proxy import requirement
from ci.rollout.rehearsal import rehearse

pytestmark = [pytest.mark.integration, pytest.mark.thorough, pytest.mark.timeout(600)]


@pytest.mark.parametrize("name", CASES)
def test_servers_are_replaced_under_load(
    engine: docker.DockerClient, image: str, name: str
) -> None:
    toolchain.ensure([requirement()])
    case = CASES[name]
    spec = read_spec(documents(render(VALUE_SETS["minimal"])))
    report = rehearse(engine, image, spec, layer=case.layer, pre_stop=case.pre_stop)
    print(report.table())
    assert list(complaints(case, report)) == []


def test_a_stream_outlives_the_age_at_which_connections_are_given_up(
    engine: docker.DockerClient, image: str, tmp_path: Path
) -> None:
    write_models(tmp_path / "models")
    for path in (tmp_path, *list(tmp_path.parents)[:2]):
        path.chmod(0o755)
    spec = read_spec(documents(render(VALUE_SETS["minimal"], sets={"drain.seconds": 20})))
    (age,) = [one for one in spec.arguments if one.startswith("--grpc-max-connection-age=")]
    answers: queue.Queue[Any] = queue.Queue()

    def keep(result: Any, error: Any) -> None:
        answers.put((result, error))

    with contextlib.ExitStack() as stack:
        pod = Pod(engine, image, spec, tmp_path / "models")
        stack.callback(pod.remove)
        pod.wait_ready()
        client = stack.enter_context(triton_grpc.InferenceServerClient(f"{pod.address}:8001"))
        client.start_stream(keep)
        until = time.monotonic() + 4 * int(age.partition("=")[2]) / 1000
        x = np.ones((1, 4), np.float32)
        sent = triton_grpc.InferInput("X", [1, 4], "FP32")
        sent.set_data_from_numpy(x)
        while time.monotonic() < until:
            client.async_stream_infer("double", [sent])
            result, error = answers.get(timeout=10)
            assert error is None
            assert np.array_equal(result.as_numpy("Y"), 2 * x)
            time.sleep(0.5)
        client.stop_stream()
        assert pod.delete(pre_stop=False).status == 0
