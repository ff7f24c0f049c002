# SPDX-License-Identifier: Apache-2.0
"""A flax nnx network: its state is the parameters.

An nnx module holds its weights itself, while the backend passes them to `predict`, so that all
instances share them. `nnx.split` takes a module apart into what it is (the graph) and what it holds
(the state), and `nnx.merge` puts the two together again.
"""

from typing import Any

import jax
from flax import nnx

SIGNATURE = {"inputs": {"X": ("FP32", [4])}, "max_batch_size": 16}


class Network(nnx.Module):
    """A hidden layer: [batch, 4] to [batch, 3]."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.hidden = nnx.Linear(4, 32, rngs=rngs)
        self.output = nnx.Linear(32, 3, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Return three numbers per row."""
        return self.output(nnx.relu(self.hidden(x)))


# The network without its weights: `eval_shape` computes nothing, so STATE has only their shapes.
# A network with dropout or batch normalization is put into `eval()` mode before it is split.
GRAPH, STATE = nnx.split(nnx.eval_shape(lambda: Network(nnx.Rngs(0))))


def load(context: Any) -> Any:
    """Read the state from 1/params.orbax, into the structure that it had when it was saved."""
    return context.load_orbax("params.orbax", target=STATE)


def predict(params: Any, X: jax.Array) -> dict[str, jax.Array]:
    """Run the network on a batch of shape [batch, 4]."""
    network: Network = nnx.merge(GRAPH, params)
    return {"Y": network(X)}
