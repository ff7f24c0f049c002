# SPDX-License-Identifier: Apache-2.0
"""What a call of the compiled network costs by itself: ``python -m benchmarks.bare_call``.

Run in the backend's environment; prints microseconds by batch size, as JSON. This is the time
which no server can save: the program, called from Python, and its output read on the host.
"""

from __future__ import annotations

import json
import statistics
import time

import numpy as np

from benchmarks.competitor_models.compiled import CompiledMlp
from benchmarks.competitor_models.weights import BUCKETS

_CALLS = 400
_REPEATS = 7


def main() -> None:
    """Measure every bucket."""
    run = CompiledMlp()
    found = {}
    for size in BUCKETS:
        call = run.bare(size)
        repeats = []
        for _ in range(_REPEATS):
            begin = time.perf_counter()
            for _ in range(_CALLS):
                np.asarray(call())
            repeats.append((time.perf_counter() - begin) / _CALLS * 1e6)
        found[size] = statistics.median(repeats)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
