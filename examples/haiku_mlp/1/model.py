# SPDX-License-Identifier: Apache-2.0
"""A Haiku network, with weights in a safetensors file.

`hk.transform` turns a function that makes modules into one that takes the parameters first, which
is what `predict` is. Haiku's parameters are a dict of modules, each a dict of arrays: the backend
makes it from the names in 1/params.safetensors, such as `mlp/~/linear_0.w`; no `load` is needed.
Needs Haiku in the server: see requirements.txt.
"""

from typing import Any

import haiku as hk
import jax

SIGNATURE = {"inputs": {"X": ("FP32", [4])}, "max_batch_size": 16}


def forward(x: jax.Array) -> jax.Array:
    """Return three numbers per row of [batch, 4]."""
    y: jax.Array = hk.nets.MLP([32, 3])(x)
    return y


# A network that draws random numbers when it is applied is not what a server runs.
NETWORK: Any = hk.without_apply_rng(hk.transform(forward))


def predict(params: Any, X: jax.Array) -> dict[str, jax.Array]:
    """Run the network on a batch of shape [batch, 4]."""
    return {"Y": NETWORK.apply(params, X)}
