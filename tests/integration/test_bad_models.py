# SPDX-License-Identifier: Apache-2.0
"""Models that cannot be loaded: each is refused in words, and hurts nobody else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.client import infer
from tests.support.models import LINEAR, write_model
from tritonserver_jax.server import ServerError, TritonServer

# What is refused, and how, is the same on every release: on all of them a few are tried.
pytestmark = pytest.mark.integration

PARAMS = {"w": np.ones((4, 3), np.float32), "b": np.zeros(3, np.float32)}


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A model name of the test's own."""
    return "".join(c if c.isalnum() else "_" for c in request.node.name)[:60]


@pytest.fixture(autouse=True)
def bystander_serves(server: TritonServer, name: str, repository: Path) -> object:
    """Whatever a test does, the model beside it goes on, and a repaired one loads."""
    yield
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    assert np.array_equal(infer(server, "bystander", {"x": x})["y"], x @ np.ones((4, 3)))
    (repository / name / "config.pbtxt").unlink()
    write_model(repository, name, LINEAR, params=PARAMS)
    server.load_model(name)
    assert np.array_equal(infer(server, name, {"x": x})["y"], x @ PARAMS["w"])
    server.unload_model(name)


def refusal(server: TritonServer, name: str) -> str:
    """The words with which the server refuses to load a model."""
    with pytest.raises(ServerError) as refused:
        server.load_model(name)
    assert server.model_state(name).state == "UNAVAILABLE"
    return str(refused.value)


@pytest.mark.core
def test_missing_params(server: TritonServer, repository: Path, name: str) -> None:
    directory = write_model(repository, name, LINEAR)
    message = refusal(server, name)
    assert (
        f"there is no params.msgpack, params.safetensors or params.orbax in {directory}" in message
    )
    assert "model.py has no load(context)" in message


def test_truncated_params(server: TritonServer, repository: Path, name: str) -> None:
    directory = write_model(repository, name, LINEAR, params=PARAMS)
    path = directory / "params.msgpack"
    path.write_bytes(path.read_bytes()[:-10])
    message = refusal(server, name)
    assert f"{path} ({path.stat().st_size} bytes) is not a whole msgpack file" in message


@pytest.mark.parametrize("content", [b"", b"not msgpack at all", b"\xc1", b"\x93\x01\x02"])
def test_params_that_are_no_params(
    server: TritonServer, repository: Path, name: str, content: bytes
) -> None:
    directory = write_model(repository, name, LINEAR)
    (directory / "params.msgpack").write_bytes(content)
    assert "params.msgpack" in refusal(server, name)


@pytest.mark.core
def test_syntax_error(server: TritonServer, repository: Path, name: str) -> None:
    write_model(repository, name, "def predict(params, x:\n    return {}\n", params=PARAMS)
    message = refusal(server, name)
    assert "importing model.py raised SyntaxError: '(' was never closed (model.py:1)" in message


def test_import_error(server: TritonServer, repository: Path, name: str) -> None:
    write_model(repository, name, "import there_is_no_such_package\n", params=PARAMS)
    message = refusal(server, name)
    assert "ModuleNotFoundError: No module named 'there_is_no_such_package' (model.py:1)" in message


@pytest.mark.parametrize(
    "statement",
    [
        "raise SystemExit(3)",
        "raise KeyboardInterrupt",
        "import sys; sys.exit('bye')",
        "def f(): f()\nf()",
    ],
)
def test_code_that_would_end_a_program(
    server: TritonServer, repository: Path, name: str, statement: str
) -> None:
    write_model(repository, name, statement)
    message = refusal(server, name)
    assert "importing model.py raised " in message
    assert "(model.py:1)" in message


def test_predict_raises_while_it_is_traced(
    server: TritonServer, repository: Path, name: str
) -> None:
    code = LINEAR.replace("return", "raise ValueError('no such axis')\n        return")
    write_model(repository, name, code, params=PARAMS)
    message = refusal(server, name)
    assert f"model '{name}' version 1: tracing predict raised ValueError: no such axis" in message
    assert "(model.py:5)" in message
    log = server.log_text()
    assert log.count("ValueError: no such axis") >= 1
    assert "Traceback (most recent call last)" in log


def test_no_predict(server: TritonServer, repository: Path, name: str) -> None:
    directory = write_model(repository, name, "predict = 3")
    assert f"{directory}/model.py: predict must be a function, got int" in refusal(server, name)
    write_model(repository, name, "def forward(params, x): return {}")
    assert "has no function predict(params, **inputs)" in refusal(server, name)


@pytest.mark.core
def test_no_model_file(server: TritonServer, repository: Path, name: str) -> None:
    directory = write_model(repository, name, LINEAR, params=PARAMS)
    (directory / "model.py").unlink()
    message = refusal(server, name)
    assert f"{directory} holds no model.py (found: params.msgpack)" in message


def test_nobody_says_what_the_inputs_are(server: TritonServer, repository: Path, name: str) -> None:
    write_model(repository, name, "def predict(params, x): return {'y': x}")
    message = refusal(server, name)
    assert "nobody says what its inputs are" in message
    assert "SIGNATURE = {'inputs'" in message


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        ("x", "predict must return a dict of output name -> array, got an array"),
        ("{'y': 'text'}", "got str for 'y'"),
        ("{3: x}", "predict must return a dict with non-empty strings as names, got 3"),
        ("{}", "predict returns no outputs"),
        ("{'y': x.sum()}", "output 'y' has shape [] for a batch of 2 rows"),
        ("{'y': x[:1]}", "output 'y' has shape [1, 4] for a batch of 2 rows"),
        ("{'y': x.T}", "its first dimension must be the batch of 2"),
        ("{'y': x.astype('complex64')}", "Triton has no data type for complex64"),
    ],
)
def test_outputs_that_cannot_be_served(
    server: TritonServer, repository: Path, name: str, returned: str, words: str
) -> None:
    code = LINEAR.replace('{"y": x @ params["w"] + params["b"]}', returned)
    write_model(repository, name, code, params=PARAMS)
    assert words in refusal(server, name)


CONTRADICTIONS = {
    "input type": (
        'input { name: "x" data_type: TYPE_INT32 dims: 4 }',
        "input 'x': config.pbtxt says TYPE_INT32, but SIGNATURE of model.py has TYPE_FP32",
    ),
    "input dims": (
        'input { name: "x" data_type: TYPE_FP32 dims: 5 }',
        "input 'x': config.pbtxt says dims [5], but SIGNATURE of model.py has [4]",
    ),
    "input rank": (
        'input { name: "x" data_type: TYPE_FP32 dims: [ 1, 4 ] }',
        "input 'x': config.pbtxt says dims [1, 4], but SIGNATURE of model.py has [4]",
    ),
    "input name": (
        'input { name: "z" data_type: TYPE_FP32 dims: 4 }',
        "input 'z' of config.pbtxt is not one of the inputs of SIGNATURE of model.py ('x')",
    ),
    "output type": (
        'output { name: "y" data_type: TYPE_FP16 dims: 3 }',
        "output 'y': config.pbtxt says TYPE_FP16, but predict has TYPE_FP32",
    ),
    "output dims": (
        'output { name: "y" data_type: TYPE_FP32 dims: 4 }',
        "output 'y': config.pbtxt says dims [4], but predict has [3]",
    ),
    "output name": (
        'output { name: "logits" data_type: TYPE_FP32 dims: 3 }',
        "output 'logits' of config.pbtxt is not one of the outputs of predict ('y')",
    ),
    "unknown parameter": (
        'parameters { key: "bucket" value { string_value: "1,2" } }',
        "parameter 'bucket' in the model configuration is unknown; did you mean 'buckets'?",
    ),
    "bad buckets": (
        'parameters { key: "buckets" value { string_value: "1,two" } }',
        "parameter 'buckets': expected batch sizes > 0 separated by commas",
    ),
    "buckets beyond the batch": (
        'parameters { key: "buckets" value { string_value: "1,16" } }',
        "parameter 'buckets': 16 is more than max_batch_size, which is 8",
    ),
    "no such gpu": (
        "instance_group { kind: KIND_GPU count: 1 gpus: 0 }",
        "GPU",
    ),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_config_that_contradicts_the_model(
    server: TritonServer, repository: Path, name: str, case: str
) -> None:
    text, words = CONTRADICTIONS[case]
    write_model(repository, name, LINEAR, params=PARAMS, config=f'backend: "jax"\n{text}\n')
    assert words in refusal(server, name)


def test_64_bit_types_are_refused_where_they_would_be_narrowed(
    server: TritonServer, repository: Path, name: str
) -> None:
    write_model(
        repository,
        name,
        "SIGNATURE = {'inputs': {'x': ('INT64', [4])}}\ndef predict(params, x): return {'y': x}",
        config="""
            backend: "jax"
            parameters { key: "x64" value { string_value: "false" } }
        """,
    )
    message = refusal(server, name)
    assert (
        "input 'x' is INT64, which JAX narrows to 32 bits while its 64-bit mode is off" in message
    )
