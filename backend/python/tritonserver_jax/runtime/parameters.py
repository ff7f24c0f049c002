# SPDX-License-Identifier: Apache-2.0
"""The parameters of a model: ``parameters`` in its config.pbtxt, declared and validated here."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tritonserver_jax.runtime.errors import refuse


@dataclass(frozen=True)
class Parameter:
    """One parameter.

    Attributes:
        key: in ``parameters`` of config.pbtxt.
        meaning: one sentence for the documentation.
        expected: what a value looks like, for messages and the documentation.
        parse: from text; raises ValueError.
    """

    key: str
    meaning: str
    expected: str
    parse: Callable[[str], Any]


def _buckets(text: str) -> tuple[int, ...]:
    sizes = tuple(int(part) for part in text.split(","))
    if not all(size > 0 for size in sizes):
        raise ValueError
    return tuple(sorted(set(sizes)))


def _x64(text: str) -> bool | None:
    return {"true": True, "false": False, "auto": None}[text.strip().lower()]


PARAMETERS: tuple[Parameter, ...] = (
    Parameter(
        "buckets",
        "Batch sizes to compile for; a batch is padded to the next one. max_batch_size is always "
        "one of them. By default the powers of two.",
        "batch sizes > 0 separated by commas, such as 1,4,16",
        _buckets,
    ),
    Parameter(
        "x64",
        "JAX's 64-bit mode for this model. By default it is on where an input or output that the "
        "author declared has a 64-bit type.",
        "true, false or auto",
        _x64,
    ),
)


def parse_parameters(given: dict[str, Any]) -> dict[str, Any]:
    """Values by key of the parameters that a model configuration sets.

    Args:
        given: ``parameters`` of the configuration: ``{key: {"string_value": text}}``.

    Raises:
        BackendError: INVALID_ARG for an unknown key or a value that is not understood.
    """
    known = {parameter.key: parameter for parameter in PARAMETERS}
    values: dict[str, Any] = {}
    for key, holder in given.items():
        parameter = known.get(key)
        if parameter is None:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean '{close[0]}'?" if close else "known are " + ", ".join(known)
            refuse(f"parameter '{key}' in the model configuration is unknown; {hint}")
        text = str(holder.get("string_value", ""))
        try:
            values[key] = parameter.parse(text)
        except (ValueError, KeyError):
            refuse(f"parameter '{key}': expected {parameter.expected}, got {text!r}")
    return values
