# SPDX-License-Identifier: Apache-2.0
"""The end of a server: in time, with exit status 0, whatever it is doing."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from tests.support.backend import LOAD_TIMEOUT, Backend
from tests.support.client import PROTOCOLS, infer
from tests.support.models import LINEAR, write_model

pytestmark = pytest.mark.integration

PARAMS = {"w": np.ones((4, 3), np.float32), "b": np.zeros(3, np.float32)}
FOUR_INSTANCES = """
    backend: "jax"
    instance_group { kind: KIND_CPU count: 4 }
"""
CRASH_SIGNS = (
    "Signal (11)",
    "Signal (6)",
    "Segmentation fault",
    "terminate called",
    "Fatal Python",
)


def shared_memory_of(pid: int) -> set[Path]:
    """Files in shared memory that a process has mapped or open: other processes have theirs."""
    mapped = Path(f"/proc/{pid}/maps").read_text()
    found = {Path(path) for path in re.findall(r"/dev/shm/\S+", mapped)}
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            found.add(descriptor.readlink())
    return {path for path in found if path.is_relative_to("/dev/shm")}


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGTERM, id="SIGTERM", marks=pytest.mark.core),
        pytest.param(signal.SIGINT, id="SIGINT"),
    ],
)
def test_a_signal_under_load_ends_the_server_cleanly(
    backend: Backend, tmp_path: Path, number: signal.Signals
) -> None:
    write_model(tmp_path, "linear", LINEAR, params=PARAMS, config=FOUR_INSTANCES)
    stop = threading.Event()
    answered = [0] * 8
    wrong: list[str] = []

    with backend.server(tmp_path) as server:
        server.wait_model("linear", timeout=LOAD_TIMEOUT)

        def traffic(index: int) -> None:
            x = np.full((index % 4 + 1, 4), index, np.float32)
            while not stop.is_set():
                # A connection for each request: as long as an HTTP client keeps one and goes on
                # sending, Triton goes on serving it, until its --exit-timeout-secs.
                try:
                    y = infer(server, "linear", {"x": x}, PROTOCOLS[index % 2])["y"]
                except Exception:
                    return  # the server is going
                if not np.array_equal(y, np.full((len(x), 3), 4 * index)):
                    wrong.append(f"{index}: {y}")
                answered[index] += 1

        threads = [threading.Thread(target=traffic, args=(index,)) for index in range(8)]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + 30
        while min(answered) < 20 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert min(answered) >= 20, answered

        shared_memory = shared_memory_of(server.pid)
        children = set(Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split())
        started = time.monotonic()
        os.kill(server.pid, number)
        server.terminate()  # SIGTERM again, as an impatient supervisor sends it
        while server.returncode is None and time.monotonic() < started + 10:
            time.sleep(0.02)
        took = time.monotonic() - started
        code = server.returncode
        stop.set()
        for thread in threads:
            thread.join()
        log = server.log_text()

    assert code == 0, log[-4000:]
    assert took < 10
    assert wrong == []
    assert not [sign for sign in CRASH_SIGNS if sign in log]
    assert not [child for child in children if Path(f"/proc/{child}").exists()]
    assert not [path for path in shared_memory if path.exists()]


@pytest.mark.core
def test_what_a_model_leaves_running_does_not_hold_the_server(
    backend: Backend, tmp_path: Path
) -> None:
    code = """
        import atexit, pathlib, threading, time

        SIGNATURE = {"inputs": {"x": ("FP32", [4])}}
        here = pathlib.Path(__file__).parent

        threading.Thread(target=time.sleep, args=(3600,)).start()
        atexit.register((here / "atexit").write_text, "ran")

        def predict(params, x):
            return {"y": x}
    """
    directory = write_model(tmp_path, "thread", code)
    with backend.server(tmp_path) as server:
        server.wait_model("thread", timeout=LOAD_TIMEOUT)
        assert server.stop(timeout=10) == 0
    assert (directory / "atexit").read_text() == "ran"
