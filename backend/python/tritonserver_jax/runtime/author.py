# SPDX-License-Identifier: Apache-2.0
"""What a model author puts in a version directory.

That is ``model.py`` and weights beside it, or ``model.jaxexport``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import numpy as np

from tritonserver_jax.runtime import errors, weights
from tritonserver_jax.runtime.errors import Code, refuse
from tritonserver_jax.runtime.module_loader import forget, import_model, jax_config_kept
from tritonserver_jax.runtime.tensors import TensorSpec, author_specs
from tritonserver_jax.runtime.x64 import in_mode, stream_in_mode, x64_mode

MODEL_FILE = "model.py"
EXPORTED_FILE = "model.jaxexport"
# Where Triton finds a model without any config.pbtxt: see docs/model_contract.md.
PACKAGE_DIRECTORY = "model.jax"

_SIGNATURE_KEYS = ("inputs", "outputs", "max_batch_size", "lengths", "optional", "state")


@dataclass(frozen=True)
class Signature:
    """``SIGNATURE`` of a model.py; None where the author left a part out.

    Attributes:
        inputs: what clients send.
        outputs: what they get.
        max_batch_size: 0 where the model has no batch dimension.
        lengths: by input, what its dimensions that vary, or its strings, are padded to.
        optional: inputs that a request may leave out.
        state: what Triton keeps for a sequence: inputs, whose new values are the outputs of the
            same names.
    """

    inputs: tuple[TensorSpec, ...] | None = None
    outputs: tuple[TensorSpec, ...] | None = None
    max_batch_size: int | None = None
    lengths: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    optional: tuple[str, ...] = ()
    state: tuple[TensorSpec, ...] = ()


@dataclass(frozen=True)
class LoadContext:
    """What a model's own ``load(context)`` gets.

    Attributes:
        directory: the version directory (or ``model.jax`` in it), where the weights are.
        model_name: the model's name in Triton.
        model_version: its version.
        config: the model configuration, as Triton's JSON.
        parameters: ``parameters`` of the configuration, as text by key.
    """

    directory: Path
    model_name: str
    model_version: int
    config: Mapping[str, Any] = field(repr=False)
    parameters: Mapping[str, str]

    def load_msgpack(self, name: str = weights.MSGPACK_FILE, target: Any = None) -> Any:
        """Read parameters that flax serialized.

        Args:
            name: of the file in `directory`.
            target: a pytree of the same structure, for parameters that are more than nested dicts
                (see ``flax.serialization.from_bytes``), with the expected shapes and types.

        Returns:
            The parameters, as a pytree of NumPy arrays.

        Raises:
            BackendError: naming the file, if it is missing or no whole msgpack file of flax's.
        """
        return weights.load_msgpack(self.directory / name, target)

    def load_safetensors(
        self, name: str = weights.SAFETENSORS_FILE, *, nested: bool = True
    ) -> dict[str, Any]:
        """Read a safetensors file.

        Args:
            name: of the file in `directory`.
            nested: whether a dot in a name goes a level down, so that ``"dense.kernel"`` comes
                back as ``{"dense": {"kernel": ...}}``; otherwise the names stay as they are.

        Returns:
            NumPy arrays by name.

        Raises:
            BackendError: naming the file, if it is missing or no whole safetensors file.
        """
        return weights.load_safetensors(self.directory / name, nested=nested)

    def load_orbax(self, name: str = weights.ORBAX_DIRECTORY, target: Any = None) -> Any:
        """Read an Orbax checkpoint, whatever devices it was saved from.

        Args:
            name: of the checkpoint's directory in `directory`.
            target: a pytree of the same structure, for parameters that are more than nested dicts
                and lists, with the expected shapes and types (``jax.ShapeDtypeStruct`` will do).

        Returns:
            The parameters, as a pytree of NumPy arrays.

        Raises:
            BackendError: naming the directory, if it is missing or no whole checkpoint.
        """
        return weights.load_orbax(self.directory / name, target)


@dataclass
class AuthorModel:
    """A loaded model with its parameters.

    Attributes:
        directory: of model.py, for messages.
        module: model.py itself; None for an exported model.
        predict: the function to trace.
        has_predict: whether the author wrote one; if not, it refuses.
        preprocess: NumPy to NumPy before it, or None.
        postprocess: NumPy to NumPy after it, or None.
        stream: a generator of responses, which makes the model decoupled, or None.
        signature: what the author declared.
        params: a pytree of arrays; None where the model has no weights.
        missing_weights: for messages: what was looked for, where there are no weights.
        jax_settings: what the code set in ``jax.config`` that is to hold for this model alone.
            All of a model's code runs in the 64-bit mode where it, or the configuration, says so.
        source: for messages: what says which inputs there are.
        platforms: those that an exported model can run on; None where it is any.
    """

    directory: Path
    module: ModuleType | None
    predict: Callable[..., Any]
    has_predict: bool
    preprocess: Callable[[dict[str, Any]], Any] | None
    postprocess: Callable[[dict[str, Any]], Any] | None
    stream: Callable[..., Any] | None
    signature: Signature
    params: Any
    missing_weights: str
    jax_settings: Mapping[str, Any]
    source: str = "SIGNATURE of model.py"
    platforms: tuple[str, ...] | None = None

    def take_params(self) -> Any:
        """The parameters, which from now on are the caller's: two copies would be one too many."""
        params, self.params = self.params, None
        return params

    def close(self) -> None:
        """Take the model's code out of Python's table of modules."""
        if self.module is not None:
            forget(self.module)


def _function(module: ModuleType, name: str, path: Path) -> Callable[..., Any] | None:
    function = getattr(module, name, None)
    if function is not None and not callable(function):
        refuse(f"{path}: {name} must be a function, got {type(function).__name__}")
    return function


def _signature(module: ModuleType, path: Path) -> Signature:
    given = getattr(module, "SIGNATURE", None)
    if given is None:
        return Signature()
    where = f"{path}: SIGNATURE"
    if not isinstance(given, Mapping):
        refuse(f"{where} must be a dict, got {type(given).__name__}")
    for key in given:
        if key not in _SIGNATURE_KEYS:
            refuse(f"{where}: unknown key {key!r}; known are {', '.join(_SIGNATURE_KEYS)}")
    max_batch_size = given.get("max_batch_size")
    if max_batch_size is not None and (
        not isinstance(max_batch_size, int)
        or isinstance(max_batch_size, bool)
        or not 0 <= max_batch_size < 2**31
    ):
        refuse(
            f"{where}['max_batch_size'] must be an integer >= 0 and < 2**31, got {max_batch_size!r}"
        )

    inputs = None if given.get("inputs") is None else list(given["inputs"])

    def known_input(name: Any, key: str) -> str:
        if not isinstance(name, str) or (inputs is not None and name not in inputs):
            refuse(f"{where}[{key!r}]: {name!r} is not one of the inputs ({inputs})")
        return name

    lengths = given.get("lengths", {})
    if not isinstance(lengths, Mapping):
        refuse(f"{where}['lengths'] must be a dict of input name -> lengths, got {lengths!r}")
    for name, sizes in lengths.items():
        known_input(name, "lengths")
        if (
            not isinstance(sizes, list | tuple)
            or not sizes
            or not all(
                isinstance(size, int) and not isinstance(size, bool) and size > 0 for size in sizes
            )
        ):
            refuse(f"{where}['lengths'][{name!r}] must be a list of integers > 0, got {sizes!r}")
    optional = given.get("optional", ())
    if isinstance(optional, str) or not isinstance(optional, list | tuple | set):
        refuse(f"{where}['optional'] must be a list of input names, got {optional!r}")

    def specs(key: str) -> tuple[TensorSpec, ...] | None:
        value = given.get(key)
        return None if value is None else author_specs(value, f"{where}[{key!r}]")

    return Signature(
        inputs=specs("inputs"),
        outputs=specs("outputs"),
        max_batch_size=max_batch_size,
        lengths={name: tuple(sorted(set(sizes))) for name, sizes in lengths.items()},
        optional=tuple(known_input(name, "optional") for name in optional),
        state=specs("state") or (),
    )


def _check_params(params: Any, doing: str) -> None:
    """That parameters are a pytree of what JAX takes for arrays."""
    for path, leaf in jax.tree_util.tree_flatten_with_path(params)[0]:
        is_array = hasattr(leaf, "dtype") and hasattr(leaf, "shape")
        if not is_array and not isinstance(leaf, bool | int | float | complex):
            refuse(
                f"{doing}: the parameters hold {type(leaf).__name__} at "
                f"params{jax.tree_util.keystr(path)}; expected a pytree of arrays"
            )
        if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "OSU":
            refuse(
                f"{doing}: the parameters hold an array of {leaf.dtype} at "
                f"params{jax.tree_util.keystr(path)}; expected numbers"
            )


def find_model_directory(version_directory: Path) -> Path:
    """Where the model is: the version directory, or ``model.jax`` in it."""
    for directory in (version_directory, version_directory / PACKAGE_DIRECTORY):
        found = [name for name in (MODEL_FILE, EXPORTED_FILE) if (directory / name).is_file()]
        if len(found) > 1:
            refuse(f"{directory} holds both {' and '.join(found)}; leave the one that is to run")
        if found:
            return directory
    if not version_directory.is_dir():
        refuse(f"there is no version directory {version_directory}", Code.NOT_FOUND)
    entries = ", ".join(sorted(entry.name for entry in version_directory.iterdir())) or "nothing"
    refuse(
        f"{version_directory} holds no {MODEL_FILE} (found: {entries}); put the model's "
        f"{MODEL_FILE} there, with its weights beside it, or a {EXPORTED_FILE}",
        Code.NOT_FOUND,
    )


def load_author_model(
    version_directory: Path,
    context: Callable[[Path], LoadContext],
    doing: str,
    *,
    x64: bool | None = None,
) -> AuthorModel:
    """Load what the author left in a version directory, with its parameters.

    Args:
        version_directory: of the model.
        context: makes what the author's ``load`` gets, from the directory of model.py.
        doing: for messages, such as ``"model 'm' version 1"``.
        x64: the parameter ``x64`` of the configuration; None where it is not given.

    Raises:
        BackendError: naming the file and the reason.
    """
    directory = find_model_directory(version_directory)
    if (directory / EXPORTED_FILE).is_file():
        from tritonserver_jax.runtime.exported import load_exported  # it imports this module

        return load_exported(directory, version_directory, context(directory), doing)
    path = directory / MODEL_FILE
    # In the other mode nothing is set here: what model.py sets itself has to hold.
    mode = x64_mode(True) if x64 else contextlib.nullcontext()
    with jax_config_kept(doing) as jax_settings, mode:
        module = import_model(path, doing)
    try:
        return _author_model(module, path, context, doing, jax_settings, x64)
    except BaseException:
        forget(module)
        raise


def _asks_for_x64(parameter: bool | None, jax_settings: Mapping[str, Any]) -> bool:
    return bool(jax_settings.get("x64") if parameter is None else parameter)


def _author_model(
    module: ModuleType,
    path: Path,
    context: Callable[[Path], LoadContext],
    doing: str,
    jax_settings: Mapping[str, Any],
    x64: bool | None,
) -> AuthorModel:
    directory = path.parent
    predict = _function(module, "predict", path)
    stream = _function(module, "stream", path)
    has_predict = predict is not None
    if predict is None:
        if stream is None:
            refuse(f"{path} has no function predict(params, **inputs)")

        def predict(*_: Any, **__: Any) -> Any:
            refuse(f"{path} has no function predict(params, **inputs)")

    elif stream is not None and _function(module, "preprocess", path) is not None:
        refuse(f"{path}: preprocess does not go with stream, which is host code itself")
    load = _function(module, "load", path)
    missing = ""
    asked_for = _asks_for_x64(x64, jax_settings)
    if load is not None:
        with (
            jax_config_kept(doing) as of_load,
            errors.model_code(f"{doing}: load", directory),
        ):
            params = in_mode(load, asked_for)(context(directory))
        jax_settings = {**jax_settings, **of_load}
        asked_for = _asks_for_x64(x64, jax_settings)
    else:
        found = weights.load_default(directory)
        params = found.params
        if found.missing:
            missing = f"{found.missing}, and {MODEL_FILE} has no load(context)"
    _check_params(params, doing)

    def host_code(name: str) -> Callable[..., Any] | None:
        function = _function(module, name, path)
        return None if function is None else in_mode(function, asked_for)

    return AuthorModel(
        directory=directory,
        module=module,
        predict=predict,
        has_predict=has_predict,
        preprocess=host_code("preprocess"),
        postprocess=host_code("postprocess"),
        stream=None if stream is None else stream_in_mode(stream, asked_for),
        signature=_signature(module, path),
        params=params,
        missing_weights=missing,
        jax_settings=jax_settings,
    )
