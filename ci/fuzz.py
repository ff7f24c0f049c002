# SPDX-License-Identifier: Apache-2.0
"""Looks for inputs that break the backend, for a bounded time.

``python -m ci.fuzz --seconds 600`` gives ten minutes to the fuzzers of the core (libFuzzer, in
``tests/native/fuzz``: the configuration, BYTES tensors, copies of padded tensors, and whole
batches from gathering to scattering), and then sends random requests to a real server. What the
fuzzers learn is kept in ``build/fuzz/corpus`` and is where the next run begins; what breaks
something is kept in ``build/fuzz/findings``.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from ci import toolchain
from ci.artifacts import ARTIFACT_ERRORS, DIST, make_artifacts
from ci.build import BUILD_DIRECTORY, build_targets
from ci.process import ROOT, CommandError, fail, run
from tritonserver_jax.releases import DEFAULT_RELEASE

#: The fuzzers, and their shares of the time: what has the most to find gets the most.
SHARES = {"execute": 5, "bytes_elements": 2, "backend_config": 2, "region": 1}

#: The inputs to begin with.
SEEDS = ROOT / "tests" / "native" / "fuzz" / "corpus"
OUTPUT = BUILD_DIRECTORY / "fuzz"

_REQUESTS = "tests/integration/test_fuzz_requests.py"


def shares(seconds: int) -> dict[str, int]:
    """Divides the time between the fuzzers; none gets nothing.

    Args:
        seconds: For all together.
    """
    whole = sum(SHARES.values())
    return {name: max(1, seconds * share // whole) for name, share in SHARES.items()}


def build_fuzzers() -> Path:
    """Builds the fuzzers, and returns the directory that they are in.

    Raises:
        BuildError: There is no ninja.
        CommandError: CMake or the compiler failed.
        ToolchainError: Something is missing which cannot be installed from here.
    """
    toolchain.ensure([*toolchain.requirements(), *toolchain.clang_requirements()])
    toolchain.ensure(toolchain.fuzzer_requirements())
    targets = [f"fuzz_{name}" for name in SHARES]
    return build_targets(*targets, preset="fuzz") / "native"


def fuzz(name: str, program: Path, seconds: int, output: Path = OUTPUT) -> list[Path]:
    """Runs one fuzzer.

    Args:
        name: Its name in `SHARES`.
        program: The fuzzer.
        seconds: For how long.
        output: Where to keep what it learns and what it finds.

    Returns:
        The inputs that it found to break something. Each is the argument with which the program
        shows it again.

    Raises:
        CommandError: It ended with an error and left no input behind.
    """
    corpus, findings = output / "corpus" / name, output / "findings" / name
    for directory in (corpus, findings):
        directory.mkdir(parents=True, exist_ok=True)
    before = set(findings.iterdir())
    command: list[str | Path] = [
        program,
        f"-max_total_time={seconds}",
        "-max_len=1024",
        "-timeout=20",
        "-rss_limit_mb=2048",
        "-verbosity=0",
        "-print_funcs=0",
        "-print_final_stats=1",
        f"-artifact_prefix={findings}/",
        corpus,
        SEEDS / name,
    ]
    try:
        run(command, env={**os.environ, "UBSAN_OPTIONS": "print_stacktrace=1"})
    except CommandError:
        found = sorted(set(findings.iterdir()) - before)
        if not found:
            raise
        return found
    return []


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the fuzzers, then the requests, and says what was found."""
    parser = argparse.ArgumentParser(prog="python -m ci.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="for the fuzzers of the core")
    parser.add_argument("--examples", type=int, default=300, help="random requests per property")
    parser.add_argument("--only", choices=("core", "requests"), help="one half of it")
    options = parser.parse_args(arguments)
    if options.seconds < 1 or options.examples < 1:
        parser.error("--seconds and --examples: expected 1 or more")
    failed: list[str] = []
    try:
        if options.only != "requests":
            directory = build_fuzzers()
            for name, seconds in shares(options.seconds).items():
                program = directory / f"fuzz_{name}"
                found = fuzz(name, program, seconds)
                failed += [shlex.join([str(program), str(path)]) for path in found]
        if options.only != "core":
            make_artifacts([DEFAULT_RELEASE])
            pytest = [sys.executable, "-m", "pytest", _REQUESTS, f"--backend-dist={DIST}"]
            run([*pytest, f"--fuzz-examples={options.examples}", "-m", "integration"])
    except ARTIFACT_ERRORS as error:
        status = fail(error)
    else:
        status = 0
    for command in failed:
        print(f"fuzz: a finding; to see it again: {command}")
    return 1 if failed else status


if __name__ == "__main__":
    sys.exit(main())
