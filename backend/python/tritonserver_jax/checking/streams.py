# SPDX-License-Identifier: Apache-2.0
"""What a decoupled model answers to a request."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from typing import Final

import numpy as np

from tritonserver_jax.checking.data import Arrays, random_rows
from tritonserver_jax.checking.trial import CheckedModel, responses
from tritonserver_jax.findings import Finding, Status
from tritonserver_jax.runtime.instance import Instance

__all__ = ["look_at_stream"]

#: So many responses are looked at, or for so many seconds: a stream need not end.
_MOST_RESPONSES: Final = 100
_MOST_SECONDS: Final = 10.0


def look_at_stream(
    model: CheckedModel, instance: Instance, *, size: int, given: Arrays | None
) -> Iterator[Finding]:
    """Yield whether the responses to one request are as declared.

    Args:
        model: The model, which is decoupled.
        instance: Of it.
        size: For dimensions that vary and have no lengths.
        given: Rows of the author's, of which the first is the request; None for a random one.

    Raises:
        BackendError: The model's code failed, or a response is not as declared.
    """
    if given is None:
        rows = 1 if model.batching else None
        request = random_rows(model.all_inputs, rows, np.random.default_rng(0), size=size)
    else:
        request = {n: array[:1] for n, array in given.items()} if model.batching else given
    count, ended, began = 0, False, time.monotonic()
    with closing(responses(model, instance, request)) as all_responses:
        while count < _MOST_RESPONSES and time.monotonic() - began < _MOST_SECONDS:
            if next(all_responses, None) is None:
                ended = True
                break
            count += 1
    whose = "a random request" if given is None else "the first row of --data"
    number = f"{'' if ended else 'more than '}{count} response{'' if count == 1 else 's'}"
    yield Finding(
        "rows",
        Status.WARN if ended and not count else Status.OK,
        f"stream has {number} to {whose}, each with the declared outputs; nothing is known here "
        "of what they should be",
        "see that stream yields something; a client may well wait for it" if not count else "",
    )
