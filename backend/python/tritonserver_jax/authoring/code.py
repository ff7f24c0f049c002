# SPDX-License-Identifier: Apache-2.0
"""The text of a model.py that is made for an author, who will read it and go on from there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tritonserver_jax.authoring.inputs import signature_inputs
from tritonserver_jax.authoring.objects import Found, Kind, Returns, takes_rng
from tritonserver_jax.runtime.tensors import TensorSpec

__all__ = ["Weights", "checkpoint_code", "object_code", "template_code"]

#: Of a tree of parameters, how many arrays are listed.
_MOST_LEAVES: Final = 40
_INDENT: Final = "    "


@dataclass(frozen=True, slots=True)
class Weights:
    """Parameters that lie beside a model.py.

    Attributes:
        file: Their name there.
        leaves: Each array's name, and what it is.
    """

    file: str
    leaves: Sequence[tuple[str, str]] = ()


def _in_text(name: str) -> str:
    """Return a name as it can be written between quotes."""
    return name.replace("\\", "\\\\").replace('"', '\\"')


def _signature(inputs: Sequence[TensorSpec], max_batch_size: int) -> list[str]:
    lines = ["SIGNATURE = {", f'{_INDENT}"inputs": {{']
    for name, (dtype, dims) in signature_inputs(inputs).items():
        lines.append(f'{_INDENT * 2}"{name}": ("{dtype}", {dims}),')
    lines += [f"{_INDENT}}},", f'{_INDENT}"max_batch_size": {max_batch_size},', "}"]
    return lines


def _arguments(inputs: Sequence[TensorSpec]) -> str:
    return ", ".join(spec.name for spec in inputs)


def _rows(max_batch_size: int) -> str:
    return (
        "Each input has its rows as the first dimension, and so has each output."
        if max_batch_size
        else "There is no batch: inputs and outputs are as SIGNATURE says."
    )


def _file(*parts: Sequence[str]) -> str:
    return "\n\n\n".join("\n".join(part) for part in parts if part) + "\n"


def template_code(name: str, inputs: Sequence[TensorSpec], max_batch_size: int) -> str:
    """Return a model that works, for an author who writes the network next.

    Args:
        name: Of the model.
        inputs: Of it.
        max_batch_size: Of it; 0 for a model without a batch dimension.
    """
    outputs = []
    for spec in inputs:
        scaled = f'{spec.name} * params["{spec.name}"]["scale"] + params["{spec.name}"]["shift"]'
        outputs.append(f'{_INDENT * 2}"{output_name(spec.name)}": {scaled},')
    name = _in_text(name)
    return _file(
        [
            f'"""The model {name}: scales and shifts its inputs, until you write your network."""',
            "",
            *_signature(inputs, max_batch_size),
        ],
        [
            f"def predict(params, {_arguments(inputs)}):",
            f'{_INDENT}"""Compute the outputs, by name.',
            "",
            f"{_INDENT}JAX traces and compiles it: call what you like of jax.numpy, but let no",
            f"{_INDENT}Python `if` depend on values. `params` is what lies in params.msgpack.",
            f"{_INDENT}{_rows(max_batch_size)}",
            f'{_INDENT}"""',
            f"{_INDENT}return {{",
            *outputs,
            f"{_INDENT}}}",
        ],
    )


def output_name(name: str) -> str:
    """Return the name of the output that a template makes of an input."""
    return f"{name}_OUT" if name.isupper() else f"{name}_out"


def checkpoint_code(
    name: str, inputs: Sequence[TensorSpec], max_batch_size: int, weights: Weights
) -> str:
    """Return a model that has its parameters, and waits for its network.

    Args:
        name: Of the model.
        inputs: Of it.
        max_batch_size: Of it; 0 for a model without a batch dimension.
        weights: What lies beside it.
    """
    leaves = [f"#   {leaf}: {what}" for leaf, what in weights.leaves[:_MOST_LEAVES]]
    if len(weights.leaves) > _MOST_LEAVES:
        leaves.append(f"#   and {len(weights.leaves) - _MOST_LEAVES} more")
    returned = ", ".join(f'"{output_name(spec.name)}": {spec.name}' for spec in inputs)
    name = _in_text(name)
    return _file(
        [
            f'"""The model {name}: its parameters are in {weights.file}; write its network."""',
            "",
            *_signature(inputs, max_batch_size),
            "",
            f"# What predict gets as params, from {weights.file}:",
            *leaves,
        ],
        [
            f"def predict(params, {_arguments(inputs)}):",
            f'{_INDENT}"""Compute the outputs, by name.',
            "",
            f"{_INDENT}{_rows(max_batch_size)}",
            f"{_INDENT}Now it gives back its inputs. Put your network there, such as",
            f'{_INDENT}`Network().apply({{"params": params}}, {inputs[0].name})` of flax linen.',
            f'{_INDENT}"""',
            f"{_INDENT}return {{{returned}}}",
        ],
    )


def _named_outputs(call: str, returns: Returns) -> list[str]:
    if returns is Returns.DICT:
        return [f"{_INDENT}return {call}"]
    if returns is Returns.ARRAY:
        return [f'{_INDENT}return {{"OUTPUT": {call}}}']
    return [
        f"{_INDENT}outputs = {call}",
        f'{_INDENT}return {{f"OUTPUT{{number}}": one for number, one in enumerate(outputs)}}',
    ]


def object_code(
    name: str,
    found: Found,
    module: str,
    inputs: Sequence[TensorSpec],
    max_batch_size: int,
    returns: Returns,
    weights: Weights | None,
    params: Any,
    *,
    random_keys: bool = False,
) -> str:
    """Return a model that serves an object.

    Args:
        name: Of the model.
        found: The object.
        module: By which name model.py imports its module: a file beside it, where `found` has one.
        inputs: Of the model.
        max_batch_size: Of it; 0 for a model without a batch dimension.
        returns: What the object returns.
        weights: What lies beside model.py.
        params: The parameters, to see how flax linen wants them.
        random_keys: Whether a module of flax nnx has random keys, which are no weights.
    """
    arguments = _arguments(inputs)
    named = ", ".join(f"{spec.name}={spec.name}" for spec in inputs)
    if found.file is not None:
        imported, root = f"from . import {module}", module
    elif "." in module:
        package, _, last = module.rpartition(".")
        imported, root = f"from {package} import {last}", last
    else:
        imported, root = f"import {module}", module
    value = f"{root}.{found.name}"
    about = f'"""The model {_in_text(name)}: {_in_text(value)}, {found.kind.value}."""'
    imports, setup, load = [imported], list[str](), list[str]()
    where = f"`params` is what lies in {weights.file}." if weights else "It has no parameters."
    kind = found.kind
    if kind is Kind.FUNCTION:
        call = f"{value}({named})"
    elif kind is Kind.FUNCTION_OF_PARAMS:
        call = f"{value}(params, {named})"
    elif kind is Kind.LINEN:
        whole = isinstance(params, dict) and "params" in params
        given = "params" if whole else '{"params": params}'
        call = f"{value}.apply({given}, {arguments})"
    elif kind is Kind.HAIKU:
        rng = "None, " if takes_rng(found.value) else ""
        call = f"{value}.apply(params, {rng}{arguments})"
    elif kind is Kind.NNX:
        assert weights is not None  # noqa: S101 - they are in the object
        imports.insert(0, "from flax import nnx\n")
        setup = [
            "# The network without what it is used in training for, and without its weights.",
            f"{value}.eval()",
            f"GRAPH, KEYS, STATE = nnx.split({value}, nnx.RngState, ...)"
            if random_keys
            else f"GRAPH, STATE = nnx.split({value})",
        ]
        load = [
            "def load(context):",
            f'{_INDENT}"""Read the weights into the structure that they had."""',
            f'{_INDENT}return context.load_orbax("{weights.file}", target=STATE)',
        ]
        call = f"nnx.merge(GRAPH, {'KEYS, ' if random_keys else ''}params)({arguments})"
    else:
        assert weights is not None  # noqa: S101 - they are in the object
        imports = ["import equinox as eqx", "import jax\n", imported]
        setup = [
            "# The network as it is used after training; its arrays are the parameters.",
            f"NETWORK = eqx.nn.inference_mode({value})",
            "_, STATIC = eqx.partition(NETWORK, eqx.is_array)",
        ]
        load = [
            "def load(context):",
            f'{_INDENT}"""Read the weights, as Equinox wrote them."""',
            f'{_INDENT}path = context.directory / "{weights.file}"',
            f"{_INDENT}return eqx.filter(eqx.tree_deserialise_leaves(path, NETWORK), eqx.is_array)",
        ]
        call = f"jax.vmap(eqx.combine(params, STATIC))({arguments})"
    return _file(
        [
            about,
            "",
            *imports,
            "",
            *_signature(inputs, max_batch_size),
            *(["", *setup] if setup else []),
        ],
        load,
        [
            f"def predict(params, {arguments}):",
            f'{_INDENT}"""Compute the outputs, by name.',
            "",
            f"{_INDENT}{_rows(max_batch_size)}",
            f"{_INDENT}{where}",
            f'{_INDENT}"""',
            *_named_outputs(call, returns),
        ],
    )
