# SPDX-License-Identifier: Apache-2.0
"""Builds and runs the core's own tests under sanitizers.

``python -m ci.native`` runs them under AddressSanitizer with UndefinedBehaviorSanitizer, and under
ThreadSanitizer; ``python -m ci.native tsan -- --test-case='*cancelled*'`` some of them. They are
C++, in ``tests/native``; ``tests/native/test_native.py`` makes them a part of the test suite.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ci import toolchain
from ci.build import BuildError, build_targets
from ci.process import ROOT, CommandError, fail

#: The sanitizers, as presets of ``backend/CMakePresets.json``.
PRESETS = ("asan", "tsan")

#: What the sanitizers are told. A finding ends the program, so that none is overlooked.
SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": "detect_stack_use_after_return=1:check_initialization_order=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}

#: What ThreadSanitizer says where the kernel spreads addresses wider than it can follow.
_UNEXPECTED_MAPPING = "unexpected memory mapping"


def build_tests(preset: str) -> Path:
    """Builds the tests, and returns the program.

    Args:
        preset: One of `PRESETS`, or any other of ``backend/CMakePresets.json``.

    Raises:
        BuildError: There is no ninja, or no such preset.
        CommandError: CMake or the compiler failed.
        ToolchainError: Something is missing which cannot be installed from here.
    """
    toolchain.ensure([*toolchain.requirements(), *toolchain.native_test_requirements()])
    directory = build_targets("native_tests", preset=preset, options=["-DTRITON_JAX_TESTS=ON"])
    return directory / "native" / "native_tests"


def run_tests(program: Path, *arguments: str) -> tuple[int, str]:
    """Runs the tests, and returns the exit status and everything that was printed.

    Args:
        program: What `build_tests` returned.
        *arguments: For doctest, as in ``--test-case=a stream*``.
    """
    status, output = _run([str(program), *arguments])
    if _UNEXPECTED_MAPPING in output and (setarch := shutil.which("setarch")):
        status, output = _run([setarch, "--addr-no-randomize", str(program), *arguments])
    return status, output


def _run(command: Sequence[str]) -> tuple[int, str]:
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **SANITIZER_OPTIONS},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    return done.returncode, done.stdout


def main(arguments: Sequence[str] | None = None) -> int:
    """Builds and runs the tests under each sanitizer, or under those named."""
    parser = argparse.ArgumentParser(prog="python -m ci.native", description=__doc__)
    parser.add_argument("preset", nargs="*", default=list(PRESETS))
    words = sys.argv[1:] if arguments is None else list(arguments)
    split = words.index("--") if "--" in words else len(words)
    options = parser.parse_args(words[:split])
    failed = []
    try:
        for preset in options.preset:
            status, output = run_tests(build_tests(preset), *words[split + 1 :])
            print(output, flush=True)
            if status != 0:
                failed.append(preset)
    except (BuildError, CommandError, toolchain.ToolchainError) as error:
        return fail(error)
    if failed:
        print(f"native tests: failed under {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
