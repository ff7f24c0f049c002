# SPDX-License-Identifier: Apache-2.0
"""Calls a compiled program below JAX's own dispatch.

JAX looks at every argument of every call: for a model with 300 arrays of parameters that takes
longer than many a model runs. Here the arguments are the same arrays each time, so what JAX looks
for is looked at once, and the runtime's executable is called with them.

`jax.stages.Compiled.runtime_executable` is there for such use, but what it returns may change with
JAX. Whatever is not as expected here means that the ordinary call is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

__all__ = ["direct_call"]


def direct_call(
    compiled: jax.stages.Compiled, arguments: Sequence[Any]
) -> Callable[[], list[Any]] | None:
    """Return what calls a compiled program with these arguments.

    Args:
        compiled: for one device; its result is a tuple of arrays.
        arguments: the leaves of all its arguments, in order.

    Returns:
        A function that returns the outputs, or None if only JAX itself can make the
        call: for callbacks to the host and other effects, for arguments that are no plain arrays on
        the device, while JAX is to look for NaNs, or with a JAX that is not as expected.
    """
    try:
        if not _is_plain(compiled, arguments):
            return None
        executable = compiled.runtime_executable()
        execute = executable.execute_sharded  # type: ignore[union-attr]
    except AttributeError:
        return None
    fixed = list(arguments)

    def call() -> list[Any]:
        # For each output, one array per device.
        return [one[0] for one in execute(fixed).disassemble_into_single_device_arrays()]

    return call


def _is_plain(compiled: Any, arguments: Sequence[Any]) -> bool:
    inner = compiled._executable
    replicated = inner.unsafe_call
    # Not jax.Array: keys of random numbers are such, too.
    array_type = type(jax.device_put(np.zeros(())))
    return bool(
        all(type(argument) is array_type for argument in arguments)
        and not jax.config.jax_debug_nans  # type: ignore[attr-defined]
        and not jax.config.jax_debug_infs  # type: ignore[attr-defined]
        and not replicated.has_unordered_effects
        and not replicated.ordered_effects
        and not replicated.has_host_callbacks
        and getattr(replicated, "mut", None) is None
        and len(replicated.kept_var_idx) == len(arguments) == len(inner.in_avals)
        and compiled.out_tree == jax.tree.structure((0,) * len(inner.out_avals))
    )
