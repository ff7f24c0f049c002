# SPDX-License-Identifier: Apache-2.0
"""A model that takes up to eight numbers: more are the client's fault, INVALID_ARG."""

import jax

SIGNATURE = {"inputs": {"x": ("FP32", [-1])}, "lengths": {"x": [4, 8]}, "max_batch_size": 4}


def predict(params: None, x: jax.Array) -> dict[str, jax.Array]:
    """Return the double."""
    return {"y": x * 2}
