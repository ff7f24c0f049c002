# SPDX-License-Identifier: Apache-2.0
"""Everything that is looked at of one version of a model. Imports JAX."""

from __future__ import annotations

import contextlib
import difflib
import math
import resource
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import jax
import numpy as np

from tritonserver_jax.checking import rules
from tritonserver_jax.checking.data import Arrays, candidate_sizes, load_rows, random_rows
from tritonserver_jax.checking.repository import BACKEND, find_versions, served_versions
from tritonserver_jax.checking.results import ModelReport, ProgramReport, TensorReport
from tritonserver_jax.checking.rows import look_at_rows
from tritonserver_jax.checking.streams import look_at_stream
from tritonserver_jax.checking.trial import CheckedModel, answers, responses
from tritonserver_jax.checking.wrapping import look_at_numbers, truncations_noted
from tritonserver_jax.findings import Finding, Status
from tritonserver_jax.model_config import ConfigTextError, config_text, parse_config
from tritonserver_jax.runtime.author import PACKAGE_DIRECTORY
from tritonserver_jax.runtime.errors import BackendError
from tritonserver_jax.runtime.instance import Instance
from tritonserver_jax.runtime.program import arguments_text
from tritonserver_jax.runtime.tensors import TensorSpec

__all__ = ["Options", "check_model"]

#: A program is run so often, and the quickest run counts.
_RUNS: Final = 3
#: Of the unit in which Linux counts a process's memory.
_KIBIBYTE: Final = 1024


@dataclass(frozen=True, slots=True)
class Options:
    """How to look.

    Attributes:
        on_cpu: On the CPU, whatever the instance groups of a configuration say.
        data: Rows of the author's to try, an ``.npz`` file; None for random ones.
    """

    on_cpu: bool = False
    data: Path | None = None


#: Told what is done, before it is.
Tell = Callable[[str], None]


class _RefusedError(Exception):
    """Nothing more can be looked at; it was said why."""


def check_model(
    directory: Path, version: int | None = None, options: Options | None = None, tell: Tell = print
) -> list[ModelReport]:
    """Look at the versions of a model that a server would load.

    Args:
        directory: Of the model, in its repository.
        version: The one to look at, whatever the version policy says.
        options: How.
        tell: Told what is done.

    Returns:
        A report for each version; one with the reason, where none can be looked at.
    """
    options = options or Options()
    directory = directory.resolve()
    first = ModelReport(directory.name, version)
    try:
        config = _read_config(first, directory)
        versions = _versions(first, config, directory, version)
    except _RefusedError:
        return [first]
    reports = []
    for number in versions:
        report = ModelReport(directory.name, number, findings=list(first.findings))
        with contextlib.suppress(_RefusedError):
            _check_version(report, directory, config, options, tell)
        report.peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIBIBYTE
        reports.append(report)
    return reports


# -- the configuration -----------------------------------------------------------------------------


def _refuse(report: ModelReport, name: str, detail: str, remedy: str) -> None:
    report.findings.append(Finding(name, Status.FAIL, detail, remedy))
    raise _RefusedError


def _read_config(report: ModelReport, directory: Path) -> dict[str, Any]:
    path = directory / "config.pbtxt"
    if path.is_file():
        try:
            # As Triton does, which takes a comment in any encoding.
            config = parse_config(path.read_text(encoding="utf-8", errors="replace"), str(path))
        except (ConfigTextError, OSError) as error:
            _refuse(report, "config", *_with_remedy(error))
    else:
        config = parse_config("")
        packaged = [n for n in find_versions(directory) if _package(directory, n).is_dir()]
        if not packaged:
            _refuse(
                report,
                "config",
                f"{directory} has no config.pbtxt, so that Triton would not know whose it is",
                f'write {path} with the line backend: "{BACKEND}"',
            )
        config["backend"] = BACKEND
    if config["backend"] != BACKEND:
        _not_ours(report, path, config)
    report.findings += rules.against_triton(config, directory, find_versions(directory))
    return config


def _with_remedy(error: Exception) -> tuple[str, str]:
    """Take what was found and what to do about it apart."""
    message, _, remedy = str(error).rpartition("; ")
    return (message, remedy) if message else (remedy, "")


def _not_ours(report: ModelReport, path: Path, config: Mapping[str, Any]) -> None:
    """Leave a model to its own backend, unless it may well be meant for this one."""
    other = config["backend"] or config["platform"]
    if other and not difflib.get_close_matches(other, [BACKEND], n=1):
        report.findings.append(
            Finding("config", Status.NOTE, f"it is for {other}, and is not looked at")
        )
        raise _RefusedError
    has = f'backend: "{other}"' if other else "no backend"
    _refuse(
        report,
        "config",
        f"{path} has {has}, so that it is not for this backend",
        f'write backend: "{BACKEND}"',
    )


def _package(directory: Path, version: int) -> Path:
    return directory / str(version) / PACKAGE_DIRECTORY


def _versions(
    report: ModelReport, config: Mapping[str, Any], directory: Path, version: int | None
) -> list[int]:
    there = find_versions(directory)
    if version is not None:
        if version not in there:
            known = ", ".join(map(str, there)) or "none"
            _refuse(
                report,
                "load",
                f"{directory} has no version {version}: there are {known}",
                "name one that is there",
            )
        return [version]
    if not there:
        makers = [name for name in ("make.py", "train.py") if (directory / name).is_file()]
        _refuse(
            report,
            "load",
            f"{directory} has no version folder, such as 1/",
            f"{directory / makers[0]} makes it" if makers else "put model.py into 1/ there",
        )
    versions = served_versions(config, there)
    if not versions:
        raise _RefusedError  # of which the rules say so
    return versions


# -- a version -------------------------------------------------------------------------------------


def _check_version(
    report: ModelReport,
    directory: Path,
    config: Mapping[str, Any],
    options: Options,
    tell: Tell,
) -> None:
    version = report.version
    assert version is not None  # noqa: S101 - the caller's
    doing = f"{directory.name} version {version}"
    tell(f"{doing}: loading")
    began = time.perf_counter()
    with truncations_noted(directory / str(version)) as truncations:
        try:
            model = CheckedModel(directory=directory, version=version, config=config)
            report.max_batch_size = model.max_batch_size
            report.x64 = model.x64
            report.inputs = [*map(_tensor, model.inputs)]
            report.outputs = [*map(_tensor, model.outputs)]
            report.config = config_text(model.config)
            tell(f"{doing}: compiling")
            instances = model.instances(on_cpu=options.on_cpu)
        except BackendError as error:
            _refused_by_the_backend(report, error)
        report.load_seconds = time.perf_counter() - began
        report.findings += rules.batch_sizes(
            config, model.declared_max_batch_size, model.max_batch_size
        )
        _describe(report, model, instances)
        tell(f"{doing}: trying rows")
        _look(report, model, instances[0], options, truncations)
    model.close()


def _tensor(spec: TensorSpec) -> TensorReport:
    return TensorReport(spec.name, spec.dtype.name, list(spec.dims))


def _refused_by_the_backend(report: ModelReport, error: BackendError) -> None:
    message, _, remedy = str(error).rpartition("; ")
    if not message or "\n" in remedy:
        message, remedy = str(error), ""
    if "wants KIND_GPU" in message:
        remedy = "look at it on a machine with such a device, or with --cpu for all but that"
    remedy = remedy or "correct what it names"
    of_config = "config.pbtxt" in message or "model configuration" in message
    _refuse(report, "config" if of_config else "load", message, remedy)


def _describe(report: ModelReport, model: CheckedModel, instances: list[Instance]) -> None:
    leaves = jax.tree.leaves(model.device_params())
    report.parameter_bytes = sum(leaf.nbytes for leaf in leaves)
    timed = iter(model.compile_seconds)
    for device, arguments, program in model.programs():
        rows = arguments[0].shape[0] if model.batching and arguments else None
        tensors = sum(math.prod(one.shape) * one.dtype.itemsize for one in arguments)
        analysis: Any = None
        with contextlib.suppress(Exception):  # not every platform has one
            analysis = program._compiled.memory_analysis()
        temporary = getattr(analysis, "temp_size_in_bytes", None)
        tensors += int(getattr(analysis, "output_size_in_bytes", 0) or 0)
        report.programs.append(
            ProgramReport(
                device=device,
                rows=rows,
                shapes=arguments_text(arguments),
                compile_seconds=next(timed, 0.0),
                run_seconds=_run_seconds(model, program, arguments),
                temporary_bytes=None if temporary is None else int(temporary),
                tensor_bytes=tensors,
            )
        )
    inputs = ", ".join(map(str, report.inputs))
    outputs = ", ".join(map(str, report.outputs))
    batches = (
        f"batches of up to {model.max_batch_size} rows" if model.batching else "without batches"
    )
    devices = ", ".join(dict.fromkeys(one.device_name for one in instances))
    report.findings.append(
        Finding(
            "load",
            Status.OK,
            f"{inputs} -> {outputs}, {batches}, on {devices}"
            f"{', in the 64-bit mode' if model.x64 else ''}",
        )
    )
    if not report.programs and model.author.stream is None:
        report.findings.append(
            Finding(
                "load",
                Status.WARN,
                "a dimension varies and has no lengths: nothing is compiled beforehand, and each "
                "new size is compiled while a client waits",
                "give SIGNATURE the lengths to pad to",
            )
        )


def _run_seconds(model: CheckedModel, program: Any, arguments: Any) -> float | None:
    if model.predict.parameters.warm_up == "compile" or model.predict.parameters.donate:
        return None
    arrays = tuple(np.zeros(one.shape, one.dtype) for one in arguments)
    best = math.inf
    for _ in range(_RUNS):
        began = time.perf_counter()
        jax.block_until_ready(program.run(arrays))
        best = min(best, time.perf_counter() - began)
    return best


def _look(
    report: ModelReport,
    model: CheckedModel,
    instance: Instance,
    options: Options,
    truncations: list[Any],
) -> None:
    """Give the model rows, and look at the answers."""
    given = None
    if options.data is not None:
        try:
            given = load_rows(options.data, model.all_inputs, batching=model.batching)
        except BackendError as error:
            report.findings.append(Finding("data", Status.FAIL, *_with_remedy(error)))
            return
    try:
        size = _size(model, instance, given)
        report.findings += look_at_numbers(model, truncations, size=size, given=given)
        if model.author.stream is not None:
            report.findings += look_at_stream(model, instance, size=size, given=given)
        else:
            report.findings += look_at_rows(model, instance, size=size, given=given)
    except BackendError as error:
        own = options.data is not None
        report.findings.append(
            Finding(
                "rows",
                Status.FAIL if own else Status.WARN,
                f"the model fails on {'the rows of --data' if own else 'random rows'}: {error}",
                "correct it"
                if own
                else "where only certain data are sound, give some: numpy.savez('rows.npz', "
                "NAME=array of rows, ...) and --data rows.npz",
            )
        )


def _size(model: CheckedModel, instance: Instance, given: Arrays | None) -> int:
    """The first size, for dimensions that vary without lengths, that the model can take."""
    failure: BackendError | None = None
    rows = 1 if model.batching else None
    for size in candidate_sizes(model.all_inputs):
        if given is not None:
            return size
        try:
            arrays = random_rows(model.all_inputs, rows, np.random.default_rng(0), size=size)
            if model.author.stream is not None:
                with contextlib.closing(responses(model, instance, arrays)) as answers_of_stream:
                    next(answers_of_stream, None)
            else:
                answers(model, instance, arrays)
        except BackendError as error:
            failure = failure or error
            continue
        return size
    assert failure is not None  # noqa: S101 - there is at least one size
    raise failure
