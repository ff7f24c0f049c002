# SPDX-License-Identifier: Apache-2.0
"""What the runtime tells the core of a model, for its metrics."""

from __future__ import annotations

import enum
from collections.abc import Callable


class Event(enum.IntEnum):
    """Events of the engine interface (``Event`` in ``engine.h``)."""

    COMPILED = 0
    CACHE_HIT = 1
    CACHE_MISS = 2
    EVICTED = 3
    IN_TRAFFIC = 4
    PREDICTED = 5


#: Takes an event, the device ("cpu:0"), and a value: seconds of `Event.COMPILED`, 1 of the others.
Observe = Callable[[Event, str, float], None]
