"""config.pbtxt and params.msgpack as `tritonserver_jax.repository` writes them."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from flax import serialization

from tritonserver_jax.repository import CONFIG_TEXT, save_params, write_config


def test_config_names_the_backend_and_nothing_else(tmp_path: Path) -> None:
    path = write_config(tmp_path)
    assert path == tmp_path / "config.pbtxt"
    lines = path.read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == ['backend: "jax"']


def test_config_is_left_alone_when_it_is_already_there(tmp_path: Path) -> None:
    path = write_config(tmp_path)
    os.utime(path, (1, 1))
    assert write_config(tmp_path) == path
    assert path.stat().st_mtime == 1


@pytest.mark.parametrize("text", ['backend: "python"\n', CONFIG_TEXT + "max_batch_size: 4\n", ""])
def test_config_of_an_author_is_never_replaced(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.pbtxt"
    path.write_text(text)
    with pytest.raises(FileExistsError, match=r"config\.pbtxt exists and was not written by"):
        write_config(tmp_path)
    assert path.read_text() == text


def test_config_does_not_follow_a_dangling_link(tmp_path: Path) -> None:
    (tmp_path / "config.pbtxt").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        write_config(tmp_path)
    assert not (tmp_path / "elsewhere").exists()


def test_missing_directories_are_named(tmp_path: Path) -> None:
    with pytest.raises(NotADirectoryError, match=r"model directory .*none: .* nothing is there"):
        write_config(tmp_path / "none")
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match=r"version directory .*file: .* something else"):
        save_params(tmp_path / "file", {})


def test_params_come_back_as_they_went_in(tmp_path: Path) -> None:
    params: dict[str, Any] = {
        "dense": {"kernel": jnp.arange(6.0).reshape(2, 3), "bias": np.zeros(3, np.float16)},
        "half": jnp.ones(2, jnp.bfloat16),
        "count": 3,
        "empty": {},
    }
    path = save_params(tmp_path, params)
    back = serialization.msgpack_restore(path.read_bytes())
    assert set(back) == set(params)
    assert back["empty"] == {}
    np.testing.assert_array_equal(back["dense"]["kernel"], params["dense"]["kernel"])
    assert back["dense"]["bias"].dtype == np.float16
    assert back["half"].dtype == jnp.bfloat16
    assert back["count"] == 3
    assert params["count"] == 3
    assert [entry.name for entry in tmp_path.iterdir()] == ["params.msgpack"]


def test_params_are_what_flax_itself_writes(tmp_path: Path) -> None:
    params = {"b": np.arange(3, dtype=np.float32), "a": {"c": np.ones((2, 2), np.int8)}}
    assert save_params(tmp_path, params).read_bytes() == serialization.to_bytes(params)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ([np.zeros(1)], r"params: expected a nested dict of arrays, got list"),
        (np.zeros(1), r"params: expected a nested dict of arrays, got ndarray"),
        ({"layers": [np.zeros(1)]}, r"params\['layers'\]: expected a dict, .* got list"),
        ({"a": {"b": None}}, r"params\['a'\]\['b'\]: expected a dict, .* got NoneType"),
        ({"a": {1: np.zeros(1)}}, r"params\['a'\]: expected strings as keys, got 1 of type int"),
        ({"a": np.array(["x"])}, r"params\['a'\]: expected a numeric array, got one of dtype <U1"),
        ({"a": np.array([{}])}, r"params\['a'\]: expected a numeric array, got one of dtype obj"),
    ],
)
def test_params_that_would_not_come_back_are_refused(
    tmp_path: Path, params: Any, message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        save_params(tmp_path, params)
    assert list(tmp_path.iterdir()) == []


def test_params_are_readable_by_the_user_of_the_server(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        path = save_params(tmp_path, {"a": np.zeros(1)})
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_a_failed_write_keeps_the_old_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save_params(tmp_path, {"a": np.zeros(1)})
    old = path.read_bytes()

    def no_space(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space left"):
        save_params(tmp_path, {"a": np.ones(1000)})
    assert path.read_bytes() == old
    assert [entry.name for entry in tmp_path.iterdir()] == ["params.msgpack"]
