# SPDX-License-Identifier: Apache-2.0
"""Model repositories for tests, written as a model author would."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tritonserver_jax.repository import save_params, write_config

#: The "small model" of the tests: y = x W + b, FP32 [-1, 4] -> [-1, 3].
LINEAR = """
    SIGNATURE = {"inputs": {"x": ("FP32", [4])}, "max_batch_size": 8}

    def predict(params, x):
        return {"y": x @ params["w"] + params["b"]}
"""

#: Two layers with something between them: y = relu(x W1 + b1) W2 + b2, FP32 [-1, 16] -> [-1, 4].
MLP = """
    import jax

    SIGNATURE = {"inputs": {"x": ("FP32", [16])}, "max_batch_size": 8}

    def predict(params, x):
        hidden = jax.nn.relu(x @ params["w1"] + params["b1"])
        return {"y": hidden @ params["w2"] + params["b2"]}
"""


def mlp_params(seed: int = 0) -> dict[str, np.ndarray[Any, np.dtype[np.float32]]]:
    """Weights of `MLP`."""
    random = np.random.default_rng(seed)
    shapes = {"w1": (16, 32), "b1": (32,), "w2": (32, 4), "b2": (4,)}
    return {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def write_model(
    repository: Path,
    name: str,
    code: str,
    *,
    params: Mapping[str, Any] | None = None,
    config: str | None = None,
    version: int = 1,
) -> Path:
    """Write a model, and return its version directory.

    Args:
        repository: The model repository.
        name: The model.
        code: Its model.py; indentation that all lines share is taken off.
        params: What to save beside it as params.msgpack.
        config: Its config.pbtxt; by default the generated one, which names the backend only.
        version: The model version.
    """
    directory = repository / name
    version_directory = directory / str(version)
    version_directory.mkdir(parents=True, exist_ok=True)
    (version_directory / "model.py").write_text(textwrap.dedent(code), encoding="utf-8")
    if params is not None:
        save_params(version_directory, params)
    if config is None:
        write_config(directory)
    else:
        (directory / "config.pbtxt").write_text(textwrap.dedent(config), encoding="utf-8")
    return version_directory
