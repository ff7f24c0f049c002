# SPDX-License-Identifier: Apache-2.0
"""Write a model into a Triton model repository.

A model repository is a folder with one folder per model, and in it one numbered folder per model
version. Some files of it are better written by a function than by hand::

    digits/                      the model directory
        config.pbtxt             write_config(model_directory)
        1/                       a version directory
            model.py
            params.msgpack       save_params(version_directory, params)
            params.safetensors   save_safetensors(version_directory, params), instead of that
        2/
            model.jaxexport      save_exported(version_directory, predict, inputs): no model.py
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

CONFIG_NAME = "config.pbtxt"
PARAMS_NAME = "params.msgpack"
SAFETENSORS_NAME = "params.safetensors"
EXPORTED_NAME = "model.jaxexport"

CONFIG_TEXT = (
    "# Written by `tritonserver_jax.repository.write_config`: Triton needs only the name of the "
    "backend; the rest is completed from the model.\n"
    'backend: "jax"\n'
)

__all__ = [
    "CONFIG_NAME",
    "CONFIG_TEXT",
    "EXPORTED_NAME",
    "PARAMS_NAME",
    "SAFETENSORS_NAME",
    "save_exported",
    "save_params",
    "save_safetensors",
    "write_config",
]


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


def save_safetensors(version_directory: Path, params: Mapping[str, Any]) -> Path:
    """Write a model's weights as `params.safetensors`, which other frameworks read too.

    The keys on the way to an array, joined by dots, are its name in the file: `predict` gets the
    same nested dict back.

    Args:
        version_directory: The existing numbered folder that also holds `model.py`.
        params: As for `save_params`, with no dot in a key and no empty dict.

    Returns:
        The path of the file.

    Raises:
        NotADirectoryError: The version directory does not exist.
        TypeError: Something in `params` would not come back from the file as it went in.
    """
    from safetensors.numpy import save

    _require_directory(version_directory, "version directory")
    tensors = _flat(_plain(params, "params"), "params")
    path = version_directory / SAFETENSORS_NAME
    _write_atomically(path, save(tensors))
    return path


def save_exported(
    version_directory: Path,
    predict: Callable[..., Any],
    inputs: Mapping[str, Any],
    *,
    params: Any = None,
    platforms: Sequence[str] = ("cpu",),
    batch: bool = True,
    x64: bool | None = None,
) -> Path:
    """Export a function by `jax.export` and write it as `model.jaxexport`.

    The file holds the compiled-to-be program: the server needs neither the code of the model nor
    the packages that it imports.

    Args:
        version_directory: The existing numbered folder.
        predict: As in `model.py`: takes the parameters and, by name, the inputs; returns a dict.
        inputs: As in `SIGNATURE`, such as `{"x": ("FP32", [4])}`: dims without the batch, -1 for
            one that varies.
        params: Parameters that stay outside the file: only their shapes go into it, and their
            values beside it, with `save_params` or `save_safetensors`. Without them, `predict` is
            called with None, and arrays that it refers to become a part of the file.
        platforms: What the file can run on: `cpu`, `cuda`, `rocm` or `tpu`, several if need be.
        batch: Whether each input and output has a batch as its first dimension.
        x64: Whether it is traced in JAX's 64-bit mode; by default if an input has 64 bits.

    Returns:
        The path of the file.

    Raises:
        NotADirectoryError: The version directory does not exist.
        BackendError: An input is not declared as in `SIGNATURE`.
    """
    import jax
    from jax import export

    from tritonserver_jax.runtime.tensors import author_specs
    from tritonserver_jax.runtime.x64 import x64_mode

    _require_directory(version_directory, "version directory")
    scope = export.SymbolicScope()
    arguments = {}
    specs = author_specs(inputs, "inputs")
    with x64_mode(any(spec.dtype.needs_x64 for spec in specs) if x64 is None else x64):
        for number, spec in enumerate(specs):
            dims = [
                f"d{number}_{axis}" if dim == -1 else str(dim) for axis, dim in enumerate(spec.dims)
            ]
            shape = export.symbolic_shape(",".join(["b"] * batch + dims), scope=scope)
            arguments[spec.name] = jax.ShapeDtypeStruct(shape, spec.dtype.numpy)
        first = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(np.shape(leaf), leaf.dtype), params)
        exported = export.export(jax.jit(predict), platforms=platforms)(first, **arguments)
    path = version_directory / EXPORTED_NAME
    _write_atomically(path, bytes(exported.serialize()))
    return path


def _flat(node: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Arrays by their dotted names."""
    flat = {}
    for key, value in node.items():
        if "." in key:
            raise TypeError(
                f"{where}: expected keys without a dot, got {key!r}; in a safetensors file, dots "
                "separate the levels; use save_params"
            )
        if not isinstance(value, dict):
            flat[key] = np.ascontiguousarray(value).reshape(np.shape(value))
        elif value:
            below = _flat(value, f"{where}[{key!r}]")
            flat.update({f"{key}.{name}": array for name, array in below.items()})
        else:
            raise TypeError(
                f"{where}[{key!r}]: a safetensors file holds no empty dict; leave it out, or use "
                "save_params"
            )
    return flat


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
