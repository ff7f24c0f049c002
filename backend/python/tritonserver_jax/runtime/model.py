# SPDX-License-Identifier: Apache-2.0
"""One version of a model: what it is, and where its instances come from."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from tritonserver_jax.runtime import config as model_config
from tritonserver_jax.runtime import errors, log
from tritonserver_jax.runtime.author import LoadContext, load_author_model
from tritonserver_jax.runtime.buckets import Buckets
from tritonserver_jax.runtime.devices import check_platform, device_for
from tritonserver_jax.runtime.dtypes import dtype_of_array
from tritonserver_jax.runtime.errors import Code, refuse
from tritonserver_jax.runtime.instance import Instance, checked_arrays
from tritonserver_jax.runtime.parameters import parse_parameters
from tritonserver_jax.runtime.program import DevicePrograms, Predict
from tritonserver_jax.runtime.tensors import Dims, TensorSpec

# Two sizes for each thing that varies: what differs between the two traces, varies with it.
_BATCH_PROBES = (2, 3)
_DIM_PROBES = (16, 24)
# Triton's own default for --backend-config=default-max-batch-size.
_DEFAULT_MAX_BATCH_SIZE = 4


class Model:
    """A loaded model. Called by the C++ side."""

    def __init__(
        self,
        *,
        name: str,
        version: int,
        directory: Path,
        config: Mapping[str, Any],
        complete_config: bool,
        default_max_batch_size: int,
        compiled: Callable[[float], None],
    ) -> None:
        """Load the author's code and weights, and find out what the model is.

        Args:
            name: of the model in Triton.
            version: of it.
            directory: of the model in the model repository.
            config: the model configuration, as Triton's JSON.
            complete_config: whether the configuration may be completed.
            default_max_batch_size: for a model of which nobody says; 0 for Triton's default.
            compiled: called with the seconds that each compilation took.

        Raises:
            BackendError: naming the file or tensor, and the reason.
        """
        self._doing = f"model '{name}' version {version}"
        self._compiled = compiled
        parameters = parse_parameters(dict(config.get("parameters", {})))
        self._author = load_author_model(
            directory / str(version),
            lambda code_directory: LoadContext(
                directory=code_directory,
                model_name=name,
                model_version=version,
                config=config,
                parameters={
                    key: str(value.get("string_value", ""))
                    for key, value in dict(config.get("parameters", {})).items()
                },
            ),
            self._doing,
        )
        self.max_batch_size = self._decide_max_batch_size(config, directory, default_max_batch_size)
        self._buckets = Buckets(self.max_batch_size, parameters.get("buckets"))
        self.inputs = self._find_inputs(config)
        listed_outputs = model_config.config_tensors(config, "output")
        x64 = self._decide_x64(parameters.get("x64"), listed_outputs)
        self._predict = Predict(self._author, self._doing, x64)
        self._output_names: tuple[str, ...] = ()
        self.outputs = self._find_outputs(listed_outputs)
        if self._author.postprocess is None:
            # What is not served is not computed, and what is comes in the order of the config.
            self._output_names = tuple(spec.name for spec in self.outputs)
        self._refuse_lost_bits(x64)
        self.config = dict(config)
        if complete_config:
            self.config = model_config.complete(
                config,
                max_batch_size=self.max_batch_size,
                inputs=self.inputs,
                outputs=self.outputs,
            )
        else:
            self._check_complete(config)
        self._lock = threading.Lock()
        self._devices: dict[jax.Device, DevicePrograms] = {}

    def description(self) -> str:
        """What the C++ side needs to know, as JSON."""

        def tensors(specs: tuple[TensorSpec, ...]) -> list[dict[str, Any]]:
            return [
                {
                    "name": spec.name,
                    "dtype": spec.dtype.number,
                    # Without a batch dimension, a scalar is one element to Triton.
                    "dims": list(spec.dims) or ([] if self.max_batch_size > 0 else [1]),
                }
                for spec in specs
            ]

        return json.dumps(
            {
                "config": self.config,
                "max_batch_size": self.max_batch_size,
                "inputs": tensors(self.inputs),
                "outputs": tensors(self.outputs),
            }
        )

    def create_instance(self, name: str, kind: int, device_id: int) -> Instance:
        """An instance on the device that Triton asks for, compiled and ready.

        Args:
            name: of the instance, for messages.
            kind: Triton's instance group kind.
            device_id: the device's number within its kind.
        """
        device = device_for(kind, device_id, name)
        if self._author.platforms is not None:
            check_platform(self._author.platforms, device, f"{self._doing}: instance {name}")
        with self._lock:
            programs = self._devices.get(device)
            if programs is None:
                programs = self._devices[device] = DevicePrograms(
                    device,
                    self._predict,
                    self._author.params,
                    self._output_names,
                    self._doing,
                    self._compiled,
                )
        return Instance(
            doing=self._doing,
            author=self._author,
            programs=programs,
            buckets=self._buckets,
            inputs=self.inputs,
            outputs=self.outputs,
        )

    def close(self) -> None:
        """Give up parameters and programs."""
        self._devices.clear()

    def _decide_max_batch_size(
        self, config: Mapping[str, Any], directory: Path, default: int
    ) -> int:
        if model_config.states_max_batch_size(config, directory):
            return int(config.get("max_batch_size", 0))
        signature = self._author.signature
        if signature.max_batch_size is not None:
            return signature.max_batch_size
        if config.get("input"):
            return 0  # an author who lists inputs, and no max_batch_size, means Triton's default
        return default or _DEFAULT_MAX_BATCH_SIZE

    def _find_inputs(self, config: Mapping[str, Any]) -> tuple[TensorSpec, ...]:
        listed = model_config.config_tensors(config, "input")
        declared = self._author.signature.inputs
        if not listed and declared is None:
            refuse(
                f"{self._doing}: nobody says what its inputs are; declare them in model.py, such "
                "as SIGNATURE = {'inputs': {'x': ('FP32', [16])}, 'max_batch_size': 8}, or in "
                "config.pbtxt"
            )
        inputs = model_config.merge(
            "input",
            declared,
            listed,
            source=self._author.source,
            config_chooses=False,
            batching=self.max_batch_size > 0,
        )
        if not inputs:
            refuse(f"{self._doing}: it has no inputs; Triton needs at least one")
        for spec in inputs:
            if spec.dtype.is_bytes:
                refuse(
                    f"{self._doing}: input '{spec.name}': BYTES is not supported", Code.UNSUPPORTED
                )
        return inputs

    def _decide_x64(
        self, parameter: bool | None, listed: tuple[model_config.ConfigTensor, ...]
    ) -> bool:
        if parameter is not None:
            return parameter
        declared = [spec.dtype for spec in self._author.signature.outputs or ()]
        written = [tensor.dtype for tensor in listed if tensor.dtype is not None]
        return self._author.needs_x64 or any(
            dtype.needs_x64 for dtype in [*(s.dtype for s in self.inputs), *declared, *written]
        )

    def _refuse_lost_bits(self, x64: bool) -> None:
        if x64:
            return
        for kind, specs in (("input", self.inputs), ("output", self.outputs)):
            for spec in specs:
                if spec.dtype.needs_x64:
                    refuse(
                        f"{self._doing}: {kind} '{spec.name}' is {spec.dtype.name}, which JAX "
                        "narrows to 32 bits while its 64-bit mode is off; remove the parameter "
                        "'x64' or set it to true"
                    )

    def _probe_inputs(self, rows: int, dim: int) -> dict[str, jax.ShapeDtypeStruct]:
        # A configuration may leave open what the model does not.
        declared = {spec.name: spec.dims for spec in self._author.signature.inputs or ()}
        shapes = {}
        for spec in self.inputs:
            sizes = [
                of_model if size == -1 else size
                for size, of_model in zip(
                    spec.dims, declared.get(spec.name, spec.dims), strict=True
                )
            ]
            shape = [dim if size == -1 else size for size in sizes]
            if self.max_batch_size > 0:
                shape.insert(0, rows)
            shapes[spec.name] = jax.ShapeDtypeStruct(tuple(shape), spec.dtype.numpy)
        return shapes

    def _run_shapes(self, rows: int, dim: int) -> dict[str, jax.ShapeDtypeStruct]:
        """Shapes of the served outputs for a batch of `rows`, with `dim` for each open size."""
        inputs: Mapping[str, Any] = self._probe_inputs(rows, dim)
        directory = self._author.directory
        if self._author.preprocess is not None:
            zeros = {name: np.zeros(spec.shape, spec.dtype) for name, spec in inputs.items()}
            with errors.model_code(f"{self._doing}: preprocess of zeros", directory):
                prepared = self._author.preprocess(zeros)
            inputs = {
                name: jax.ShapeDtypeStruct(array.shape, array.dtype)
                for name, array in checked_arrays(prepared, f"{self._doing}: preprocess").items()
            }
        shapes: Mapping[str, Any] = self._predict.shapes(inputs)
        self._output_names = tuple(shapes)
        if self._author.postprocess is not None:
            zeros = {name: np.zeros(spec.shape, spec.dtype) for name, spec in shapes.items()}
            with errors.model_code(f"{self._doing}: postprocess of zeros", directory):
                processed = self._author.postprocess(zeros)
            shapes = checked_arrays(processed, f"{self._doing}: postprocess")
        return {name: jax.ShapeDtypeStruct(spec.shape, spec.dtype) for name, spec in shapes.items()}

    def _find_outputs(
        self, listed: tuple[model_config.ConfigTensor, ...]
    ) -> tuple[TensorSpec, ...]:
        batching = self.max_batch_size > 0
        first, second = (
            self._run_shapes(rows, dim)
            for rows, dim in zip(_BATCH_PROBES, _DIM_PROBES, strict=True)
        )
        source = "predict" if self._author.postprocess is None else "postprocess"
        found = []
        for name, shape in first.items():
            other = second.get(name)
            if other is None or len(other.shape) != len(shape.shape):
                refuse(
                    f"{self._doing}: output '{name}' is not there, or has another rank, for "
                    "another batch size"
                )
            dims: Dims = tuple(
                a if a == b else -1 for a, b in zip(shape.shape, other.shape, strict=True)
            )
            if batching:
                for rows, got in zip(_BATCH_PROBES, (shape.shape, other.shape), strict=True):
                    if got[:1] != (rows,):
                        refuse(
                            f"{self._doing}: output '{name}' has shape {list(got)} for a batch of "
                            f"{rows} rows; its first dimension must be the batch of {rows}. Either "
                            f"make {source} keep the batch dimension, or set max_batch_size to 0 "
                            "if the model takes no batches"
                        )
                dims = dims[1:]
            dtype = dtype_of_array(shape.dtype, f"{self._doing}: output '{name}'")
            if dtype.is_bytes:
                refuse(f"{self._doing}: output '{name}': BYTES is not supported", Code.UNSUPPORTED)
            found.append(TensorSpec(name, dtype, dims))
        if not found:
            refuse(f"{self._doing}: {source} returns no outputs")
        declared = self._author.signature.outputs
        if declared is not None:
            model_config.merge(
                "output",
                found,
                [model_config.ConfigTensor(s.name, s.dtype, s.dims) for s in declared],
                source=source,
                config_chooses=True,
                batching=batching,
            )
        return model_config.merge(
            "output", found, listed, source=source, config_chooses=True, batching=batching
        )

    def _check_complete(self, config: Mapping[str, Any]) -> None:
        """Without completion, what Triton serves is the author's text alone."""
        for kind, specs in (("input", self.inputs), ("output", self.outputs)):
            written = {entry.get("name") for entry in config.get(kind, ())}
            for spec in specs:
                if spec.name not in written:
                    refuse(
                        f"{self._doing}: {kind} '{spec.name}' is missing in config.pbtxt, and the "
                        "server was started with --disable-auto-complete-config"
                    )
        if int(config.get("max_batch_size", 0)) != self.max_batch_size:
            log.warning(
                f"{self._doing}: max_batch_size stays {config.get('max_batch_size', 0)}, although "
                f"the model says {self.max_batch_size}: completion is off"
            )
            self.max_batch_size = int(config.get("max_batch_size", 0))
