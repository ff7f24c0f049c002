# SPDX-License-Identifier: Apache-2.0
"""One version of a model: what it is, and where its instances come from."""

from __future__ import annotations

import dataclasses
import inspect
import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax

from tritonserver_jax.runtime import config as model_config
from tritonserver_jax.runtime import log, preflight, sequence, settings
from tritonserver_jax.runtime.author import (
    MODEL_FILE,
    PACKAGE_DIRECTORY,
    LoadContext,
    load_author_model,
)
from tritonserver_jax.runtime.buckets import Buckets
from tritonserver_jax.runtime.devices import check_platform, device_for
from tritonserver_jax.runtime.errors import Code, refuse
from tritonserver_jax.runtime.events import Observe
from tritonserver_jax.runtime.instance import Instance
from tritonserver_jax.runtime.parameters import Parameters, parse_parameters
from tritonserver_jax.runtime.program import DevicePrograms, Predict
from tritonserver_jax.runtime.signature import find_outputs
from tritonserver_jax.runtime.tensors import TensorSpec, dims_agree
from tritonserver_jax.runtime.warmup import samples
from tritonserver_jax.runtime.weights import warn_of_narrowing

# Triton's own default for --backend-config=default-max-batch-size.
_DEFAULT_MAX_BATCH_SIZE = 4
_RAGGED = "an input with allow_ragged_batch is padded, and predict(..., masks) tells what is real"
# Fields of a configuration that change what a model is, and what to do without them.
_UNSUPPORTED_FIELDS = {
    "batch_input": _RAGGED,
    "batch_output": _RAGGED,
    "cc_model_filenames": f"the jax backend loads {MODEL_FILE}",
    "model_operations": "import what the model needs in model.py",
}
# What Triton itself puts there, or an author may say; anything else would not be loaded.
_MODEL_FILENAMES = ("", MODEL_FILE, PACKAGE_DIRECTORY, "model.jaxexport")


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
        observe: Observe,
    ) -> None:
        """Load the author's code and weights, and find out what the model is.

        Args:
            name: of the model in Triton.
            version: of it.
            directory: of the model in the model repository.
            config: the model configuration, as Triton's JSON.
            complete_config: whether the configuration may be completed.
            default_max_batch_size: for a model of which nobody says; 0 for Triton's default.
            observe: told of what happens to the model's programs.

        Raises:
            BackendError: naming the file or tensor, and the reason.
        """
        self._doing = f"model '{name}' version {version}"
        self._observe = observe
        self._parameters = self._read_parameters(config)
        self._refuse_unsupported(config)
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
            x64=self._parameters.x64,
        )
        try:
            self._find_out(config, directory, complete_config, default_max_batch_size)
        except BaseException:
            self._author.close()
            raise
        self._lock = threading.Lock()
        self._instances = 0
        self._devices: dict[jax.Device, DevicePrograms] = {}

    def _find_out(
        self, config: Mapping[str, Any], directory: Path, complete_config: bool, default_rows: int
    ) -> None:
        """What the model is, and whether the configuration says the same."""
        self.decoupled = self._decide_decoupled(config)
        self.max_batch_size = self._decide_max_batch_size(config, directory, default_rows)
        batching = self.max_batch_size > 0
        self._buckets = Buckets(self.max_batch_size, self._parameters.buckets)
        #: What clients send; and then what Triton adds for a sequence, and its states.
        self.inputs = self._find_inputs(config)
        states = sequence.states(config)
        if not states:
            states = tuple((spec, spec.name) for spec in self._author.signature.state)
            if states and "sequence_batching" in config:
                refuse(
                    f"{self._doing}: config.pbtxt has sequence_batching, to which Triton lets no "
                    "backend add; add the states of model.py to it:\n"
                    + "\n".join(sequence.state_text(spec) for spec, _ in states)
                )
        added = (*sequence.control_inputs(config), *(spec for spec, _ in states))
        self._all_inputs = (*self.inputs, *added)
        self._state_outputs = tuple(output for _, output in states)
        self._check_states(config, states)
        listed_outputs = model_config.config_tensors(config, "output")
        x64 = self._decide_x64(listed_outputs)
        if self._parameters.matmul_precision is None:
            precision = self._author.jax_settings.get("matmul_precision")
            self._parameters = dataclasses.replace(self._parameters, matmul_precision=precision)
        if not x64:
            warn_of_narrowing(self._author.params, self._doing)
        self._predict = Predict(
            self._author,
            self._doing,
            x64,
            self._parameters,
            batching=batching,
            inputs=[spec.name for spec in self._all_inputs],
        )
        self._check_arguments_of_predict()
        self._warn_of_ragged_inputs()
        self._params = self._author.take_params()
        if self._predict.wants_masks and self._author.preprocess is not None:
            refuse(
                f"{self._doing}: predict takes masks, which do not go with preprocess: pass what "
                "preprocess finds out to predict instead"
            )
        #: What clients get; and then the states' new values.
        self.outputs: tuple[TensorSpec, ...]
        self.outputs, self._program_outputs = self._find_outputs(listed_outputs)
        self._all_outputs = (*self.outputs, *self._find_state_outputs(states))
        if self._author.postprocess is None and self._author.stream is None:
            # What is not served is not computed, and what is comes in the order of the config.
            self._program_outputs = tuple(spec.name for spec in self._all_outputs)
        self._refuse_lost_bits(x64)
        self._samples = samples(config, directory, self._all_inputs, self._doing)
        self.config = dict(config)
        if complete_config:
            self.config = model_config.complete(
                config,
                max_batch_size=self.max_batch_size,
                inputs=self.inputs,
                outputs=self.outputs,
                states=self._author.signature.state,
                decoupled=self.decoupled,
                preferred=self._buckets.preferred,
            )
        else:
            self._check_complete(config)
        self._hint_at_batch_in_dims()

    # -- for the C++ side -----------------------------------------------------------------------

    def description(self) -> str:
        """What the C++ side needs to know, as JSON."""

        def tensors(specs: Sequence[TensorSpec]) -> list[dict[str, Any]]:
            return [
                {
                    "name": spec.name,
                    "dtype": spec.dtype.number,
                    # Without a batch dimension, a scalar is one element to Triton.
                    "dims": list(spec.dims) or ([] if self.max_batch_size > 0 else [1]),
                    "optional": spec.optional,
                    "ragged": spec.ragged,
                    "lengths": list(spec.dim_lengths),
                    "state": spec.state,
                    "follows": list(spec.follows),
                }
                for spec in specs
            ]

        return json.dumps(
            {
                "config": self.config,
                "max_batch_size": self.max_batch_size,
                "inputs": tensors(self._all_inputs),
                "outputs": tensors(self._all_outputs),
                "decoupled": self.decoupled,
                "phase_times": self._parameters.phase_times,
            }
        )

    def create_instance(
        self, name: str, kind: int, device_id: int, gpu_memory: bool = False
    ) -> Instance:
        """An instance on the device that Triton asks for, compiled and ready.

        Args:
            name: of the instance, for messages.
            kind: Triton's instance group kind.
            device_id: the device's number within its kind.
            gpu_memory: whether the C++ side copies from and to memory of GPUs.
        """
        with self._lock:
            turn = self._instances
            self._instances += 1
        device = device_for(kind, device_id, name, self._parameters.devices, turn)
        if self._author.platforms is not None:
            check_platform(self._author.platforms, device, f"{self._doing}: instance {name}")
        with self._lock:
            programs = self._devices.get(device)
            if programs is None:
                programs = self._devices[device] = DevicePrograms(
                    device,
                    self._predict,
                    self._params,
                    None if self._author.stream is not None else self._program_outputs,
                    self._doing,
                    self._observe,
                )
                # From now on the host need not keep a copy: another device gets them from here.
                self._params = programs.params
        return Instance(
            doing=self._doing,
            author=self._author,
            predict=self._predict,
            programs=programs,
            buckets=self._buckets,
            inputs=self._all_inputs,
            outputs=self._all_outputs,
            samples=self._samples,
            gpu_memory=bool(gpu_memory),
        )

    def close(self) -> None:
        """Give up parameters and programs."""
        self._devices.clear()
        self._params = None
        self._author.close()

    # -- what the model is ----------------------------------------------------------------------

    def _refuse_unsupported(self, config: Mapping[str, Any]) -> None:
        for key, instead in _UNSUPPORTED_FIELDS.items():
            if config.get(key):
                refuse(
                    f"{self._doing}: {key} in config.pbtxt is not supported; {instead}",
                    Code.UNSUPPORTED,
                )
        name = config.get("default_model_filename", "")
        if name not in _MODEL_FILENAMES:
            refuse(
                f"{self._doing}: default_model_filename is {name} in config.pbtxt; the jax backend "
                f"loads {MODEL_FILE}",
                Code.UNSUPPORTED,
            )

    def _read_parameters(self, config: Mapping[str, Any]) -> Parameters:
        parameters = parse_parameters(config.get("parameters", {}))
        if parameters.compile_cache is None:
            parameters = dataclasses.replace(
                parameters, compile_cache=settings.current().compile_cache
            )
        fast = [name for name, on in parameters.xla_flags.items() if on and "fast_math" in name]
        if fast:
            log.warning(f"{self._doing}: {fast[0]} lets XLA change results")
        of_server = preflight.environment_flags()
        for flag, given in parameters.xla_flags.items():
            value = str(given).lower() if isinstance(given, bool) else given
            if of_server.get(flag, value) != value:
                log.info(
                    f"{self._doing}: {flag} is {value}, from its parameter 'xla_flags', which goes "
                    f"before XLA_FLAGS of the server's environment ({of_server[flag]})"
                )
        return parameters

    def _check_states(
        self, config: Mapping[str, Any], states: Sequence[tuple[TensorSpec, str]]
    ) -> None:
        for spec, _ in states:
            if not spec.dims:
                refuse(
                    f"{self._doing}: the state '{spec.name}' has no dimensions, which Triton "
                    "cannot keep; give it one, [1]"
                )
            if -1 in spec.dims and not config.get("sequence_batching", {}).get("state"):
                refuse(
                    f"{self._doing}: the state '{spec.name}' has a dimension that varies; write "
                    "sequence_batching with its initial_state in config.pbtxt, because nothing "
                    "here says how long it is at the start of a sequence"
                )
        if states and config.get("model_warmup"):
            refuse(
                f"{self._doing}: model_warmup in config.pbtxt does not go with a state: Triton has "
                "none to give outside of a sequence. The backend warms the model up itself",
                Code.UNSUPPORTED,
            )

    def _warn_of_ragged_inputs(self) -> None:
        if self._author.preprocess is not None or self._predict.wants_masks:
            return
        for spec in self._all_inputs:
            if spec.ragged:
                log.warning(
                    f"{self._doing}: input '{spec.name}' has allow_ragged_batch, but predict takes "
                    "no masks: shorter requests of a batch are zeros at their ends"
                )

    def _check_arguments_of_predict(self) -> None:
        """That predict can be called with the inputs, by their names."""
        if self._author.preprocess is not None or self._author.stream is not None:
            return  # then the author's own code calls it, or makes its arguments
        try:
            signature = inspect.signature(self._author.predict)
        except (TypeError, ValueError):  # not every callable tells
            return
        names = [spec.name for spec in self._all_inputs]
        masks = {"masks": None} if self._predict.wants_masks else {}
        try:
            signature.bind(None, **dict.fromkeys(names), **masks)
        except TypeError as error:
            refuse(
                f"{self._doing}: predict{signature} cannot be called with the inputs "
                f"{', '.join(names)} ({error}); it is called as predict(params, name=array, ...): "
                "name its arguments as the inputs, or take **inputs"
            )

    def _hint_at_batch_in_dims(self) -> None:
        """A frequent slip: dims that include the batch, which every request then contradicts."""
        first = {spec.dims[0] if spec.dims else None for spec in self.inputs}
        if self.max_batch_size > 1 and first == {self.max_batch_size}:
            log.warning(
                f"{self._doing}: the first of the dims of every input is {self.max_batch_size}, "
                "which is max_batch_size too; dims are without the batch dimension. If it is "
                f"meant, clients send shapes such as [1,{self.max_batch_size},...]; if not, leave "
                "it out of dims"
            )

    def _decide_decoupled(self, config: Mapping[str, Any]) -> bool:
        policy = config.get("model_transaction_policy", {})
        if policy.get("decoupled") and self._author.stream is None:
            refuse(
                f"{self._doing}: config.pbtxt says decoupled, but model.py has no "
                "stream(context, **inputs) to give several responses"
            )
        return self._author.stream is not None

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
        signature = self._author.signature
        if not listed and signature.inputs is None:
            refuse(
                f"{self._doing}: nobody says what its inputs are; declare them in model.py, such "
                "as SIGNATURE = {'inputs': {'x': ('FP32', [16])}, 'max_batch_size': 8}, or in "
                "config.pbtxt"
            )
        inputs = model_config.merge(
            "input",
            signature.inputs,
            listed,
            source=self._author.source,
            config_chooses=False,
            batching=self.max_batch_size > 0,
        )
        if not inputs:
            refuse(f"{self._doing}: it has no inputs; Triton needs at least one")
        found = []
        for spec in inputs:
            lengths = signature.lengths.get(spec.name, ())
            if not lengths and -1 in spec.dims and not spec.dtype.is_bytes:
                lengths = self._parameters.lengths
            found.append(
                dataclasses.replace(
                    spec,
                    lengths=lengths,
                    optional=spec.optional or spec.name in signature.optional,
                )
            )
        return tuple(found)

    def _decide_x64(self, listed: tuple[model_config.ConfigTensor, ...]) -> bool:
        if self._parameters.x64 is not None:
            return self._parameters.x64
        if "x64" in self._author.jax_settings:
            return bool(self._author.jax_settings["x64"])
        # Host code stands between these and JAX, and need not pass 64 bits on.
        dtypes = [] if self._author.preprocess else [spec.dtype for spec in self._all_inputs]
        if self._author.postprocess is None:
            dtypes += [spec.dtype for spec in self._author.signature.outputs or ()]
            dtypes += [tensor.dtype for tensor in listed if tensor.dtype is not None]
        return any(dtype.needs_x64 for dtype in dtypes)

    def _refuse_lost_bits(self, x64: bool) -> None:
        if x64 or self._author.stream is not None:
            return
        checked = [] if self._author.preprocess else [("input", s) for s in self._all_inputs]
        if self._author.postprocess is None:
            checked += [("output", spec) for spec in self._all_outputs]
        for kind, spec in checked:
            if spec.dtype.needs_x64:
                refuse(
                    f"{self._doing}: {kind} '{spec.name}' is {spec.dtype.name}, which JAX narrows "
                    "to 32 bits while its 64-bit mode is off; remove the parameter 'x64' or set "
                    "it to true"
                )

    def _find_outputs(
        self, listed: tuple[model_config.ConfigTensor, ...]
    ) -> tuple[tuple[TensorSpec, ...], tuple[str, ...]]:
        batching = self.max_batch_size > 0
        declared = self._author.signature.outputs
        if self._author.stream is not None and declared is not None:
            # What a generator yields cannot be traced: the author's word is all there is.
            found, source = declared, "SIGNATURE of model.py"
            of_predict: tuple[str, ...] = ()
        else:
            if self._author.stream is not None and not listed and not self._author.has_predict:
                refuse(
                    f"{self._doing}: nobody says what stream yields; declare it in model.py, such "
                    "as SIGNATURE = {..., 'outputs': {'y': ('FP32', [3])}}"
                )
            found, of_predict = find_outputs(
                self._author,
                self._predict,
                self._all_inputs,
                batching=batching,
                doing=self._doing,
            )
            source = "predict" if self._author.postprocess is None else "postprocess"
            if declared is not None:
                model_config.merge(
                    "output",
                    found,
                    [model_config.ConfigTensor(s.name, s.dtype, s.dims) for s in declared],
                    source=source,
                    config_chooses=True,
                    batching=batching,
                    listed_in="SIGNATURE of model.py",
                )
        self._found_outputs = {spec.name: spec for spec in found}
        # A state's new value is not for clients, unless the configuration lists it.
        wanted = {tensor.name for tensor in listed}
        served = [s for s in found if s.name not in self._state_outputs or s.name in wanted]
        outputs = model_config.merge(
            "output", served, listed, source=source, config_chooses=True, batching=batching
        )
        if not outputs:
            refuse(f"{self._doing}: it has no outputs beside its states; Triton needs at least one")
        return outputs, of_predict

    def _find_state_outputs(
        self, states: Sequence[tuple[TensorSpec, str]]
    ) -> tuple[TensorSpec, ...]:
        found = []
        for spec, output in states:
            new = self._found_outputs.get(output)
            if new is None:
                refuse(
                    f"{self._doing}: the state '{spec.name}' gets its new value from output "
                    f"'{output}', which the model does not return (it returns "
                    f"{', '.join(self._found_outputs)})"
                )
            if new.dtype != spec.dtype or not dims_agree(new.dims, spec.dims):
                refuse(
                    f"{self._doing}: the state '{spec.name}' is {spec}, but its new value, output "
                    f"'{output}', is {new}"
                )
            found.append(dataclasses.replace(new, state=True))
        return tuple(found)

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
        stated = int(config.get("max_batch_size", 0))
        if stated != self.max_batch_size:
            refuse(
                f"{self._doing}: max_batch_size is {stated} in config.pbtxt and "
                f"{self.max_batch_size} in model.py, and the server was started with "
                "--disable-auto-complete-config"
            )
        decoupled = bool(config.get("model_transaction_policy", {}).get("decoupled"))
        if decoupled != self.decoupled:
            refuse(
                f"{self._doing}: model.py has a stream, but config.pbtxt does not say "
                "model_transaction_policy { decoupled: true }, and the server was started with "
                "--disable-auto-complete-config"
            )
