# SPDX-License-Identifier: Apache-2.0
"""A model configuration: what the author wrote in it, and its completion from the model."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tritonserver_jax.runtime.dtypes import DType, dtype_of_config
from tritonserver_jax.runtime.errors import Code, refuse
from tritonserver_jax.runtime.sequence import declare_states
from tritonserver_jax.runtime.tensors import Dims, TensorSpec, dims_agree

Kind = Literal["input", "output"]

_MAX_BATCH_SIZE = re.compile(r"\bmax_batch_size\s*:")
_TEXT_OR_COMMENT = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|#[^\n]*")
_SCHEDULERS = ("dynamic_batching", "sequence_batching", "ensemble_scheduling")


@dataclass(frozen=True)
class ConfigTensor:
    """One ``input`` or ``output`` of a configuration; None where it is left open."""

    name: str
    dtype: DType | None
    dims: Dims | None
    optional: bool = False
    ragged: bool = False


def config_tensors(config: Mapping[str, Any], kind: Kind) -> tuple[ConfigTensor, ...]:
    """The inputs or outputs that a configuration lists, with the dims that the backend sees.

    ``reshape`` stands between what clients send and what the backend gets: where it is set, its
    shape counts.
    """
    tensors = []
    for entry in config.get(kind, ()):
        name = str(entry.get("name", ""))
        shape = entry.get("reshape", {}).get("shape") if "reshape" in entry else None
        if shape is None:
            shape = entry.get("dims") or None
        dims = None if shape is None else tuple(int(dim) for dim in shape)
        dtype = dtype_of_config(str(entry.get("data_type", "")), f"{kind} '{name}'")
        if entry.get("is_shape_tensor"):
            refuse(f"{kind} '{name}': is_shape_tensor is for TensorRT", Code.UNSUPPORTED)
        tensors.append(
            ConfigTensor(
                name,
                dtype,
                dims,
                optional=bool(entry.get("optional")),
                ragged=bool(entry.get("allow_ragged_batch")),
            )
        )
    return tuple(tensors)


def states_max_batch_size(config: Mapping[str, Any], model_directory: Path) -> bool:
    """Whether the author decided on max_batch_size.

    Triton's JSON has 0 both for "no batching" and for "not said", so the file is asked.
    """
    if int(config.get("max_batch_size", 0)) > 0:
        return True
    try:
        text = (model_directory / "config.pbtxt").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return _MAX_BATCH_SIZE.search(_TEXT_OR_COMMENT.sub(" ", text)) is not None


def merge(
    kind: Kind,
    declared: Sequence[TensorSpec] | None,
    listed: Sequence[ConfigTensor],
    *,
    source: str,
    config_chooses: bool,
    batching: bool,
    listed_in: str = "config.pbtxt",
) -> tuple[TensorSpec, ...]:
    """Bring together what the configuration lists and what the model is.

    Args:
        kind: of tensors.
        declared: by the model; None where it does not say.
        listed: in the configuration.
        source: of `declared`, for messages: ``"SIGNATURE of model.py"``, ``"predict"``.
        config_chooses: whether the configuration may list a part of them, which then is all that
            is served.
        batching: whether the model has a batch dimension. One without it cannot have tensors of
            rank 0 in Triton: its configuration has ``dims: 1`` for them.
        listed_in: where `listed` comes from, for messages.

    Returns:
        Complete specs, in the order of the configuration where it has one.

    Raises:
        BackendError: INVALID_ARG naming the tensor and both sides, where they contradict each
            other, or where neither says.
    """
    by_name = {spec.name: spec for spec in declared or ()}
    merged = []
    for tensor in listed:
        known = by_name.pop(tensor.name, None)
        if known is None and declared is not None:
            names = ", ".join(repr(spec.name) for spec in declared) or "none"
            refuse(
                f"{kind} '{tensor.name}' of {listed_in} is not one of the {kind}s of {source} "
                f"({names})"
            )
        dtype = tensor.dtype or (known.dtype if known else None)
        dims = tensor.dims if tensor.dims is not None else (known.dims if known else None)
        if known is not None and known.dims == () and dims == (1,) and not batching:
            dims = ()
        if dtype is None or dims is None:
            what = "data_type" if dtype is None else "dims"
            refuse(
                f"{kind} '{tensor.name}': config.pbtxt gives no {what}, and nothing else does; add "
                f"it there or in SIGNATURE of model.py"
            )
        if known is not None and dtype != known.dtype:
            refuse(
                f"{kind} '{tensor.name}': {listed_in} says {dtype.config_name}, but {source} has "
                f"{known.dtype.config_name}"
            )
        if known is not None and not dims_agree(dims, known.dims):
            # A frequent slip: dims that begin with the batch.
            with_batch = batching and dims_agree(dims[1:], known.dims)
            refuse(
                f"{kind} '{tensor.name}': {listed_in} says dims {list(dims)}, but {source} has "
                f"{list(known.dims)} (both without the batch dimension)"
                + (f"; leave out the {dims[0]} of the batch" if with_batch else "")
            )
        follows = known.follows if known is not None else ()
        merged.append(
            TensorSpec(
                tensor.name,
                dtype,
                dims,
                optional=tensor.optional,
                ragged=tensor.ragged,
                follows=follows,
            )
        )
    if not (config_chooses and listed):
        merged.extend(by_name.values())
    return tuple(merged)


def _complete_tensors(
    config: dict[str, Any], kind: Kind, specs: Sequence[TensorSpec], *, batching: bool
) -> None:
    entries = {str(entry.get("name", "")): entry for entry in config.get(kind, ())}
    completed = []
    for spec in specs:
        entry = entries.get(spec.name, {"name": spec.name})
        if entry.get("data_type", "TYPE_INVALID") in ("", "TYPE_INVALID"):
            entry["data_type"] = spec.dtype.config_name
        if spec.optional:
            entry["optional"] = True
        if not entry.get("dims"):
            if spec.dims:
                entry["dims"] = list(spec.dims)
            elif "reshape" not in entry:
                # A configuration cannot say "no dimensions" in dims; it says so by a reshape, and
                # without a batch dimension not even so.
                entry["dims"] = [1]
                if batching:
                    entry["reshape"] = {"shape": []}
        completed.append(entry)
    config[kind] = completed


def complete(
    config: Mapping[str, Any],
    *,
    max_batch_size: int,
    inputs: Sequence[TensorSpec],
    outputs: Sequence[TensorSpec],
    states: Sequence[TensorSpec] = (),
    decoupled: bool = False,
    preferred: Sequence[int] = (),
) -> dict[str, Any]:
    """The configuration with everything that the model knows and the author left open.

    Args:
        config: as the author wrote it.
        max_batch_size: of the model.
        inputs: what clients send.
        outputs: what they get.
        states: what the model declares for Triton to keep for a sequence.
        decoupled: whether a request is answered by any number of responses.
        preferred: batch sizes for the dynamic batcher to prefer.
    """
    completed = copy.deepcopy(dict(config))
    completed["max_batch_size"] = max_batch_size
    batching = max_batch_size > 0
    _complete_tensors(completed, "input", inputs, batching=batching)
    _complete_tensors(completed, "output", outputs, batching=batching)
    if states:
        declare_states(completed, tuple(states))
    if decoupled:
        completed.setdefault("model_transaction_policy", {})["decoupled"] = True
    if max_batch_size > 1 and not any(scheduler in completed for scheduler in _SCHEDULERS):
        completed["dynamic_batching"] = {"preferred_batch_size": list(preferred)}
    return completed
