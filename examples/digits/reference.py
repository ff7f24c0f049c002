# SPDX-License-Identifier: Apache-2.0
"""The same model without a server: load a version directory and run it in plain JAX.

Training uses it to share the network of `1/model.py`, and the client to check that the server
answers what the model computes.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import numpy as np
from flax import serialization
from numpy.typing import NDArray


def load_module(version_directory: Path) -> ModuleType:
    """Import `model.py` by its path: a folder named `1` can't be imported by name."""
    path = version_directory / "model.py"
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file; expected a version directory of a model")
    spec = importlib.util.spec_from_file_location("digits_model", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path}: Python can't import it")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load_params(version_directory: Path) -> dict[str, Any]:
    """Read `params.msgpack` as the backend does: a nested dict of NumPy arrays."""
    path = version_directory / "params.msgpack"
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file; make it with examples/digits/train.py")
    try:
        params = serialization.msgpack_restore(path.read_bytes())
    except Exception as error:  # msgpack raises many types for damaged data
        raise ValueError(f"{path}: not a complete flax msgpack file ({error})") from error
    if not isinstance(params, dict):
        raise ValueError(f"{path}: expected a dict of parameters, got {type(params).__name__}")
    return params


def predict(version_directory: Path, images: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
    """Run the model of a version directory on all the images as one batch."""
    module = load_module(version_directory)
    outputs = jax.jit(module.predict)(load_params(version_directory), IMAGE=images)
    return {name: np.asarray(value) for name, value in outputs.items()}
