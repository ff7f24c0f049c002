# SPDX-License-Identifier: Apache-2.0
"""What a load has to know of a model, from its complete configuration."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["largest_output", "shape_problem"]


def largest_output(config: Mapping[str, Any], rows: int) -> int | None:
    """Return the bytes of the largest output, or None where the configuration does not say.

    Args:
        config: The complete configuration.
        rows: Of each request.
    """
    sizes = []
    for one in config.get("output", ()):
        dims = [int(dim) for dim in one["dims"]]
        bits = re.search(r"\d+$", str(one["data_type"]))
        if min(dims, default=1) < 0 or one["data_type"] == "TYPE_STRING":
            return None
        sizes.append(rows * math.prod(dims) * (int(bits[0]) // 8 if bits else 1))
    return max(sizes, default=None)


def shape_problem(config: Mapping[str, Any], shapes: Mapping[str, Sequence[int]]) -> str:
    """Say what is wrong with the shapes to send, with the next step; nothing where all is well.

    Args:
        config: The complete configuration; nothing is known of a model without one.
        shapes: What was given, by input.
    """
    if not config:
        return ""
    dims = {str(one["name"]): [int(dim) for dim in one["dims"]] for one in config.get("input", ())}
    for name, shape in shapes.items():
        text = f"--shape {name}:{','.join(map(str, shape))}"
        if name not in dims:
            has = ", ".join(dims) or "none"
            return f"{text}: expected an input of the model, got {name!r}; its inputs are {has}"
        pairs = zip(dims[name], shape, strict=False)
        if len(dims[name]) != len(shape) or any(dim not in (-1, size) for dim, size in pairs):
            return (
                f"{text}: expected sizes that fit the dims {dims[name]} of input {name!r}, which "
                f"are without the batch; give one for each of them, and the same where it is not -1"
            )
    for name, sizes in dims.items():
        if min(sizes, default=0) < 0 and name not in shapes:
            return (
                f"input {name!r} has dims {sizes}: expected a shape to send, got "
                f"none; give --shape {name}:… with one size for each of them"
            )
    return ""
