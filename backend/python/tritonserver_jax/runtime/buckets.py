# SPDX-License-Identifier: Apache-2.0
"""Batch sizes that a model is compiled for."""

from __future__ import annotations

import bisect
from collections.abc import Sequence

from tritonserver_jax.runtime.errors import refuse


class Buckets:
    """The batch sizes of one model, in rising order; the last one is its ``max_batch_size``."""

    def __init__(self, max_batch_size: int, chosen: Sequence[int] | None = None) -> None:
        """Take the author's choice, or the powers of two.

        Args:
            max_batch_size: of the model; 0 where it has no batch dimension.
            chosen: the author's list.

        Raises:
            BackendError: INVALID_ARG where the list holds more rows than the model takes.
        """
        if max_batch_size == 0:
            if chosen:
                refuse("parameter 'buckets' needs a model with max_batch_size > 0")
            self.sizes: tuple[int, ...] = ()
            return
        if chosen is None:
            chosen = [1 << power for power in range(max_batch_size.bit_length())]
        if max(chosen) > max_batch_size:
            refuse(
                f"parameter 'buckets': {max(chosen)} is more than max_batch_size, "
                f"which is {max_batch_size}"
            )
        self.sizes = tuple(sorted({*chosen, max_batch_size}))

    @property
    def preferred(self) -> tuple[int, ...]:
        """Sizes for the dynamic batcher to prefer: those without padding."""
        return tuple(size for size in self.sizes if size > 1)

    def fit(self, rows: int) -> int:
        """The smallest bucket that holds `rows` rows.

        Raises:
            BackendError: INVALID_ARG if none does.
        """
        index = bisect.bisect_left(self.sizes, rows)
        if index == len(self.sizes):
            refuse(f"a batch of {rows} rows exceeds max_batch_size, which is {self.sizes[-1]}")
        return self.sizes[index]
