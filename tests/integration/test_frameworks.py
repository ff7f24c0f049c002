# SPDX-License-Identifier: Apache-2.0
"""Models of several frameworks, with weights of each kind, equal what plain JAX computes."""

from __future__ import annotations

import dataclasses
import importlib
import runpy
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import flax.linen as nn
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import pytest
from flax import nnx
from jax import export

from ci.locks import EXAMPLES, example_requirements_path
from ci.process import ROOT
from tests.support.backend import LOAD_TIMEOUT, Backend
from tests.support.client import PROTOCOLS, Protocol, infer
from tests.support.models import write_model
from tests.support.scripts import run_script
from tritonserver_jax.repository import (
    CONFIG_TEXT,
    save_exported,
    save_params,
    save_safetensors,
    write_config,
)
from tritonserver_jax.server import ServerError, TritonServer

pytestmark = pytest.mark.integration

TOLERANCE = 1e-5
X = np.random.default_rng(5).standard_normal((11, 4)).astype(np.float32)

LINEN = """
    import flax.linen as nn

    SIGNATURE = {"inputs": {"X": ("FP32", [4])}, "max_batch_size": 16}


    class Network(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(3)(nn.gelu(nn.Dense(32)(x)))


    def predict(params, X):
        return {"Y": Network().apply({"params": params}, X)}
"""


class Linen(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        return nn.Dense(3)(nn.gelu(nn.Dense(32)(x)))


def linen_params() -> Any:
    params = Linen().init(jax.random.key(1), X[:1])["params"]
    return jax.tree.map(np.asarray, params)


def save_orbax(directory: Path, params: Any) -> None:
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(directory / "params.orbax", params)


WRITERS: dict[str, Callable[[Path, Any], object]] = {
    "msgpack": save_params,
    "safetensors": save_safetensors,
    "orbax": save_orbax,
}


def example(name: str) -> Any:
    return importlib.import_module(f"examples.{name}.make")


def code(name: str) -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "examples" / name / "1" / "model.py"))


def equinox_reference() -> Any:
    network = code("equinox_mlp")["new_network"](jax.random.key(0))
    return jax.vmap(network)(X)


def haiku_reference() -> Any:
    forward = hk.transform(code("haiku_mlp")["forward"])
    params = forward.init(jax.random.key(0), X[:1])
    return forward.apply(params, None, X)


def exported_reference() -> Any:
    make = example("exported")
    return make.predict(make.new_params(0), X)["Y"]


#: What each model computes, by plain JAX and without anything that the backend has a part in.
REFERENCES: dict[str, Callable[[], Any]] = {
    **{f"linen_{kind}": lambda: Linen().apply({"params": linen_params()}, X) for kind in WRITERS},
    "nnx_mlp": lambda: code("nnx_mlp")["Network"](nnx.Rngs(0))(X),
    "equinox_mlp": equinox_reference,
    "haiku_mlp": haiku_reference,
    "exported": exported_reference,
    "exported_baked": lambda: Linen().apply({"params": linen_params()}, X),
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    repository = tmp_path_factory.mktemp("frameworks")
    for kind, write in WRITERS.items():
        write(write_model(repository, f"linen_{kind}", LINEN), linen_params())
    for name in ("nnx_mlp", "equinox_mlp", "haiku_mlp", "exported"):
        example(name).make(repository / name)
    baked = repository / "exported_baked" / "1"
    baked.mkdir(parents=True)
    write_config(baked.parent)
    params = jax.tree.map(jnp.asarray, linen_params())
    save_exported(
        baked,
        lambda _, X: {"Y": Linen().apply({"params": params}, X)},  # noqa: N803 # as clients see it
        {"X": ("FP32", [4])},
    )
    return repository


@pytest.fixture(scope="module")
def environment(backend: Backend, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with what the examples need besides, made as an operator does."""
    path = tmp_path_factory.mktemp("environment") / "env"
    script = backend.directory / "jax" / "scripts" / "setup_env.sh"
    options: list[str | Path] = ["--env", path]
    for name in EXAMPLES:
        options += ["--requirements", example_requirements_path(name)]
    status, said = run_script(script, *options)
    assert status == 0, said
    return path


@pytest.fixture(scope="module")
def frameworks(backend: Backend, environment: Path, models: Path) -> Iterator[TritonServer]:
    with dataclasses.replace(backend, environment=environment).server(models) as running:
        for name in REFERENCES:
            running.wait_model(name, timeout=LOAD_TIMEOUT)
        yield running


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", REFERENCES)
def test_it_is_served_without_a_config_and_equals_plain_jax(
    frameworks: TritonServer, models: Path, name: str, protocol: Protocol
) -> None:
    assert (models / name / "config.pbtxt").read_text() == CONFIG_TEXT
    got = infer(frameworks, name, {"X": X} if "exported" not in name else {"X": X[:4]}, protocol)
    expected = np.asarray(REFERENCES[name]())[: len(got["Y"])]
    assert got["Y"].shape == expected.shape
    assert len(got["Y"]) >= 4
    assert np.abs(got["Y"] - expected).max() <= TOLERANCE
    assert np.abs(expected).max() > 0.01


def test_without_its_package_a_model_is_refused_by_name(
    server: TritonServer, repository: Path, models: Path
) -> None:
    for name, package in (("equinox_mlp", "equinox"), ("haiku_mlp", "haiku")):
        shutil.copytree(models / name, repository / name)
        with pytest.raises(ServerError) as refused:
            server.load_model(name)
        message = f"ModuleNotFoundError: No module named '{package}' (model.py:"
        assert message in str(refused.value)


def exported_model(repository: Path, name: str) -> Path:
    directory = repository / name / "1"
    directory.mkdir(parents=True)
    write_config(directory.parent)
    return directory


def test_an_artifact_for_another_platform_is_refused(
    server: TritonServer, repository: Path
) -> None:
    directory = exported_model(repository, "for_tpu")
    save_exported(directory, lambda _, x: {"y": x}, {"x": ("FP32", [4])}, platforms=("tpu",))
    with pytest.raises(ServerError, match="was exported for tpu, and the instance is on cpu"):
        server.load_model("for_tpu")


def test_an_artifact_of_another_version_is_refused(server: TritonServer, repository: Path) -> None:
    directory = exported_model(repository, "too_new")
    highest = export.maximum_supported_calling_convention_version
    exported = export.export(jax.jit(lambda *, x: {"y": x}))(x=np.zeros(4, np.float32))
    newer = dataclasses.replace(exported, calling_convention_version=highest + 1)
    (directory / "model.jaxexport").write_bytes(newer.serialize())
    words = rf"has version {highest + 1} of .* runs versions \d+ to {highest}"
    with pytest.raises(ServerError, match=words):
        server.load_model("too_new")


def test_a_damaged_artifact_is_refused_and_a_repaired_one_loads(
    server: TritonServer, repository: Path
) -> None:
    directory = exported_model(repository, "damaged")
    path = save_exported(directory, lambda _, x: {"y": x + 1}, {"x": ("FP32", [4])})
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(
        ServerError, match=r"model\.jaxexport \(\d+ bytes\) is not a whole artifact"
    ):
        server.load_model("damaged")
    path.write_bytes(whole)
    server.load_model("damaged")
    got = infer(server, "damaged", {"x": X[:3]})
    np.testing.assert_array_equal(got["y"], X[:3] + 1)


@pytest.mark.parametrize("kind", ["safetensors", "orbax"])
def test_damaged_weights_are_refused_and_repaired_ones_load(
    server: TritonServer, repository: Path, kind: str
) -> None:
    name = f"damaged_{kind}"
    directory = write_model(repository, name, LINEN)
    WRITERS[kind](directory, linen_params())
    path = directory / f"params.{kind}"
    damaged = path if kind == "safetensors" else next((path / "d").iterdir())
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:-20])
    with pytest.raises(ServerError, match=rf"{path} .*is not a whole"):
        server.load_model(name)
    damaged.write_bytes(whole)
    server.load_model(name)
    expected = Linen().apply({"params": linen_params()}, X)
    assert np.abs(infer(server, name, {"X": X})["Y"] - expected).max() <= TOLERANCE


def test_weights_of_two_kinds_are_refused(server: TritonServer, repository: Path) -> None:
    directory = write_model(repository, "two_kinds", LINEN, params=linen_params())
    save_safetensors(directory, linen_params())
    with pytest.raises(ServerError, match=r"several weights: params\.msgpack, params\.safetensors"):
        server.load_model("two_kinds")
