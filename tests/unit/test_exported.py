# SPDX-License-Identifier: Apache-2.0
"""`model.jaxexport`: names, batches, parameters and versions, and what is refused."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from tritonserver_jax.repository import save_exported, save_params, write_config
from tritonserver_jax.runtime.author import AuthorModel, LoadContext, load_author_model
from tritonserver_jax.runtime.devices import check_platform
from tritonserver_jax.runtime.errors import BackendError, Code
from tritonserver_jax.runtime.model import Model

F32 = jnp.float32
PARAMS = {"w": np.arange(12, dtype=np.float32).reshape(4, 3), "b": np.ones(3, np.float32)}


def linear(params: Any, x: Any) -> Any:
    return {"y": x @ params["w"] + params["b"]}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A version directory."""
    path = tmp_path / "m" / "1"
    path.mkdir(parents=True)
    return path


def shapes(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), tree)


def write(directory: Path, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Path:
    """Export as an author would who knows nothing of this project."""
    platforms = kwargs.pop("platforms", None)
    path = directory / "model.jaxexport"
    exported = export.export(jax.jit(function), platforms=platforms)(*args, **kwargs)
    path.write_bytes(exported.serialize())
    return path


def load(directory: Path, **config: Any) -> AuthorModel:
    def context(where: Path) -> LoadContext:
        return LoadContext(where, "m", 1, config, {})

    return load_author_model(directory, context, "model 'm' version 1")


def model(directory: Path, **config: Any) -> Model:
    return Model(
        name="m",
        version=1,
        directory=directory.parent,
        config=config,
        complete_config=True,
        default_max_batch_size=0,
        observe=lambda _event, _device, _value: None,
    )


def refusal(function: Callable[..., Any], *args: Any, **kwargs: Any) -> BackendError:
    with pytest.raises(BackendError) as refused:
        function(*args, **kwargs)
    return refused.value


def tensors(loaded: Model) -> tuple[int, dict[str, str], dict[str, str]]:
    return (
        loaded.max_batch_size,
        {spec.name: str(spec) for spec in loaded.inputs},
        {spec.name: str(spec) for spec in loaded.outputs},
    )


def run(loaded: Model, rows: int, **inputs: Any) -> list[Any]:
    instance = loaded.create_instance("m_0", 1, 0)
    batching = loaded.max_batch_size > 0
    arrays = [np.asarray(inputs[spec.name]) for spec in loaded.inputs]
    plan = instance.plan(rows, [a.shape[1:] if batching else a.shape for a in arrays])
    for memory, array in zip(plan.buffers, arrays, strict=True):
        assert memory is not None
        memory[: array.nbytes] = np.frombuffer(array.tobytes(), np.uint8)
    return [np.asarray(output) for output in plan.call()]


def symbols(text: str) -> Any:
    return export.symbolic_shape(text)


BATCH_OF_4 = jax.ShapeDtypeStruct(symbols("b, 4"), F32)


def test_a_batching_model_with_parameters_beside_it(directory: Path) -> None:
    write(directory, linear, shapes(PARAMS), x=BATCH_OF_4)
    save_params(directory, PARAMS)
    loaded = model(directory)
    assert tensors(loaded) == (4, {"x": "FP32[4]"}, {"y": "FP32[3]"})
    assert loaded.config["input"] == [{"name": "x", "data_type": "TYPE_FP32", "dims": [4]}]
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    (y,) = run(loaded, 3, x=x)
    np.testing.assert_allclose(y[:3], x @ PARAMS["w"] + PARAMS["b"], rtol=0, atol=1e-5)
    assert tensors(model(directory, max_batch_size=16))[0] == 16


@pytest.mark.parametrize("by_name", [True, False])
def test_parameters_may_be_a_part_of_the_file(directory: Path, by_name: bool) -> None:
    baked = jax.tree.map(jnp.asarray, PARAMS)
    if by_name:
        write(directory, lambda *, x: linear(baked, x), x=BATCH_OF_4)
    else:
        write(directory, lambda inputs: linear(baked, inputs["x"]), {"x": BATCH_OF_4})
    loaded = load(directory)
    assert loaded.params is None
    y = jax.jit(loaded.predict)(None, x=np.ones((2, 4), np.float32))["y"]
    np.testing.assert_allclose(y, np.ones((2, 4)) @ PARAMS["w"] + PARAMS["b"])


def test_parameters_and_a_dict_of_inputs(directory: Path) -> None:
    write(directory, lambda p, inputs: linear(p, inputs["x"]), shapes(PARAMS), {"x": BATCH_OF_4})
    save_params(directory, PARAMS)
    loaded = load(directory)
    y = jax.jit(loaded.predict)(loaded.params, x=np.ones((2, 4), np.float32))["y"]
    np.testing.assert_allclose(y, np.ones((2, 4)) @ PARAMS["w"] + PARAMS["b"])


@pytest.mark.parametrize("name", ["params", "inputs", "a-b", "a/b:0"])
def test_an_input_may_have_any_name(directory: Path, name: str) -> None:
    write(directory, lambda **inputs: {"y": inputs[name] + 1}, **{name: BATCH_OF_4})
    (y,) = run(model(directory), 2, **{name: np.ones((2, 4), np.float32)})
    assert y[:2].tolist() == [[2.0] * 4] * 2


def test_lists_of_parameters_are_found_in_files_that_have_dicts_only(directory: Path) -> None:
    params: list[Any] = [PARAMS, {"w": np.ones((3, 2), np.float32)}]
    write(
        directory,
        lambda p, *, x: {"y": linear(p[0], x)["y"] @ p[1]["w"]},
        shapes(params),
        x=BATCH_OF_4,
    )
    save_params(directory, {"0": PARAMS, "1": params[1]})
    (y,) = run(model(directory), 1, x=np.ones((1, 4), np.float32))
    expected = (np.ones((1, 4)) @ PARAMS["w"] + PARAMS["b"]) @ params[1]["w"]
    np.testing.assert_allclose(y[:1], expected, rtol=1e-6)


def test_fixed_shapes_have_no_batch(directory: Path) -> None:
    write(directory, lambda *, x: {"y": x.sum(), "z": x}, x=jax.ShapeDtypeStruct((2, 4), F32))
    loaded = model(directory)
    assert tensors(loaded) == (0, {"x": "FP32[2, 4]"}, {"y": "FP32[]", "z": "FP32[2, 4]"})
    y, z = run(loaded, 1, x=np.ones((2, 4), np.float32))
    assert (y, z.shape) == (8.0, (2, 4))
    error = refusal(model, directory, max_batch_size=8)
    assert "config.pbtxt says max_batch_size 8, but" in str(error)
    assert "was exported with fixed shapes ('x' float32[2,4])" in str(error)


def test_other_symbols_vary(directory: Path) -> None:
    b, n = symbols("b, n")
    x = jax.ShapeDtypeStruct((b, n), jnp.int8)
    write(directory, lambda *, x, y: {"s": x + y, "t": (x * y).sum(axis=1)}, x=x, y=x)
    loaded = model(directory)
    assert tensors(loaded) == (
        4,
        {"x": "INT8[-1]", "y": "INT8[-1]"},
        {"s": "INT8[-1]", "t": "INT32[]"},
    )
    ones = np.ones((2, 5), np.int8)
    s, t = run(loaded, 2, x=ones, y=ones)
    assert (s[:2].tolist(), t[:2].tolist()) == ([[2] * 5] * 2, [5, 5])
    error = refusal(run, loaded, 2, x=ones, y=ones[:, :3])
    assert error.code == Code.INVALID_ARG
    assert "inputs 'x' and 'y' must have the same size in dimension 'n', got 5 and 3" in str(error)


def test_an_author_may_decide_against_batches(directory: Path) -> None:
    write(directory, lambda *, x: {"y": x.sum()}, x=BATCH_OF_4)
    assert "first dimension must be the batch" in str(refusal(model, directory))
    text = 'backend: "jax"\nmax_batch_size: 0\n'
    (directory.parent / "config.pbtxt").write_text(text)
    assert tensors(model(directory)) == (0, {"x": "FP32[-1, 4]"}, {"y": "FP32[]"})


def test_different_first_dimensions_are_no_batch(directory: Path) -> None:
    b, c = symbols("b, c")
    x, y = jax.ShapeDtypeStruct((b, 4), F32), jax.ShapeDtypeStruct((c, 4), F32)
    write(directory, lambda *, x, y: {"z": x @ y.T}, x=x, y=y)
    assert tensors(model(directory)) == (
        0,
        {"x": "FP32[-1, 4]", "y": "FP32[-1, 4]"},
        {"z": "FP32[-1, -1]"},
    )


def test_computed_dimensions_of_outputs_vary_and_of_inputs_are_refused(directory: Path) -> None:
    (n,) = symbols("n")
    write(
        directory,
        lambda *, x: {"y": jnp.concatenate([x, x], 1)},
        x=jax.ShapeDtypeStruct((2, n), F32),
    )
    assert tensors(model(directory))[2] == {"y": "FP32[2, -1]"}
    path = write(directory, lambda *, x: {"y": x}, x=jax.ShapeDtypeStruct((2, 2 * n), F32))
    error = refusal(model, directory)
    assert f"{path}: input 'x' has the dimension '2*n'" in str(error)
    assert error.code == Code.UNSUPPORTED


def test_64_bit_types_switch_the_64_bit_mode_on(directory: Path) -> None:
    with jax.enable_x64(True):
        write(
            directory, lambda *, x: {"y": x + 1}, x=jax.ShapeDtypeStruct(symbols("b, 1"), jnp.int64)
        )
    loaded = model(directory)
    assert tensors(loaded) == (4, {"x": "INT64[1]"}, {"y": "INT64[1]"})
    (y,) = run(loaded, 1, x=np.array([[2**40]]))
    assert y[0, 0] == 2**40 + 1
    # Inside only: neither inputs nor outputs show it.
    with jax.enable_x64(True):
        params = {"w": np.full((4, 3), 1 + 2**-40)}

        def narrow(p: Any, x: Any) -> Any:
            return {
                "y": ((x.astype(jnp.float64) @ p["w"] - x.sum(1, keepdims=True)) * 2**38).astype(
                    F32
                )
            }

        write(directory, narrow, shapes(params), x=BATCH_OF_4)
    save_params(directory, params)
    (y,) = run(model(directory), 1, x=np.ones((1, 4), np.float32))
    assert y[0].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("function", "args", "words"),
    [
        (lambda x: {"y": x}, (BATCH_OF_4,), "takes 1 positional argument(s), which have no names"),
        (lambda x, y: {"y": x + y}, (BATCH_OF_4, BATCH_OF_4), "takes 2 positional argument(s)"),
        (
            lambda a, b, c: {"y": c["x"] + len(a) + len(b)},
            ({}, {}, {"x": BATCH_OF_4}),
            "takes 2 positional arguments",
        ),
        (
            lambda i: {"y": i["x"]["z"]},
            ({"x": {"z": BATCH_OF_4}},),
            "input 'x' of <lambda> is a dict",
        ),
        (
            lambda i: i["x"],
            ({"x": BATCH_OF_4},),
            "returns a ShapedArray, whose parts have no names",
        ),
        (lambda i: (i["x"],), ({"x": BATCH_OF_4},), "returns a tuple, whose parts have no names"),
    ],
)
def test_what_has_no_names_is_refused_with_the_remedy(
    directory: Path, function: Callable[..., Any], args: Any, words: str
) -> None:
    path = write(directory, function, *args)
    message = str(refusal(load, directory))
    assert message.startswith(f"{path}: ")
    assert words in message
    assert "export a function that takes its inputs by name and returns a dict" in message
    assert "save_exported" in message


def test_the_one_name_that_jax_cannot_pass_is_refused(directory: Path) -> None:
    write(directory, lambda **inputs: {"y": inputs["self"]}, self=BATCH_OF_4)
    assert "cannot pass an input named 'self' by keyword" in str(refusal(load, directory))
    write(directory, lambda inputs: {"y": inputs["self"]}, {"self": BATCH_OF_4})
    run(model(directory), 1, self=np.ones((1, 4), np.float32))


def test_weights_that_are_missing_or_do_not_fit_are_named(directory: Path) -> None:
    write(directory, linear, shapes(PARAMS), x=BATCH_OF_4)
    message = str(refusal(load, directory))
    assert "model.jaxexport takes parameters, and there is no params.msgpack" in message
    save_params(directory, {**PARAMS, "b": np.ones(3, np.float16)})
    message = str(refusal(load, directory))
    assert (
        "model.jaxexport does not fit the model: 'b' is float16[3], expected float32[3]" in message
    )
    save_params(directory, {"w": PARAMS["w"]})
    message = str(refusal(load, directory))
    assert "model.jaxexport does not fit the model: " in message
    assert "'b'" in message or "b" in message.split("does not fit")[1]


def test_a_model_is_one_or_the_other(directory: Path) -> None:
    write(directory, lambda *, x: {"y": x}, x=BATCH_OF_4)
    (directory / "model.py").write_text("")
    assert "holds both model.py and model.jaxexport" in str(refusal(load, directory))


def damaged(data: bytes) -> dict[str, bytes]:
    program = data.index(b"StableHLO")
    return {
        "empty": b"",
        "text": b"no artifact at all" * 10,
        "pickle": pickle.dumps({"a": 1}),
        "cut": data[: len(data) // 2],
        "cut at the end": data[:-100],
        "zeroed program": data[:program] + bytes(600) + data[program + 600 :],
    }


@pytest.mark.parametrize("case", damaged(b"StableHLO"))
def test_what_is_no_whole_artifact_is_named(directory: Path, case: str) -> None:
    path = write(directory, linear, shapes(PARAMS), x=BATCH_OF_4)
    content = damaged(path.read_bytes())[case]
    path.write_bytes(content)
    message = str(refusal(load, directory))
    assert message.startswith(f"{path} ({len(content)} bytes) is ")
    assert "Exported.serialize(), or copy it again" in message


@pytest.mark.parametrize(
    ("step", "remedy"), [(-1, "with a newer JAX"), (1, "serve it with a newer")]
)
def test_other_versions_of_the_calling_convention_are_refused(
    directory: Path, step: int, remedy: str
) -> None:
    lowest = export.minimum_supported_calling_convention_version
    highest = export.maximum_supported_calling_convention_version
    version = (lowest if step < 0 else highest) + step
    exported = export.export(jax.jit(lambda *, x: {"y": x}))(x=BATCH_OF_4)
    changed = dataclasses.replace(exported, calling_convention_version=version)
    path = directory / "model.jaxexport"
    path.write_bytes(changed.serialize())
    error = refusal(load, directory)
    assert error.code == Code.UNSUPPORTED
    assert f"{path} has version {version} of jax.export's calling convention" in str(error)
    assert f"JAX {jax.__version__} here runs versions {lowest} to {highest}; " in str(error)
    assert remedy in str(error)


def test_another_platform_is_refused_with_both_named(directory: Path) -> None:
    write(directory, lambda *, x: {"y": x}, x=BATCH_OF_4, platforms=["tpu", "cuda"])
    loaded = model(directory)
    error = refusal(loaded.create_instance, "m_0", 1, 0)
    assert error.code == Code.UNSUPPORTED
    assert "instance m_0: the model was exported for tpu, cuda, and the instance is on cpu" in str(
        error
    )
    assert "platforms=[..., 'cpu']" in str(error)


def test_one_of_several_platforms_will_do(directory: Path) -> None:
    write(directory, lambda *, x: {"y": x * 2}, x=BATCH_OF_4, platforms=["cuda", "cpu"])
    (y,) = run(model(directory), 1, x=np.ones((1, 4), np.float32))
    assert y[0].tolist() == [2.0] * 4


@dataclasses.dataclass
class Gpu:
    """What `check_platform` looks at: there may be no such device here."""

    platform_version: str
    platform: str = "gpu"

    @property
    def client(self) -> Gpu:
        return self


@pytest.mark.parametrize(
    ("platform_version", "name"), [("PJRT C API\ncuda 12080", "cuda"), ("rocm 60300", "rocm")]
)
def test_a_gpu_is_called_as_jax_export_calls_it(platform_version: str, name: str) -> None:
    device: Any = Gpu(platform_version)
    check_platform([name], device, "it")
    message = str(refusal(check_platform, ["cpu"], device, "it"))
    assert f"exported for cpu, and the instance is on {name}" in message


def test_several_devices_are_refused(directory: Path) -> None:
    exported = export.export(jax.jit(lambda *, x: {"y": x}))(x=BATCH_OF_4)
    changed = dataclasses.replace(exported, nr_devices=4)
    (directory / "model.jaxexport").write_bytes(changed.serialize())
    error = refusal(load, directory)
    assert error.code == Code.UNSUPPORTED
    assert "was exported for 4 devices, and an instance has one" in str(error)


def test_config_that_contradicts_it_names_both(directory: Path) -> None:
    write(directory, lambda *, x: {"y": x}, x=BATCH_OF_4)
    entry = {"name": "x", "data_type": "TYPE_INT32", "dims": [4]}
    message = str(refusal(model, directory, max_batch_size=8, input=[entry]))
    assert "input 'x': config.pbtxt says TYPE_INT32, but model.jaxexport has TYPE_FP32" in message


def test_save_exported_writes_what_the_backend_reads(directory: Path) -> None:
    def predict(params: Any, x: Any, n: Any) -> Any:
        return {"y": x @ params["w"] + params["b"], "m": n.sum(axis=1), "s": n * 2}

    path = save_exported(
        directory,
        predict,
        {"x": ("FP32", [4]), "n": ("INT16", [-1])},
        params=PARAMS,
        platforms=("cpu", "cuda"),
    )
    assert path == directory / "model.jaxexport"
    assert path.stat().st_size < 10_000, "the parameters are not a part of it"
    write_config(directory.parent)
    save_params(directory, PARAMS)
    loaded = model(directory)
    assert tensors(loaded) == (
        4,
        {"n": "INT16[-1]", "x": "FP32[4]"},
        {"m": "INT32[]", "s": "INT16[-1]", "y": "FP32[3]"},
    )
    n, x = np.ones((2, 6), np.int16), np.ones((2, 4), np.float32)
    m, s, y = run(loaded, 2, n=n, x=x)
    assert (m[:2].tolist(), s[:2].tolist()) == ([6, 6], [[2] * 6] * 2)
    np.testing.assert_allclose(y[:2], x @ PARAMS["w"] + PARAMS["b"])


def test_save_exported_without_batch_or_parameters(directory: Path) -> None:
    save_exported(
        directory,
        lambda _params, x, k: {"y": x * k},
        {"x": ("INT64", [2, 2]), "k": ("INT64", [])},
        batch=False,
    )
    loaded = model(directory)
    assert tensors(loaded) == (0, {"k": "INT64[]", "x": "INT64[2, 2]"}, {"y": "INT64[2, 2]"})
    assert [path.name for path in directory.iterdir()] == ["model.jaxexport"]
    with pytest.raises(BackendError, match=r"inputs\['x'\]"):
        save_exported(directory, lambda _p, x: {"y": x}, {"x": "FP32"})
    with pytest.raises(NotADirectoryError, match="version directory"):
        save_exported(directory / "none", lambda _p, x: {"y": x}, {"x": ("FP32", [1])})
