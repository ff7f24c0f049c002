# SPDX-License-Identifier: Apache-2.0
"""A model without `lengths`: each new length is compiled when it comes, in traffic."""

import jax

SIGNATURE = {"inputs": {"x": ("FP32", [-1])}, "max_batch_size": 4}


def predict(params: None, x: jax.Array) -> dict[str, jax.Array]:
    """Return the double."""
    return {"y": x * 2}
