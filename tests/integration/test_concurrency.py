# SPDX-License-Identifier: Apache-2.0
"""Several models, instances and threads at once; reload under traffic."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from tests.support.backend import LOAD_TIMEOUT, Backend
from tests.support.client import PROTOCOLS, Client, infer
from tests.support.metrics import sample
from tests.support.models import LINEAR, write_model
from tritonserver_jax.server import TritonServer

pytestmark = pytest.mark.integration


def params(factor: float) -> dict[str, np.ndarray]:
    return {"w": np.full((4, 3), factor, np.float32), "b": np.zeros(3, np.float32)}


def test_sixteen_models_load_at_once(backend: Backend, tmp_path: Path) -> None:
    for number in range(16):
        write_model(tmp_path, f"m{number}", LINEAR, params=params(number))
    with backend.server(tmp_path, args=["--model-load-thread-count=8"]) as server:
        server.wait_ready(LOAD_TIMEOUT)
        x = np.ones((2, 4), np.float32)
        for number in range(16):
            got = infer(server, f"m{number}", {"x": x})["y"]
            assert np.array_equal(got, np.full((2, 3), 4 * number))


@pytest.mark.core
def test_instances_share_programs_and_keep_their_batches_apart(
    server: TritonServer, repository: Path
) -> None:
    config = 'backend: "jax"\ninstance_group { kind: KIND_CPU count: 3 }\n'
    write_model(repository, "three", LINEAR, params=params(1), config=config)
    server.load_model("three")
    labels = {"model": "three", "version": "1"}
    assert sample(server.metrics(), "jax_xla_compilations", **labels) == 4
    wrong: list[str] = []

    def traffic(index: int) -> None:
        with Client(server, PROTOCOLS[index % 2]) as client:
            for step in range(100):
                x = np.full((step % 8 + 1, 4), index + step, np.float32)
                y = client.infer("three", {"x": x})["y"]
                if not np.array_equal(y, np.full((len(x), 3), 4 * (index + step))):
                    wrong.append(f"{index} {step}: {y}")

    threads = [threading.Thread(target=traffic, args=(1000 * index,)) for index in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert sample(server.metrics(), "jax_xla_compilations", **labels) == 4


@pytest.mark.core
def test_reload_under_traffic_loses_and_mixes_nothing(
    server: TritonServer, repository: Path
) -> None:
    write_model(repository, "changing", LINEAR, params=params(1))
    server.load_model("changing")
    stop = threading.Event()
    problems: list[str] = []
    answers: list[float] = []

    def traffic(index: int) -> None:
        with Client(server, PROTOCOLS[index % 2]) as client:
            while not stop.is_set():
                x = np.ones((index + 1, 4), np.float32)
                try:
                    y = client.infer("changing", {"x": x})["y"]
                except Exception as error:
                    problems.append(str(error))
                    return
                if len(np.unique(y)) != 1 or y.shape != (index + 1, 3):
                    problems.append(f"mixed: {y}")
                answers.append(float(y[0, 0]) / 4)

    threads = [threading.Thread(target=traffic, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for factor in range(2, 12):
        write_model(repository, "changing", LINEAR, params=params(factor))
        server.load_model("changing")
    stop.set()
    for thread in threads:
        thread.join()
    assert problems == []
    assert set(answers) <= set(range(1, 12))
    assert len(set(answers)) > 3, "traffic went on across reloads"
    y = infer(server, "changing", {"x": np.ones((1, 4), np.float32)})["y"]
    assert np.array_equal(y, [[44, 44, 44]])


@pytest.mark.core
def test_an_array_that_a_model_keeps_is_not_overwritten(
    server: TritonServer, repository: Path
) -> None:
    """Host code may hold on to what it was given: then the batch's memory is its to keep."""
    code = """
        import numpy as np

        SIGNATURE = {"inputs": {"x": ("FP32", [2])}, "max_batch_size": 4}
        kept = []

        def preprocess(inputs):
            kept.append(inputs["x"])
            first = np.full_like(inputs["x"], kept[0][0, 0])
            return {"x": inputs["x"], "first": first}

        def predict(params, x, first):
            return {"y": x, "first": first}
    """
    write_model(repository, "keeps", code)
    server.load_model("keeps")
    infer(server, "keeps", {"x": np.full((1, 2), 0, np.float32)})
    first = None
    for value in (7, 8, 9):
        got = infer(server, "keeps", {"x": np.full((1, 2), value, np.float32)})
        assert np.array_equal(got["y"], [[value, value]])
        first = got["first"] if first is None else first
        assert np.array_equal(got["first"], first)


@pytest.mark.core
def test_models_of_both_modes_of_jax_in_one_server(server: TritonServer, repository: Path) -> None:
    code = """
        SIGNATURE = {{"inputs": {{"x": ("{}", [1])}}, "max_batch_size": 4}}

        def predict(params, x):
            return {{"y": x * 2, "constant": x * 0 + 1 / 3}}
    """
    write_model(repository, "wide", code.format("FP64"))
    write_model(repository, "narrow", code.format("FP32"))
    server.load_model("wide")
    server.load_model("narrow")
    problems: list[str] = []

    def traffic(model: str, dtype: type) -> None:
        with Client(server, "http") as client:
            for _ in range(100):
                got = client.infer(model, {"x": np.full((1, 1), 1 / 3, dtype)})
                same = got["y"].dtype == dtype and got["y"][0, 0] == dtype(1 / 3) * 2
                if not same or got["constant"][0, 0] != dtype(1 / 3):
                    problems.append(f"{model}: {got}")

    threads = [
        threading.Thread(target=traffic, args=arguments)
        for arguments in [("wide", np.float64), ("narrow", np.float32)] * 2
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
