# SPDX-License-Identifier: Apache-2.0
"""What a traced program would compute if its whole numbers had more bits.

The program is run again with 64-bit integers in place of those that a model keeps in 8, 16 or, with
a sign, 32 bits; loops and branches included. Where it then has other results, some number did not
fit. Unsigned integers of 32 and more bits stay as they are, because code that hashes, or draws
random numbers, means them to wrap around; and so does what was made of shuffled bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Literal

from tritonserver_jax.checking.steps import bind, branch_taken, called_program, literal

__all__ = ["Evaluator", "is_widened"]

_WIDE: Final = np.dtype(np.int64)
#: Of what these make the bits are meant, and not the number.
_SHUFFLES: Final = frozenset(
    {"bitcast_convert_type", "not", "random_bits", "shift_right_logical", "xor"}
)
#: These look at bits, and make a number.
_LOOKS_AT_BITS: Final = frozenset({"and", "clz", "or", "population_count"})
#: Which arguments are places, which may have another type than the numbers there: from, and to.
_PLACES: Final[dict[str, slice]] = {
    "gather": slice(1, 2),
    "dynamic_slice": slice(1, None),
    "dynamic_update_slice": slice(2, None),
    "scatter": slice(1, 2),
    "scatter-add": slice(1, 2),
    "scatter-max": slice(1, 2),
    "scatter-min": slice(1, 2),
    "scatter-mul": slice(1, 2),
    "select_n": slice(0, 1),
}
#: They have programs of two numbers in their parameters, which are for the narrow type.
_SCATTERS: Final[dict[str, Callable[..., Any]]] = {
    "scatter": lax.scatter,
    "scatter-add": lax.scatter_add,
    "scatter-max": lax.scatter_max,
    "scatter-min": lax.scatter_min,
    "scatter-mul": lax.scatter_mul,
}
_SCATTER_PARAMETERS: Final = ("indices_are_sorted", "unique_indices", "mode")
#: Parameters that name the type of what comes out.
_TYPES: Final = ("dtype", "index_dtype", "new_dtype", "preferred_element_type")
#: Parameters that are programs for the narrow type.
_PROGRAMS: Final = ("jaxpr", "fun_jaxpr", "call_jaxpr", "update_jaxpr")


def is_widened(dtype: Any) -> bool:
    """Whether an integer type is given more bits."""
    if not jnp.issubdtype(dtype, jnp.integer):
        return False
    dtype = np.dtype(dtype)
    return bool(dtype.itemsize <= 2 or (dtype.kind == "i" and dtype.itemsize == 4))


def _is_number(variable: Any) -> bool:
    dtype = getattr(variable.aval, "dtype", None)
    return dtype is not None and is_widened(dtype)


def _widened(value: Any, variable: Any) -> Any:
    if not _is_number(variable) or value.dtype == _WIDE:
        return value
    return jnp.asarray(value).astype(_WIDE)


def _narrowed(value: Any, variable: Any) -> Any:
    if not _is_number(variable) or value.dtype != _WIDE:
        return value
    return value.astype(variable.aval.dtype)


class Evaluator:
    """Runs programs with other integers. Needs JAX's 64-bit mode.

    Inside, a number is wide; what has the narrow type of its variable was made of shuffled bits.
    """

    def __init__(self, *, wide: bool = True, of_floats: bool = False) -> None:
        """Say how.

        Args:
            wide: Whether integers are given more bits; otherwise they are as they are.
            of_floats: Whether also those that are made of floating-point numbers, which otherwise
                end where their type does.
        """
        self._wide = wide
        self.of_floats = of_floats

    def run(self, program: Any, inputs: Sequence[Any]) -> list[Any]:
        """Run a closed program.

        Args:
            program: As `jax.make_jaxpr` returns it.
            inputs: The leaves of its arguments.

        Returns:
            Its outputs; those that are numbers are wide.
        """
        return self._run(program, self._enter(inputs, program.jaxpr.invars))

    def run_equation(self, equation: Any, inputs: Sequence[Any]) -> list[Any]:
        """Run one equation of a program on arrays of the types that it says.

        Returns:
            Its outputs; those that are numbers are wide.
        """
        return self._equation(equation, self._enter(inputs, equation.invars))

    def _enter(self, values: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        if not self._wide:
            return list(values)
        return [_widened(one, of) for one, of in zip(values, variables, strict=True)]

    def _run(self, program: Any, inputs: Sequence[Any]) -> list[Any]:
        jaxpr = program.jaxpr
        values: dict[Any, Any] = {}

        def read(variable: Any) -> Any:
            if not isinstance(variable, Literal):
                return values[variable]
            return self._enter([literal(variable)], [variable])[0]

        values.update(
            zip(jaxpr.constvars, self._enter(program.consts, jaxpr.constvars), strict=True)
        )
        values.update(zip(jaxpr.invars, inputs, strict=True))
        for equation in jaxpr.eqns:
            made = self._equation(equation, [*map(read, equation.invars)])
            values.update(zip(equation.outvars, made, strict=True))
        return [read(variable) for variable in jaxpr.outvars]

    def _equation(self, equation: Any, given: list[Any]) -> list[Any]:
        name = equation.primitive.name
        called = called_program(equation)
        if called is not None:
            return self._run(called, given)
        if name == "cond":
            return self._cond(equation, given)
        if name == "scan":
            return self._scan(equation.params, given)
        if name == "while":
            return self._while(equation.params, given)
        if not self._wide:
            return bind(equation.primitive, given, equation.params)
        if not any(map(_is_number, (*equation.invars, *equation.outvars))):
            return bind(equation.primitive, given, equation.params)
        if name == "shift_right_logical" and equation.invars[0].aval.dtype.kind == "u":
            name = "shift_right_arithmetic"  # of numbers, which have no sign
        if name in _SHUFFLES:
            return self._narrow(equation, given)
        places = range(len(given))[_PLACES.get(name, slice(0))]
        shuffled = any(
            _is_number(variable) and value.dtype != _WIDE
            for n, (variable, value) in enumerate(zip(equation.invars, given, strict=True))
            if n not in places
        )
        if shuffled:
            return self._narrow(equation, given)
        programs = any(key in equation.params for key in _PROGRAMS) and name not in _SCATTERS
        if programs or name in _LOOKS_AT_BITS:
            return self._enter(self._narrow(equation, given), equation.outvars)
        return self._enter(self._numbers(name, equation, given), equation.outvars)

    def _narrow(self, equation: Any, given: list[Any]) -> list[Any]:
        """As it is in the program."""
        inputs = [_narrowed(one, of) for one, of in zip(given, equation.invars, strict=True)]
        return bind(equation.primitive, inputs, equation.params)

    def _numbers(self, name: str, equation: Any, given: list[Any]) -> list[Any]:
        """With wide integers."""
        params = dict(equation.params)
        if name in _SCATTERS:
            kept = {key: params[key] for key in _SCATTER_PARAMETERS}
            operand, places, updates = given
            return [_SCATTERS[name](operand, places, updates, params["dimension_numbers"], **kept)]
        if name == "select_n":
            given = [_narrowed(given[0], equation.invars[0]), *given[1:]]
        if name == "shift_right_arithmetic":
            return [lax.shift_right_arithmetic(*given)]
        if name == "gather" and params.get("fill_value", 0) is None:
            # What is not there is the end of the narrow type.
            made = equation.outvars[0]
            if _is_number(made):
                ends = np.iinfo(made.aval.dtype)
                params["fill_value"] = int(ends.min or ends.max)
        if name == "convert_element_type":
            source = equation.invars[0].aval.dtype
            if jnp.issubdtype(source, jnp.inexact) and not self.of_floats:
                return bind(equation.primitive, given, params)
        for key in _TYPES:
            if params.get(key) is not None and is_widened(params[key]):
                params[key] = _WIDE
        return bind(equation.primitive, given, params)

    # -- what has programs of its own --------------------------------------------------------------

    def _cond(self, equation: Any, given: list[Any]) -> list[Any]:
        index, *inputs = given
        if not isinstance(index, jax.core.Tracer):
            return self._run(branch_taken(equation, given), inputs)

        def branch(program: Any) -> Callable[..., list[Any]]:
            # All branches have to return the same types.
            return lambda *values: self._enter(
                self._run(program, list(values)), program.jaxpr.outvars
            )

        branches = [branch(program) for program in equation.params["branches"]]
        return list(lax.switch(index.astype(np.int32), branches, *inputs))

    def _scan(self, params: Any, given: list[Any]) -> list[Any]:
        body = params["jaxpr"]
        first = params["num_consts"]
        last = first + params["num_carry"]
        constants, start, rows = given[:first], given[first:last], given[last:]

        def step(carried: list[Any], row: list[Any]) -> tuple[list[Any], list[Any]]:
            made = self._run(body, [*constants, *carried, *row])
            count = len(carried)
            return _typed_as(made[:count], carried), made[count:]

        carried, collected = lax.scan(
            step, start, rows, length=params["length"], reverse=params["reverse"]
        )
        return [*carried, *collected]

    def _while(self, params: Any, given: list[Any]) -> list[Any]:
        condition, body = params["cond_jaxpr"], params["body_jaxpr"]
        first = params["cond_nconsts"]
        last = first + params["body_nconsts"]
        of_condition, of_body, start = given[:first], given[first:last], given[last:]

        def goes_on(evaluator: Evaluator, carried: list[Any]) -> Any:
            return evaluator._run(condition, [*of_condition, *carried])[0]

        def step(evaluator: Evaluator, carried: list[Any]) -> list[Any]:
            return _typed_as(evaluator._run(body, [*of_body, *carried]), carried)

        if not self._wide:
            made = lax.while_loop(lambda c: goes_on(self, c), lambda c: step(self, c), start)
            return list(made)
        # A loop that ends because a number wraps around would never end.
        count = self._count(params, given)
        carried = lax.while_loop(
            lambda state: (state[0] <= count) & goes_on(self, state[1]),
            lambda state: (state[0] + 1, step(self, state[1])),
            (jnp.zeros((), _WIDE), start),
        )[1]
        return list(carried)

    def _count(self, params: Any, given: list[Any]) -> Any:
        """How often a loop runs as it is."""
        condition, body = params["cond_jaxpr"], params["body_jaxpr"]
        first = params["cond_nconsts"]
        last = first + params["body_nconsts"]
        variables = [
            *condition.jaxpr.invars[:first],
            *body.jaxpr.invars,
        ]
        narrow = [_narrowed(one, of) for one, of in zip(given, variables, strict=True)]
        of_condition, of_body, start = narrow[:first], narrow[first:last], narrow[last:]
        plain = Evaluator(wide=False)
        return lax.while_loop(
            lambda state: plain._run(condition, [*of_condition, *state[1]])[0],
            lambda state: (state[0] + 1, plain._run(body, [*of_body, *state[1]])),
            (jnp.zeros((), _WIDE), start),
        )[0]


def _typed_as(values: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """The values of a loop, of the types that they had at its start."""
    return [
        one if one.dtype == other.dtype else one.astype(other.dtype)
        for one, other in zip(values, others, strict=True)
    ]
