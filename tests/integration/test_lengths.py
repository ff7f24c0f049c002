# SPDX-License-Identifier: Apache-2.0
"""Dimensions that vary: padded to allowed lengths, masked, ragged, cut back."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from tests.support.client import PROTOCOLS, Client, Protocol, RequestError, infer
from tests.support.metrics import counted, sample
from tests.support.models import write_model
from tritonserver_jax.server import ServerError, TritonServer

pytestmark = [pytest.mark.core, pytest.mark.integration]

MASKED = """
    import jax.numpy as jnp

    SIGNATURE = {"inputs": {"x": ("FP32", [-1])}, "lengths": {"x": [4, 16]}, "max_batch_size": 4}

    def predict(params, x, masks):
        mask = masks["x"]
        return {"mean": jnp.where(mask, x, 0).sum(1) / mask.sum(1), "double": 2 * x,
                "padding": jnp.where(mask, 0, jnp.abs(x)).sum(1)}
"""


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_lengths_are_padded_masked_and_cut_back(
    server: TritonServer, repository: Path, protocol: Protocol
) -> None:
    if not (repository / "masked").exists():
        write_model(repository, "masked", MASKED)
        server.load_model("masked")
    labels = {"model": "masked", "version": "1"}
    compiled = sample(server.metrics(), "jax_xla_compilations", **labels)
    assert compiled == 6, "three batch sizes of two lengths, before the model is ready"
    chance = np.random.default_rng(0)
    for length in (16, 1, 4, 5, 15, 3):
        x = chance.normal(size=(3, length)).astype(np.float32) + 100
        got = infer(server, "masked", {"x": x}, protocol)
        assert np.array_equal(got["double"], 2 * x)
        assert np.allclose(got["mean"].ravel(), x.mean(1))
        assert not got["padding"].any()
    with pytest.raises(RequestError) as refused:
        infer(server, "masked", {"x": np.zeros((1, 17), np.float32)}, protocol)
    assert "input 'x': dimension 1 is 17, the longest allowed is 16" in refused.value.message
    assert sample(server.metrics(), "jax_xla_compilations", **labels) == compiled


def test_ragged_requests_run_as_one(server: TritonServer, repository: Path) -> None:
    """Three requests of three lengths, waiting together, are one execution."""
    config = """
        backend: "jax"
        max_batch_size: 4
        input { name: "x" data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }
        dynamic_batching { preferred_batch_size: 3 max_queue_delay_microseconds: 3000000 }
    """
    write_model(repository, "ragged", MASKED, config=config)
    server.load_model("ragged")
    labels = {"model": "ragged", "version": "1"}
    problems: list[str] = []

    def ask(length: int) -> None:
        x = np.full((1, length), length, np.float32)
        got = infer(server, "ragged", {"x": x}, PROTOCOLS[length % 2])
        if got["double"].shape != (1, length) or got["mean"].ravel()[0] != length:
            problems.append(f"{length}: {got}")

    threads = [threading.Thread(target=ask, args=(length,)) for length in (2, 7, 11)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert sample(server.metrics(), "jax_predict_calls", **labels) == 1
    assert counted(lambda: sample(server.metrics(), "nv_inference_exec_count", **labels), 1) == 1


def test_two_dimensions_that_vary(server: TritonServer, repository: Path) -> None:
    code = """
        import jax.numpy as jnp

        SIGNATURE = {"inputs": {"a": ("FP32", [-1, -1]), "b": ("INT32", [-1])},
                     "lengths": {"a": [3, 6], "b": [5]}, "max_batch_size": 2}

        def predict(params, a, b, masks):
            return {"at": jnp.swapaxes(a, 1, 2), "b": b + 1,
                    "real": masks["a"].sum((1, 2)), "realb": masks["b"].sum(1)}
    """
    write_model(repository, "two_varying", code)
    server.load_model("two_varying")
    for shape, length in (((2, 5), 1), ((6, 1), 5), ((3, 3), 4)):
        a = np.random.default_rng(1).normal(size=(2, *shape)).astype(np.float32)
        b = np.arange(2 * length, dtype=np.int32).reshape(2, length)
        got = infer(server, "two_varying", {"a": a, "b": b})
        assert np.array_equal(got["at"], a.swapaxes(1, 2))
        assert np.array_equal(got["b"], b + 1)
        assert got["real"].ravel().tolist() == [shape[0] * shape[1]] * 2
        assert got["realb"].ravel().tolist() == [length] * 2


def test_an_output_that_cannot_be_cut_is_refused(server: TritonServer, repository: Path) -> None:
    code = MASKED.replace('"double": 2 * x', '"double": x[:, :-1]')
    write_model(repository, "not_cut", code)
    with pytest.raises(ServerError, match="padding cannot be cut off such a dimension"):
        server.load_model("not_cut")


def test_without_a_batch_dimension(server: TritonServer, repository: Path) -> None:
    code = """
        import jax.numpy as jnp

        SIGNATURE = {"inputs": {"x": ("FP32", [-1])}, "lengths": {"x": [8]}, "max_batch_size": 0}

        def predict(params, x, masks):
            return {"y": jnp.where(masks["x"], x + 1, -1), "n": masks["x"].sum()}
    """
    write_model(repository, "varying_alone", code)
    server.load_model("varying_alone")
    x = np.arange(5, dtype=np.float32)
    got = infer(server, "varying_alone", {"x": x})
    assert np.array_equal(got["y"], x + 1)
    assert got["n"].tolist() == [5]


def test_programs_are_bounded(server: TritonServer, repository: Path) -> None:
    config = """
        backend: "jax"
        parameters { key: "max_programs" value { string_value: "2" } }
    """
    code = """
        SIGNATURE = {"inputs": {"x": ("FP32", [-1])}, "max_batch_size": 1}

        def predict(params, x):
            return {"y": x * 3}
    """
    write_model(repository, "bounded", code, config=config)
    server.load_model("bounded")
    labels = {"model": "bounded", "version": "1"}
    with Client(server, "http") as client:
        for length in (1, 2, 3, 4):
            x = np.ones((1, length), np.float32)
            assert np.array_equal(client.infer("bounded", {"x": x})["y"], 3 * x)
    assert sample(server.metrics(), "jax_program_evictions", **labels) == 2
    assert sample(server.metrics(), "jax_xla_compilations", **labels) == 4


def test_lengths_by_parameter(server: TritonServer, repository: Path) -> None:
    config = """
        backend: "jax"
        parameters { key: "lengths" value { string_value: "8,2" } }
    """
    code = MASKED.replace('"lengths": {"x": [4, 16]}, ', "")
    write_model(repository, "by_parameter", code, config=config)
    server.load_model("by_parameter")
    log = server.log_text()
    for length in (2, 8):
        assert f"model 'by_parameter' version 1: compiled predict for x: float32[4,{length}]" in log
    x = np.ones((1, 5), np.float32)
    assert np.array_equal(infer(server, "by_parameter", {"x": x})["double"], 2 * x)


def test_optional_inputs(server: TritonServer, repository: Path) -> None:
    code = """
        SIGNATURE = {"inputs": {"x": ("FP32", [2]), "bias": ("FP32", [2])},
                     "optional": ["bias"], "max_batch_size": 4}

        def predict(params, x, bias=None):
            return {"y": x * 2 if bias is None else x * 2 + bias}
    """
    write_model(repository, "optional", code)
    server.load_model("optional")
    x = np.ones((3, 2), np.float32)
    for protocol in PROTOCOLS:
        assert np.array_equal(infer(server, "optional", {"x": x}, protocol)["y"], 2 * x)
        got = infer(server, "optional", {"x": x, "bias": 5 * x}, protocol)["y"]
        assert np.array_equal(got, 7 * x)
    labels = {"model": "optional", "version": "1"}
    assert sample(server.metrics(), "jax_xla_compilations", **labels) == 6


def test_an_absent_optional_input_cuts_nothing(server: TritonServer, repository: Path) -> None:
    code = """
        SIGNATURE = {"inputs": {"bias": ("FP32", [-1]), "x": ("FP32", [-1])},%s
                     "optional": ["bias"], "max_batch_size": 4}

        def predict(params, x, bias=None):
            return {"y": x if bias is None else x + bias}
    """
    x = np.arange(5, dtype=np.float32)[None]
    for name, lengths in (("absent", ""), ("absent_padded", '"lengths": {"x": [8], "bias": [8]},')):
        write_model(repository, name, code % lengths)
        server.load_model(name)
        assert np.array_equal(infer(server, name, {"x": x})["y"], x)
        assert np.array_equal(infer(server, name, {"x": x, "bias": x})["y"], 2 * x)


def test_a_model_that_pads_for_itself_is_not_cut(server: TritonServer, repository: Path) -> None:
    code = """
        import jax.numpy as jnp

        SIGNATURE = {"inputs": {"x": ("FP32", [-1])}, "max_batch_size": 4}

        def predict(params, x):
            return {"y": jnp.pad(x, ((0, 0), (0, -x.shape[1] % 8)))}
    """
    write_model(repository, "rounds_up", code)
    server.load_model("rounds_up")
    for length in (5, 8, 17):
        x = np.ones((2, length), np.float32)
        assert infer(server, "rounds_up", {"x": x})["y"].shape == (2, -(-length // 8) * 8)


def test_masks_and_host_code_after_it(server: TritonServer, repository: Path) -> None:
    code = (
        MASKED
        + """
    def postprocess(outputs):
        return {name: value + 1 for name, value in outputs.items()}
    """
    )
    write_model(repository, "masked_host", code)
    server.load_model("masked_host")
    x = np.full((3, 5), 2, np.float32)
    got = infer(server, "masked_host", {"x": x})
    assert got["double"].shape == (3, 5)
    assert np.array_equal(got["double"], 2 * x + 1)
    assert got["mean"].ravel().tolist() == [3, 3, 3]


def test_an_input_may_be_called_masks(server: TritonServer, repository: Path) -> None:
    code = """
        SIGNATURE = {"inputs": {"masks": ("FP32", [2])}, "max_batch_size": 2}

        def predict(params, masks):
            return {"y": masks + 1}
    """
    write_model(repository, "called_masks", code)
    server.load_model("called_masks")
    got = infer(server, "called_masks", {"masks": np.ones((1, 2), np.float32)})
    assert got["y"].ravel().tolist() == [2, 2]


def test_what_is_used_often_is_not_given_up(server: TritonServer, repository: Path) -> None:
    config = """
        backend: "jax"
        parameters { key: "max_programs" value { string_value: "2" } }
    """
    code = """
        SIGNATURE = {"inputs": {"x": ("FP32", [-1])}, "max_batch_size": 1}

        def predict(params, x):
            return {"y": x * 3}
    """
    write_model(repository, "hot", code, config=config)
    server.load_model("hot")
    with Client(server, "http") as client:
        for cold in range(2, 8):
            for length in (1, 1, cold, 1):
                client.infer("hot", {"x": np.ones((1, length), np.float32)})
    labels = {"model": "hot", "version": "1"}
    assert sample(server.metrics(), "jax_xla_compilations", **labels) == 7
