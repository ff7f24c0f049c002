# SPDX-License-Identifier: Apache-2.0
"""A model that takes as many seconds as it is told, for one request after the other."""

import time
from typing import Any

import jax

SIGNATURE = {"inputs": {"x": ("FP32", [1])}, "max_batch_size": 1}


def preprocess(inputs: dict[str, Any]) -> dict[str, Any]:
    """Take the time."""
    time.sleep(float(inputs["x"].max()))
    return inputs


def predict(params: None, x: jax.Array) -> dict[str, jax.Array]:
    """Return the seconds."""
    return {"y": x}
