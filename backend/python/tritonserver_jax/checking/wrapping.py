# SPDX-License-Identifier: Apache-2.0
"""Numbers that do not fit the types that they are kept in, and so become other numbers."""

from __future__ import annotations

import functools
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

from tritonserver_jax.checking.data import Arrays, extreme_rows
from tritonserver_jax.checking.steps import (
    Step,
    all_equations,
    constants,
    line_of,
    run_in_steps,
)
from tritonserver_jax.checking.trial import CheckedModel
from tritonserver_jax.checking.wide import Evaluator, is_widened
from tritonserver_jax.findings import Finding, Status
from tritonserver_jax.runtime.errors import BackendError
from tritonserver_jax.runtime.weights import leaf_name
from tritonserver_jax.runtime.x64 import x64_mode

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
        "conv_general_dilated",
        "convert_element_type",
        "cumprod",
        "cumsum",
        "dot_general",
        "integer_pow",
        "mul",
        "neg",
        "pow",
        "reduce_prod",
        "reduce_sum",
        "reduce_window_sum",
        "scatter-add",
        "scatter-mul",
        "shift_left",
        "sub",
    }
)
#: Loops, with the parameters that hold their programs.
_LOOPS: Final = {"scan": ("jaxpr",), "while": ("cond_jaxpr", "body_jaxpr")}
_OF_64_BITS: Final = ("int64", "uint64", "float64", "complex128")
#: So many rows are looked at.
_MOST_ROWS: Final = 4
#: A share by which results differ for more than rounding.
_VISIBLE: Final = 1e-2
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
        lost: What an array holds that does not fit, and what becomes of it; empty where nobody
            knows what there will be.
    """

    wanted: str
    got: str
    line: str
    lost: str = ""


@contextmanager
def truncations_noted(directory: Path) -> Iterator[list[Truncation]]:
    """Note where JAX narrows a type, while a model is loaded: with a warning, or an array silently.

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
        add(Truncation(wanted, asked["got"], _line(sys._getframe(), directory)))

    def add(one: Truncation) -> None:
        if one not in noted:
            noted[one] = None
            found.append(one)

    def note_array(array: Any) -> None:
        lost = _lost(array) if str(getattr(array, "dtype", "")) in _OF_64_BITS else None
        if lost is not None:
            line = _line(sys._getframe(), directory)
            add(Truncation(str(array.dtype), str(lost.narrow), line, lost.text))

    with warnings.catch_warnings(), _arrays_told_to(note_array):
        warnings.simplefilter("always")
        warnings.showwarning = note
        yield found


@contextmanager
def _arrays_told_to(note: Callable[[Any], None]) -> Iterator[None]:
    """Tell of each of NumPy's arrays that is made one of JAX's, in its mode of 32 bits."""

    def told(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            array = arguments[0] if arguments else named.get("object", named.get("a"))
            wanted = arguments[1] if len(arguments) > 1 else named.get("dtype")
            plain = isinstance(array, np.ndarray | np.generic)
            narrows = jax.dtypes.canonicalize_dtype(np.int64) == np.int32
            if plain and narrows and (wanted is None or _is_wide(wanted)):
                note(np.asarray(array))
            return function(*arguments, **named)

        return call

    # In a process of its own, and only while a model is loaded.
    functions = jnp.array, jnp.asarray
    jnp.array, jnp.asarray = told(jnp.array), told(jnp.asarray)
    try:
        yield
    finally:
        jnp.array, jnp.asarray = functions


def _is_wide(dtype: Any) -> bool:
    try:
        return np.dtype(dtype).name in _OF_64_BITS
    except TypeError:
        return False


def _line(frame: FrameType, directory: Path) -> str:
    for one, number in traceback.walk_stack(frame):
        path = Path(one.f_code.co_filename)
        if path.is_relative_to(directory):
            return f"{path.relative_to(directory)}:{number}"
    return ""


def look_at_numbers(
    model: CheckedModel,
    truncations: Sequence[Truncation],
    *,
    size: int,
    given: Arrays | None = None,
) -> Iterator[Finding]:
    """Yield which numbers would become others, or that none would.

    Args:
        model: The model, with an instance.
        truncations: What was noted while it was loaded.
        size: For dimensions that vary and have no lengths.
        given: Rows of the author's, to look at beside those that are made up.
    """
    found = [*_of_parameters(model)]
    unseen = _what_hides_operations(model)
    asked_for_64 = any(not one.lost for one in truncations)
    operations = [] if unseen else [*_of_operations(model, asked_for_64, size, given)]
    said = {line for line, _ in operations}
    found += [finding for _, finding in operations]
    found += [
        Finding(
            _NAME,
            Status.FAIL,
            f"an array that the model gives to JAX{f' ({one.line})' if one.line else ''} is "
            f"{one.wanted} and holds {one.lost}",
            f"{_WIDE}\nor write it with smaller numbers",
        )
        if one.lost
        else Finding(
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
    if any(one.status in (Status.FAIL, Status.WARN) for one in found):
        return
    if unseen:
        detail = f"the parameters fit their types; what predict computes is not looked at: {unseen}"
    else:
        detail = "no number was found that its type cannot hold"
    yield Finding(_NAME, Status.OK, detail)


def _what_hides_operations(model: CheckedModel) -> str:
    if model.author.stream is not None:
        return "stream calls it with what it likes"
    if model.takes_strings:
        return "it takes strings"
    return ""


def _of_parameters(model: CheckedModel) -> Iterator[Finding]:
    """Parameters of 64 bits that a device would keep as 32."""
    if model.x64:
        return
    narrowed = []
    for path, leaf in jax.tree_util.tree_flatten_with_path(model.host_params)[0]:
        dtype = getattr(leaf, "dtype", None)
        if dtype is None or str(dtype) not in _OF_64_BITS:
            continue
        array, name = np.asarray(leaf), leaf_name(path)
        lost = _lost(array)
        if lost is not None:
            yield Finding(
                _NAME,
                Status.FAIL,
                f"the parameter '{name}' is {array.dtype} and holds {lost.text}",
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


@dataclass(frozen=True, slots=True)
class _Lost:
    """A number of 64 bits that is another with 32."""

    narrow: np.dtype[Any]
    text: str


def _lost(array: np.ndarray[Any, Any]) -> _Lost | None:
    """Return the first number of an array of 64-bit ones that 32 bits cannot hold, or None."""
    if array.dtype.kind in "iu":
        ends = np.iinfo(array.dtype.name.replace("64", "32"))
        wrong = array[(array < ends.min) | (array > ends.max)]
        if not wrong.size:
            return None
        value = wrong.flat[0]
        return _Lost(
            ends.dtype,
            f"{value}, which {ends.dtype} cannot: it would become {value.astype(ends.dtype)}, "
            "because JAX's 64-bit mode is off",
        )
    narrow = np.dtype(np.complex64 if array.dtype.kind == "c" else np.float32)
    with np.errstate(over="ignore"):
        wrong = array[np.isfinite(array) & ~np.isfinite(array.astype(narrow))]
    if not wrong.size:
        return None
    return _Lost(narrow, f"{wrong.flat[0]}, which 32 bits cannot: it would become infinite")


def _is_of_whole_numbers(equation: Any, *, of_floats: bool) -> bool:
    """Whether an operation makes whole numbers that may be too small a type for them."""
    name = equation.primitive.name
    if name in _LOOPS:
        return any(
            _is_of_whole_numbers(one, of_floats=of_floats)
            for program in (equation.params[key] for key in _LOOPS[name])
            for one in all_equations(program.jaxpr)
        )
    if name not in _ARITHMETIC:
        return False
    made = getattr(equation.outvars[0].aval, "dtype", None)
    given = getattr(equation.invars[0].aval, "dtype", None)
    if made is None or given is None or not is_widened(made):
        return False
    rounded = of_floats and name == "convert_element_type" and jnp.issubdtype(given, jnp.floating)
    return bool(rounded or jnp.issubdtype(given, jnp.integer))


def _of_operations(
    model: CheckedModel, asked_for_64: bool, size: int, given: Arrays | None
) -> Iterator[tuple[str, Finding]]:
    """Whole numbers that grow out of their types while the model runs, with the line."""
    rows = min(_MOST_ROWS, model.max_batch_size) if model.batching else None
    extreme = extreme_rows(model.all_inputs, rows, np.random.default_rng(5), size=size)
    seen: set[tuple[str, str]] = set()
    looked_at_code = False
    for arrays, own in ((extreme, False), (given, True)):
        if arrays is None:
            continue
        if model.batching:
            arrays = {name: array[:_MOST_ROWS] for name, array in arrays.items()}
        try:
            program, inputs = model.traced(arrays)
        except BackendError:
            if own or model.author.preprocess is None:
                raise
            continue  # host code need not take the ends of a type
        if not looked_at_code:  # which is the same for other rows
            looked_at_code = True
            yield from _of_conversions(model, program)
            yield from _of_constants(model, program, arrays)
        evaluator = Evaluator(of_floats=own)
        found = []
        for step, wrapped in _steps_that_wrap(model, program, inputs, evaluator):
            line, name = line_of(step, model.code_directory), step.equation.primitive.name
            if (line, name) not in seen:
                seen.add((line, name))
                found.append((line, _wraps(step, wrapped, line, model, arrays, asked_for_64, own)))
        if found and _comes_out(model, program, inputs, evaluator):
            yield from found


def _steps_that_wrap(
    model: CheckedModel, program: Any, inputs: Sequence[Any], evaluator: Evaluator
) -> Iterator[tuple[Step, _Wrapped]]:
    wanted = functools.partial(_is_of_whole_numbers, of_floats=evaluator.of_floats)
    with model.predict.tracing("running predict step by step"):
        for step in run_in_steps(program, inputs, wanted):
            if wanted(step.equation):
                wrapped = _wrapped(step, evaluator)
                if wrapped is not None:
                    yield step, wrapped


def _comes_out(
    model: CheckedModel, program: Any, inputs: Sequence[Any], evaluator: Evaluator
) -> bool:
    """Whether the outputs are others for it: not so where code takes it back, or never uses it."""
    plain = Evaluator(wide=False)
    try:
        with model.predict.tracing("running predict with wide integers"), x64_mode(True):
            should = jax.jit(lambda *given: evaluator.run(program, given))(*inputs)
            is_now = jax.jit(lambda *given: plain.run(program, given))(*inputs)
            return any(
                _place_of_difference(one, other) is not None
                for one, other in zip(should, is_now, strict=True)
            )
    except BackendError:
        return True  # that is not known


def _of_constants(
    model: CheckedModel, program: Any, arrays: Arrays
) -> Iterator[tuple[str, Finding]]:
    """Constants of 64 bits in the code, such as NumPy's arrays, that become others with 32."""
    if model.x64:
        return
    try:
        wide, _ = model.traced(arrays, x64=True)
    except BackendError:
        return  # it is not written for that mode
    there = [np.asarray(array) for array, _ in constants(program) if _is_plain(array)]
    wanted = [(np.asarray(array), eq) for array, eq in constants(wide) if _is_plain(array)]
    paired = len(there) == len(wanted)
    for index, (array, equation) in enumerate(wanted):
        lost = _lost(array) if str(array.dtype) in _OF_64_BITS else None
        if lost is None:
            continue
        # JAX itself takes other constants in that mode; where there are more or fewer of them, an
        # array is one of the model's, but many numbers are the same as another by chance.
        candidates = there[index : index + 1] if paired else there if array.ndim else []
        narrowed = array.astype(lost.narrow)
        if not any(
            one.dtype == lost.narrow and np.array_equal(one, narrowed) for one in candidates
        ):
            continue
        line = line_of(Step((equation,), [], []), model.code_directory)
        yield (
            line,
            Finding(
                _NAME,
                Status.FAIL,
                f"a constant of predict{f' ({line})' if line else ''} is {array.dtype} and holds "
                f"{lost.text}",
                f"{_WIDE}\nor write it with smaller numbers",
            ),
        )


def _is_plain(array: Any) -> bool:
    return isinstance(array.dtype, np.dtype)


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


@dataclass(frozen=True, slots=True)
class _Wrapped:
    """A number as it should be and as it is, where the two differ."""

    should: float
    is_now: float
    dtype: np.dtype[Any]


def _wrapped(step: Step, evaluator: Evaluator) -> _Wrapped | None:
    try:
        with x64_mode(True):
            wide = evaluator.run_equation(step.equation, step.inputs)
    except Exception:
        return None  # an operation that takes no other types
    for should, is_now in zip(wide, step.outputs, strict=True):
        place = _place_of_difference(should, is_now)
        if place is not None:
            one, other = np.asarray(should)[place], np.asarray(is_now)[place]
            whole = other.dtype.kind in "iu"
            return _Wrapped(
                int(one) if whole else float(one),
                int(other) if whole else float(other),
                other.dtype,
            )
    return None


def _place_of_difference(should: Any, is_now: Any) -> tuple[int, ...] | None:
    """Where a result differs from what it should be: whole numbers at all, others visibly."""
    if not _is_plain(is_now) or is_now.dtype.kind == "c":
        return None
    one, other = np.asarray(should), np.asarray(is_now)
    if other.dtype.kind in "iub":
        wrong = np.asarray(one != other)
    else:
        one, other = one.astype(np.float64), other.astype(np.float64)
        with np.errstate(invalid="ignore"):
            wrong = np.asarray(np.abs(one - other) > _VISIBLE * np.maximum(np.abs(one), 1.0))
    if not wrong.any():
        return None
    return tuple(int(index) for index in np.argwhere(wrong)[0])


def _wraps(
    step: Step,
    wrapped: _Wrapped,
    line: str,
    model: CheckedModel,
    arrays: Arrays,
    asked_for_64: bool,
    own: bool,
) -> Finding:
    name = step.equation.primitive.name
    whole_numbers = wrapped.dtype.kind in "iu"
    narrow = whole_numbers and wrapped.dtype.itemsize <= 2
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
        remedy = f"compute with more bits there: x.astype(jnp.int32) or jnp.float32 before {name}"
    else:
        remedy = (
            "compute in floating point, or give the model 64 bits: declare the input INT64, or "
            + _WIDE
        )
    what = f"the loop{where}" if name in _LOOPS else f"{name}{where}"
    if whole_numbers:
        text = (
            f"{what} makes {wrapped.should}, which {wrapped.dtype} cannot hold: it becomes "
            f"{wrapped.is_now}"
        )
    else:
        text = (
            f"{what} makes {wrapped.is_now:.6g} instead of {wrapped.should:.6g}, because a whole "
            "number in it does not fit its type"
        )
    of_own = "the rows of --data" if own else ""
    with_what = " and ".join(part for part in (of_own, inputs) if part)
    return Finding(
        _NAME,
        Status.FAIL if certain or asked_for_64 or own else Status.WARN,
        text + (f" (with {with_what})" if with_what else ""),
        remedy,
    )
