# SPDX-License-Identifier: Apache-2.0
"""Whether a competitor computes what it should: a fast wrong answer is no result."""

from __future__ import annotations

import http.client
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np
import tritonclient.grpc
import tritonclient.http

from benchmarks.competitor_models.mlp import predict
from benchmarks.competitor_models.weights import MAX_BATCH, SIZES, weights
from benchmarks.competitors import LARGE, LARGE_ELEMENTS, MLP, Competitor, Running
from benchmarks.errors import BenchmarkError

#: Requests that are sent at once, so that they meet in batches.
_AT_ONCE = 48
_TOLERANCE = 1e-4

Array = np.ndarray[Any, np.dtype[np.float32]]


def expected(competitor: Competitor, rows: Array) -> Array:
    """Return what a competitor has to answer: plain JAX, or the beginning of each row."""
    if competitor.name.startswith("copy_only"):
        return rows[:, : SIZES[-1]]
    return np.asarray(jax.jit(predict)(weights(), rows)["Y"])


def _by_bytes(url: str, rows: Array) -> Array:
    connection = http.client.HTTPConnection(url, timeout=30)
    try:
        connection.request("POST", "/infer", rows.tobytes())
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise BenchmarkError(f"POST /infer: expected status 200, got {answer.status}")
        return np.frombuffer(body, np.float32).reshape(-1, SIZES[-1])
    finally:
        connection.close()


def _by_triton(module: Any, client: Any, model: str, rows: Array) -> Any:
    given = module.InferInput("X", list(rows.shape), "FP32")
    given.set_data_from_numpy(rows)
    return client.infer(model, [given]).as_numpy("Y")


def _compare(competitor: Competitor, how: str, got: Array | None, wanted: Array) -> None:
    if got is None or got.shape != wanted.shape:
        raise BenchmarkError(
            f"{competitor.name} by {how}: expected an answer of shape {wanted.shape}, got "
            f"{None if got is None else got.shape}"
        )
    worst = float(np.max(np.abs(got - wanted)))
    if not worst <= _TOLERANCE:
        raise BenchmarkError(
            f"{competitor.name} by {how}: expected what plain JAX computes within {_TOLERANCE:g}, "
            f"got a difference of {worst:g}"
        )


def check_answers(competitor: Competitor, running: Running) -> None:
    """Compare a competitor's answers with plain JAX, alone and in batches.

    Args:
        competitor: Which one.
        running: Where it answers.

    Raises:
        BenchmarkError: An answer is not right; the message says by how much.
    """
    rows = np.random.default_rng(1).normal(size=(_AT_ONCE, SIZES[0])).astype(np.float32)
    wanted = expected(competitor, rows)
    if competitor.kind == "fastapi":
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            answers = list(pool.map(lambda i: _by_bytes(running.http, rows[i : i + 1]), range(48)))
        _compare(competitor, "HTTP", np.concatenate(answers), wanted)
        return
    grpc = tritonclient.grpc.InferenceServerClient(running.grpc)
    try:
        one_by_one = lambda i: _by_triton(tritonclient.grpc, grpc, MLP, rows[i : i + 1])  # noqa: E731
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            answers = list(pool.map(one_by_one, range(_AT_ONCE)))
        _compare(competitor, "gRPC", np.concatenate(answers), wanted)
        full = np.resize(rows, (MAX_BATCH, SIZES[0]))
        got = _by_triton(tritonclient.grpc, grpc, MLP, full)
        _compare(competitor, "gRPC in a full batch", got, expected(competitor, full))
    finally:
        grpc.close()
    with tritonclient.http.InferenceServerClient(running.http) as web:
        got = _by_triton(tritonclient.http, web, MLP, rows)
        _compare(competitor, "HTTP", got, wanted)
        if LARGE in competitor.models:
            big = np.arange(LARGE_ELEMENTS, dtype=np.float32)[None]
            added = np.float32(0 if competitor.name.startswith("copy_only") else 1)
            got = _by_triton(tritonclient.http, web, LARGE, big)
            _compare(competitor, "HTTP with 16 MiB", got, big + added)
