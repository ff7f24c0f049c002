# SPDX-License-Identifier: Apache-2.0
"""The parameters of a model: ``parameters`` in its config.pbtxt, declared and validated here."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from tritonserver_jax.runtime.errors import refuse

_PRECISIONS = ("default", "high", "highest")


def _sizes(text: str) -> tuple[int, ...]:
    sizes = tuple(int(part) for part in text.split(","))
    if not all(size > 0 for size in sizes):
        raise ValueError
    return tuple(sorted(set(sizes)))


def _choice(*values: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        value = text.strip().lower()
        if value not in values:
            raise ValueError
        return value

    return parse


def _bool(text: str) -> bool:
    return {"true": True, "false": False}[text.strip().lower()]


def _bool_or_auto(text: str) -> bool | None:
    return {"true": True, "false": False, "auto": None}[text.strip().lower()]


def positive(text: str) -> int:
    """An integer > 0, from text."""
    number = int(text)
    if number <= 0:
        raise ValueError
    return number


def _devices(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        platform, _, number = name.partition(":")
        if not platform.isalpha() or not number.isdigit():
            raise ValueError
    return names


def absolute_path(text: str) -> Path:
    """An absolute path, from text."""
    path = Path(text)
    if not path.is_absolute():
        raise ValueError
    return path


def _flag_value(text: str) -> bool | str:
    return {"true": True, "false": False}.get(text.lower(), text)


def _flags(text: str) -> dict[str, bool | str]:
    flags = {}
    for part in text.split():
        name, equals, value = part.removeprefix("--").partition("=")
        if not name.startswith("xla_") or not equals or not value:
            raise ValueError
        flags[name] = _flag_value(value)
    return flags


@dataclass(frozen=True)
class Parameter:
    """One parameter.

    Attributes:
        key: in ``parameters`` of config.pbtxt.
        meaning: for the documentation.
        expected: what a value looks like, for messages and the documentation.
        parse: from text; raises ValueError or KeyError.
    """

    key: str
    meaning: str
    expected: str
    parse: Callable[[str], Any]


PARAMETERS: tuple[Parameter, ...] = (
    Parameter(
        "engine",
        "What runs the model. There is one engine now, which embeds Python.",
        "python",
        _choice("python"),
    ),
    Parameter(
        "buckets",
        "Batch sizes to compile for; a batch is padded to the next one. max_batch_size is always "
        "one of them. By default the powers of two.",
        "batch sizes > 0 separated by commas, such as 1,4,16",
        _sizes,
    ),
    Parameter(
        "lengths",
        "Lengths to pad dimensions that vary to, for every input that SIGNATURE gives none. By "
        "default nothing is padded, and each length is compiled when it first comes.",
        "lengths > 0 separated by commas, such as 16,64,256",
        _sizes,
    ),
    Parameter(
        "max_programs",
        "How many compiled programs to keep per device; past it, the one that was not used for "
        "the longest time is given up. Those compiled before the model is ready do not count.",
        "an integer > 0, such as 64",
        positive,
    ),
    Parameter(
        "devices",
        "JAX devices for the instances of an instance group with KIND_MODEL, in turn.",
        "devices separated by commas, such as cpu:0,cpu:1",
        _devices,
    ),
    Parameter(
        "warm_up",
        "What is done for each batch size and length before the model is ready: compile it and run "
        "it once on zeros, or compile it only. For a model that cannot do with zeros.",
        "run or compile",
        _choice("run", "compile"),
    ),
    Parameter(
        "x64",
        "JAX's 64-bit mode for this model. By default it is on where an input or output that the "
        "author declared has a 64-bit type.",
        "true, false or auto",
        _bool_or_auto,
    ),
    Parameter(
        "matmul_precision",
        "Precision of matrix products and convolutions on devices that have several.",
        "default, high or highest",
        _choice(*_PRECISIONS),
    ),
    Parameter(
        "xla_flags",
        "Options of the XLA compiler for this model alone. One that XLA does not know fails the "
        "load.",
        "flags separated by spaces, such as --xla_cpu_enable_fast_min_max=true",
        _flags,
    ),
    Parameter(
        "donate",
        "Let XLA reuse the memory of inputs for outputs. It saves memory on a GPU.",
        "true or false",
        _bool,
    ),
    Parameter(
        "compile_cache",
        "Directory for compiled programs, so that the next start need not compile them again. By "
        "default that of --backend-config=jax,compile-cache=DIRECTORY, if it is given.",
        "an absolute path",
        absolute_path,
    ),
    Parameter(
        "inputs_in_place",
        "Let XLA on a CPU read inputs of 256 KiB or more in the shared memory of the client, "
        "without a copy. Only for clients that leave the memory as it is until the answer: to "
        "shorten it during a run ends the server, and so does to unregister it before release "
        "24.09.",
        "true or false",
        _bool,
    ),
    Parameter(
        "phase_times",
        "Time each phase of an execution, for the metric jax_phase_time: to see where a batch's "
        "time goes.",
        "true or false",
        _bool,
    ),
)


@dataclass(frozen=True)
class Parameters:
    """The values for one model. See `PARAMETERS`."""

    engine: str = "python"
    buckets: tuple[int, ...] | None = None
    lengths: tuple[int, ...] = ()
    max_programs: int = 64
    devices: tuple[str, ...] = ()
    warm_up: str = "run"
    x64: bool | None = None
    matmul_precision: str | None = None
    xla_flags: Mapping[str, bool | str] = field(default_factory=dict)
    donate: bool = False
    compile_cache: Path | None = None
    inputs_in_place: bool = False
    phase_times: bool = False


assert [f.name for f in fields(Parameters)] == [p.key for p in PARAMETERS]  # noqa: S101


def parse_parameters(given: Mapping[str, Any]) -> Parameters:
    """The parameters that a model configuration sets.

    Args:
        given: ``parameters`` of the configuration: ``{key: {"string_value": text}}``.

    Raises:
        BackendError: INVALID_ARG for an unknown key or a value that is not understood.
    """
    known = {parameter.key: parameter for parameter in PARAMETERS}
    values: dict[str, Any] = {}
    for key, holder in given.items():
        parameter = known.get(key)
        if parameter is None:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean '{close[0]}'?" if close else "known are " + ", ".join(known)
            refuse(f"parameter '{key}' in the model configuration is unknown; {hint}")
        text = str(holder.get("string_value", ""))
        try:
            values[key] = parameter.parse(text)
        except (ValueError, KeyError):
            refuse(f"parameter '{key}': expected {parameter.expected}, got {text!r}")
    return Parameters(**values)
