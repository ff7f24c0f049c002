# SPDX-License-Identifier: Apache-2.0
"""Handwritten digits: a small convolutional network, written with flax.

`predict` is the model. Its weights are in `params.msgpack` beside this file, written by train.py;
the backend loads them and passes them to every call as `params`.
"""

from typing import Any

import flax.linen as nn
import jax

# The input's Triton data type and dimensions without the batch, and the largest batch.
SIGNATURE = {
    "inputs": {"IMAGE": ("FP32", [8, 8, 1])},
    "max_batch_size": 64,
}


class DigitsNetwork(nn.Module):
    """Two convolutions and two dense layers: [batch, 8, 8, 1] to [batch, 10]."""

    @nn.compact
    def __call__(self, pixels: jax.Array) -> jax.Array:
        """Return one logit per digit, for pixels between 0 and 1."""
        x = nn.relu(nn.Conv(16, (3, 3))(pixels))
        x = nn.relu(nn.Conv(32, (3, 3), strides=2)(x))
        x = x.reshape((x.shape[0], -1))
        x = nn.relu(nn.Dense(64)(x))
        return nn.Dense(10)(x)


def predict(params: dict[str, Any], IMAGE: jax.Array) -> dict[str, jax.Array]:
    """Classify images of shape [batch, 8, 8, 1] whose pixels are between 0 and 16."""
    logits: Any = DigitsNetwork().apply({"params": params}, IMAGE / 16.0)
    return {"LOGITS": logits, "PROBABILITIES": jax.nn.softmax(logits)}
