# SPDX-License-Identifier: Apache-2.0
"""The weights of the network: the same for every competitor, whatever JAX and NumPy it has."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

#: Of the layers, input first.
SIZES = (64, 256, 256, 10)
#: The largest batch, and the batch sizes that are compiled.
MAX_BATCH = 64
BUCKETS = (1, 2, 4, 8, 16, 32, 64)


def weights() -> dict[str, np.ndarray[Any, np.dtype[np.float32]]]:
    """Make the weights."""
    random = np.random.default_rng(0)
    made = {}
    for layer, (inputs, outputs) in enumerate(itertools.pairwise(SIZES), start=1):
        scale = (2.0 / inputs) ** 0.5
        made[f"w{layer}"] = (random.normal(size=(inputs, outputs)) * scale).astype(np.float32)
        made[f"b{layer}"] = (random.normal(size=(outputs,)) * 0.1).astype(np.float32)
    return made


def bucket_of(rows: int) -> int:
    """Return the smallest batch size that is compiled and holds so many rows."""
    return next(size for size in BUCKETS if size >= rows)
