# SPDX-License-Identifier: Apache-2.0
"""Sequence batching: what Triton adds to a request, and keeps from one to the next.

Source: Triton's user guide, "Stateful Models" and "Implicit State Management".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tritonserver_jax.runtime.dtypes import DType, dtype_of_author, dtype_of_config
from tritonserver_jax.runtime.errors import refuse
from tritonserver_jax.runtime.tensors import TensorSpec

_FALSE_TRUE = (
    ("int32_false_true", "INT32"),
    ("fp32_false_true", "FP32"),
    ("bool_false_true", "BOOL"),
)


def _control_dtype(name: str, control: Mapping[str, Any]) -> DType:
    for key, dtype in _FALSE_TRUE:
        if control.get(key):
            return dtype_of_author(dtype, f"control input '{name}'")
    dtype_named = dtype_of_config(str(control.get("data_type", "")), f"control input '{name}'")
    if dtype_named is None:
        refuse(f"control input '{name}': sequence_batching gives neither values nor a data_type")
    return dtype_named


def control_inputs(config: Mapping[str, Any]) -> tuple[TensorSpec, ...]:
    """The inputs by which Triton tells a model of the start, the end, … of a sequence.

    Each has one element per row: ``[batch, 1]``, or ``[1]`` without a batch dimension.
    """
    sequence = config.get("sequence_batching", {})
    return tuple(
        TensorSpec(str(entry["name"]), _control_dtype(str(entry["name"]), control), (1,))
        for entry in sequence.get("control_input", ())
        for control in entry.get("control", ())[:1]
    )


def states(config: Mapping[str, Any]) -> tuple[tuple[TensorSpec, str], ...]:
    """The implicit states of a configuration: each as an input, and the name of its output."""
    found = []
    for entry in config.get("sequence_batching", {}).get("state", ()):
        name = str(entry["input_name"])
        dtype = dtype_of_config(str(entry.get("data_type", "")), f"state '{name}'")
        if dtype is None or dtype.is_bytes:
            refuse(f"state '{name}': sequence_batching must give it a numeric data_type")
        dims = tuple(int(dim) for dim in entry.get("dims", ()))
        found.append((TensorSpec(name, dtype, dims), str(entry["output_name"])))
    return tuple(found)


def state_text(spec: TensorSpec) -> str:
    """A state as config.pbtxt has it."""
    kind = spec.dtype.config_name
    dims = ", ".join(map(str, spec.dims))
    return (
        f'state {{ input_name: "{spec.name}" output_name: "{spec.name}" data_type: {kind} '
        f'dims: [ {dims} ] initial_state {{ name: "zeros" data_type: {kind} dims: [ {dims} ] '
        "zero_data: true } }"
    )


def declare_states(config: dict[str, Any], declared: tuple[TensorSpec, ...]) -> None:
    """Put the states that ``SIGNATURE`` declares into a configuration without sequence batching.

    The new value of a state is the output of the same name; it starts as zeros.
    """
    if "sequence_batching" in config:
        return
    states = [
        {
            "input_name": spec.name,
            "output_name": spec.name,
            "data_type": spec.dtype.config_name,
            "dims": list(spec.dims),
            "initial_state": [
                {
                    "name": "zeros",
                    "data_type": spec.dtype.config_name,
                    "dims": [1 if dim == -1 else dim for dim in spec.dims],
                    "zero_data": True,
                }
            ],
        }
        for spec in declared
    ]
    config["sequence_batching"] = {"state": states}
