# SPDX-License-Identifier: Apache-2.0
"""``model.jaxexport``: a model that ``jax.export`` serialized, served without its author's code.

The names of inputs and outputs travel in the pytrees of the exported function: it takes its inputs
as keyword arguments, or as one dict, and returns a dict. Before them it may take parameters, which
then lie beside the file, as for ``model.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import export
from jax.extend import mlir as portable
from jax.interpreters import mlir

from tritonserver_jax.runtime import weights
from tritonserver_jax.runtime.author import (
    EXPORTED_FILE,
    AuthorModel,
    LoadContext,
    Signature,
)
from tritonserver_jax.runtime.config import states_max_batch_size
from tritonserver_jax.runtime.dtypes import dtype_of_array
from tritonserver_jax.runtime.errors import Code, refuse
from tritonserver_jax.runtime.tensors import TensorSpec

_HOW = (
    "export a function that takes its inputs by name and returns a dict, such as "
    "jax.export.export(jax.jit(f))(x=...) of def f(*, x): return {'y': ...}, or write it with "
    "tritonserver_jax.repository.save_exported"
)


@dataclass(frozen=True)
class _Arguments:
    """How an exported function takes its inputs.

    Attributes:
        inputs: aval by name.
        by_name: as keyword arguments; else as one dict.
        params: avals of the parameters that come first, as a pytree.
        takes_params: whether there is such an argument at all (it may have no leaves).
    """

    inputs: dict[str, Any]
    by_name: bool
    params: Any
    takes_params: bool


def load_exported(
    directory: Path, version_directory: Path, context: LoadContext, doing: str
) -> AuthorModel:
    """Load ``model.jaxexport``, and the parameters beside it if it takes any.

    Args:
        directory: where it is.
        version_directory: of the model: `directory`, or its parent.
        context: of the load.
        doing: for messages, such as ``"model 'm' version 1"``.

    Raises:
        BackendError: naming the file and the reason.
    """
    path = directory / EXPORTED_FILE
    exported = _deserialize(path)
    if exported.nr_devices != 1:
        refuse(
            f"{path} was exported for {exported.nr_devices} devices, and an instance has one; "
            "export it without shardings",
            Code.UNSUPPORTED,
        )
    arguments = _arguments(exported, path)
    params = None
    if jax.tree.leaves(arguments.params):
        found = weights.load_default(directory)
        if found.missing:
            refuse(f"{doing}: {path} takes parameters, and {found.missing}", Code.NOT_FOUND)
        params = weights.as_structure_of(arguments.params, found.params, f"the weights of {path}")
    signature = _signature(exported, arguments, path, context.config, version_directory.parent)
    return AuthorModel(
        directory=directory,
        module=None,
        predict=_predict(exported, arguments),
        has_predict=True,
        preprocess=None,
        postprocess=None,
        stream=None,
        signature=signature,
        params=params if arguments.takes_params else None,
        missing_weights="",
        source=EXPORTED_FILE,
        platforms=tuple(exported.platforms),
        # As a model.py may say by jax.config.update: it may not show in its inputs and outputs.
        jax_settings={"x64": True} if _has_64_bits(exported) else {},
    )


def _has_64_bits(exported: export.Exported) -> bool:
    return any(
        np.dtype(aval.dtype).itemsize == 8 and np.dtype(aval.dtype).kind in "iuf"
        for aval in (*exported.in_avals, *exported.out_avals)
    )


def _deserialize(path: Path) -> export.Exported:
    data = weights.read(path)
    try:
        exported = export.deserialize(bytearray(data))
    # A damaged flatbuffer fails in many ways.
    except Exception as error:
        refuse(
            f"{path} ({len(data)} bytes) is not a whole artifact of jax.export "
            f"({type(error).__name__}: {error}); write it again with Exported.serialize(), or copy "
            "it again"
        )
    lowest = export.minimum_supported_calling_convention_version
    highest = export.maximum_supported_calling_convention_version
    version = exported.calling_convention_version
    if not lowest <= version <= highest:
        remedy = (
            "export it again with a newer JAX"
            if version < lowest
            else "serve it with a newer JAX, or export it again with an older one"
        )
        refuse(
            f"{path} has version {version} of jax.export's calling convention, and JAX "
            f"{jax.__version__} here runs versions {lowest} to {highest}; {remedy}",
            Code.UNSUPPORTED,
        )
    try:
        # XLA would find damage only when an instance compiles it, and not name the file.
        with mlir.make_ir_context():
            portable.deserialize_portable_artifact(exported.mlir_module_serialized)
    except Exception as error:
        refuse(
            f"{path} ({len(data)} bytes) is damaged, or from a newer JAX than {jax.__version__}: "
            f"its program cannot be read ({type(error).__name__}: {error}); write it again with "
            "Exported.serialize(), or copy it again"
        )
    return exported


def _arguments(exported: export.Exported, path: Path) -> _Arguments:
    args, kwargs = jax.tree.unflatten(exported.in_tree, exported.in_avals)
    if kwargs:
        inputs, by_name, before = kwargs, True, args
    elif args and isinstance(args[-1], Mapping):
        inputs, by_name, before = args[-1], False, args[:-1]
    else:
        refuse(
            f"{path}: {exported.fun_name} takes {len(args)} positional argument(s), which have no "
            f"names for clients; {_HOW}"
        )
    if len(before) > 1:
        refuse(
            f"{path}: {exported.fun_name} takes {len(before)} positional arguments before its "
            f"inputs, expected at most one, the parameters; {_HOW}"
        )
    for name, aval in inputs.items():
        if not hasattr(aval, "shape"):
            refuse(
                f"{path}: input '{name}' of {exported.fun_name} is a {type(aval).__name__}, "
                f"expected one array; {_HOW}"
            )
    if by_name and "self" in inputs:
        refuse(
            f"{path}: jax.export cannot pass an input named 'self' by keyword; export a function "
            "that takes its inputs as one dict"
        )
    outputs = jax.tree.unflatten(exported.out_tree, exported.out_avals)
    if not isinstance(outputs, Mapping):
        refuse(
            f"{path}: {exported.fun_name} returns a {type(outputs).__name__}, whose parts have no "
            f"names for clients; {_HOW}"
        )
    return _Arguments(dict(inputs), by_name, before[0] if before else None, bool(before))


def _is_symbolic(dim: Any) -> bool:
    return bool(export.is_symbolic_dim(dim))


def _batch_symbol(inputs: Mapping[str, Any]) -> str | None:
    """The symbol that all inputs have as first dimension, and nowhere else; None without one."""
    first = {str(aval.shape[0]) if aval.shape else "" for aval in inputs.values()}
    if len(first) != 1:
        return None
    symbol = first.pop()
    rest = {str(dim) for aval in inputs.values() for dim in aval.shape[1:]}
    return symbol if symbol.isidentifier() and symbol not in rest else None


def _signature(
    exported: export.Exported,
    arguments: _Arguments,
    path: Path,
    config: Mapping[str, Any],
    model_directory: Path,
) -> Signature:
    symbol = _batch_symbol(arguments.inputs)
    stated = states_max_batch_size(config, model_directory)
    maximum = int(config.get("max_batch_size", 0))
    if stated and maximum > 0 and symbol is None:
        shapes = ", ".join(
            f"'{name}' {aval.str_short()}" for name, aval in arguments.inputs.items()
        )
        refuse(
            f"config.pbtxt says max_batch_size {maximum}, but {path} was exported with fixed "
            f"shapes ({shapes}); export it with a symbolic batch, such as "
            "jax.export.symbolic_shape('b, 4'), the first dimension of every input, or set "
            "max_batch_size to 0"
        )
    # As for model.py: an author who lists inputs, and no max_batch_size, means Triton's default.
    batching = symbol is not None and (maximum > 0 if stated else not config.get("input"))
    outputs = jax.tree.unflatten(exported.out_tree, exported.out_avals)
    flat = all(hasattr(aval, "shape") for aval in outputs.values())
    batched = all(aval.shape and str(aval.shape[0]) == symbol for aval in exported.out_avals)
    return Signature(
        inputs=_specs(arguments.inputs, batching, path, "input"),
        # Where they have no batch, the check of what predict returns says so.
        outputs=_specs(outputs, batching, path, "output")
        if flat and (batched or not batching)
        else None,
        max_batch_size=None if batching else 0,
    )


def _specs(
    avals: Mapping[str, Any], batching: bool, path: Path, kind: str
) -> tuple[TensorSpec, ...]:
    specs = []
    for name, aval in avals.items():
        tensor = f"{path}: {kind} '{name}'"
        dims = []
        for dim in aval.shape[1:] if batching else aval.shape:
            if _is_symbolic(dim) and kind == "input" and not str(dim).isidentifier():
                refuse(
                    f"{tensor} has the dimension '{dim}'; expected numbers and plain names such as "
                    "'n' in the shapes of inputs",
                    Code.UNSUPPORTED,
                )
            dims.append(-1 if _is_symbolic(dim) else int(dim))
        try:
            dtype = np.dtype(aval.dtype)
        except TypeError:
            refuse(f"{tensor} has the type {aval.dtype}, which no client can send or get")
        specs.append(TensorSpec(name, dtype_of_array(dtype, tensor), tuple(dims)))
    return tuple(specs)


def _predict(exported: export.Exported, arguments: _Arguments) -> Callable[..., Any]:
    shapes = {name: tuple(map(str, aval.shape)) for name, aval in arguments.inputs.items()}

    def predict(params: Any, /, **inputs: Any) -> Any:
        _check_shared(shapes, inputs)
        first = (params,) if arguments.takes_params else ()
        if arguments.by_name:
            return exported.call(*first, **inputs)
        return exported.call(*first, inputs)

    return predict


def _check_shared(shapes: Mapping[str, Sequence[str]], inputs: Mapping[str, Any]) -> None:
    """A symbol stands for one size, wherever it is: what else comes is the client's mistake."""
    seen: dict[str, tuple[str, int]] = {}
    for name, dims in shapes.items():
        for symbol, size in zip(dims, inputs[name].shape, strict=True):
            other, expected = seen.setdefault(symbol, (name, size))
            if symbol.isidentifier() and size != expected:
                refuse(
                    f"inputs '{other}' and '{name}' must have the same size in dimension "
                    f"'{symbol}', got {expected} and {size}"
                )
