# SPDX-License-Identifier: Apache-2.0
"""A Python object that is to be served: where it is, what it is, and what it returns. Imports JAX.

Whatever an author has is called in one of a few ways, and has its weights in one of a few places;
`Kind` tells them apart.
"""

from __future__ import annotations

import enum
import importlib
import importlib.util
import inspect
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import jax

from tritonserver_jax.authoring.errors import AuthoringError
from tritonserver_jax.runtime.tensors import TensorSpec
from tritonserver_jax.runtime.x64 import x64_mode

__all__ = [
    "Found",
    "Kind",
    "Returns",
    "find_object",
    "has_random_keys",
    "named_outputs",
    "returns",
    "taken_apart",
    "takes_rng",
    "variables",
]

_HOW: Final = "name it as MODULE:OBJECT or FILE.py:OBJECT, such as net.py:predict"
_SIZES: Final = (16, 32, 128, 4, 1)
_ROWS: Final = 2


class Kind(enum.Enum):
    """What an object is; the value says it to a person."""

    FUNCTION = "a function of the inputs"
    FUNCTION_OF_PARAMS = "a function of parameters and the inputs"
    LINEN = "a module of flax linen"
    NNX = "a module of flax nnx"
    EQUINOX = "a module of Equinox"
    HAIKU = "a transformed function of Haiku"

    @property
    def needs_checkpoint(self) -> bool:
        """Whether its weights are not in it."""
        return self in (Kind.FUNCTION_OF_PARAMS, Kind.LINEN, Kind.HAIKU)


class Returns(enum.Enum):
    """What a model returns, which tells how its outputs get names."""

    DICT = "a dict"
    ARRAY = "an array"
    SEQUENCE = "a tuple or list"


@dataclass(frozen=True, slots=True)
class Found:
    """An object, and where it is.

    Attributes:
        value: The object.
        name: In its module.
        module: Its module.
        file: The file of the module, where that is to be copied beside model.py; None where it is
            a part of an installed package.
        kind: What it is.
    """

    value: Any
    name: str
    module: ModuleType
    file: Path | None
    kind: Kind


def find_object(reference: str, inputs: Sequence[TensorSpec]) -> Found:
    """Import an object.

    Args:
        reference: ``module:object`` or ``file.py:object``.
        inputs: Of the model to be: they tell whether a function takes parameters as well.

    Raises:
        AuthoringError: It is not there, its module fails, or it is nothing that can be served.
    """
    place, _, name = reference.rpartition(":")
    if not place or not name:
        raise AuthoringError(f"--from: expected a module and an object, got {reference!r}; {_HOW}")
    module = _import(place)
    value: Any = module
    for part in name.split("."):
        if not hasattr(value, part):
            has = ", ".join(one for one in vars(module) if not one.startswith("_")) or "nothing"
            raise AuthoringError(f"--from: {place} has no {name}; it has {has}")
        value = getattr(value, part)
    return Found(value, name, module, _own_file(module), _kind(value, reference, inputs))


def _import(place: str) -> ModuleType:
    path = Path(place)
    is_file = place.endswith(".py") or "/" in place
    if is_file and not path.is_file():
        raise AuthoringError(f"--from: expected a file, found none: {place}; {_HOW}")
    # What lies beside a file, or in the current folder, can be imported by its author.
    sys.path.insert(0, str(path.resolve().parent if is_file else Path.cwd()))
    try:
        if is_file:
            spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
            assert spec is not None  # noqa: S101 - a file that ends in .py
            assert spec.loader is not None  # noqa: S101
            module = importlib.util.module_from_spec(spec)
            sys.modules[path.stem] = module
            spec.loader.exec_module(module)
            return module
        return importlib.import_module(place)
    except Exception as error:
        raise AuthoringError(
            f"--from: importing {place} raised {type(error).__name__}: {error}; correct it, or "
            "add the package that is missing to this Python"
        ) from error
    finally:
        del sys.path[0]


def _own_file(module: ModuleType) -> Path | None:
    """The file of a module that is no package and in none."""
    file = getattr(module, "__file__", None)
    if file is None or "." in module.__name__ or hasattr(module, "__path__"):
        return None
    path = Path(file).resolve()
    installed = {
        Path(sysconfig.get_path(key)).resolve() for key in ("purelib", "platlib", "stdlib")
    }
    return None if any(path.is_relative_to(one) for one in installed) else path


def _is_of(value: Any, package: str, name: str) -> bool:
    """Whether a value is an instance of a class of a package, which is not imported for that."""
    module: Any = sys.modules.get(package)
    for part in name.split("."):
        module = getattr(module, part, None)
    return isinstance(module, type) and isinstance(value, module)


def _kind(value: Any, reference: str, inputs: Sequence[TensorSpec]) -> Kind:
    if inspect.isclass(value):
        raise AuthoringError(
            f"--from: {reference} is a class, and an object is expected; make one in that module, "
            f"such as network = {value.__name__}(...), and name that"
        )
    for kind, package, name in (
        (Kind.LINEN, "flax.linen", "Module"),
        (Kind.NNX, "flax.nnx", "Module"),
        (Kind.EQUINOX, "equinox", "Module"),
        (Kind.HAIKU, "haiku", "Transformed"),
    ):
        if _is_of(value, package, name):
            return kind
    if not callable(value):
        raise AuthoringError(
            f"--from: {reference} is a {type(value).__name__}; expected a function, or a module "
            "of flax, Equinox or Haiku; name one, or write model.py yourself (see --template)"
        )
    return _kind_of_function(value, reference, inputs)


def _kind_of_function(value: Any, reference: str, inputs: Sequence[TensorSpec]) -> Kind:
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):  # not every callable tells
        return Kind.FUNCTION
    names = [one.name for one in parameters]
    wanted = [spec.name for spec in inputs]
    takes_any = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters)
    if (
        parameters
        and names[0] not in wanted
        and parameters[0].kind
        in (
            inspect.Parameter.POSITIONAL_ONLY,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
        )
    ):
        kind, rest = Kind.FUNCTION_OF_PARAMS, names[1:]
    else:
        kind, rest = Kind.FUNCTION, names
    missing = [name for name in wanted if name not in rest]
    unknown = [
        one.name
        for one in parameters[len(names) - len(rest) :]
        if one.name not in wanted
        and one.default is inspect.Parameter.empty
        and one.kind not in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    ]
    if (missing and not takes_any) or unknown:
        has = ", ".join(names) or "none"
        raise AuthoringError(
            f"--from: {reference} has the arguments {has}, which do not fit the inputs "
            f"{', '.join(wanted)}; give an --input for each argument, by its name (parameters may "
            "come first)"
        )
    return kind


def taken_apart(found: Found, params: Any) -> tuple[Callable[..., Any], Any]:
    """Return an object as ``function(params, **inputs)``, as its model.py will call it; and params.

    Args:
        found: The object.
        params: Those of a checkpoint; of an object that holds its own they are taken out of it.
    """
    value, kind = found.value, found.kind
    if kind is Kind.FUNCTION:
        return lambda _params, **inputs: value(**inputs), None
    if kind is Kind.FUNCTION_OF_PARAMS:
        return value, params
    if kind is Kind.LINEN:
        return lambda params, **inputs: value.apply(variables(params), *inputs.values()), params
    if kind is Kind.HAIKU:
        if takes_rng(value):
            return lambda params, **inputs: value.apply(params, None, *inputs.values()), params
        return lambda params, **inputs: value.apply(params, *inputs.values()), params
    if kind is Kind.EQUINOX:
        import equinox

        network = equinox.nn.inference_mode(value)
        arrays, static = equinox.partition(network, equinox.is_array)
        return (
            lambda params, **inputs: jax.vmap(equinox.combine(params, static))(*inputs.values()),
            arrays,
        )
    from flax import nnx

    value.eval()
    parts: Any = nnx.split(value, nnx.RngState, ...)
    graph, keys, state = parts
    return lambda params, **inputs: nnx.merge(graph, keys, params)(*inputs.values()), state


def has_random_keys(found: Found) -> bool:
    """Whether a module of flax nnx holds random keys, which are no weights."""
    from flax import nnx

    return bool(jax.tree.leaves(nnx.state(found.value, nnx.RngState)))


def variables(params: Any) -> Any:
    """Return what `apply` of flax linen takes: all collections, or the parameters alone."""
    has_collections = isinstance(params, Mapping) and "params" in params
    return params if has_collections else {"params": params}


def takes_rng(transformed: Any) -> bool:
    """Whether the `apply` of a transformed function of Haiku has a key as its second argument."""
    return "rng" in inspect.signature(transformed.apply).parameters


def returns(
    function: Callable[..., Any],
    params: Any,
    inputs: Sequence[TensorSpec],
    *,
    batching: bool,
    what: str,
) -> Returns:
    """Find out what a model returns, without running it.

    Args:
        function: As `taken_apart` returns it.
        params: Its parameters.
        inputs: Of the model.
        batching: Whether it takes a batch.
        what: For messages, how the object was named.

    Raises:
        AuthoringError: It cannot be traced, or returns something else.
    """
    x64 = any(spec.dtype.needs_x64 for spec in inputs)
    lead = (_ROWS,) if batching else ()
    failure: Exception | None = None
    for size in _SIZES:
        given = {
            spec.name: jax.ShapeDtypeStruct(
                (*lead, *(size if dim == -1 else dim for dim in spec.dims)), spec.dtype.numpy
            )
            for spec in inputs
        }
        try:
            with x64_mode(x64):
                made = jax.eval_shape(lambda given: function(params, **given), given)
        except Exception as error:
            failure = failure or error
            continue
        if isinstance(made, Mapping):
            return Returns.DICT
        if isinstance(made, tuple | list) and all(hasattr(one, "shape") for one in made):
            return Returns.SEQUENCE
        if hasattr(made, "shape"):
            return Returns.ARRAY
        raise AuthoringError(
            f"--from: {what} returns a {type(made).__name__}; expected a dict of arrays by name, "
            "an array, or a tuple of them; wrap it in a function that returns one"
        )
    said = str(failure).strip().splitlines() or [""]
    raise AuthoringError(
        f"--from: {what} cannot be traced with the inputs "
        f"{', '.join(f'{spec.name} {spec}' for spec in inputs)}: {type(failure).__name__}: "
        f"{said[0]}; correct the inputs or the function"
    ) from failure


def named_outputs(function: Callable[..., Any], kind: Returns) -> Callable[..., Any]:
    """Return a function whose outputs have names, as the model.py of an object gives them.

    Args:
        function: As `taken_apart` returns it.
        kind: What it returns.
    """
    if kind is Returns.DICT:
        return function
    if kind is Returns.ARRAY:
        return lambda params, **inputs: {"OUTPUT": function(params, **inputs)}
    return lambda params, **inputs: {
        f"OUTPUT{number}": one for number, one in enumerate(function(params, **inputs))
    }
