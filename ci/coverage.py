# SPDX-License-Identifier: Apache-2.0
"""Says which lines the tests run: of the Python, and of the core.

``python -m ci.coverage python`` runs the unit tests, ``core`` the core's own tests in C++;
without a word, both. Each prints a table that ends with ``TOTAL``, and leaves a report in the form
that GitLab shows in a merge request, in ``build/reports/coverage``.

What runs inside a server is counted by neither: the runtime is tested there by the integration
tests, and the Python of that server is another one, with an environment of its own.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ci.build import BUILD_DIRECTORY, BuildError
from ci.native import build_tests, run_tests
from ci.process import ROOT, CommandError, fail, run
from ci.toolchain import ToolchainError

__all__ = ["REPORTS", "cover_core", "cover_python"]

#: Where reports of tests go; the jobs of the pipeline hand them to GitLab.
REPORTS: Final = BUILD_DIRECTORY / "reports"

_PRESET: Final = "coverage"


def cover_python(reports: Path = REPORTS) -> None:
    """Run the unit tests, and count the lines of the Python.

    Args:
        reports: Where ``unit.xml`` and ``coverage/python.xml`` go.

    Raises:
        CommandError: A test failed.
    """
    run(
        [
            *(sys.executable, "-m", "pytest", "tests/unit", "-n=auto"),
            *("--cov", "--cov-config=pyproject.toml", "--cov-report=term:skip-covered"),
            f"--cov-report=xml:{reports / 'coverage' / 'python.xml'}",
            f"--junitxml={reports / 'unit.xml'}",
        ]
    )


def cover_core(reports: Path = REPORTS) -> None:
    """Build the core's tests anew, run them, and count the lines of the core.

    Args:
        reports: Where ``coverage/core.xml`` goes.

    Raises:
        BuildError: There is no ninja.
        CommandError: The build failed, or a test.
        ToolchainError: Something is missing which cannot be installed from here.
    """
    directory = BUILD_DIRECTORY / _PRESET
    for counted in directory.rglob("*.gcda"):
        counted.unlink()  # counts of an earlier run would be added to
    status, output = run_tests(build_tests(_PRESET))
    print(output, flush=True)
    if status != 0:
        raise CommandError(f"the core's tests ended with status {status}; their output is above")
    report = reports / "coverage" / "core.xml"
    report.parent.mkdir(parents=True, exist_ok=True)
    run(
        [
            *(sys.executable, "-m", "gcovr", f"--root={ROOT}", directory),
            *("--filter=backend/src/core/", "--exclude-throw-branches", "--print-summary"),
            *("--txt=-", f"--cobertura={report}"),
        ]
    )


#: What may be covered, by what it is called.
PARTS: Final[Mapping[str, Callable[[], None]]] = MappingProxyType(
    {"python": cover_python, "core": cover_core}
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Cover what is named, or all of it."""
    parser = argparse.ArgumentParser(prog="python -m ci.coverage", description=__doc__)
    parser.add_argument("part", nargs="*", help=" or ".join(PARTS))
    options = parser.parse_args(arguments)
    if unknown := set(options.part) - set(PARTS):
        parser.error(f"expected {' or '.join(PARTS)}, got {', '.join(sorted(unknown))}")
    try:
        for part in options.part or PARTS:
            PARTS[part]()
    except (BuildError, CommandError, ToolchainError) as error:
        return fail(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
