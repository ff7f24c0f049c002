# SPDX-License-Identifier: Apache-2.0
"""The samples of ``model_warmup`` in a configuration, run before Triton runs them.

Triton runs them when an instance is there already. One that fails then makes Triton end the thread
of the instance while it is still in use, which has ended whole servers (release 24.10). Run here
first, it fails the load as anything else that a model cannot do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tritonserver_jax.runtime.errors import Code, refuse
from tritonserver_jax.runtime.tensors import TensorSpec, dims_agree

#: Beside the version directories: where Triton looks for ``input_data_file``.
_FOLDER = "warmup"


@dataclass(frozen=True)
class Sample:
    """One sample.

    Attributes:
        name: of it, for messages.
        rows: how often its data are in the batch.
        arrays: by input, without the batch dimension; None for an optional one that it leaves out.
    """

    name: str
    rows: int
    arrays: Mapping[str, np.ndarray[Any, Any] | None]


def samples(
    config: Mapping[str, Any], directory: Path, inputs: Sequence[TensorSpec], doing: str
) -> list[Sample]:
    """The samples that can be run here.

    Left to Triton are those with strings, those of sequences, whose controls Triton sets, and those
    whose batch it does not run at all.

    Args:
        config: the model configuration.
        directory: of the model.
        inputs: of the model, as it is called.
        doing: for messages.

    Raises:
        BackendError: for a file that is not there, or does not have the size of its input.
    """
    found = []
    for setting in config.get("model_warmup", ()):
        given: Mapping[str, Any] = setting.get("inputs", {})
        rows = int(setting.get("batch_size", 0))
        fits = rows > 0 and all(
            not spec.dtype.is_bytes
            and (
                spec.optional
                if spec.name not in given
                else dims_agree(_dims(given[spec.name]), spec.dims)
                and given[spec.name].get("data_type") == spec.dtype.config_name
            )
            for spec in inputs
        )
        if not fits:
            continue
        name = str(setting.get("name", ""))
        arrays = {
            spec.name: _array(given[spec.name], spec, directory, f"{doing}: model_warmup '{name}'")
            if spec.name in given
            else None
            for spec in inputs
        }
        found.append(Sample(name, rows, arrays))
    return found


def _dims(given: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(int(dim) for dim in given.get("dims", ()))


def _array(
    given: Mapping[str, Any], spec: TensorSpec, directory: Path, what: str
) -> np.ndarray[Any, Any]:
    dims = _dims(given)
    size = math.prod(dims) * spec.dtype.numpy.itemsize
    if given.get("input_data_file"):
        path = directory / _FOLDER / str(given["input_data_file"])
        try:
            data = path.read_bytes()
        except OSError as error:
            refuse(f"{what}: cannot read {path}: {error.strerror}", Code.NOT_FOUND)
        if len(data) != size:
            refuse(
                f"{what}: {path}: expected {size} bytes for input '{spec.name}', got {len(data)}"
            )
    elif given.get("random_data"):
        data = np.random.default_rng().bytes(size)  # any bits, as Triton takes
        if spec.dtype.name == "BOOL":
            data = bytes(byte & 1 for byte in data)
    else:
        data = bytes(size)
    return np.frombuffer(data, spec.dtype.numpy).reshape(dims)
