# SPDX-License-Identifier: Apache-2.0
"""What a server answers about models of ours, held against files.

``golden/answers.json`` is what all releases answer, and ``golden/differences.json`` where single
ones answer otherwise. ``./ci/nox -s golden`` asks every server and writes both anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ci.golden import Answers, expected, only_what_is_said
from tests.support.models import LINEAR, write_model
from tritonserver_jax.server import ServerError, TritonServer

pytestmark = [pytest.mark.core, pytest.mark.integration]

PARAMS = {"w": np.ones((4, 3), np.float32), "b": np.zeros(3, np.float32)}

#: Models that load: code, weights, and what config.pbtxt has beside the name of the backend.
MODELS: dict[str, tuple[str, dict[str, Any] | None, str]] = {
    "linear": (LINEAR, PARAMS, ""),
    "without_a_batch": (LINEAR, PARAMS, "max_batch_size: 0"),
    "some_of_it_written": (
        LINEAR,
        PARAMS,
        'max_batch_size: 4\ninput { name: "x" data_type: TYPE_FP32 dims: 4 }\n'
        "dynamic_batching { max_queue_delay_microseconds: 700 }\n"
        "instance_group { count: 2 kind: KIND_CPU }",
    ),
    "types": (
        """
        SIGNATURE = {"inputs": {"a": ("INT64", [2]), "b": ("BF16", [-1]), "c": ("BOOL", [1, 3])}}

        def predict(params, a, b, c):
            return {"a": a, "b": b, "c": c}
        """,
        None,
        "",
    ),
    "strings": (
        """
        import numpy as np

        SIGNATURE = {"inputs": {"text": ("BYTES", [1])}, "max_batch_size": 4}

        def preprocess(inputs):
            return {"n": np.array([[len(t[0])] for t in inputs["text"]], np.int32)}

        def predict(params, n):
            return {"n": n}
        """,
        None,
        "",
    ),
    "sequence": (
        """
        SIGNATURE = {"inputs": {"x": ("FP32", [2])}, "state": {"total": ("FP32", [2])},
                     "max_batch_size": 4}

        def predict(params, x, total):
            return {"y": total + x, "total": total + x}
        """,
        None,
        "",
    ),
    "raising": (
        """
        SIGNATURE = {"inputs": {"x": ("FP32", [4])}, "max_batch_size": 8}

        def preprocess(inputs):
            if (inputs["x"] < 0).any():
                raise ValueError("x is negative")
            return inputs

        def predict(params, x):
            return {"y": x}
        """,
        None,
        "",
    ),
    "stream": (
        """
        SIGNATURE = {"inputs": {"n": ("INT32", [1])}, "outputs": {"y": ("INT32", [1])},
                     "max_batch_size": 1}

        def stream(context, n):
            yield {"y": n}
        """,
        None,
        "model_transaction_policy { decoupled: true }",
    ),
}
#: Models that do not load, and why.
BROKEN: dict[str, tuple[str, str]] = {
    "no_function": ("x = 1", ""),
    "syntax_error": ("def predict(params, x):\n    return {", ""),
    "raises_at_import": ("raise ValueError('not today')", ""),
    "other_output_type": (LINEAR, 'output { name: "y" data_type: TYPE_INT32 dims: 3 }'),
    "rows_that_are_lost": (
        LINEAR.replace('+ params["b"]', "").replace('{"y": x', '{"y": x.sum(0)'),
        "",
    ),
    "other_input": (LINEAR, 'input { name: "z" data_type: TYPE_FP32 dims: 4 }'),
    "unknown_parameter": (
        LINEAR,
        'parameters { key: "bucket" value { string_value: "2" } }',
    ),
    "decoupled_without_a_stream": (LINEAR, "model_transaction_policy { decoupled: true }"),
}
#: The right input of `linear`.
X: dict[str, Any] = {
    "name": "x",
    "datatype": "FP32",
    "shape": [1, 4],
    "data": [1, 2, 3, 4],
}
#: Requests that are refused: to which model, and with which inputs.
REQUESTS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "no_input": ("linear", []),
    "another_name": ("linear", [{**X, "name": "z"}]),
    "one_too_many": ("linear", [X, {**X, "name": "z"}]),
    "another_type": ("linear", [{**X, "datatype": "INT32"}]),
    "another_shape": ("linear", [{**X, "shape": [1, 5], "data": [1, 2, 3, 4, 5]}]),
    "too_many_rows": ("linear", [{**X, "shape": [9, 4], "data": [1] * 36}]),
    "no_row": ("linear", [{**X, "shape": [0, 4], "data": []}]),
    "no_batch": ("linear", [{**X, "shape": [4]}]),
    "what_raises": ("raising", [{**X, "data": [1, 2, 3, -4]}]),
    "no_such_model": ("nobody", [X]),
    "no_stream": ("stream", [{"name": "n", "datatype": "INT32", "shape": [1, 1], "data": [1]}]),
}


@pytest.fixture(scope="module")
def answers(server: TritonServer, repository: Path) -> Iterator[Answers]:
    """What this server says."""
    found: Answers = {}
    for name, (code, params, config) in MODELS.items():
        write_model(
            repository, f"golden_{name}", code, params=params, config=f'backend: "jax"\n{config}\n'
        )
        server.load_model(f"golden_{name}")
        for what, path in (("metadata", ""), ("config", "/config")):
            _, text = server._ask("GET", f"/v2/models/golden_{name}{path}")
            found[f"{what} of {name}"] = only_what_is_said(json.loads(text))
    for name, (code, config) in BROKEN.items():
        write_model(
            repository, f"golden_{name}", code, params=PARAMS, config=f'backend: "jax"\n{config}\n'
        )
        with pytest.raises(ServerError) as refused:
            server.load_model(f"golden_{name}")
        found[f"loading {name}"] = _plain(str(refused.value), repository)
    for name, (model, inputs) in REQUESTS.items():
        path = f"/v2/models/golden_{model}/infer"
        status, text = server._ask("POST", path, {"inputs": inputs})
        found[f"request with {name}"] = f"{status} {_plain(json.loads(text)['error'], repository)}"
    yield found
    for name in MODELS:
        server.unload_model(f"golden_{name}")


def _plain(text: str, repository: Path) -> str:
    """Without the place of this run."""
    return re.sub(r"\s+", " ", text.replace(str(repository), "REPOSITORY"))


def test_the_answers_are_those_of_the_files(
    server: TritonServer, answers: Answers, pytestconfig: pytest.Config
) -> None:
    release = server.distribution.release.release
    record: Path | None = pytestconfig.getoption("--record-golden")
    if record is not None:
        record.mkdir(parents=True, exist_ok=True)
        (record / f"{release}.json").write_text(json.dumps(answers, indent=1), encoding="utf-8")
        return
    assert answers == expected(release), "./ci/nox -s golden writes the files anew"
