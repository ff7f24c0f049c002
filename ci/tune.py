# SPDX-License-Identifier: Apache-2.0
"""Looks for the configuration that serves a model best, with a backend built from this source.

``python -m ci.tune`` tunes the ``digits`` example, ``python -m ci.tune MODELS --model mine``
another model.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.errors import BenchmarkError
from benchmarks.starts import DIGITS, digits_repository
from benchmarks.workplace import prepare
from ci.artifacts import ARTIFACT_ERRORS
from ci.installation import InstallationError
from ci.process import ROOT, fail
from tritonserver_jax.releases import DEFAULT_RELEASE
from tritonserver_jax.server import ServerError
from tritonserver_jax.tuning.display import progress, show, summary
from tritonserver_jax.tuning.perf_analyzer import PerfAnalyzerError
from tritonserver_jax.tuning.plots import draw
from tritonserver_jax.tuning.search import Options, TuneError, tune

#: The plot and the figures go here.
OUTPUT = ROOT / "build" / "tune"


def main(arguments: Sequence[str] | None = None) -> int:
    """Tune a model."""
    usual = Options()
    parser = argparse.ArgumentParser(prog="./ci/nox -s tune --", description=__doc__)
    parser.add_argument("repository", type=Path, nargs="?", help="default: digits, trained here")
    parser.add_argument("--model", help="default: the only one of the repository")
    parser.add_argument("--release", default=DEFAULT_RELEASE, help="default: %(default)s")
    parser.add_argument("--artifact", type=Path, help="a tarball to use, instead of building")
    parser.add_argument("--concurrency", type=int, default=usual.concurrency)
    parser.add_argument("--protocol", choices=("grpc", "http", "shm"), default=usual.protocol)
    parser.add_argument("--seconds", type=float, default=usual.seconds, help="of a measurement")
    parser.add_argument("--budget", type=float, default=usual.budget, help="seconds in all")
    given = parser.parse_args(arguments)
    console = Console()
    options = Options(
        concurrency=given.concurrency,
        protocol=given.protocol,
        seconds=given.seconds,
        budget=given.budget,
    )
    try:
        work = prepare(given.release, tarball=given.artifact)
        repository = given.repository or digits_repository(OUTPUT / "models")
        with progress(console) as tell:
            result = tune(
                repository,
                given.model or (DIGITS if given.repository is None else _only(repository)),
                distribution=work.distribution,
                backends=work.backends,
                environment=work.environment,
                analyzer=work.perf_analyzer,
                options=options,
                tell=tell,
            )
    except (
        *ARTIFACT_ERRORS,
        BenchmarkError,
        InstallationError,
        PerfAnalyzerError,
        ServerError,
        TuneError,
    ) as error:
        return fail(error)
    show(result, options, console)
    OUTPUT.mkdir(parents=True, exist_ok=True)
    (OUTPUT / "result.json").write_text(json.dumps(result.to_json(), indent=1) + "\n")
    if result.tried and draw(result, OUTPUT / "plot.png", summary(result, options)):
        console.print(f"wrote {(OUTPUT / 'plot.png').relative_to(ROOT)}")
    return 0


def _only(repository: Path) -> str:
    models = sorted(path.name for path in repository.iterdir() if path.is_dir())
    if len(models) != 1:
        raise TuneError(f"--model: expected one of {', '.join(models)}, got none")
    return models[0]


if __name__ == "__main__":
    sys.exit(main())
