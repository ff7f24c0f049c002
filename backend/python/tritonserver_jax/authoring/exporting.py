# SPDX-License-Identifier: Apache-2.0
"""Turns a model into an artifact of ``jax.export`` that the backend serves without its code."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import jax
import numpy as np

from tritonserver_jax.authoring import new_model
from tritonserver_jax.authoring.errors import AuthoringError
from tritonserver_jax.authoring.inputs import signature_inputs
from tritonserver_jax.authoring.objects import find_object, named_outputs, returns, taken_apart
from tritonserver_jax.checking.data import Arrays, candidate_sizes, random_rows, sized
from tritonserver_jax.checking.rows import compare, tolerance
from tritonserver_jax.checking.steps import all_equations
from tritonserver_jax.checking.trial import CheckedModel, answers
from tritonserver_jax.model_config import config_text, parse_config
from tritonserver_jax.repository import save_exported, save_params
from tritonserver_jax.runtime.errors import BackendError
from tritonserver_jax.runtime.program import flatten_outputs
from tritonserver_jax.runtime.tensors import TensorSpec
from tritonserver_jax.runtime.weights import leaf_name
from tritonserver_jax.runtime.x64 import x64_mode

__all__ = ["Source", "export_source", "of_model", "of_object"]

_ROWS: Final = 5
_KEEP: Final = "keep model.py, which the backend serves as it is"


@dataclass(frozen=True)
class Source:
    """What is exported.

    Attributes:
        what: For messages.
        function: Takes parameters and, by name, the inputs; returns a dict.
        params: Its parameters; None without any.
        inputs: Of it.
        max_batch_size: 0 where it has no batch dimension.
        x64: Whether it is traced in JAX's 64-bit mode.
        config: Of the model to be.
    """

    what: str
    function: Callable[..., Any]
    params: Any
    inputs: tuple[TensorSpec, ...]
    max_batch_size: int
    x64: bool
    config: Mapping[str, Any] = field(default_factory=dict)


def of_model(directory: Path, version: int) -> Source:
    """Take the model of a repository.

    Args:
        directory: Of the model.
        version: Of it.

    Raises:
        AuthoringError: It has what an artifact cannot hold.
        BackendError: It does not load.
    """
    text = directory / "config.pbtxt"
    config = parse_config(text.read_text(encoding="utf-8") if text.is_file() else "", str(text))
    model = CheckedModel(directory=directory.resolve(), version=version, config=config)
    what = f"{directory.name} version {version}"
    _refuse(model, what)
    author, served = model.author, [spec.name for spec in model.outputs]
    precision = model.predict.parameters.matmul_precision

    def function(params: Any, **inputs: Any) -> dict[str, Any]:
        with jax.default_matmul_precision(precision) if precision else contextlib.nullcontext():
            made = flatten_outputs(author.predict(params, **inputs), f"{what}: predict must return")
        return {name: made[name] for name in served}

    made = dict(model.config)
    made.update(name="", backend="jax", default_model_filename="", model_warmup=[])
    made.pop("version_policy", None)  # there will be one version
    parameters = dict(made.get("parameters", {}))
    if model.x64:
        parameters["x64"] = {"string_value": "true"}
    lengths = {spec.dim_lengths for spec in model.inputs if -1 in spec.dims}
    if len(lengths) > 1:
        raise AuthoringError(
            f"{what} cannot be exported: its inputs have different lengths in SIGNATURE, and an "
            f"artifact has no SIGNATURE; {_KEEP}"
        )
    if any(lengths):
        value = ",".join(map(str, lengths.pop()))
        parameters["lengths"] = {"string_value": value}
    made["parameters"] = parameters
    return Source(
        what, function, model.host_params, model.inputs, model.max_batch_size, model.x64, made
    )


def _refuse(model: CheckedModel, what: str) -> None:
    """Refuse what an artifact cannot hold."""
    reasons = []
    if model.author.module is None:
        raise AuthoringError(f"{what} is an artifact of jax.export already; copy its folder")
    if model.runs_on_the_host:
        reasons.append(f"it has {model.runs_on_the_host}, which run in Python on the host")
    if any(spec.dtype.is_bytes for spec in model.inputs):
        reasons.append("it takes strings")
    if model.predict.wants_masks:
        reasons.append("predict takes masks, which only a model.py is given")
    if len(model.all_inputs) > len(model.inputs):
        reasons.append("it keeps a state, or takes controls, of a sequence")
    if any(spec.optional for spec in model.inputs):
        reasons.append("it has optional inputs, and an artifact takes all of them")
    if reasons:
        raise AuthoringError(f"{what} cannot be exported: {', and '.join(reasons)}; {_KEEP}")


def of_object(
    reference: str,
    inputs: tuple[TensorSpec, ...],
    max_batch_size: int,
    checkpoint: Path | None,
) -> Source:
    """Take a Python object.

    Args:
        reference: ``module:object`` or ``file.py:object``.
        inputs: Of it.
        max_batch_size: Of the model to be; 0 for one without a batch dimension.
        checkpoint: Its parameters, where it does not hold them.

    Raises:
        AuthoringError: It is not there, or is nothing that can be served.
        BackendError: The checkpoint is no whole one.
    """
    new_model.require_numbers(inputs, "--from")
    found = find_object(reference, inputs)
    new_model.check_checkpoint(found, reference, checkpoint)
    params = None if checkpoint is None else new_model.load_checkpoint(checkpoint)[1]
    function, params = taken_apart(found, params)
    kind = returns(function, params, inputs, batching=max_batch_size > 0, what=reference)
    x64 = any(spec.dtype.needs_x64 for spec in inputs)
    config = parse_config("")
    config.update(backend="jax", max_batch_size=max_batch_size)
    order = [spec.name for spec in inputs]
    named = named_outputs(function, kind)

    def in_order(params: Any, **given: Any) -> Any:
        # JAX sorts arguments by name; a network is given them as they were listed.
        return named(params, **{name: given[name] for name in order})

    return Source(reference, in_order, params, inputs, max_batch_size, x64, config)


def _plain(params: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Parameters as nested dicts, which files keep; and what makes of them what they were."""
    if _is_plain(params):
        return params, lambda given: given
    structure: Any
    leaves, structure = jax.tree.flatten(params)
    paths = [leaf_name(path) for path, _ in jax.tree_util.tree_flatten_with_path(params)[0]]
    names = [f"{number}/{path}" for number, path in enumerate(paths)]
    flat = dict(zip(names, leaves, strict=True))
    return flat, lambda given: structure.unflatten([given[name] for name in names])


def _is_plain(node: Any) -> bool:
    if isinstance(node, dict):
        return all(isinstance(key, str) and _is_plain(one) for key, one in node.items())
    return hasattr(node, "dtype") and not hasattr(node, "keys")


def export_source(source: Source, version: Path, platforms: Sequence[str]) -> None:
    """Write an artifact, its parameters and its configuration, and compare what it computes.

    Args:
        source: What to export.
        version: The version directory of a model that `new_version` made.
        platforms: What it is to run on.

    Raises:
        AuthoringError: JAX cannot export it, or the artifact computes something else.
        BackendError: The artifact does not load.
    """
    has_params = bool(jax.tree.leaves(source.params))
    # As NumPy's arrays: JAX's may be of another mode.
    params: Any = None
    whole: Callable[[Any], Any] | None = None
    if has_params:
        params, whole = _plain(jax.tree.map(np.asarray, source.params))

    def function(given: Any, **inputs: Any) -> Any:
        return source.function(source.params if whole is None else whole(given), **inputs)

    try:
        save_exported(
            version,
            function,
            signature_inputs(source.inputs),
            params=params,
            platforms=platforms,
            batch=source.max_batch_size > 0,
            x64=source.x64,
        )
    except BackendError:
        raise
    except Exception as error:
        raise AuthoringError(_why(source, error, platforms)) from error
    if has_params:
        save_params(version, params)
    new_model.complete_config(version, config_text(source.config))
    _compare(source, version)


def _calls_python(source: Source) -> str:
    """The name of what calls Python while the program runs, if anything does."""
    rows = (_ROWS,) if source.max_batch_size else ()
    for size in candidate_sizes(source.inputs):
        given = {
            spec.name: jax.ShapeDtypeStruct((*rows, *sized(spec, size)), spec.dtype.numpy)
            for spec in source.inputs
        }
        try:
            with x64_mode(source.x64):
                program = jax.make_jaxpr(source.function)(source.params, **given)
        except Exception:  # noqa: S112 - what it raises is said elsewhere
            continue
        names = (equation.primitive.name for equation in all_equations(program.jaxpr))
        return next((name for name in names if "callback" in name or "debug_print" in name), "")
    return ""


def _why(source: Source, error: Exception, platforms: Sequence[str]) -> str:
    said = " ".join(str(error).split())
    name = type(error).__name__
    if calls := _calls_python(source):
        reason = f"it calls Python while it runs ({calls})"
        remedy = f"take that out, or {_KEEP}"
    elif "compatibility guarantees" in said:
        reason = f"it uses an operation of which JAX promises no later version can run it: {said}"
        remedy = f"compute it in another way, or {_KEEP}"
    elif "Inconclusive" in name or "symbolic" in said.lower() or "Concretization" in name:
        reason = (
            "it cannot be traced for any number of rows at once: it compares a dimension that "
            f"varies, or makes a Python number of it ({name}: {said})"
        )
        remedy = f"write it with shapes alone (x.shape[0] in reshape, jnp.zeros, ...), or {_KEEP}"
    else:
        reason = f"{name}: {said}"
        remedy = f"correct it, try fewer platforms than {', '.join(platforms)}, or {_KEEP}"
    return f"{source.what} cannot be exported: {reason[:600]}; {remedy}"


def _compare(source: Source, version: Path) -> None:
    """That the artifact computes what its source does, on this machine."""
    config = parse_config((version.parent / "config.pbtxt").read_text(encoding="utf-8"))
    model = CheckedModel(directory=version.parent.resolve(), version=1, config=config)
    if "cpu" not in (model.author.platforms or ("cpu",)):
        return  # there is nothing here to run it on
    (instance, *_) = model.instances(on_cpu=True)
    rows = min(_ROWS, model.max_batch_size) if model.batching else None
    failure: Exception | None = None
    for size in candidate_sizes(model.all_inputs):
        given = random_rows(model.all_inputs, rows, np.random.default_rng(0), size=size)
        try:
            expected = _expected(source, given)
        except Exception as error:
            failure = failure or error
            continue
        got = answers(model, instance, given)
        difference = compare(
            expected, got, tolerance(model, instance, given), batching=model.batching
        )
        if difference is not None:
            raise AuthoringError(
                f"{source.what}: the artifact computes something else: {difference.text}; {_KEEP}, "
                "and report this"
            )
        return
    raise AuthoringError(
        f"{source.what} cannot be tried: {type(failure).__name__}: {failure}; correct it"
    )


def _expected(source: Source, given: Arrays) -> Arrays:
    with x64_mode(source.x64), jax.default_device(jax.devices("cpu")[0]):
        made = jax.jit(source.function)(source.params, **given)
    return {name: np.asarray(one) for name, one in made.items()}
