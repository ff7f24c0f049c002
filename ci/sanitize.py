# SPDX-License-Identifier: Apache-2.0
"""Runs integration tests on a real server with a backend built with AddressSanitizer.

``python -m ci.sanitize`` builds the backend with the preset ``asan``, packs it, and runs the tests
in which requests go through it. The server itself is a stock one, so the sanitizer's runtime is
loaded before it. Leaks are not looked for here: Python, JAX and XLA keep memory until the end on
purpose. Those of the core are found by its own tests (`ci.native`). It takes about ten minutes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from ci.artifacts import ARTIFACT_ERRORS
from ci.build import BUILD_DIRECTORY, build_backend, build_wheel, source_date_epoch
from ci.package import package
from ci.process import ROOT, CommandError, capture, fail, run
from ci.toolchain import compiler
from tritonserver_jax.releases import find_release

#: Where the artifact with the sanitizer goes: never where one to be shipped could be.
DIST = BUILD_DIRECTORY / "asan" / "dist"

#: The releases that the tests below start servers of; the last one has most of them.
RELEASES = ("23.10", "24.10")

#: Tests in which every path through the native code is taken.
TESTS = (
    "test_add_sub",
    "test_bad_models",
    "test_concurrency",
    "test_fuzz_requests",
    "test_host_code",
    "test_lengths",
    "test_requests",
    "test_sequences",
    "test_shutdown",
    "test_streams",
    "test_strings",
)


#: What a stock server needs before the sanitizer's runtime; it says why itself.
PRELOADED = ROOT / "tests" / "native" / "asan_preload.cc"


def runtime_libraries(output: Path) -> list[str]:
    """Returns what has to be in a process before a library with AddressSanitizer.

    The C++ library is among them: the sanitizer looks for its functions when it starts, and not
    every process that inherits the variable (Python's, for one) has loaded it by then.

    Args:
        output: Where to build the library that goes before the sanitizer's.

    Raises:
        CommandError: The compiler has no AddressSanitizer, or failed.
    """
    path = compiler()
    ours = output / "libasan_preload.so"
    options = ["-std=c++17", "-Wall", "-Werror", "-shared", "-fPIC", "-Wl,-z,initfirst"]
    run([path or "c++", *options, "-o", ours, PRELOADED, "-ldl"])
    found = [str(ours)]
    for name in ("libasan.so", "libstdc++.so"):
        file = capture([path, f"-print-file-name={name}"]) if path else None
        if not file or not Path(file).is_file():
            raise CommandError(
                f"{path or 'no compiler'}: expected it to have {name}, found none; install GCC's "
                "sanitizers, which Debian has in libgcc-12-dev"
            )
        found.append(str(Path(file).resolve()))
    return found


def server_environment(libraries: Sequence[str], log: Path) -> dict[str, str]:
    """Returns what a server is given.

    Args:
        libraries: What is loaded before it.
        log: Where findings go, each process's into a file of its own that begins with this name.
    """
    asan = {
        "detect_leaks": "0",
        # Python and XLA have handlers of their own.
        "handle_segv": "0",
        "allocator_may_return_null": "1",
        "detect_odr_violation": "0",
        "verify_asan_link_order": "0",
        "log_path": str(log),
    }
    return {
        "LD_PRELOAD": ":".join(libraries),
        "ASAN_OPTIONS": ":".join(f"{key}={value}" for key, value in asan.items()),
        "UBSAN_OPTIONS": f"print_stacktrace=1:log_path={log}",
    }


def findings(log: Path) -> list[Path]:
    """Returns the files into which a sanitizer has written."""
    return sorted(log.parent.glob(f"{log.name}.*"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Builds, runs the tests, and fails where a test or a sanitizer does."""
    parser = argparse.ArgumentParser(prog="python -m ci.sanitize", description=__doc__)
    parser.add_argument("pytest", nargs="*", help="arguments for pytest, after --")
    for_pytest = parser.parse_args(arguments).pytest
    logs = BUILD_DIRECTORY / "asan" / "findings"
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    try:
        libraries, wheel = build_backend(preset="asan"), build_wheel()
        for name in RELEASES:
            package(
                find_release(name),
                libraries=libraries,
                wheel=wheel,
                output=DIST / name,
                source_date_epoch=source_date_epoch(),
                for_tests=True,
            )
        variables = server_environment(runtime_libraries(DIST.parent), logs / "server")
        run(
            [
                *(sys.executable, "-m", "pytest"),
                *(f"tests/integration/{name}.py" for name in TESTS),
                *(f"--backend-dist={DIST}", f"--release={RELEASES[-1]}"),
                *(f"--server-env={name}={value}" for name, value in variables.items()),
                "--timeout=900",
                *for_pytest,
            ],
            env=os.environ,
        )
    except ARTIFACT_ERRORS as error:
        status = fail(error)
    else:
        status = 0
    for path in findings(logs / "server"):
        print(f"-- {path}\n{path.read_text(encoding='utf-8', errors='replace')}")
        status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
