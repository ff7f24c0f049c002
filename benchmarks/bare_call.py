# SPDX-License-Identifier: Apache-2.0
"""What a call of the compiled network costs by itself: ``python -m benchmarks.bare_call``.

Run in the backend's environment; prints microseconds as JSON: of the network by batch size, of the
large model, and of one copy of a large tensor. This is the time which no server can save: the
program, called from Python, and its output read on the host.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from benchmarks.competitor_models import large
from benchmarks.competitor_models.compiled import CompiledMlp, aligned
from benchmarks.competitor_models.weights import BUCKETS

_REPEATS = 7
#: A row of the large model.
_ELEMENTS = large.SIGNATURE["inputs"]["X"][1]  # type: ignore[index]


def _microseconds(call: Callable[[], Any], calls: int) -> float:
    repeats = []
    for _ in range(_REPEATS):
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        repeats.append((time.perf_counter() - begin) / calls * 1e6)
    return statistics.median(repeats)


def _read(call: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: np.asarray(call())


def main() -> None:
    """Measure every bucket, and the large model."""
    run = CompiledMlp()
    found = {str(size): _microseconds(_read(run.bare(size)), 400) for size in BUCKETS}
    given = aligned((1, *_ELEMENTS))
    program = jax.jit(large.predict).lower(None, given).compile()
    into = aligned((1, *_ELEMENTS))
    print(
        json.dumps(
            {
                "mlp": found,
                "large": {"1": _microseconds(lambda: np.asarray(program(None, given)["Y"]), 20)},
                "copy": _microseconds(lambda: np.copyto(into, given), 20),
            }
        )
    )


if __name__ == "__main__":
    main()
