# SPDX-License-Identifier: Apache-2.0
"""Cold and warm starts: what the compile cache saves."""

from __future__ import annotations

import importlib
import re
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.competitors import MLP, ours_repository, serve
from benchmarks.errors import BenchmarkError
from benchmarks.overhead import read_counters
from benchmarks.workplace import Workplace

#: Another model beside the network: with convolutions, XLA has more to do.
DIGITS = "digits"

_COMPILED: Final = re.compile(
    r"model '(\w+)' version 1: compiled predict for .* ([0-9.]+) s of them in XLA"
)


@dataclass(frozen=True)
class Start:
    """One start of a server.

    Attributes:
        model: Whose figures these are.
        kind: ``cold``: nothing in the compile cache; ``warm``: everything.
        ready_seconds: Until the server was ready.
        compile_seconds: Of tracing, lowering and compiling, over all programs of the model.
        xla_seconds: Of these, in XLA: what a compile cache can save. The rest is spent in Python,
            in the model's own code and JAX, before anyone can know which program it makes.
        programs: How many those are.
        cache_hits: How many of them came from the cache.
    """

    model: str
    kind: str
    ready_seconds: float
    compile_seconds: float
    xla_seconds: float
    programs: int
    cache_hits: int

    def to_json(self) -> dict[str, Any]:
        """As it goes into the report."""
        return asdict(self)


def xla_seconds(log: str, model: str) -> float:
    """Return how long XLA took for all programs of a model.

    Args:
        log: Of a server with ``log-detail=detailed``.
        model: One of those that it serves.
    """
    return sum(float(seconds) for name, seconds in _COMPILED.findall(log) if name == model)


def digits_repository(repository: Path) -> Path:
    """Train the example `digits`, and return the repository that holds it."""
    shutil.rmtree(repository, ignore_errors=True)
    train = importlib.import_module("examples.digits.train")
    if train.main(["--output", str(repository / DIGITS)]) != 0:
        raise BenchmarkError("the digits example was not trained; its output is above")
    return repository


def measure_starts(work: Workplace, rounds: int) -> list[Start]:
    """Start a server with an empty compile cache and again with a full one, some times.

    Args:
        work: What to serve with.
        rounds: How often.
    """
    models = Path(work.directory, "models")
    repositories = {
        MLP: ours_repository(models / "starts"),
        DIGITS: digits_repository(models / "digits"),
    }
    found = []
    for model, repository in repositories.items():
        for _ in range(rounds):
            cache = Path(work.directory, "compile-cache")
            shutil.rmtree(cache, ignore_errors=True)
            cache.mkdir(parents=True)
            for kind in ("cold", "warm"):
                args = [
                    f"--backend-config=jax,compile-cache={cache}",
                    "--backend-config=jax,log-detail=detailed",
                ]
                with serve(work, repository, work.backends, args=args) as running:
                    assert running.server is not None  # noqa: S101 - serve() starts one
                    counters = read_counters(running.server.metrics(), model)
                    xla = xla_seconds(running.server.log_text(), model)
                found.append(
                    Start(
                        model=model,
                        kind=kind,
                        ready_seconds=running.ready_seconds,
                        compile_seconds=counters["jax_xla_compilation_time"],
                        xla_seconds=xla,
                        programs=round(counters["jax_xla_compilations"]),
                        cache_hits=round(counters["jax_compile_cache_hits"]),
                    )
                )
    return found
