# SPDX-License-Identifier: Apache-2.0
"""Runs a traced program an operation at a time, to see what each of them does.

JAX's own documentation shows how: a program is a list of equations, and each is a primitive that
can be called. Functions that a program calls are gone through as well, and so are the branches that
it takes; what is in a loop is seen as one operation.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from jax.extend.core import ClosedJaxpr, Literal

__all__ = [
    "Step",
    "all_equations",
    "bind",
    "branch_taken",
    "called_program",
    "constants",
    "line_of",
    "literal",
    "run_in_steps",
]

#: Primitives that call a program, by the parameter that it is in.
_CALLS: Final = {
    "pjit": "jaxpr",
    "jit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "remat": "jaxpr",
    "remat2": "jaxpr",
    "checkpoint": "jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vjp_call_jaxpr": "fun_jaxpr",
}

Wanted = Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class Step:
    """One operation that was run.

    Attributes:
        path: The equation, after those that call the program it is in.
        inputs: Its arrays.
        outputs: What it made of them.
    """

    path: tuple[Any, ...]
    inputs: list[Any]
    outputs: list[Any]

    @property
    def equation(self) -> Any:
        """The equation itself."""
        return self.path[-1]


def literal(variable: Any) -> Any:
    """The array of a number that is written into a program, of the type that it says."""
    return np.asarray(variable.val, variable.aval.dtype)


def bind(primitive: Any, inputs: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Run a primitive."""
    given = primitive.get_bind_params(params)
    # Until JAX 0.9, functions that a primitive calls came apart from the other parameters.
    functions, others = given if isinstance(given, tuple) else ((), given)
    made = primitive.bind(*functions, *inputs, **others)
    return list(made) if primitive.multiple_results else [made]


def all_equations(jaxpr: Any) -> Iterator[Any]:
    """Yield every equation of a program, and of those that are in it.

    Args:
        jaxpr: The program, not closed.
    """
    for equation in jaxpr.eqns:
        yield equation
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple | list) else (value,):
                program = getattr(inner, "jaxpr", inner)
                if hasattr(program, "eqns"):
                    yield from all_equations(program)


def constants(program: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every constant of a program, and of those in it, with the first equation that reads it.

    Args:
        program: A closed jaxpr.
    """
    jaxpr = program.jaxpr
    values = dict(zip(jaxpr.constvars, program.consts, strict=True))
    for equation in jaxpr.eqns:
        for variable in equation.invars:
            if isinstance(variable, Literal):
                yield literal(variable), equation
            elif variable in values:
                yield values.pop(variable), equation
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple | list) else (value,):
                if hasattr(inner, "eqns"):
                    inner = ClosedJaxpr(inner, ()) if not inner.constvars else None
                if hasattr(inner, "consts") and hasattr(inner, "jaxpr"):
                    yield from constants(inner)


def called_program(equation: Any) -> Any:
    """The program that an equation calls, or None."""
    name = _CALLS.get(equation.primitive.name)
    program = None if name is None else equation.params.get(name)
    if program is None:
        return None
    if not hasattr(program, "consts"):
        program = ClosedJaxpr(program, ())
    fits = len(program.jaxpr.invars) == len(equation.invars)
    return program if fits and len(program.jaxpr.outvars) == len(equation.outvars) else None


def branch_taken(equation: Any, inputs: Sequence[Any]) -> Any:
    """The branch that a condition takes."""
    branches = equation.params["branches"]
    return branches[min(max(int(inputs[0]), 0), len(branches) - 1)]


def _has(program: Any, wanted: Wanted) -> bool:
    return any(
        wanted(equation) or any(_has(inner, wanted) for inner in _programs_of(equation))
        for equation in program.jaxpr.eqns
    )


def _programs_of(equation: Any) -> list[Any]:
    called = called_program(equation)
    if called is not None:
        return [called]
    return list(equation.params["branches"]) if equation.primitive.name == "cond" else []


def _needed(program: Any, wanted: Wanted | None) -> list[tuple[bool, bool]]:
    """Of each equation: whether it has to be run for the wanted ones, and its results are read."""
    equations = program.jaxpr.eqns
    if wanted is None:
        return [(True, True)] * len(equations)
    read: set[Any] = set()
    found = [(False, False)] * len(equations)
    for index in reversed(range(len(equations))):
        equation = equations[index]
        is_read = any(variable in read for variable in equation.outvars)
        needed = (
            is_read
            or wanted(equation)
            or any(_has(inner, wanted) for inner in _programs_of(equation))
        )
        if needed:
            read.update(one for one in equation.invars if not isinstance(one, Literal))
        found[index] = (needed, is_read)
    return found


def run_in_steps(
    program: Any,
    inputs: Sequence[Any],
    wanted: Wanted | None = None,
    *,
    _path: tuple[Any, ...] = (),
) -> Generator[Step, None, list[Any]]:
    """Run a program, and yield each operation after it was run.

    Args:
        program: A closed jaxpr, as `jax.make_jaxpr` returns it.
        inputs: The leaves of its arguments.
        wanted: Which equations are of interest: of the others, only those are run on whose results
            such a one depends. By default all are.

    Returns:
        The outputs.
    """
    values: dict[Any, Any] = dict(zip(program.jaxpr.constvars, program.consts, strict=True))
    values.update(zip(program.jaxpr.invars, inputs, strict=True))

    def value(variable: Any) -> Any:
        return variable.val if isinstance(variable, Literal) else values.get(variable)

    for equation, (needed, is_read) in zip(
        program.jaxpr.eqns, _needed(program, wanted), strict=True
    ):
        if not needed:
            continue
        given = [value(variable) for variable in equation.invars]
        path = (*_path, equation)
        called, arguments = called_program(equation), given
        if equation.primitive.name == "cond":
            called, arguments = branch_taken(equation, given), given[1:]
        if called is not None:
            # All of it, where its results are read.
            inner = None if is_read else wanted
            outputs = yield from run_in_steps(called, arguments, inner, _path=path)
        else:
            outputs = bind(equation.primitive, given, equation.params)
            yield Step(path, given, outputs)
        values.update(zip(equation.outvars, outputs, strict=True))
    return [value(variable) for variable in program.jaxpr.outvars]


def line_of(step: Step, directory: Path) -> str:
    """Return the line of a model's code that an operation is from, as ``model.py:12``; or nothing.

    Args:
        step: The operation.
        directory: Where the model's code is.
    """
    # From the inside out: JAX keeps what it has traced once, with the lines of whoever was first.
    for equation in reversed(step.path):
        traceback = equation.source_info.traceback
        for frame in traceback.frames if traceback is not None else ():
            if Path(frame.file_name).is_relative_to(directory):
                return f"{os.path.relpath(frame.file_name, directory)}:{frame.line_num}"
    return ""
