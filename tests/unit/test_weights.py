# SPDX-License-Identifier: Apache-2.0
"""Weights of the three kinds: what comes back, and in which words the rest is refused."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import ml_dtypes
import numpy as np
import orbax.checkpoint as ocp
import pytest
from flax import linen as nn
from flax import nnx
from safetensors.numpy import save, save_file

from tritonserver_jax.repository import save_params, save_safetensors
from tritonserver_jax.runtime import weights
from tritonserver_jax.runtime.author import LoadContext
from tritonserver_jax.runtime.errors import BackendError
from tritonserver_jax.runtime.program import MissingParams

PARAMS: dict[str, Any] = {
    "dense": {"kernel": np.arange(6, dtype=np.float32).reshape(2, 3), "bias": np.ones(3, np.int8)},
    "scale": np.asarray(1.5, ml_dtypes.bfloat16),
    "none_yet": np.zeros((0, 4), np.float16),
}


def save_orbax(directory: Path, params: Any, name: str = weights.ORBAX_DIRECTORY) -> Path:
    path = directory / name
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(path, params)
    return path


WRITERS: dict[str, Callable[[Path, Any], Path]] = {
    "params.msgpack": save_params,
    "params.safetensors": save_safetensors,
    "params.orbax": save_orbax,
}


def assert_same(got: Any, expected: Any) -> None:
    structure: Any = jax.tree.structure(got)
    assert structure == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        assert isinstance(one, np.ndarray)
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        assert one.tobytes() == other.tobytes()


def refusal(load: Callable[[], Any]) -> str:
    with pytest.raises(BackendError) as refused:
        load()
    return str(refused.value)


def context(directory: Path) -> LoadContext:
    return LoadContext(directory, "m", 1, {}, {})


@pytest.mark.parametrize("name", WRITERS)
def test_weights_come_back_bit_for_bit_as_host_arrays(tmp_path: Path, name: str) -> None:
    # Orbax has no arrays without elements.
    params = {k: v for k, v in PARAMS.items() if k != "none_yet" or name != "params.orbax"}
    assert WRITERS[name](tmp_path, params) == tmp_path / name
    found = weights.load_default(tmp_path)
    assert_same(found.params, params)
    assert found.missing == ""


def test_there_need_not_be_any(tmp_path: Path) -> None:
    found = weights.load_default(tmp_path)
    assert found.params is None
    assert found.missing == (
        f"there is no params.msgpack, params.safetensors or params.orbax in {tmp_path}"
    )


@pytest.mark.parametrize("maker", ["train.py", "make.py"])
def test_what_makes_missing_weights_is_named(tmp_path: Path, maker: str) -> None:
    version = tmp_path / "mine" / "1"
    version.mkdir(parents=True)
    (tmp_path / "mine" / maker).touch()
    says = f" ({tmp_path / 'mine' / maker} makes it)"
    assert weights.load_default(version).missing.endswith(says)
    assert refusal(lambda: weights.load_orbax(version / "params.orbax")).endswith(says)
    assert refusal(lambda: weights.load_msgpack(version / "params.msgpack")).endswith(says)
    assert refusal(lambda: weights.load_safetensors(version / "a.safetensors")).endswith(says)


def test_a_flax_model_without_weights_says_which_file_it_wants() -> None:
    missing = MissingParams("there is no params.msgpack in 1; train.py makes it")
    network = nn.Dense(2)
    said = refusal(lambda: network.apply({"params": missing}, np.ones((1, 2), np.float32)))
    assert said == "predict uses its parameters, but there is no params.msgpack in 1; " + (
        "train.py makes it"
    )
    for use in (
        lambda: missing["a"],
        lambda: missing.items(),
        lambda: dict(missing),
        lambda: {**missing},
        lambda: bool(missing),
        lambda: missing.kernel,
        lambda: np.ones(2) @ missing,
        lambda: "a" in missing,
    ):
        assert refusal(use).startswith("predict uses its parameters")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("params.msgpack", "params.safetensors"),
        ("params.msgpack", "params.orbax"),
        ("params.safetensors", "params.orbax"),
    ],
)
def test_weights_of_two_kinds_are_refused_by_name(tmp_path: Path, first: str, second: str) -> None:
    for name in (first, second):
        WRITERS[name](tmp_path, {"a": np.ones(2, np.float32)})
    message = refusal(lambda: weights.load_default(tmp_path))
    assert f"{tmp_path} holds several weights: {first}, {second}; leave one of them" in message
    assert "def load(context)" in message


def test_one_safetensors_file_may_have_any_name(tmp_path: Path) -> None:
    save_file({"w": np.ones(2, np.float32)}, tmp_path / "resnet.safetensors")
    assert_same(weights.load_default(tmp_path).params, {"w": np.ones(2, np.float32)})
    save_file({"w": np.ones(2, np.float32)}, tmp_path / "other.safetensors")
    message = refusal(lambda: weights.load_default(tmp_path))
    assert "holds several weights: other.safetensors, resnet.safetensors" in message
    save_file({"w": np.zeros(2, np.float32)}, tmp_path / "params.safetensors")
    assert_same(weights.load_default(tmp_path).params, {"w": np.zeros(2, np.float32)})


def test_names_with_dots_are_nested_unless_that_is_ambiguous(tmp_path: Path) -> None:
    one, two = np.ones(1, np.float32), np.zeros(2, np.float32)
    path = tmp_path / "m.safetensors"
    save_file({"a.b.c": one, "a.b.d": two, "e": one}, path)
    assert_same(weights.load_safetensors(path), {"a": {"b": {"c": one, "d": two}}, "e": one})
    flat = context(tmp_path).load_safetensors("m.safetensors", nested=False)
    assert_same(flat, {"a.b.c": one, "a.b.d": two, "e": one})
    for names in (["a.b", "a.b.c"], ["a.b.c", "a.b"]):
        save_file(dict.fromkeys(names, one), path)
        message = refusal(lambda: weights.load_safetensors(path))
        assert f"{path}: 'a.b' and 'a.b.c' cannot both be in nested dicts" in message
        assert "context.load_safetensors('m.safetensors', nested=False)" in message


def header(entries: dict[str, Any], data: bytes) -> bytes:
    text = json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text + data


WHOLE = save({"a": np.ones(4, np.float32)})


@pytest.mark.parametrize(
    "content",
    [
        b"",
        WHOLE[:5],
        WHOLE[:-1],
        WHOLE + b"x",
        b"\x80\x04pickle",
        b"x" * 100,
        header({"a": {"dtype": "F31", "shape": [1], "data_offsets": [0, 4]}}, b"1234"),
        header({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}, b"1234"),
        header({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 8]}}, b"1234"),
    ],
)
def test_what_is_no_whole_safetensors_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "params.safetensors"
    path.write_bytes(content)
    message = refusal(lambda: weights.load_default(tmp_path))
    assert message.startswith(f"{path} ({len(content)} bytes) is not a whole safetensors file")
    assert "copy it again" in message


@pytest.mark.parametrize("content", [b"", b"\xc1", b"\x93\x01\x02", b"not msgpack", WHOLE])
def test_what_is_no_whole_msgpack_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "params.msgpack"
    path.write_bytes(content)
    message = refusal(lambda: weights.load_default(tmp_path))
    assert message.startswith(f"{path} ({len(content)} bytes) is not a whole msgpack file")


@pytest.mark.parametrize("name", ["params.msgpack", "params.safetensors"])
def test_a_git_lfs_pointer_is_not_taken_for_weights(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\n")
    message = refusal(lambda: weights.load_default(tmp_path))
    assert f"{tmp_path / name} is a Git LFS pointer and not the file itself" in message


@pytest.mark.parametrize("name", WRITERS)
def test_what_is_missing_is_named(tmp_path: Path, name: str) -> None:
    loaders: dict[str, Callable[..., Any]] = {
        "params.msgpack": context(tmp_path).load_msgpack,
        "params.safetensors": context(tmp_path).load_safetensors,
        "params.orbax": context(tmp_path).load_orbax,
    }
    loader = loaders[name]
    assert str(tmp_path / name) in refusal(loader)
    assert f"{tmp_path / 'other'}" in refusal(lambda: loader("other"))


def test_leaves_that_jax_cannot_take_are_named(tmp_path: Path) -> None:
    from flax import serialization

    path = tmp_path / "params.msgpack"
    path.write_bytes(serialization.msgpack_serialize({"a": {"w": np.ones(1), "note": "text"}}))
    message = refusal(lambda: weights.load_default(tmp_path))
    assert f"{path}: 'a.note' is str, which JAX cannot take" in message
    path.write_bytes(serialization.msgpack_serialize(3))
    assert f"{path} holds a int, expected a nested dict" in refusal(
        lambda: weights.load_default(tmp_path)
    )


def damage_data(path: Path) -> None:
    for data in path.glob("**/d/*"):
        data.write_bytes(data.read_bytes()[: data.stat().st_size // 2])


def no_manifest(path: Path) -> None:
    (path / "manifest.ocdbt").unlink()


def no_data(path: Path) -> None:
    shutil.rmtree(path / "d")
    shutil.rmtree(path / "ocdbt.process_0")


def garbled_tree(path: Path) -> None:
    (path / "_METADATA").write_text("{")


def no_tree(path: Path) -> None:
    (path / "_METADATA").unlink()


def empty(path: Path) -> None:
    shutil.rmtree(path)
    path.mkdir()


def a_file(path: Path) -> None:
    shutil.rmtree(path)
    path.write_text("")


def not_committed(path: Path) -> None:
    file = path / "_CHECKPOINT_METADATA"
    file.write_text(json.dumps({**json.loads(file.read_text()), "commit_timestamp_nsecs": None}))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (damage_data, "is not a whole Orbax checkpoint"),
        (no_manifest, "is not a whole Orbax checkpoint"),
        (no_data, "is not a whole Orbax checkpoint"),
        (garbled_tree, "is not a whole Orbax checkpoint"),
        (no_tree, "is no whole Orbax checkpoint: expected _METADATA in it"),
        (empty, "is no whole Orbax checkpoint: expected _METADATA in it, or in one directory in "),
        (a_file, "is a file; an Orbax checkpoint is a directory"),
        (not_committed, "is an Orbax checkpoint whose saving was not finished"),
    ],
    ids=lambda case: getattr(case, "__name__", ""),
)
def test_what_is_no_whole_orbax_checkpoint_is_named(
    tmp_path: Path, damage: Callable[[Path], None], words: str
) -> None:
    path = save_orbax(tmp_path, {"w": np.arange(64, dtype=np.float32)})
    damage(path)
    message = refusal(lambda: weights.load_default(tmp_path))
    assert message.startswith(f"{path} ")
    assert words in message


def test_a_checkpoint_that_is_still_being_saved_is_not_taken(tmp_path: Path) -> None:
    path = save_orbax(tmp_path, {"w": np.ones(2, np.float32)})
    path.rename(tmp_path / "params.orbax.orbax-checkpoint-tmp")
    found = weights.load_default(tmp_path)
    assert "holds params.orbax.orbax-checkpoint-tmp, an Orbax checkpoint whose" in found.missing
    message = refusal(context(tmp_path).load_orbax)
    assert "orbax-checkpoint-tmp is an Orbax checkpoint whose saving was not finished" in message


def test_a_step_of_a_checkpoint_manager_will_do(tmp_path: Path) -> None:
    manager = ocp.CheckpointManager(tmp_path / "training")
    manager.save(5, args=ocp.args.StandardSave({"w": np.ones(2, np.float32)}))
    manager.wait_until_finished()
    manager.close()
    shutil.copytree(tmp_path / "training" / "5", tmp_path / "params.orbax")
    assert_same(weights.load_default(tmp_path).params, {"w": np.ones(2, np.float32)})
    shutil.rmtree(tmp_path / "params.orbax")
    shutil.copytree(tmp_path / "training", tmp_path / "params.orbax")
    message = refusal(lambda: weights.load_default(tmp_path))
    assert "copy one step of a CheckpointManager there" in message


SAVE_SHARDED = """
import sys
import jax, numpy as np, orbax.checkpoint as ocp
from jax.sharding import NamedSharding, PartitionSpec
mesh = jax.make_mesh((4,), ("x",))
w = jax.device_put(np.arange(8, dtype=np.float32), NamedSharding(mesh, PartitionSpec("x")))
assert len(w.sharding.device_set) == 4
with ocp.StandardCheckpointer() as checkpointer:
    checkpointer.save(sys.argv[1], {"w": w})
"""


def test_the_devices_that_it_was_saved_from_need_not_be_here(tmp_path: Path) -> None:
    path = tmp_path / "params.orbax"
    env = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    subprocess.run([sys.executable, "-c", SAVE_SHARDED, path], env=env, check=True)
    assert len(jax.devices()) == 1
    assert_same(context(tmp_path).load_orbax(), {"w": np.arange(8, dtype=np.float32)})


def test_parameters_that_lose_bits_are_named_in_the_log(
    capsys: pytest.CaptureFixture[str],
) -> None:
    wide = {"a": {"w": np.ones(2)}, "b": np.ones(1, np.int64), "c": np.ones(1, np.float32)}
    weights.warn_of_narrowing(wide, "model 'm'")
    said = capsys.readouterr().err
    assert "model 'm': the parameter 'a.w' is float64 (and 1 more have 64-bit types)" in said
    weights.warn_of_narrowing({"c": wide["c"], "d": 3}, "model 'm'")
    assert capsys.readouterr().err == ""


class Network(nnx.Module):
    def __init__(self, rngs: nnx.Rngs, width: int = 8) -> None:
        self.layers = nnx.List([nnx.Linear(4, width, rngs=rngs), nnx.Linear(width, 3, rngs=rngs)])

    def __call__(self, x: Any) -> Any:
        return self.layers[1](nnx.relu(self.layers[0](x)))


def abstract_state(width: int = 8) -> Any:
    return nnx.split(nnx.eval_shape(lambda: Network(nnx.Rngs(0), width)))


def test_an_orbax_checkpoint_may_have_a_relative_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = {"w": np.arange(4, dtype=np.float32)}
    save_orbax(tmp_path, saved)
    monkeypatch.chdir(tmp_path)
    assert_same(weights.load_default(Path()).params, saved)


def test_a_target_gives_orbax_its_structure_back(tmp_path: Path) -> None:
    network = Network(nnx.Rngs(3))
    save_orbax(tmp_path, nnx.state(network))
    graph, target = abstract_state()
    state = context(tmp_path).load_orbax(target=target)
    structure: Any = jax.tree.structure(state)
    assert structure == jax.tree.structure(nnx.state(network))
    x = np.ones((2, 4), np.float32)
    np.testing.assert_array_equal(nnx.merge(graph, state)(x), network(x))
    _, other = abstract_state(width=9)
    message = refusal(lambda: context(tmp_path).load_orbax(target=other))
    assert (
        "params.orbax does not fit the model: 'layers.0.bias.value' is float32[8], expected "
        in (message.replace("layers.0.bias'", "layers.0.bias.value'"))
    )
    message = refusal(lambda: context(tmp_path).load_orbax(target={"w": np.ones(1)}))
    assert "params.orbax is not a whole Orbax checkpoint, or not of the structure" in message


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ({"w": np.ones(3, np.float32)}, "'w' is float32[2], expected float32[3]"),
        ({"w": np.ones(2, np.float16)}, "'w' is float32[2], expected float16[2]"),
        ({"v": np.ones(2, np.float32)}, "params.msgpack does not fit the model: "),
    ],
)
def test_weights_that_do_not_fit_a_target_are_named(
    tmp_path: Path, target: Any, words: str
) -> None:
    path = save_params(tmp_path, {"w": np.ones(2, np.float32)})
    message = refusal(lambda: context(tmp_path).load_msgpack(target=target))
    assert message.startswith(f"{path} does not fit the model: ")
    assert words in message


def test_lists_come_back_from_the_dicts_that_files_keep(tmp_path: Path) -> None:
    leaf = np.ones(2, np.float32)
    target = [{"w": leaf}, {"w": leaf}]
    params = {"0": {"w": leaf}, "1": {"w": leaf * 2}}
    assert_same(weights.as_structure_of(target, params, "it"), [{"w": leaf}, {"w": leaf * 2}])
    missing = refusal(lambda: weights.as_structure_of(target, {"0": {"w": leaf}}, "it"))
    assert missing.startswith("it does not fit the model: ")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"a.b": np.ones(1)}, r"params: expected keys without a dot, got 'a\.b'"),
        ({"a": {"b.c": np.ones(1)}}, r"params\['a'\]: expected keys without a dot"),
        ({"a": {"b": {}}}, r"params\['a'\]\['b'\]: a safetensors file holds no empty dict"),
        ({"a": "text"}, r"params\['a'\]: expected a dict, an array or a number"),
    ],
)
def test_params_that_safetensors_would_not_give_back_are_refused(
    tmp_path: Path, params: Any, message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        save_safetensors(tmp_path, params)
    assert list(tmp_path.iterdir()) == []


def test_arrays_that_are_not_contiguous_are_written_as_they_read(tmp_path: Path) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    save_safetensors(tmp_path, {"t": array.T, "s": array[:, ::2]})
    assert_same(
        weights.load_default(tmp_path).params,
        {"t": np.ascontiguousarray(array.T), "s": np.ascontiguousarray(array[:, ::2])},
    )
