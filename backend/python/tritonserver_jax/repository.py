# SPDX-License-Identifier: Apache-2.0
"""Write a model into a Triton model repository.

A model repository is a folder with one folder per model, and in it one numbered folder per model
version. Two files of it are better written by a function than by hand::

    digits/                  the model directory
        config.pbtxt         write_config(model_directory)
        1/                   a version directory
            model.py
            params.msgpack   save_params(version_directory, params)
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

CONFIG_NAME = "config.pbtxt"
PARAMS_NAME = "params.msgpack"

CONFIG_TEXT = (
    "# Written by `tritonserver_jax.repository.write_config`: Triton needs only the name of the "
    "backend; the rest is completed from the model.\n"
    'backend: "jax"\n'
)

__all__ = ["CONFIG_NAME", "CONFIG_TEXT", "PARAMS_NAME", "save_params", "write_config"]


def write_config(model_directory: Path) -> Path:
    """Write the shortest `config.pbtxt` that makes Triton give the model to this backend.

    Args:
        model_directory: The existing folder of the model, the parent of its version directories.

    Returns:
        The path of the file. A file that already holds exactly this text is left as it is.

    Raises:
        NotADirectoryError: The model directory does not exist.
        FileExistsError: There is a config.pbtxt with other content: an author's work, which this
            function never replaces.
    """
    _require_directory(model_directory, "model directory")
    path = model_directory / CONFIG_NAME
    text = CONFIG_TEXT.encode()
    if os.path.lexists(path):
        if path.is_file() and path.read_bytes() == text:
            return path
        raise FileExistsError(
            f"{path} exists and was not written by write_config, or was edited since; "
            'keep it (all that Triton needs in it is the line `backend: "jax"`), '
            "or delete it and write it again"
        )
    _write_atomically(path, text)
    return path


def save_params(version_directory: Path, params: Mapping[str, Any]) -> Path:
    """Write a model's weights as `params.msgpack`, in the format of `flax.serialization`.

    The file appears complete or not at all, so a server that loads the model meanwhile never
    reads half of it. `predict` gets the same nested dict back, with NumPy arrays as leaves.

    Args:
        version_directory: The existing numbered folder that also holds `model.py`.
        params: A nested dict with strings as keys and arrays or numbers as leaves, for example
            `network.init(...)["params"]` of a flax module.

    Returns:
        The path of the file.

    Raises:
        NotADirectoryError: The version directory does not exist.
        TypeError: Something in `params` would not come back from the file as it went in.
    """
    from flax import serialization  # flax takes a second to import: only those who save pay it

    _require_directory(version_directory, "version directory")
    data = serialization.msgpack_serialize(_plain(params, "params"), in_place=True)
    path = version_directory / PARAMS_NAME
    _write_atomically(path, data)
    return path


def _require_directory(path: Path, what: str) -> None:
    if not path.is_dir():
        found = "something else is there" if path.exists() else "nothing is there"
        raise NotADirectoryError(f"{what} {path}: expected a folder, {found}; create it first")


def _plain(node: object, where: str) -> Any:
    """Copy `node` as plain dicts of NumPy arrays; `where` names it in an error."""
    if isinstance(node, Mapping):
        for key in node:
            if not isinstance(key, str):
                raise TypeError(
                    f"{where}: expected strings as keys, got {key!r} of type "
                    f"{type(key).__name__}; msgpack keeps string keys only"
                )
        return {key: _plain(value, f"{where}[{key!r}]") for key, value in node.items()}
    if where == "params":
        raise TypeError(
            f"params: expected a nested dict of arrays, got {type(node).__name__}; "
            'pass for example network.init(...)["params"]'
        )
    if isinstance(node, bool | int | float | complex) or hasattr(node, "dtype"):
        try:
            array = np.asarray(node)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{where}: {type(node).__name__} is not numeric: {error}") from error
        # ml_dtypes such as bfloat16 are kind "V" (void) but have no fields.
        if array.dtype.kind in "biufc" or (array.dtype.kind == "V" and not array.dtype.names):
            return array
        raise TypeError(f"{where}: expected a numeric array, got one of dtype {array.dtype}")
    raise TypeError(
        f"{where}: expected a dict, an array or a number, got {type(node).__name__}; "
        "turn lists and tuples into dicts, since msgpack would not give them back as they were"
    )


def _write_atomically(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        # Not tempfile: its files are readable by their owner only, and the server is often
        # run by another user than the author.
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
