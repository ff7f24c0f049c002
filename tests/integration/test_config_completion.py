# SPDX-License-Identifier: Apache-2.0
"""What Triton serves of a model of which its author wrote little, much, or nothing at all."""

from __future__ import annotations

import json
import textwrap
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.backend import LOAD_TIMEOUT, Backend
from tests.support.client import infer
from tests.support.models import LINEAR, write_model
from tritonserver_jax.server import ServerError, TritonServer

pytestmark = [pytest.mark.core, pytest.mark.integration]

PARAMS = {"w": np.ones((4, 3), np.float32), "b": np.zeros(3, np.float32)}
FULL_CONFIG = """
    backend: "jax"
    max_batch_size: 8
    input { name: "x" data_type: TYPE_FP32 dims: 4 }
    output { name: "y" data_type: TYPE_FP32 dims: 3 }
"""


def config_of(server: TritonServer, model: str) -> dict[str, Any]:
    url = f"http://{server.http_url}/v2/models/{model}/config"
    with urllib.request.urlopen(url, timeout=10) as answer:
        config: dict[str, Any] = json.load(answer)
    return config


def tensors(config: dict[str, Any], kind: str) -> list[tuple[str, str, list[int]]]:
    return [(t["name"], t["data_type"], t["dims"]) for t in config[kind]]


def test_the_name_of_the_backend_is_enough(server: TritonServer) -> None:
    config = config_of(server, "bystander")
    assert config["max_batch_size"] == 8
    assert tensors(config, "input") == [("x", "TYPE_FP32", [4])]
    assert tensors(config, "output") == [("y", "TYPE_FP32", [3])]
    assert "dynamic_batching" in config


def test_what_the_author_wrote_stays(server: TritonServer, repository: Path) -> None:
    code = """
        SIGNATURE = {"inputs": {"a": ("FP32", [4]), "b": ("FP32", [4])}, "max_batch_size": 8,
                     "outputs": {"sum": ("FP32", [4])}}

        def predict(params, a, b):
            return {"sum": a + b, "difference": a - b}
    """
    config = """
        backend: "jax"
        max_batch_size: 3
        input { name: "b" data_type: TYPE_FP32 dims: -1 }
        output { name: "difference" label_filename: "labels.txt" }
        dynamic_batching { max_queue_delay_microseconds: 700 }
        instance_group { count: 2 kind: KIND_CPU }
    """
    write_model(repository, "authors_choice", code, config=config)
    (repository / "authors_choice" / "labels.txt").write_text("a\nb\nc\nd\n")
    server.load_model("authors_choice")
    completed = config_of(server, "authors_choice")
    assert completed["max_batch_size"] == 3
    assert tensors(completed, "input") == [("b", "TYPE_FP32", [-1]), ("a", "TYPE_FP32", [4])]
    assert tensors(completed, "output") == [("difference", "TYPE_FP32", [4])]
    assert completed["output"][0]["label_filename"] == "labels.txt"
    assert completed["dynamic_batching"]["max_queue_delay_microseconds"] == 700
    assert completed["instance_group"][0]["count"] == 2
    a = np.ones((3, 4), np.float32)
    assert np.array_equal(infer(server, "authors_choice", {"a": a, "b": a})["difference"], a - a)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("", 8),
        ("# max_batch_size: 0", 8),
        ("max_batch_size: 5", 5),
        ("max_batch_size: 0", 0),
        ("max_batch_size : 0 # none", 0),
    ],
)
def test_max_batch_size_is_the_authors_where_he_gives_one(
    server: TritonServer, repository: Path, statement: str, expected: int, request: Any
) -> None:
    name = f"rows_{request.node.callspec.indices['statement']}"
    code = LINEAR.replace("params[", "params[")  # the linear model works with and without a batch
    write_model(repository, name, code, params=PARAMS, config=f'backend: "jax"\n{statement}\n')
    server.load_model(name)
    config = config_of(server, name)
    assert config["max_batch_size"] == expected
    assert ("dynamic_batching" in config) == (expected > 1)


def test_default_max_batch_size(backend: Backend, tmp_path: Path) -> None:
    code = """
        SIGNATURE = {"inputs": {"x": ("FP32", [4])}}

        def predict(params, x):
            return {"y": x}
    """
    write_model(tmp_path, "plain", code)
    args = ["--backend-config=default-max-batch-size=6"]
    with backend.server(tmp_path, args=args) as server:
        server.wait_model("plain", timeout=LOAD_TIMEOUT)
        assert config_of(server, "plain")["max_batch_size"] == 6


def test_no_config_file_at_all(server: TritonServer, repository: Path) -> None:
    """Triton takes the name of the backend from the name of such a model."""
    directory = repository / "tiny.jax" / "1" / "model.jax"
    directory.mkdir(parents=True)
    code = """
        from . import layers

        SIGNATURE = {"inputs": {"x": ("FP32", [4])}, "max_batch_size": 2}

        def load(context):
            assert context.model_name == "tiny.jax"
            return context.load_msgpack("weights.msgpack")["scale"]

        def predict(params, x):
            return {"y": layers.scale(params, x)}
    """
    (directory / "model.py").write_text(textwrap.dedent(code))
    (directory / "layers.py").write_text("def scale(params, x):\n    return params * x\n")
    from tritonserver_jax.repository import save_params

    save_params(directory, {"scale": np.float32(3)}).rename(directory / "weights.msgpack")
    assert not list((repository / "tiny.jax").glob("*.pbtxt"))
    server.load_model("tiny.jax")
    x = np.ones((2, 4), np.float32)
    assert np.array_equal(infer(server, "tiny.jax", {"x": x})["y"], 3 * x)


def test_a_config_given_with_the_load_request(server: TritonServer, repository: Path) -> None:
    write_model(repository, "given", LINEAR, params=PARAMS)
    server.load_model("given", {"backend": "jax", "max_batch_size": 2})
    assert config_of(server, "given")["max_batch_size"] == 2


def test_no_completion(backend: Backend, tmp_path: Path) -> None:
    write_model(tmp_path, "complete", LINEAR, params=PARAMS, config=FULL_CONFIG)
    write_model(
        tmp_path,
        "incomplete",
        LINEAR.replace('{"y":', '{"z": x, "y":'),
        params=PARAMS,
        config=FULL_CONFIG.replace('output { name: "y"', 'output { name: "q"'),
    )
    args = ["--disable-auto-complete-config"]
    with backend.server(tmp_path, explicit=True, args=args) as server:
        server.wait_live(LOAD_TIMEOUT)
        server.load_model("complete")
        assert np.array_equal(
            infer(server, "complete", {"x": np.ones((1, 4), np.float32)})["y"], [[4, 4, 4]]
        )
        assert "dynamic_batching" not in config_of(server, "complete")
        with pytest.raises(ServerError, match=r"output 'q' of config\.pbtxt is not one of"):
            server.load_model("incomplete")


def test_buckets_of_the_authors_choice(server: TritonServer, repository: Path) -> None:
    config = """
        backend: "jax"
        parameters { key: "buckets" value { string_value: "3" } }
    """
    write_model(repository, "buckets", LINEAR, params=PARAMS, config=config)
    server.load_model("buckets")
    log = server.log_text()
    for rows, compiled in ((1, False), (3, True), (4, False), (8, True)):
        line = f"model 'buckets' version 1: compiled predict for x: float32[{rows},4]"
        assert (line in log) == compiled
    for rows in range(1, 9):
        x = np.full((rows, 4), rows, np.float32)
        assert np.array_equal(infer(server, "buckets", {"x": x})["y"], np.full((rows, 3), 4 * rows))


def test_two_versions_with_different_code(server: TritonServer, repository: Path) -> None:
    config = 'backend: "jax"\nversion_policy { all {} }\n'
    for version in (1, 2):
        code = LINEAR.replace('+ params["b"]', f"* {version}")
        write_model(repository, "versions", code, params=PARAMS, config=config, version=version)
    server.load_model("versions")
    x = np.ones((1, 4), np.float32)
    for version in (1, 2):
        got = infer(server, "versions", {"x": x}, version=str(version))
        assert np.array_equal(got["y"], [[4 * version] * 3])
