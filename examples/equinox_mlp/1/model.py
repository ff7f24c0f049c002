# SPDX-License-Identifier: Apache-2.0
"""An Equinox network, with weights in Equinox's own format.

An Equinox module is a pytree of arrays and of everything else, such as the activation functions.
`eqx.partition` separates the two: the arrays are the parameters, the rest belongs to the code.
Needs Equinox in the server: see requirements.txt.
"""

from typing import Any

import equinox as eqx
import jax

SIGNATURE = {"inputs": {"X": ("FP32", [4])}, "max_batch_size": 16}


def new_network(key: jax.Array) -> eqx.nn.MLP:
    """Return a network with random weights: [4] to [3]."""
    return eqx.nn.MLP(in_size=4, out_size=3, width_size=32, depth=2, key=key)


# The network with shapes in the place of weights; nothing is computed.
SKELETON = eqx.filter_eval_shape(new_network, jax.random.key(0))
_, STATIC = eqx.partition(SKELETON, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))


def load(context: Any) -> Any:
    """Read the weights from 1/params.eqx, and return the arrays only."""
    network = eqx.tree_deserialise_leaves(context.directory / "params.eqx", SKELETON)
    return eqx.filter(network, eqx.is_array)


def predict(params: Any, X: jax.Array) -> dict[str, jax.Array]:
    """Run the network on a batch of shape [batch, 4]; an Equinox module takes one row."""
    network = eqx.combine(params, STATIC)
    return {"Y": jax.vmap(network)(X)}
