# SPDX-License-Identifier: Apache-2.0
"""Shows on which releases the backend works: the matrix of releases and test suites.

``python -m ci.matrix`` makes the artifacts, runs the contract tests for every release that is
declared, and the core of the integration tests on a real server of each release that has one,
several at a time. It says how far they are while they run, and ends with the matrix. With
``--release NAME`` (repeatable) it takes some of the releases.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ci.artifacts import ARTIFACT_ERRORS
from ci.build import BUILD_DIRECTORY
from ci.installation import InstallationError, install_artifact
from ci.integration import GivenBackendError, artifacts_of
from ci.package import tarball_name
from ci.process import ROOT, CommandError, fail
from tritonserver_jax.releases import Release, find_release, load_catalog, load_releases
from tritonserver_jax.server import ServerError, obtain_server

#: Where the logs, the reports and the matrix are left.
OUTPUT = BUILD_DIRECTORY / "matrix"
#: What one run of the integration tests takes at most: a server with JAX, pytest with JAX.
BYTES_PER_RUN = 2_500_000_000
#: Which of the integration tests run on every release.
CORE = ("tests/integration", "-m", "core and not slow")
#: How often to say that it goes on.
_PROGRESS_SECONDS = 15.0

_RELEASE_IN_TEST = re.compile(r"\[(\d\d\.\d\d)(?=[\]-])")
_OUTCOME = re.compile(
    r"^\S*(tests/\S+?)(?:\s+<-.*?)? (PASSED|FAILED|ERROR|SKIPPED)\b", re.MULTILINE
)


@dataclass
class Result:
    """How one suite went on one release."""

    passed: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: int = 0
    seconds: float = 0.0

    @property
    def green(self) -> bool:
        """Something was tested, and nothing failed."""
        return self.passed > 0 and not self.failed

    def __str__(self) -> str:
        color = "green" if self.green else "RED"
        count = f"{self.passed} passed" + (f", {len(self.failed)} failed" if self.failed else "")
        return f"{color} {self.seconds:.0f} s ({count})"


@dataclass(frozen=True)
class Job:
    """One run of pytest.

    Attributes:
        name: The release, or "contract".
        arguments: For pytest.
    """

    name: str
    arguments: list[str]

    @property
    def log(self) -> Path:
        """What it prints."""
        return OUTPUT / f"{self.name}.log"

    @property
    def report(self) -> Path:
        """Its results."""
        return OUTPUT / f"{self.name}.xml"


class MatrixError(RuntimeError):
    """A run ended without a report."""


def results(report: Path) -> dict[str, Result]:
    """Reads a report of pytest: by the release in the brackets of a test's name, "" without one.

    Raises:
        MatrixError: It is not there, or cannot be read.
    """
    try:
        root = ET.parse(report).getroot()  # noqa: S314 # our own run wrote it
    except (OSError, ET.ParseError) as error:
        raise MatrixError(f"{report}: expected the report of a run of pytest: {error}") from error
    found: dict[str, Result] = {}
    for case in root.iter("testcase"):
        name = case.get("name", "")
        match = _RELEASE_IN_TEST.search(name)
        result = found.setdefault(match[1] if match else "", Result())
        result.seconds += float(case.get("time", 0))
        if case.find("failure") is not None or case.find("error") is not None:
            result.failed.append(f"{case.get('classname')}::{name}")
        elif case.find("skipped") is not None:
            result.skipped += 1
        else:
            result.passed += 1
    return found


def parallel_runs() -> int:
    """How many runs fit this machine's processors and its free memory."""
    text = Path("/proc/meminfo").read_text(encoding="ascii")
    available = int(re.search(r"^MemAvailable:\s+(\d+) kB", text, re.MULTILINE)[1]) * 1024  # type: ignore[index]
    # One more than there are processors: a third of a run is waiting.
    return max(1, min(len(os.sched_getaffinity(0)) + 1, available // BYTES_PER_RUN))


def _progress(jobs: Sequence[Job]) -> Iterator[str]:
    for job in jobs:
        text = job.log.read_text(encoding="utf-8", errors="replace") if job.log.exists() else ""
        yield f"{job.name} ({len(_OUTCOME.findall(text))} tests)"


def run_jobs(jobs: Sequence[Job], parallel: int) -> dict[str, float]:
    """Runs pytest for each job, some at a time, and says how far it is.

    Returns:
        Seconds that each took.
    """
    begin = time.monotonic()
    waiting = list(jobs)
    running: dict[subprocess.Popen[bytes], tuple[Job, float]] = {}
    took: dict[str, float] = {}
    said = begin

    def say(text: str) -> None:
        seconds = int(time.monotonic() - begin)
        print(f"{seconds // 60:3d}:{seconds % 60:02d}  {text}", flush=True)

    try:
        while waiting or running:
            while waiting and len(running) < parallel:
                job = waiting.pop(0)
                job.report.unlink(missing_ok=True)
                command = [sys.executable, "-m", "pytest", "-v", "--color=no", *job.arguments]
                # pytest's own cache has one writer; these are several.
                command += [
                    f"--junitxml={job.report}",
                    "-o",
                    f"cache_dir={OUTPUT / '.cache' / job.name}",
                ]
                with job.log.open("wb") as log:
                    process = subprocess.Popen(
                        command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log
                    )
                running[process] = job, time.monotonic()
            time.sleep(0.2)
            for process in [one for one in running if one.poll() is not None]:
                job, started = running.pop(process)
                took[job.name] = time.monotonic() - started
                try:
                    counted = results(job.report).values()
                    failed = [name for result in counted for name in result.failed]
                    outcome = f"{sum(result.passed for result in counted)} passed"
                    outcome += f", {len(failed)} FAILED" if failed else ""
                except MatrixError:
                    failed, outcome = [], f"ended with status {process.returncode}, see {job.log}"
                say(f"{job.name}: {outcome}, {took[job.name]:.0f} s ({len(took)} of {len(jobs)})")
                for name in failed:
                    print(f"       {name}", flush=True)
                said = time.monotonic()
            if running and time.monotonic() - said > _PROGRESS_SECONDS:
                say(f"running {', '.join(_progress([job for job, _ in running.values()]))}")
                said = time.monotonic()
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait()
    return took


def matrix(
    releases: Sequence[Release],
    *,
    backend: Path | None,
    parallel: int,
    suites: Sequence[str],
    tests: Sequence[str] = CORE,
) -> dict[str, dict[str, Result]]:
    """Runs the suites on the releases.

    Args:
        releases: Which.
        backend: What to test instead of building; see `ci.integration`.
        parallel: How many runs at a time.
        suites: Of "contract" and "integration".
        tests: Which integration tests, as pytest wants it.

    Returns:
        By release, then by suite. There is no integration where there is no server.
    """
    OUTPUT.mkdir(parents=True, exist_ok=True)
    served = [one for one in releases if one.server] if "integration" in suites else []
    gate = load_catalog().gate_releases
    with artifacts_of(backend, sorted({*gate, *(one.release for one in served)})) as dist:
        jobs = []
        if "contract" in suites:
            jobs.append(Job("contract", ["tests/contract", f"--backend-dist={dist}"]))
        if served:
            for one in served:
                obtain_server(one)
            # The environment is the same for all: made once, and found again the next time.
            newest = dist / served[-1].release / tarball_name(served[-1])
            environment = install_artifact(newest, OUTPUT / "backends", replace=True) / "env"
            jobs += [
                Job(
                    one.release,
                    [
                        *tests,
                        *(f"--release={one.release}", f"--backend-dist={dist}"),
                        f"--environment={environment}",
                    ],
                )
                for one in served
            ]
        took = run_jobs(jobs, parallel)
        return _by_release(releases, jobs, took)


def _by_release(
    releases: Sequence[Release], jobs: Sequence[Job], took: dict[str, float]
) -> dict[str, dict[str, Result]]:
    found: dict[str, dict[str, Result]] = {one.release: {} for one in releases}
    for job in jobs:
        try:
            parts = results(job.report)
        except MatrixError as error:
            parts = {"": Result(failed=[str(error)])}
        if job.name != "contract":
            whole = Result(seconds=took[job.name])
            for part in parts.values():
                whole.passed += part.passed
                whole.failed += part.failed
                whole.skipped += part.skipped
            found[job.name]["integration"] = whole
            continue
        # What is no single release's (exports, headers) is everyone's.
        common = parts.pop("", Result())
        for one in releases:
            part = parts.get(one.release, Result())
            part.failed += common.failed
            found[one.release]["contract"] = part
    return found


def table(found: dict[str, dict[str, Result]], suites: Sequence[str]) -> str:
    """The matrix, for people."""
    rows = [["release", "support", *suites]]
    for name, by_suite in found.items():
        cells = [str(by_suite[suite]) if suite in by_suite else "no server" for suite in suites]
        rows.append([name, find_release(name).support, *cells])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the matrix, and prints it."""
    parser = argparse.ArgumentParser(prog="python -m ci.matrix", description=__doc__)
    known = load_releases()
    parser.add_argument("--release", action="append", choices=list(known), metavar="NAME")
    parser.add_argument("--suite", action="append", choices=["contract", "integration"])
    parser.add_argument("--backend", type=Path, help="a tarball, its folder or a library to test")
    parser.add_argument("--jobs", type=int, default=parallel_runs(), help="runs at a time")
    options = parser.parse_args(arguments)
    releases = [one for name, one in known.items() if name in (options.release or known)]
    suites = options.suite or ["contract", "integration"]
    begin = time.monotonic()
    try:
        found = matrix(releases, backend=options.backend, parallel=options.jobs, suites=suites)
    except (
        *ARTIFACT_ERRORS,
        CommandError,
        GivenBackendError,
        InstallationError,
        ServerError,
    ) as error:
        return fail(error)
    text = table(found, suites)
    print(f"\n{text}\n")
    figures = {
        name: {suite: vars(result) | {"green": result.green} for suite, result in by_suite.items()}
        for name, by_suite in found.items()
    }
    (OUTPUT / "matrix.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    every = [result for by_suite in found.values() for result in by_suite.values()]
    red = [result for result in every if not result.green]
    seconds = int(time.monotonic() - begin)
    print(
        f"matrix: {len(every) - len(red)} of {len(every)} green, {options.jobs} at a time, "
        f"{seconds // 60}:{seconds % 60:02d}; logs and reports are in "
        f"{OUTPUT.relative_to(ROOT)}"
    )
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
