# SPDX-License-Identifier: Apache-2.0
"""The network that is measured, 64 → 256 → 256 → 10 in FP32: the model.py of this backend.

The other competitors import `predict` from here.
"""

from typing import Any

import jax

SIGNATURE = {"inputs": {"X": ("FP32", [64])}, "max_batch_size": 64}


def predict(params: dict[str, Any], X: jax.Array) -> dict[str, jax.Array]:
    """Apply the network to [batch, 64]."""
    hidden = jax.nn.relu(X @ params["w1"] + params["b1"])
    hidden = jax.nn.relu(hidden @ params["w2"] + params["b2"])
    return {"Y": hidden @ params["w3"] + params["b3"]}
