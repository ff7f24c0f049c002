# SPDX-License-Identifier: Apache-2.0
"""The `digits` example: a trained flax network, served as its author left it."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.support.backend import LOAD_TIMEOUT, Backend
from tests.support.client import PROTOCOLS, Client, Protocol
from tests.support.metrics import counted, sample
from tritonserver_jax.server import TritonServer

train = importlib.import_module("examples.digits.train")
data = importlib.import_module("examples.digits.data")
reference = importlib.import_module("examples.digits.reference")
digits_client = importlib.import_module("examples.digits.client")

pytestmark = pytest.mark.integration

THREADS = 16
REQUESTS = 500


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the trained model."""
    repository = tmp_path_factory.mktemp("digits")
    assert train.main(["--output", str(repository / "digits")]) == 0
    return repository


@pytest.fixture(scope="module")
def digits_server(backend: Backend, digits: Path) -> Iterator[TritonServer]:
    with backend.server(digits) as running:
        running.wait_model("digits", timeout=LOAD_TIMEOUT)
        yield running


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_held_out_digits_are_classified_as_in_plain_jax(
    digits_server: TritonServer, digits: Path, protocol: Protocol
) -> None:
    held_out = data.held_out()
    expected = reference.predict(digits / "digits" / "1", held_out.images)["LOGITS"]
    got = []
    with Client(digits_server, protocol) as client:
        for start in range(0, len(held_out.images), 64):
            images = held_out.images[start : start + 64]
            got.append(client.infer("digits", {"IMAGE": images})["LOGITS"])
    logits = np.concatenate(got)
    assert np.abs(logits - expected).max() <= 1e-5
    assert (logits.argmax(axis=1) == held_out.labels).mean() >= 0.97


def test_the_examples_client_is_content(
    digits_server: TritonServer, digits: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        *("--url", digits_server.http_url, "--grpc-url", digits_server.grpc_url),
        *("--reference", str(digits / "digits" / "1"), "--repeat", "1"),
    ]
    assert digits_client.main(arguments) == 0, capsys.readouterr()


def test_many_clients_each_get_their_own_rows_and_nothing_is_compiled(
    digits_server: TritonServer, digits: Path
) -> None:
    images = data.held_out().images
    expected = reference.predict(digits / "digits" / "1", images)["LOGITS"]
    labels = {"model": "digits", "version": "1"}
    compilations = sample(digits_server.metrics(), "jax_xla_compilations", **labels)
    calls = sample(digits_server.metrics(), "jax_predict_calls", **labels) or 0
    assert compilations is not None
    assert compilations >= 7, "one program for each of 1, 2, 4, ..., 64 rows"
    failures: list[str] = []
    rows_sent = [0] * THREADS

    def traffic(number: int) -> None:
        chance = np.random.default_rng(number)
        with Client(digits_server, PROTOCOLS[number % 2]) as client:
            for _ in range(REQUESTS):
                rows = chance.choice(len(images), size=int(chance.integers(1, 9)), replace=False)
                rows_sent[number] += len(rows)
                try:
                    got = client.infer("digits", {"IMAGE": images[rows]}, outputs=["LOGITS"])
                except Exception as error:
                    failures.append(f"thread {number}: {error}")
                    return
                difference = np.abs(got["LOGITS"] - expected[rows]).max()
                if list(got) != ["LOGITS"] or difference > 1e-5:
                    failures.append(f"thread {number}: rows {rows} differ by {difference}")

    threads = [threading.Thread(target=traffic, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    metrics = digits_server.metrics()
    assert sample(metrics, "jax_xla_compilations", **labels) == compilations
    executions = (sample(metrics, "jax_predict_calls", **labels) or 0) - calls
    assert 0 < executions <= THREADS * REQUESTS
    assert executions < THREADS * REQUESTS, "requests that wait together run together"
    # Triton's own figures agree with what was sent.
    executed = sample(metrics, "jax_predict_calls", **labels)
    assert executed == counted(
        lambda: sample(digits_server.metrics(), "nv_inference_exec_count", **labels), executed
    )
    inferences = sample(digits_server.metrics(), "nv_inference_count", **labels) or 0
    assert inferences >= sum(rows_sent)
