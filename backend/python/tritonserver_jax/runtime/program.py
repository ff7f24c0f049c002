# SPDX-License-Identifier: Apache-2.0
"""Compiled programs: one per device and set of input shapes, each compiled once."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from tritonserver_jax.runtime import errors, log
from tritonserver_jax.runtime.author import AuthorModel
from tritonserver_jax.runtime.compile_cache import compile_cache
from tritonserver_jax.runtime.direct_call import direct_call
from tritonserver_jax.runtime.errors import Code, refuse
from tritonserver_jax.runtime.events import Event, Observe
from tritonserver_jax.runtime.parameters import Parameters
from tritonserver_jax.runtime.strings import Strings
from tritonserver_jax.runtime.x64 import x64_mode


@dataclass(frozen=True)
class Argument:
    """One array that a compiled function takes.

    Attributes:
        name: of the input that it belongs to.
        role: ``data``: the input itself; ``lengths``: how much of each row is real, for its mask;
            ``bytes`` and ``string_lengths``: the two halves of `Strings`.
        shape: with the batch dimension.
        dtype: of its elements.
        varying: of ``lengths``: which axes of the input vary, counted with the batch dimension.
    """

    name: str
    role: Literal["data", "lengths", "bytes", "string_lengths"]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    varying: tuple[int, ...] = ()


Arguments = tuple[Argument, ...]


def arguments_text(arguments: Arguments) -> str:
    """For messages: ``x: float32[8,16], y: int32[8]``."""
    return ", ".join(
        f"{one.name}: {one.dtype.name}[{','.join(map(str, one.shape))}]"
        for one in arguments
        if one.role in ("data", "bytes")
    )


def data_arguments(arrays: Mapping[str, Any]) -> Arguments:
    """Arguments that are plain inputs, from arrays (or what has their shape and dtype)."""
    return tuple(
        Argument(name, "data", tuple(array.shape), np.dtype(array.dtype))
        for name, array in arrays.items()
    )


def _mask(lengths: Any, shape: tuple[int, ...], varying: tuple[int, ...], batching: bool) -> Any:
    """Where an input is real: ``bool[batch, *dimensions that vary]``."""
    mask: Any = None
    for number, axis in enumerate(varying):
        real = jnp.arange(shape[axis]) < lengths[..., number, None]
        # One more axis for each of the dimensions that vary, in their order.
        before, after = number, len(varying) - 1 - number
        lead = real.shape[:-1]
        real = real.reshape(*lead, *(1,) * before, shape[axis], *(1,) * after)
        mask = real if mask is None else mask & real
    return mask if batching else mask.reshape([shape[axis] for axis in varying])


def flatten_outputs(result: Any, must: str) -> dict[str, Any]:
    """A model's outputs by name; what is nested gets the keys on the way joined by dots.

    Raises:
        BackendError: INVALID_ARG for what is not a dict of arrays.
    """
    if not isinstance(result, Mapping):
        got = "an array" if hasattr(result, "shape") else type(result).__name__
        refuse(f"{must} a dict of output name -> array, got {got}")
    flat: dict[str, Any] = {}

    def add(value: Any, name: str) -> None:
        if isinstance(value, Strings) or (hasattr(value, "shape") and hasattr(value, "dtype")):
            if name in flat:
                refuse(f"{must} each output once, got two by the name '{name}'")
            flat[name] = value
        elif isinstance(value, bool | int | float | complex):
            add(jnp.asarray(value), name)
        elif isinstance(value, Mapping):
            for key, inner in value.items():
                if not isinstance(key, str):
                    refuse(f"{must} a dict with strings as keys, got {key!r} in '{name}'")
                add(inner, f"{name}.{key}")
        elif isinstance(value, list | tuple):
            for index, inner in enumerate(value):
                add(inner, f"{name}.{index}")
        else:
            refuse(
                f"{must} a dict of output name -> array, got "
                f"{type(value).__name__} for '{name}'"
                + (
                    "; strings go as np.array([...], object)"
                    if isinstance(value, str | bytes)
                    else ""
                )
            )

    for key, value in result.items():
        if not isinstance(key, str) or not key:
            refuse(f"{must} a dict with non-empty strings as names, got {key!r}")
        add(value, key)
    return flat


def _accepts(function: Callable[..., Any], name: str) -> bool:
    try:
        return name in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


class Predict:
    """The author's ``predict`` as a function of arrays, with its outputs in a fixed order."""

    def __init__(
        self,
        author: AuthorModel,
        doing: str,
        x64: bool,
        parameters: Parameters,
        *,
        batching: bool,
        inputs: Collection[str],
    ) -> None:
        self._author = author
        self._doing = doing
        self._batching = batching
        self.parameters = parameters
        self.x64 = x64
        self.wants_masks = "masks" not in inputs and _accepts(author.predict, "masks")
        # Shapes and types only: the parameters themselves live on the devices.
        with x64_mode(x64):
            self._param_specs = jax.eval_shape(lambda params: params, author.params)

    def call(self, params: Any, arguments: Arguments, arrays: Sequence[Any]) -> dict[str, Any]:
        """Call ``predict`` (traced or not): returns its outputs by name, nested ones flattened."""
        inputs: dict[str, Any] = {}
        halves: dict[str, dict[str, Any]] = {}
        masks: dict[str, Any] = {}
        shapes = {one.name: one.shape for one in arguments if one.role == "data"}
        for one, array in zip(arguments, arrays, strict=True):
            if one.role == "data":
                inputs[one.name] = array
            elif one.role == "lengths":
                masks[one.name] = _mask(array, shapes[one.name], one.varying, self._batching)
            else:
                halves.setdefault(one.name, {})[one.role] = array
        for name, pair in halves.items():
            inputs[name] = Strings(pair["bytes"], pair["string_lengths"])
        extra = {"masks": masks} if self.wants_masks else {}
        if self._author.missing_weights:
            params = MissingParams(self._author.missing_weights)
        result = self._author.predict(params, **inputs, **extra)
        return flatten_outputs(result, f"{self._doing}: predict must return")

    def shapes(self, arguments: Arguments) -> dict[str, Any]:
        """Shapes and types of the outputs, without running anything.

        Raises:
            BackendError: with what ``predict`` raised while it was traced.
        """
        with self.tracing("tracing predict"):
            specs = tuple(jax.ShapeDtypeStruct(one.shape, one.dtype) for one in arguments)
            shapes: dict[str, Any] = jax.eval_shape(
                lambda params, arrays: self.call(params, arguments, arrays),
                self._param_specs,
                specs,
            )
        return shapes

    @contextmanager
    def tracing(self, what: str) -> Iterator[None]:
        """Trace in the model's modes, with words for what fails."""
        with (
            errors.model_code(f"{self._doing}: {what}", self._author.directory),
            x64_mode(self.x64),
            jax.default_matmul_precision(self.parameters.matmul_precision)
            if self.parameters.matmul_precision
            else contextlib.nullcontext(),
        ):
            yield


class MissingParams(dict[str, Any]):
    """What ``predict`` gets as parameters where there are none: to use it is an error in words.

    A dict, because flax refuses any other kind of parameters in words of its own.
    """

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def _refuse(self, *_: Any) -> Any:
        refuse(f"predict uses its parameters, but {self._reason}", Code.NOT_FOUND)

    __getitem__ = __iter__ = __len__ = __contains__ = __call__ = _refuse
    keys = values = items = get = copy = pop = setdefault = __or__ = __ror__ = _refuse
    __array__ = __jax_array__ = __matmul__ = __rmatmul__ = __mul__ = __rmul__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __truediv__ = __rtruediv__ = _refuse

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__jax_array__":
            raise AttributeError(name)
        return self._refuse()


# XLA's flag for what runs a program on the CPU with several threads.
_MULTI_THREAD_FLAG = "xla_cpu_multi_thread_eigen"

# A program that does less than this takes a core a fraction of a millisecond.
_SMALL_FLOPS = 2e7
_SMALL_BYTES = 4e6


def _is_small(lowered: jax.stages.Lowered) -> bool:
    """Whether XLA's own estimate of a program's work is small. Unknown is not small."""
    try:
        costs: Any = lowered.cost_analysis()
        work = costs[0] if isinstance(costs, list) else costs
        return bool(work["flops"] < _SMALL_FLOPS and work["bytes accessed"] < _SMALL_BYTES)
    except (KeyError, TypeError, IndexError, NotImplementedError, RuntimeError):
        return False


def _covers(larger: Arguments, smaller: Arguments) -> bool:
    """Whether arguments are the same but for dimensions that are no larger."""
    return len(larger) == len(smaller) and all(
        (of.name, of.role, of.dtype, len(of.shape))
        == (one.name, one.role, one.dtype, len(one.shape))
        and all(a >= b for a, b in zip(of.shape, one.shape, strict=True))
        for of, one in zip(larger, smaller, strict=True)
    )


class Program:
    """A compiled program with the model's parameters.

    Attributes:
        permanent: whether it is kept for as long as the model is.
        last_used: when it was asked for or run, on `time.monotonic`'s clock.
        evicted: whether it was given up: whoever holds it asks for it again, and lets it go.
    """

    def __init__(self, compiled: jax.stages.Compiled, params: Any, *, x64: bool) -> None:
        self._compiled = compiled
        self._params = params
        self._x64 = x64
        self.permanent = False
        self.last_used = 0.0
        self.evicted = False

    def run(self, arrays: tuple[Any, ...]) -> Any:
        """Run it on a tuple of arrays: returns a sequence of outputs, or a dict of all."""
        if not self._x64:
            return self._compiled(self._params, arrays)
        with x64_mode(True):
            return self._compiled(self._params, arrays)

    def bind(self, arrays: tuple[Any, ...]) -> Callable[[], Any]:
        """What runs it on the same arrays, whose contents may change from run to run."""
        leaves = [*jax.tree.leaves(self._params), *arrays]
        return direct_call(self._compiled, leaves) or functools.partial(self.run, arrays)


class DevicePrograms:
    """A model on one device: its parameters there, and its programs. Shared by its instances."""

    def __init__(
        self,
        device: jax.Device,
        predict: Predict,
        params: Any,
        output_names: Sequence[str] | None,
        doing: str,
        observe: Observe,
    ) -> None:
        """Place the parameters.

        Args:
            device: where to run.
            predict: what to compile.
            params: pytree of host arrays.
            output_names: the outputs to return, in order; None for all of them by name.
            doing: for messages.
            observe: told of what happens.
        """
        self.device = device
        self.device_name = f"{device.platform}:{device.id}"
        self.output_names = None if output_names is None else tuple(output_names)
        self.x64 = predict.x64
        self._predict = predict
        self._doing = doing
        self._observe = observe
        self._lock = threading.Lock()
        self._compiling: dict[Arguments, threading.Lock] = {}
        self._permanent: dict[Arguments, Program] = {}
        self._recent: dict[Arguments, Program] = {}
        self._small: Arguments | None = None  # the last that XLA said to be small
        with x64_mode(predict.x64):
            # Waited for, so that the host's copy is not held until some later call of JAX.
            self.params = jax.block_until_ready(jax.device_put(params, device))

    def observe(self, event: Event, value: float = 1.0) -> None:
        """Tell of an event on this device."""
        self._observe(event, self.device_name, value)

    def _known(self, arguments: Arguments) -> Program | None:
        program = self._permanent.get(arguments) or self._recent.get(arguments)
        if program is not None:
            program.last_used = time.monotonic()
        return program

    def program(self, arguments: Arguments, *, in_traffic: bool) -> Program:
        """The program for these arguments.

        Compiles it if need be; whoever else asks for the same one meanwhile waits for it.

        Args:
            arguments: with their shapes, batch dimension included.
            in_traffic: whether a request waits for it. Then the log says so, and the program counts
                towards ``max_programs``.
        """
        with self._lock:
            program = self._known(arguments)
            if program is not None:
                return program
            one_at_a_time = self._compiling.setdefault(arguments, threading.Lock())
        with one_at_a_time:
            with self._lock:
                program = self._known(arguments)
            if program is None:
                program = self._compile(arguments, in_traffic)
                with self._lock:
                    self._keep(arguments, program, in_traffic)
                    self._compiling.pop(arguments, None)
            return program

    def _keep(self, arguments: Arguments, program: Program, in_traffic: bool) -> None:
        if not in_traffic:
            program.permanent = True
            self._permanent[arguments] = program
            return
        while len(self._recent) >= self._predict.parameters.max_programs:
            of = min(self._recent, key=lambda key: self._recent[key].last_used)
            self._recent.pop(of).evicted = True
            self.observe(Event.EVICTED)
            log.verbose(f"{self._doing}: gave up the program for {arguments_text(of)}")
        program.last_used = time.monotonic()
        self._recent[arguments] = program

    def resident(self, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
        """The same arrays as arrays of JAX that share the memory, so that no run has to make them.

        Where that cannot be had (a device with memory of its own, arguments that are donated,
        memory that is not aligned), they are returned as they are, and each run passes them anew.

        Args:
            arrays: of NumPy; what is written to them later is what a later run sees.
        """
        if self.device.platform != "cpu" or self._predict.parameters.donate:
            return arrays

        def share(array: Any) -> Any:
            with x64_mode(self.x64):
                shared = jax.device_put(array, self.device)
            same = shared.unsafe_buffer_pointer() == array.ctypes.data
            return shared if same and shared.dtype == array.dtype else array

        return tuple(share(array) for array in arrays)

    def _does_little(self, arguments: Arguments, lowered: jax.stages.Lowered) -> bool:
        """Whether a program is small, or does no more than one that is.

        XLA takes as long to say it as to read a small program from the compile cache. Models are
        compiled from the largest batch down, so that it is mostly asked once.
        """
        if self._small is not None and _covers(self._small, arguments):
            return True
        small = _is_small(lowered)
        if small:
            self._small = arguments
        return small

    def _compiler_options(
        self, arguments: Arguments, lowered: jax.stages.Lowered
    ) -> dict[str, Any]:
        """What the model asks for; a small program is kept on the thread that runs it.

        To wake XLA's other threads costs more than they save in it, and takes the processor from
        the server's own threads.
        """
        options = dict(self._predict.parameters.xla_flags)
        if (
            self.device.platform == "cpu"
            and _MULTI_THREAD_FLAG not in options
            and _MULTI_THREAD_FLAG not in os.environ.get("XLA_FLAGS", "")
            and self._does_little(arguments, lowered)
        ):
            options[_MULTI_THREAD_FLAG] = False
        return options

    def _cache_event(self, outcome: str) -> None:
        self.observe(Event.CACHE_HIT if outcome == "hit" else Event.CACHE_MISS)

    def _compile(self, arguments: Arguments, in_traffic: bool) -> Program:
        def function(params: Any, arrays: tuple[Any, ...]) -> Any:
            outputs = self._predict.call(params, arguments, arrays)
            if self.output_names is None:
                return outputs
            return tuple(outputs[name] for name in self.output_names)

        parameters = self._predict.parameters
        specs = tuple(jax.ShapeDtypeStruct(one.shape, one.dtype) for one in arguments)
        text = arguments_text(arguments)
        started = time.perf_counter()
        with (
            self._predict.tracing(f"compiling predict for {text}"),
            jax.default_device(self.device),
            compile_cache(parameters.compile_cache, self._cache_event, self._doing),
        ):
            # Inputs that predict does not use are kept: the call below passes all of them.
            jitted = jax.jit(
                function, keep_unused=True, donate_argnums=(1,) if parameters.donate else ()
            )
            lowered = jitted.lower(self.params, specs)
            options = self._compiler_options(arguments, lowered)
            handed_over = time.perf_counter()
            executable = lowered.compile(compiler_options=options or None)
        ended = time.perf_counter()
        seconds = ended - started
        self.observe(Event.COMPILED, seconds)
        if in_traffic:
            self.observe(Event.IN_TRAFFIC)
        log.detail(
            f"{self._doing}: compiled predict for {text} on {self.device_name} in {seconds:.3f} s, "
            f"{ended - handed_over:.3f} s of them in XLA" + (" (in traffic)" if in_traffic else "")
        )
        return Program(executable, self.params, x64=self._predict.x64)
