# SPDX-License-Identifier: Apache-2.0
"""Code of a model in JAX's 64-bit mode: each step of it, and nothing beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.models import write_model
from tritonserver_jax.runtime.author import LoadContext, load_author_model
from tritonserver_jax.runtime.x64 import in_mode, stream_in_mode


def is_wide() -> bool:
    return bool(jnp.asarray(np.array([2**40])).dtype == np.int64)


def test_a_function_runs_in_the_mode_that_is_asked_for() -> None:
    assert in_mode(is_wide, True)()
    assert not in_mode(is_wide, False)()
    assert in_mode(is_wide, False) is is_wide
    assert not is_wide()


@pytest.mark.parametrize("x64", [True, False])
def test_each_step_of_a_stream_runs_in_the_mode_and_nothing_between(x64: bool) -> None:
    seen: list[bool] = []

    def stream(_: Any, count: int) -> Iterator[bool]:
        try:
            for _ in range(count):
                yield is_wide()
        finally:
            seen.append(is_wide())

    responses = stream_in_mode(stream, x64)(None, count=3)
    for response in responses:
        assert response is x64
        assert not is_wide()
    assert seen == [x64]


def test_a_stream_that_is_given_up_ends_in_the_mode() -> None:
    seen: list[bool] = []

    def stream() -> Iterator[int]:
        try:
            while True:
                yield 1
        finally:
            seen.append(is_wide())

    responses = stream_in_mode(stream, True)()
    next(responses)
    responses.close()
    assert seen == [True]
    assert not is_wide()


def test_what_a_stream_raises_comes_through_and_the_mode_ends() -> None:
    def stream() -> Iterator[int]:
        yield 1
        raise ValueError("two")

    responses = stream_in_mode(stream, True)()
    next(responses)
    with pytest.raises(ValueError, match="two"):
        next(responses)
    assert not is_wide()


def test_a_stream_may_be_any_iterable() -> None:
    assert list(stream_in_mode(lambda: [1, 2], True)()) == [1, 2]


def test_host_code_runs_in_the_mode_that_load_sets(tmp_path: Path) -> None:
    code = """
        import jax
        import jax.numpy as jnp
        import numpy as np

        SIGNATURE = {"inputs": {"x": ("INT64", [1])}}

        def load(context):
            jax.config.update("jax_enable_x64", True)

        def preprocess(inputs):
            return {"x": np.asarray(jnp.asarray(inputs["x"]) + 1)}

        def predict(params, x):
            return {"y": x}
    """
    directory = write_model(tmp_path, "m", code)

    def context(of: Path) -> LoadContext:
        return LoadContext(of, "m", 1, {}, {})

    model = load_author_model(directory, context, "model 'm' version 1")
    assert model.preprocess is not None
    assert model.preprocess({"x": np.array([2**40])})["x"] == 2**40 + 1
    assert not is_wide()
    model.close()
