# SPDX-License-Identifier: Apache-2.0
"""The search for the configuration that serves a model best on this machine.

A copy of the model is served; the folder that was given is only read. First each knob is turned by
itself, on top of what did best so far, with one short measurement each. The best few then compete
with the configuration as it is: all of them are measured in turn, round by round, so that what else
the machine does falls on all alike. Only what is better than the noise of those rounds is called
better.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tritonserver_jax.server import ServerDistribution, ServerError, TritonServer
from tritonserver_jax.tuning.candidates import Candidate, combined, stages
from tritonserver_jax.tuning.choice import Verdict, compare, median
from tritonserver_jax.tuning.loads import largest_output, shape_problem
from tritonserver_jax.tuning.perf_analyzer import Load, Measurement, PerfAnalyzer, Protocol

__all__ = ["Options", "Result", "Trial", "TuneError", "tune"]

_LOAD_SECONDS: Final = 300
#: How many compete in the end with the configuration as it is.
_FINALISTS: Final = 3
_LEAST_ROUNDS: Final = 3
#: Of the time that is given: what is left of it is for the final rounds.
_SCREENING_SHARE: Final = 0.5


class TuneError(RuntimeError):
    """The model cannot be tuned."""


@dataclass(frozen=True, slots=True)
class Options:
    """What to optimise for, and how long.

    Attributes:
        concurrency: Requests that clients have under way.
        protocol: By which they come.
        rows: Rows of each request.
        shapes: By input, for dims that vary.
        seconds: How long each measurement takes.
        rounds: How often the finalists are measured, at most.
        budget: Seconds for everything; at least three rounds are measured.
    """

    concurrency: int = 32
    protocol: Protocol = "grpc"
    rows: int = 1
    shapes: Mapping[str, Sequence[int]] | None = None
    seconds: float = 2.0
    rounds: int = 7
    budget: float = 240.0


@dataclass(slots=True)
class Trial:
    """A configuration and what was measured of it."""

    candidate: Candidate
    measured: list[Measurement] = field(default_factory=list)

    @property
    def median(self) -> Measurement:
        """The median of every figure."""
        return median(self.measured)


@dataclass(slots=True)
class Result:
    """What the search found.

    Attributes:
        config: The complete configuration as it is.
        default: That configuration, measured in every final round.
        finalists: Those that competed with it, best first.
        tried: All others, with one measurement each.
        verdicts: Of the finalists, in their order.
        failed: Configurations that the model does not load with, and why.
        rounds: How many final rounds there were.
    """

    config: Mapping[str, Any]
    default: Trial
    finalists: list[Trial] = field(default_factory=list)
    tried: list[Trial] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    failed: list[tuple[Candidate, str]] = field(default_factory=list)
    rounds: int = 0

    @property
    def best(self) -> Trial | None:
        """The best that is better than the default, or None."""
        better = [
            trial
            for trial, verdict in zip(self.finalists, self.verdicts, strict=True)
            if verdict.better
        ]
        return max(better, key=lambda trial: trial.median.throughput, default=None)

    def fragment(self) -> str:
        """Return what to put into config.pbtxt; empty when nothing beats the default."""
        return self.best.candidate.fragment(self.config) if self.best else ""

    def to_json(self) -> dict[str, Any]:
        """For machines."""

        def one(trial: Trial) -> dict[str, Any]:
            found = trial.median
            return {
                "configuration": str(trial.candidate),
                "throughput": found.throughput,
                "p50_us": found.p50,
                "p99_us": found.p99,
                "measurements": len(trial.measured),
            }

        return {
            "default": one(self.default),
            "best": one(self.best) if self.best else None,
            "fragment": self.fragment(),
            "finalists": [
                {**one(trial), "verdict": verdict.reason}
                for trial, verdict in zip(self.finalists, self.verdicts, strict=True)
            ],
            "tried": [one(trial) for trial in self.tried],
            "failed": [{"configuration": str(c), "reason": reason} for c, reason in self.failed],
            "rounds": self.rounds,
        }


#: Told what is done, with the last figures of it, and which part of the budget is used.
Tell = Callable[[str, Measurement | None, float], None]


class _Bench:
    """A server, and what it takes to measure one configuration on it."""

    def __init__(
        self,
        server: TritonServer,
        model: str,
        analyzer: PerfAnalyzer,
        options: Options,
        tell: Tell,
    ) -> None:
        self._server = server
        self._model = model
        self._analyzer = analyzer
        self._options = options
        self._tell = tell
        self._began = time.monotonic()
        self._loaded: Candidate | None = None
        self.measurements = 0
        self.config: Mapping[str, Any] = {}

    def spent(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._began

    def begin(self) -> None:
        """Load the model as it is, and read its completed configuration."""
        self._server.load_model(self._model, timeout=_LOAD_SECONDS)
        self.config = self._server.model_config(self._model)

    def measure(self, trial: Trial, what: str) -> None:
        """Measure a configuration once more."""
        share = self.spent() / self._options.budget
        self._tell(f"{what}: {trial.candidate}", None, share)
        if self._loaded != trial.candidate:
            config = trial.candidate.applied(self.config)
            self._server.load_model(self._model, config, timeout=_LOAD_SECONDS)
            self._loaded = trial.candidate
        http = self._options.protocol == "http"
        load = Load(
            model=self._model,
            protocol=self._options.protocol,
            concurrency=self._options.concurrency,
            seconds=self._options.seconds,
            batch=self._options.rows,
            shapes=self._options.shapes,
            output_bytes=largest_output(self.config, self._options.rows),
        )
        url = self._server.http_url if http else self._server.grpc_url
        self.measurements += 1
        trial.measured.append(self._analyzer.measure(url, load))
        self._tell(f"{what}: {trial.candidate}", trial.measured[-1], share)


def _screen(bench: _Bench, result: Result, options: Options) -> None:
    """Turn each knob by itself, on top of what did best so far."""
    best = result.default
    processors = len(os.sched_getaffinity(0))
    for stage in stages(bench.config, processors, options.concurrency * options.rows):
        base = best.candidate
        for change in stage:
            if bench.spent() > options.budget * _SCREENING_SHARE:
                return
            trial = Trial(combined(base, change))
            try:
                bench.measure(trial, "trying")
            except ServerError as error:
                result.failed.append((trial.candidate, str(error).splitlines()[0]))
                continue
            result.tried.append(trial)
            if _promising(trial, best, result.default):
                best = trial


def _promising(trial: Trial, best: Trial, default: Trial) -> bool:
    one, other = trial.median, best.median
    # A tail that one short run found a little worse may yet turn out not to be.
    return one.throughput > other.throughput and one.p99 <= 1.2 * default.median.p99


def _finals(bench: _Bench, result: Result, options: Options) -> None:
    """Measure the most promising and the default in turn."""
    promising = sorted(
        result.tried,
        key=lambda trial: (
            trial.median.p99 > 1.2 * result.default.median.p99,
            -trial.median.throughput,
        ),
    )
    result.finalists = [Trial(trial.candidate) for trial in promising[:_FINALISTS]]
    result.tried = promising
    contestants = [Trial(Candidate()), *result.finalists]
    for number in range(options.rounds):
        enough = number >= _LEAST_ROUNDS
        per_round = bench.spent() / bench.measurements * len(contestants)
        if enough and bench.spent() + per_round > options.budget:
            break
        for trial in contestants if number % 2 == 0 else reversed(contestants):
            bench.measure(trial, f"round {number + 1}")
        result.rounds = number + 1
    result.default = contestants[0]
    result.finalists.sort(key=lambda trial: -trial.median.throughput)
    result.verdicts = [compare(result.default.measured, one.measured) for one in result.finalists]


def tune(
    repository: Path,
    model: str,
    *,
    distribution: ServerDistribution,
    backends: Path,
    analyzer: PerfAnalyzer,
    environment: Path | None = None,
    options: Options | None = None,
    tell: Tell = lambda _text, _measured, _share: None,
) -> Result:
    """Look for the configuration of a model with the most throughput and no worse p99.

    Args:
        repository: The model repository. It is only read.
        model: Which of its models.
        distribution: The server to measure on.
        backends: The backend directory with this backend.
        analyzer: The load generator.
        environment: The Python environment of the backend, where it is not beside it.
        options: What to optimise for.
        tell: Told of what is done.

    Raises:
        TuneError: There is no such model, or an input has dims that vary and no shape was given.
        ServerError: The server did not start, or the model does not load as it is.
        PerfAnalyzerError: The model as it is cannot be measured.
    """
    options = options or Options()
    source = repository / model
    if not source.is_dir():
        known = sorted(path.name for path in repository.iterdir() if path.is_dir())
        raise TuneError(
            f"{source}: expected a model, found none; {repository} has "
            f"{', '.join(known) or 'no models'}"
        )
    with tempfile.TemporaryDirectory(prefix="tritonserver-jax-tune-") as scratch:
        copy, cache = Path(scratch, "models"), Path(scratch, "compile-cache")
        shutil.copytree(source, copy / model, ignore=shutil.ignore_patterns("__pycache__"))
        cache.mkdir()
        server = TritonServer(
            distribution,
            [copy],
            backend_directory=backends,
            extra_args=[
                "--model-control-mode=explicit",
                # The same programs are compiled for configuration after configuration.
                f"--backend-config=jax,compile-cache={cache}",
                *([f"--backend-config=jax,env={environment}"] if environment else []),
            ],
        )
        with server:
            server.wait_live()
            bench = _Bench(server, model, analyzer, options, tell)
            bench.begin()
            problem = shape_problem(bench.config, options.shapes or {})
            if problem:
                raise TuneError(problem)
            result = Result(bench.config, Trial(Candidate()))
            bench.measure(result.default, "as it is")
            _screen(bench, result, options)
            if result.tried:
                _finals(bench, result, options)
        return result
