# SPDX-License-Identifier: Apache-2.0
"""The smallest model: the sum and the difference of two vectors.

A model is a module with a function `predict`. Its arguments after `params` are the model's inputs,
and the keys of the dict it returns are its outputs, by the names that clients use. The backend
traces `predict` once per batch size and compiles it with XLA, so it may call anything from
`jax.numpy`, but must not depend on the values of its inputs by a Python `if`, nor print, nor
read files.
"""

import jax

# What can not be found out by looking at `predict`: each input's Triton data type and its
# dimensions without the batch, and the largest batch. The outputs are found by tracing.
SIGNATURE = {
    "inputs": {"INPUT0": ("FP32", [4]), "INPUT1": ("FP32", [4])},
    "max_batch_size": 8,
}


def predict(params: object, INPUT0: jax.Array, INPUT1: jax.Array) -> dict[str, jax.Array]:
    """Add and subtract; both inputs have shape [batch, 4]. This model has no `params`."""
    return {"OUTPUT0": INPUT0 + INPUT1, "OUTPUT1": INPUT0 - INPUT1}
