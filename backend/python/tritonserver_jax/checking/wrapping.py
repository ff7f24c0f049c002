# SPDX-License-Identifier: Apache-2.0
"""Numbers that do not fit the types that they are kept in, and so become other numbers."""

from __future__ import annotations

import re
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

from tritonserver_jax.checking.data import Arrays, extreme_rows
from tritonserver_jax.checking.steps import Step, bind, line_of, run_in_steps
from tritonserver_jax.checking.trial import CheckedModel
from tritonserver_jax.findings import Finding, Status
from tritonserver_jax.runtime.program import x64_mode
from tritonserver_jax.runtime.weights import leaf_name

__all__ = ["Truncation", "look_at_numbers", "truncations_noted"]

_NAME: Final = "types"
#: What JAX says where code asks for a type that only its 64-bit mode has.
_ASKED: Final = re.compile(
    r"Explicitly requested dtype (?P<wanted>.+?)(?: requested in \S+)? is not available, and "
    r"will be truncated to dtype (?P<got>\w+)"
)
#: Operations on whole numbers that a wider type may have another result for.
_ARITHMETIC: Final = frozenset(
    {
        "abs",
        "add",
        "convert_element_type",
        "cumsum",
        "dot_general",
        "integer_pow",
        "mul",
        "neg",
        "reduce_sum",
        "shift_left",
        "sub",
    }
)
_WIDE: Final = "turn JAX's 64-bit mode on, with the parameter x64 in config.pbtxt:\n" + (
    'parameters { key: "x64" value { string_value: "true" } }'
)


@dataclass(frozen=True, slots=True)
class Truncation:
    """A 64-bit type that the model asked for, and did not get.

    Attributes:
        wanted: Its name.
        got: What it got.
        line: Of the model's code, as ``model.py:12``; empty where it is not known.
    """

    wanted: str
    got: str
    line: str


@contextmanager
def truncations_noted(directory: Path) -> Iterator[list[Truncation]]:
    """Note where JAX warns that it narrows a type, while a model is loaded.

    Args:
        directory: Where the model's code is.

    Yields:
        A list that fills.
    """
    noted: dict[Truncation, None] = {}
    found: list[Truncation] = []

    def note(message: Any, *_: Any, **__: Any) -> None:
        asked = _ASKED.search(str(message))
        if asked is None:
            return
        # It says int64, or <class 'jax.numpy.int64'>.
        wanted = re.findall(r"\w+", asked["wanted"])[-1]
        one = Truncation(wanted, asked["got"], _line(sys._getframe(), directory))
        if one not in noted:
            noted[one] = None
            found.append(one)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = note
        yield found


def _line(frame: FrameType, directory: Path) -> str:
    for one, number in traceback.walk_stack(frame):
        path = Path(one.f_code.co_filename)
        if path.is_relative_to(directory):
            return f"{path.relative_to(directory)}:{number}"
    return ""


def look_at_numbers(
    model: CheckedModel, truncations: Sequence[Truncation], *, size: int
) -> Iterator[Finding]:
    """Yield which numbers would become others, or that none would.

    Args:
        model: The model, with an instance.
        truncations: What was noted while it was loaded.
        size: For dimensions that vary and have no lengths.
    """
    found = [*_of_parameters(model)]
    operations = [*_of_operations(model, bool(truncations), size)]
    said = {line for line, _ in operations}
    found += [finding for _, finding in operations]
    found += [
        Finding(
            _NAME,
            Status.WARN,
            f"the model asks for {one.wanted}{f' ({one.line})' if one.line else ''}, and gets "
            f"{one.got}, because JAX's 64-bit mode is off: larger numbers would wrap around, or "
            "lose digits",
            f"ask for {one.got}, if that is enough; or {_WIDE}",
        )
        for one in truncations
        if not one.line or one.line not in said
    ]
    yield from found
    if not any(one.status in (Status.FAIL, Status.WARN) for one in found):
        yield Finding(_NAME, Status.OK, "no number was found that its type cannot hold")


def _of_parameters(model: CheckedModel) -> Iterator[Finding]:
    """Parameters of 64 bits that a device would keep as 32."""
    if model.x64:
        return
    narrowed = []
    for path, leaf in jax.tree_util.tree_flatten_with_path(model.host_params)[0]:
        dtype = getattr(leaf, "dtype", None)
        if dtype is None or str(dtype) not in ("int64", "uint64", "float64", "complex128"):
            continue
        array, name = np.asarray(leaf), leaf_name(path)
        if array.dtype.kind in "iu" and array.size:
            narrow = np.iinfo(array.dtype.name.replace("64", "32"))
            wrong = array[(array < narrow.min) | (array > narrow.max)]
            if wrong.size:
                value = int(wrong.flat[0])
                becomes = np.array([value], array.dtype).astype(narrow.dtype)[0]
                yield Finding(
                    _NAME,
                    Status.FAIL,
                    f"the parameter '{name}' is {array.dtype} and holds {value}, which "
                    f"{narrow.dtype} cannot: it would become {becomes}, because JAX's 64-bit "
                    "mode is off",
                    f"{_WIDE}\nor save it with smaller numbers",
                )
                continue
        elif array.size:
            narrow_type = np.complex64 if array.dtype.kind == "c" else np.float32
            with np.errstate(over="ignore"):
                lost = np.isfinite(array) & ~np.isfinite(array.astype(narrow_type))
            if lost.any():
                yield Finding(
                    _NAME,
                    Status.FAIL,
                    f"the parameter '{name}' is {array.dtype} and holds {array[lost].flat[0]}, "
                    "which 32 bits cannot: it would become infinite",
                    f"{_WIDE}\nor save it with smaller numbers",
                )
                continue
        narrowed.append(f"'{name}' ({array.dtype})")
    if narrowed:
        more = f" and {len(narrowed) - 3} more" if len(narrowed) > 3 else ""
        yield Finding(
            _NAME,
            Status.NOTE,
            f"parameters are kept with 32 bits, which their values fit: {', '.join(narrowed[:3])}"
            f"{more}",
            "save them with 32 bits, or set the parameter x64",
        )


def _checked(equation: Any) -> bool:
    """Whether an operation makes whole numbers that may be too small a type for them.

    Of 32 and more bits only those with a sign: code that hashes, or draws random numbers, means
    the others to wrap around.
    """
    if equation.primitive.name not in _ARITHMETIC:
        return False
    dtype = getattr(equation.outvars[0].aval, "dtype", None)
    given = getattr(equation.invars[0].aval, "dtype", None)
    if dtype is None or given is None or not jnp.issubdtype(dtype, jnp.integer):
        return False
    kinds = np.dtype(dtype), given
    whole = jnp.issubdtype(kinds[1], jnp.integer)
    return bool(
        whole and (kinds[0].itemsize <= 2 or (kinds[0].kind == "i" and kinds[0].itemsize == 4))
    )


def _of_operations(
    model: CheckedModel, asked_for_64: bool, size: int
) -> Iterator[tuple[str, Finding]]:
    """Whole numbers that grow out of their types while the model runs, with the line."""
    if model.runs_on_the_host or any(spec.dtype.is_bytes for spec in model.all_inputs):
        return
    rows = min(4, model.max_batch_size) if model.batching else None
    arrays = extreme_rows(model.all_inputs, rows, np.random.default_rng(5), size=size)
    program, given = model.traced(arrays)
    yield from _of_conversions(model, program)
    seen = set()
    with model.predict.tracing("running predict step by step"):
        for step in run_in_steps(program, given, _checked):
            if not _checked(step.equation):
                continue
            wrapped = _wrapped(step)
            if wrapped is None:
                continue
            line = line_of(step, model.code_directory)
            name = step.equation.primitive.name
            if (line, name) in seen:
                continue
            seen.add((line, name))
            yield line, _wraps(step, wrapped, line, model, arrays, asked_for_64)


def _of_conversions(model: CheckedModel, program: Any) -> Iterator[tuple[str, Finding]]:
    """Inputs of 64 bits of which the model takes fewer, whatever a client sends."""
    count = len(program.jaxpr.invars) - len(jax.tree.leaves(model.device_params()))
    inputs = program.jaxpr.invars[-count:] if count else []
    for equation in program.jaxpr.eqns:
        if equation.primitive.name != "convert_element_type" or equation.invars[0] not in inputs:
            continue
        wide = np.dtype(equation.invars[0].aval.dtype)
        narrow = equation.outvars[0].aval.dtype
        if wide.name not in ("int64", "uint64") or not jnp.issubdtype(narrow, jnp.integer):
            continue
        if np.dtype(narrow).itemsize == wide.itemsize:
            continue
        line = line_of(Step((equation,), [], []), model.code_directory)
        value = 3_000_000_000
        becomes = np.array([value], wide).astype(np.dtype(narrow))[0]
        yield (
            line,
            Finding(
                _NAME,
                Status.WARN,
                f"an input of {wide} is made {np.dtype(narrow)}{f' ({line})' if line else ''}: "
                f"a client that sends {value} gets the answer of {becomes}",
                "declare the input with the type that predict computes with, so that no client "
                "can send more; or check it in preprocess",
            ),
        )


def _wrapped(step: Step) -> tuple[int, int] | None:
    """A number as it should be and as it is, where the two differ."""
    params = dict(step.equation.params)
    (output,) = step.outputs
    if step.equation.primitive.name == "convert_element_type":
        wide = np.asarray(step.inputs[0])
    else:
        if params.get("preferred_element_type") is not None:
            params["preferred_element_type"] = np.dtype(np.int64)
        with x64_mode(True):
            inputs = [
                jnp.asarray(np.asarray(one), jnp.int64)
                if jnp.issubdtype(jnp.result_type(one), jnp.integer)
                else one
                for one in step.inputs
            ]
            wide = np.asarray(bind(step.equation.primitive, inputs, params)[0])
    is_now = np.asarray(output)
    wrong = np.asarray(wide != is_now)
    if not wrong.any():
        return None
    place = tuple(np.argwhere(wrong)[0])
    return int(wide[place]), int(is_now[place])


def _wraps(
    step: Step,
    wrapped: tuple[int, int],
    line: str,
    model: CheckedModel,
    arrays: Arrays,
    asked_for_64: bool,
) -> Finding:
    should, is_now = wrapped
    dtype = np.dtype(step.equation.outvars[0].aval.dtype)
    narrow = dtype.itemsize <= 2
    whole = [spec for spec in model.all_inputs if spec.dtype.numpy.kind in "iu"]
    inputs = ", ".join(
        f"'{spec.name}' up to {int(arrays[spec.name].max())}"
        for spec in whole
        if arrays[spec.name].size
    )
    # Every value of 8 and 16 bits is one that clients may well send; not so a million.
    certain = narrow and all(spec.dtype.numpy.itemsize <= 2 for spec in whole)
    where = f" ({line})" if line else ""
    if asked_for_64 and not narrow:
        remedy = _WIDE
    elif narrow:
        remedy = (
            f"compute with more bits there: x.astype(jnp.int32) or jnp.float32 before "
            f"{step.equation.primitive.name}"
        )
    else:
        remedy = (
            "compute in floating point, or give the model 64 bits: declare the input INT64, or "
            + _WIDE
        )
    return Finding(
        _NAME,
        Status.FAIL if certain or asked_for_64 else Status.WARN,
        f"{step.equation.primitive.name}{where} makes {should}, which {dtype} cannot hold: it "
        f"becomes {is_now}" + (f" (with {inputs})" if inputs else ""),
        remedy,
    )
