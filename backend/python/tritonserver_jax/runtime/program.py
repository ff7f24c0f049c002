# SPDX-License-Identifier: Apache-2.0
"""Compiled programs: one per device and set of input shapes, each compiled once."""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
import numpy as np

from tritonserver_jax.runtime import errors, log
from tritonserver_jax.runtime.author import AuthorModel
from tritonserver_jax.runtime.errors import refuse

# Moved out of jax.experimental in JAX 0.8.
_x64_home = jax if hasattr(jax, "enable_x64") else importlib.import_module("jax.experimental")
_enable_x64: Callable[[bool], AbstractContextManager[None]] = _x64_home.enable_x64

Shapes = tuple[tuple[str, tuple[int, ...], np.dtype[Any]], ...]


def x64_mode(enabled: bool) -> AbstractContextManager[None]:
    """JAX's 64-bit mode for a model that wants it, on this thread."""
    return _enable_x64(True) if enabled else nullcontext()


def shapes_of(arrays: Mapping[str, Any]) -> Shapes:
    """The key of a program: names, shapes and types of its inputs."""
    return tuple(
        (name, tuple(array.shape), np.dtype(array.dtype)) for name, array in arrays.items()
    )


def shapes_text(shapes: Shapes) -> str:
    """For messages: ``x: float32[8,16], y: int32[8]``."""
    return ", ".join(
        f"{name}: {dtype.name}[{','.join(map(str, shape))}]" for name, shape, dtype in shapes
    )


class Predict:
    """The author's ``predict`` as a function of arrays, with its outputs in a fixed order."""

    def __init__(self, author: AuthorModel, doing: str, x64: bool) -> None:
        self._author = author
        self._doing = doing
        self.x64 = x64

    def outputs(self, params: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Call ``predict`` (traced or not) and check that it returns a dict of arrays."""
        result = self._author.predict(params, **inputs)
        if not isinstance(result, Mapping):
            refuse(
                f"{self._doing}: predict must return a dict of output name -> array, got "
                f"{type(result).__name__}"
            )
        for name, array in result.items():
            if not isinstance(name, str) or not (
                hasattr(array, "shape") and hasattr(array, "dtype")
            ):
                refuse(
                    f"{self._doing}: predict must return a dict of output name -> array, got "
                    f"{type(array).__name__} for {name!r}"
                )
        return dict(result)

    def shapes(self, inputs: Mapping[str, Any]) -> dict[str, jax.ShapeDtypeStruct]:
        """Shapes and types of the outputs for inputs of given shapes, without running anything.

        Raises:
            BackendError: with what ``predict`` raised while it was traced.
        """
        with self.tracing("tracing predict"), x64_mode(self.x64):
            shapes: dict[str, jax.ShapeDtypeStruct] = jax.eval_shape(
                self.outputs, self._author.params, dict(inputs)
            )
        return shapes

    def tracing(self, what: str) -> AbstractContextManager[None]:
        """Words for a failure of the author's code; missing weights are named first."""
        doing = f"{self._doing}: {what}"
        if self._author.missing_weights:
            doing = f"{self._doing}: {self._author.missing_weights}; {what}"
        return errors.model_code(doing, self._author.directory)


class DevicePrograms:
    """A model on one device: its parameters there, and its programs. Shared by its instances."""

    def __init__(
        self,
        device: jax.Device,
        predict: Predict,
        params: Any,
        output_names: Sequence[str],
        doing: str,
        compiled: Callable[[float], None],
    ) -> None:
        """Place the parameters.

        Args:
            device: where to run.
            predict: what to compile.
            params: pytree of host arrays.
            output_names: the outputs to return, in order.
            doing: for messages.
            compiled: called with the seconds that each compilation took.
        """
        self.device = device
        self._predict = predict
        self._doing = doing
        self._compiled = compiled
        self._lock = threading.Lock()
        self._programs: dict[Shapes, Callable[[tuple[Any, ...]], Any]] = {}
        self._compiling: dict[Shapes, threading.Lock] = {}
        self.output_names = tuple(output_names)
        with x64_mode(predict.x64):
            self._params = jax.device_put(params, device)

    def program(self, shapes: Shapes, *, in_traffic: bool) -> Callable[[tuple[Any, ...]], Any]:
        """The program for inputs of these shapes: takes a tuple of arrays, returns one of outputs.

        Compiles it if need be; whoever else asks for the same one meanwhile waits for it.

        Args:
            shapes: of the inputs, with the batch dimension.
            in_traffic: whether a request waits for it, which the log then says.
        """
        with self._lock:
            program = self._programs.get(shapes)
            if program is not None:
                return program
            one_at_a_time = self._compiling.setdefault(shapes, threading.Lock())
        with one_at_a_time:
            program = self._programs.get(shapes)
            if program is None:
                program = self._compile(shapes, in_traffic)
                with self._lock:
                    self._programs[shapes] = program
                    self._compiling.pop(shapes, None)
            return program

    def _compile(self, shapes: Shapes, in_traffic: bool) -> Callable[[tuple[Any, ...]], Any]:
        names = [name for name, _, _ in shapes]

        def function(params: Any, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
            outputs = self._predict.outputs(params, dict(zip(names, arrays, strict=True)))
            return tuple(outputs[name] for name in self.output_names)

        arguments = tuple(jax.ShapeDtypeStruct(shape, dtype) for _, shape, dtype in shapes)
        started = time.perf_counter()
        with (
            self._predict.tracing(f"compiling predict for {shapes_text(shapes)}"),
            x64_mode(self._predict.x64),
            jax.default_device(self.device),
        ):
            # Arguments of the author's arrays that predict does not use are kept: the call below
            # passes all of them.
            executable = (
                jax.jit(function, keep_unused=True).lower(self._params, arguments).compile()
            )
        seconds = time.perf_counter() - started
        self._compiled(seconds)
        log.info(
            f"{self._doing}: compiled predict for {shapes_text(shapes)} on "
            f"{self.device.platform}:{self.device.id} in {seconds:.3f} s"
            + (" (in traffic)" if in_traffic else "")
        )
        params = self._params
        if not self._predict.x64:
            return lambda arrays: executable(params, arrays)

        def call(arrays: tuple[Any, ...]) -> Any:
            with x64_mode(True):
                return executable(params, arrays)

        return call
