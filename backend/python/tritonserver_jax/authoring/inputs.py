# SPDX-License-Identifier: Apache-2.0
"""How an input is written on the command line: ``IMAGE:FP32[8,8,1]``."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence
from typing import Final

from tritonserver_jax.authoring.errors import AuthoringError
from tritonserver_jax.runtime.errors import BackendError
from tritonserver_jax.runtime.tensors import TensorSpec, author_spec

__all__ = ["HOW", "parse_inputs", "signature_inputs"]

#: For messages.
HOW: Final = (
    "write it as NAME:TYPE[dims] without the batch, such as IMAGE:FP32[8,8,1] or IDS:INT32[-1]"
)
_INPUT: Final = re.compile(r"(?P<name>[^:\[\]]+):(?P<type>\w+)\[(?P<dims>[^\]]*)\]")
_DIM: Final = re.compile(r"-1|\d+")


def parse_inputs(texts: Sequence[str]) -> tuple[TensorSpec, ...]:
    """Read inputs, in the order in which they are given.

    Args:
        texts: One for each input.

    Raises:
        AuthoringError: One is not written so, has an unknown type, or comes twice.
    """
    found: dict[str, TensorSpec] = {}
    for text in texts:
        match = _INPUT.fullmatch(text.strip())
        if match is None:
            raise AuthoringError(f"--input: expected an input, got {text!r}; {HOW}")
        parts = [part.strip() for part in match["dims"].split(",") if part.strip()]
        if not all(_DIM.fullmatch(part) for part in parts):
            raise AuthoringError(f"--input: expected numbers as dims, got {text!r}; {HOW}")
        name = match["name"].strip()
        try:
            spec = author_spec(name, (match["type"], [int(part) for part in parts]), "--input")
        except BackendError as error:
            raise AuthoringError(f"{error}; {HOW}") from error
        if not name.isidentifier() or keyword.iskeyword(name):
            raise AuthoringError(
                f"--input: {name!r} is no name that a Python function can have for an argument; "
                "choose another, or write model.py yourself with predict(params, **inputs)"
            )
        if name in found:
            raise AuthoringError(f"--input: '{name}' is given twice; leave one out")
        found[name] = spec
    return tuple(found.values())


def signature_inputs(inputs: Sequence[TensorSpec]) -> Mapping[str, tuple[str, list[int]]]:
    """Return inputs as SIGNATURE of a model.py has them."""
    return {spec.name: (spec.dtype.name, list(spec.dims)) for spec in inputs}
