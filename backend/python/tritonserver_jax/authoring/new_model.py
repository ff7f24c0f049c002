# SPDX-License-Identifier: Apache-2.0
"""Writes a new model into a repository: its code and its parameters. Imports JAX.

`version_folder` makes its folder, and writes its configuration.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import jax
import numpy as np

from tritonserver_jax.authoring.code import Weights, checkpoint_code, object_code, template_code
from tritonserver_jax.authoring.errors import AuthoringError
from tritonserver_jax.authoring.inputs import HOW
from tritonserver_jax.authoring.objects import (
    Found,
    Kind,
    find_object,
    has_random_keys,
    returns,
    taken_apart,
)
from tritonserver_jax.authoring.version_folder import complete_config, new_version
from tritonserver_jax.repository import EXPORTED_NAME, save_params
from tritonserver_jax.runtime import weights
from tritonserver_jax.runtime.author import MODEL_FILE
from tritonserver_jax.runtime.tensors import TensorSpec

__all__ = [
    "check_checkpoint",
    "complete_config",
    "from_checkpoint",
    "from_exported",
    "from_object",
    "from_template",
    "load_checkpoint",
    "new_version",
    "require_numbers",
]

_EQUINOX_FILE: Final = "params.eqx"


def require_numbers(inputs: Sequence[TensorSpec], option: str) -> None:
    """Refuse inputs that are none, or strings.

    Args:
        inputs: Of the model.
        option: That they are for.

    Raises:
        AuthoringError: Says what to do.
    """
    if not inputs:
        raise AuthoringError(f"{option}: nobody says what the inputs are; add --input, and {HOW}")
    for spec in inputs:
        if spec.dtype.is_bytes:
            raise AuthoringError(
                f"{option}: input '{spec.name}' is BYTES, and what to make of strings is the "
                "author's to say; write model.py with preprocess, as docs/types.md shows"
            )


def _write_code(version: Path, text: str) -> None:
    (version / MODEL_FILE).write_text(text, encoding="utf-8")


def from_template(version: Path, inputs: Sequence[TensorSpec], max_batch_size: int) -> None:
    """Write a model that scales its inputs.

    Args:
        version: The version directory.
        inputs: Of the model.
        max_batch_size: Of it.
    """
    require_numbers(inputs, "--template")
    _write_code(version, template_code(version.parent.name, inputs, max_batch_size))
    save_params(
        version,
        {
            spec.name: {
                "scale": np.ones((), spec.dtype.numpy),
                "shift": np.zeros((), spec.dtype.numpy),
            }
            for spec in inputs
        },
    )


def load_checkpoint(checkpoint: Path) -> tuple[str, Any]:
    """Read parameters, and return them after the name that the backend looks for beside a model.

    Raises:
        AuthoringError: Nothing is there.
        BackendError: It is no whole checkpoint.
    """
    if not checkpoint.exists():
        raise AuthoringError(
            f"--checkpoint: expected a file or an Orbax directory, found nothing: {checkpoint}; "
            "check the path"
        )
    if checkpoint.is_dir():
        return weights.ORBAX_DIRECTORY, weights.load_orbax(checkpoint)
    if checkpoint.suffix == ".safetensors":
        return weights.SAFETENSORS_FILE, weights.load_safetensors(checkpoint)
    return weights.MSGPACK_FILE, weights.load_msgpack(checkpoint)


def _copy_checkpoint(version: Path, checkpoint: Path) -> tuple[Weights, Any]:
    """Copy parameters beside a model."""
    name, params = load_checkpoint(checkpoint)
    target = version / name
    if checkpoint.is_dir():
        shutil.copytree(checkpoint, target)
    else:
        shutil.copyfile(checkpoint, target)
    leaves = [
        (weights.leaf_name(path), f"{np.asarray(leaf).dtype.name}{list(np.shape(leaf))}")
        for path, leaf in jax.tree_util.tree_flatten_with_path(params)[0]
    ]
    return Weights(name, leaves), params


def from_checkpoint(
    version: Path, checkpoint: Path, inputs: Sequence[TensorSpec], max_batch_size: int
) -> None:
    """Write a model with parameters, of which the author writes the network next.

    Args:
        version: The version directory.
        checkpoint: A file of flax or safetensors, or an Orbax directory.
        inputs: Of the model.
        max_batch_size: Of it.

    Raises:
        AuthoringError: There is no checkpoint, or no input.
        BackendError: It is no whole one.
    """
    require_numbers(inputs, "--checkpoint")
    found, _ = _copy_checkpoint(version, checkpoint)
    _write_code(version, checkpoint_code(version.parent.name, inputs, max_batch_size, found))


def from_exported(version: Path, artifact: Path) -> None:
    """Copy an artifact of ``jax.export``.

    Args:
        version: The version directory.
        artifact: The file.

    Raises:
        AuthoringError: There is none.
    """
    if not artifact.is_file():
        raise AuthoringError(
            f"--exported: expected a file, found none: {artifact}; it is what "
            "Exported.serialize() returns, or `tritonserver-jax export` writes"
        )
    shutil.copyfile(artifact, version / EXPORTED_NAME)


def from_object(
    version: Path,
    reference: str,
    inputs: Sequence[TensorSpec],
    max_batch_size: int,
    checkpoint: Path | None,
) -> Found:
    """Write a model that serves a Python object.

    Args:
        version: The version directory.
        reference: ``module:object`` or ``file.py:object``.
        inputs: Of the model.
        max_batch_size: Of it.
        checkpoint: The parameters, for an object that does not hold its own.

    Returns:
        What was found. If it has no file, the server needs the package that it is in.

    Raises:
        AuthoringError: It cannot be served so; says why, and what to do.
        BackendError: The checkpoint is no whole one.
    """
    require_numbers(inputs, "--from")
    found = find_object(reference, inputs)
    check_checkpoint(found, reference, checkpoint)
    beside: Weights | None = None
    params: Any = None
    if checkpoint is not None:
        beside, params = _copy_checkpoint(version, checkpoint)
    function, params = taken_apart(found, params)
    if found.kind is Kind.NNX:
        beside = _save_nnx(version, params)
    elif found.kind is Kind.EQUINOX:
        beside = _save_equinox(version, found.value)
    kind = returns(function, params, inputs, batching=max_batch_size > 0, what=reference)
    module = found.module.__name__
    if found.file is not None:
        # model.py is the name of what imports it.
        module = found.file.stem if found.file.name != MODEL_FILE else "network"
        shutil.copyfile(found.file, version / f"{module}.py")
    _write_code(
        version,
        object_code(
            version.parent.name,
            found,
            module,
            inputs,
            max_batch_size,
            kind,
            beside,
            params,
            random_keys=found.kind is Kind.NNX and has_random_keys(found),
        ),
    )
    return found


def check_checkpoint(found: Found, reference: str, checkpoint: Path | None) -> None:
    """Refuse an object without its parameters, or parameters for one that has its own.

    Raises:
        AuthoringError: Says which option to give, or to leave out.
    """
    if found.kind.needs_checkpoint and checkpoint is None:
        raise AuthoringError(
            f"--from: {reference} is {found.kind.value}, and its parameters are elsewhere; name "
            "them with --checkpoint (params.msgpack, a .safetensors file or an Orbax directory)"
        )
    if not found.kind.needs_checkpoint and checkpoint is not None:
        raise AuthoringError(
            f"--from: {reference} is {found.kind.value}, which takes no parameters from a "
            "checkpoint; leave --checkpoint out, or load it into the object in its module"
        )


def _save_nnx(version: Path, state: Any) -> Weights:
    import orbax.checkpoint as ocp

    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save((version / weights.ORBAX_DIRECTORY).resolve(), state)
    return Weights(weights.ORBAX_DIRECTORY)


def _save_equinox(version: Path, network: Any) -> Weights:
    import equinox

    equinox.tree_serialise_leaves(version / _EQUINOX_FILE, network)
    return Weights(_EQUINOX_FILE)
