# SPDX-License-Identifier: Apache-2.0
"""The network compiled for every bucket, with what makes a call cheap: for the well-written forms.

JAX runs a program on the calling thread instead of handing it over (half the time of a small call
on a CPU), batches are put into memory that XLA takes without a copy, and the garbage collector does
not look through what was made at the start.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from benchmarks.competitor_models.mlp import predict
from benchmarks.competitor_models.weights import BUCKETS, SIZES, bucket_of, weights

Array = np.ndarray[Any, Any]


def aligned(shape: tuple[int, ...]) -> Array:
    """Make an array of zeros that starts at a multiple of 64."""
    size = math.prod(shape) * 4
    memory = np.zeros(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size].view(np.float32).reshape(shape)


class CompiledMlp:
    """One compiled program per bucket, and the memory of its input."""

    def __init__(self) -> None:
        jax.config.update("jax_cpu_enable_async_dispatch", False)
        self._params = jax.device_put(weights())
        self._memory = {size: aligned((size, SIZES[0])) for size in BUCKETS}
        jitted = jax.jit(lambda params, X: predict(params, X)["Y"])
        self._programs = {
            size: jitted.lower(self._params, memory).compile()
            for size, memory in self._memory.items()
        }
        for size, program in self._programs.items():
            np.asarray(program(self._params, self._memory[size]))
        gc.collect()
        gc.freeze()

    def bare(self, size: int) -> Callable[[], Any]:
        """Return a call of the program for a batch size, and nothing beside it."""
        program, params, memory = self._programs[size], self._params, self._memory[size]
        return lambda: program(params, memory)

    def __call__(self, inputs: Sequence[Array]) -> Array:
        """Run the rows of several requests as one batch, and return the rows of the answers."""
        rows = sum(len(one) for one in inputs)
        size = bucket_of(rows)
        batch = self._memory[size]
        if len(inputs) == 1:
            batch[:rows] = inputs[0]
        else:
            np.concatenate(inputs, out=batch[:rows])
        return np.asarray(self._programs[size](self._params, batch))
