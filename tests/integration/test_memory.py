# SPDX-License-Identifier: Apache-2.0
"""Memory does not grow with requests or reloads. ``--soak`` makes it long enough to be sure."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from tests.support.backend import LOAD_TIMEOUT, Backend
from tests.support.client import Client
from tests.support.models import LINEAR, write_model

pytestmark = pytest.mark.integration

#: Requests and reloads, in a usual run and in a long one.
REQUESTS = {False: 12_000, True: 200_000}
RELOADS = {False: 12, True: 50}
DRIFT_MIB = 20
THREADS = 8


@pytest.fixture
def soak(pytestconfig: pytest.Config) -> bool:
    return bool(pytestconfig.getoption("--soak"))


def params(factor: float) -> dict[str, np.ndarray]:
    return {"w": np.full((4, 3), factor, np.float32), "b": np.zeros(3, np.float32)}


class Traffic:
    """Clients that check every answer, until they have sent so many or are told to stop."""

    def __init__(self, server: object, requests: int, factors: set[float]) -> None:
        self.wrong: list[str] = []
        self.sent = 0
        self._server = server
        self._requests = requests
        self._factors = factors
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(i,)) for i in range(THREADS)]
        for thread in self._threads:
            thread.start()

    def _run(self, index: int) -> None:
        chance = np.random.default_rng(index)
        with Client(self._server, "grpc") as client:  # type: ignore[arg-type]
            while not self._stop.is_set():
                with self._lock:
                    if self.sent >= self._requests:
                        return
                    self.sent += 1
                value = float(chance.integers(1, 100))
                x = np.full((int(chance.integers(1, 9)), 4), value, np.float32)
                try:
                    y = client.infer("linear", {"x": x})["y"]
                except Exception as error:
                    self.wrong.append(str(error))
                    return
                found = set((y / (4 * value)).ravel().tolist())
                if y.shape != (len(x), 3) or len(found) != 1 or not found <= self._factors:
                    self.wrong.append(f"{y}")

    def wait(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.1, deadline - time.monotonic()))
        self.stop()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


@pytest.mark.timeout(1800)
def test_requests_leave_nothing_behind(backend: Backend, tmp_path: Path, soak: bool) -> None:
    write_model(tmp_path, "linear", LINEAR, params=params(1))
    with backend.server(tmp_path) as server:
        server.wait_model("linear", timeout=LOAD_TIMEOUT)
        process = psutil.Process(server.pid)
        warm = Traffic(server, REQUESTS[soak] // 4, {1.0})
        warm.wait(600)
        before = process.memory_info().rss
        traffic = Traffic(server, REQUESTS[soak], {1.0})
        traffic.wait(1500)
        drift = (process.memory_info().rss - before) / 2**20
        assert warm.wrong == traffic.wrong == []
        assert traffic.sent == REQUESTS[soak]
        assert drift <= DRIFT_MIB, f"{drift:.1f} MiB more after {traffic.sent} requests"
        print(f"drift {drift:.1f} MiB after {traffic.sent} requests")


@pytest.mark.timeout(1800)
def test_reloads_under_traffic_leave_nothing_behind(
    backend: Backend, tmp_path: Path, soak: bool
) -> None:
    factors = {float(1 + i % 7) for i in range(RELOADS[soak] + 10)}
    write_model(tmp_path, "linear", LINEAR, params=params(1))
    with backend.server(tmp_path, explicit=True) as server:
        server.wait_live(LOAD_TIMEOUT)
        server.load_model("linear")
        process = psutil.Process(server.pid)
        traffic = Traffic(server, 10**9, factors)
        sizes = []
        for number in range(RELOADS[soak] + 10):
            write_model(
                tmp_path, "linear", LINEAR + f"\n    # {number}\n", params=params(1 + number % 7)
            )
            server.load_model("linear")
            sizes.append(process.memory_info().rss / 2**20)
        traffic.stop()
        assert traffic.wrong == []
        assert traffic.sent > RELOADS[soak]
        # The first few reloads fill the allocator's arenas.
        drift = float(np.median(sizes[-5:]) - np.median(sizes[5:10]))
        assert drift <= DRIFT_MIB, sizes
        print(f"drift {drift:.1f} MiB over {RELOADS[soak]} reloads, {traffic.sent} requests")


def test_unloading_gives_memory_back(backend: Backend, tmp_path: Path) -> None:
    code = """
        import numpy as np

        SIGNATURE = {"inputs": {"x": ("FP32", [4])}, "max_batch_size": 1}

        def load(context):
            return {"w": np.ones((4, 8 * 2**20), np.float32)}

        def predict(params, x):
            return {"y": x @ params["w"][:, :3]}
    """
    write_model(tmp_path, "small", LINEAR, params=params(1))
    write_model(tmp_path, "large", code)
    with backend.server(tmp_path, explicit=True) as server:
        server.wait_live(LOAD_TIMEOUT)
        server.load_model("small")  # the backend itself
        process = psutil.Process(server.pid)
        sizes = [process.memory_info().rss / 2**20]
        for _ in range(3):
            server.load_model("large")
            sizes.append(process.memory_info().rss / 2**20)
            server.unload_model("large")
            time.sleep(0.5)  # the last references go with the server's own threads
            sizes.append(process.memory_info().rss / 2**20)
    loaded, unloaded = sizes[1::2], sizes[2::2]
    assert max(loaded) - sizes[0] < 128 + 60, f"one copy of 128 MiB: {sizes}"
    assert unloaded[-1] - sizes[0] < 40, sizes
