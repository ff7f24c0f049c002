# SPDX-License-Identifier: Apache-2.0
"""A model that fails for negative numbers: INTERNAL, as for any exception of a model."""

from typing import Any

import jax

SIGNATURE = {"inputs": {"x": ("FP32", [4])}, "max_batch_size": 8}


def preprocess(inputs: dict[str, Any]) -> dict[str, Any]:
    """Refuse what the model cannot do, as its author sees it."""
    if (inputs["x"] < 0).any():
        raise ValueError("x: expected no negative numbers")
    return inputs


def predict(params: None, x: jax.Array) -> dict[str, jax.Array]:
    """Return the double."""
    return {"y": x * 2}
