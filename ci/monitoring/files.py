# SPDX-License-Identifier: Apache-2.0
"""Writes the files in ``packaging/monitoring`` that name metrics.

``python -m ci.monitoring.files`` writes them, ``--check`` says which are out of date.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from ci.derived import outdated_files, write_or_check
from ci.monitoring.dashboard import dashboard_file
from ci.monitoring.metrics import MetricError
from ci.monitoring.rules import rules_file
from ci.process import ROOT, fail

__all__ = ["BLACKBOX", "CONFIG", "DASHBOARD", "FILES", "FOLDER", "RULES", "outdated"]

FOLDER: Final = ROOT / "packaging" / "monitoring"
RULES: Final = FOLDER / "rules.yml"
DASHBOARD: Final = FOLDER / "dashboard.json"
#: These two name no metric, and are written by hand.
CONFIG: Final = FOLDER / "prometheus.yml"
BLACKBOX: Final = FOLDER / "blackbox.yml"

FILES: Final[Mapping[Path, Callable[[], str]]] = {RULES: rules_file, DASHBOARD: dashboard_file}


def outdated(*, write: bool = False) -> list[Path]:
    """Return the files that are not what they should be; written anew if asked for."""
    return outdated_files(FILES, write=write)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    try:
        return write_or_check(
            arguments,
            program="python -m ci.monitoring.files",
            description=__doc__,
            outdated=lambda write: outdated(write=write),
            difference="rules or dashboard differ from what they are made from",
        )
    except MetricError as error:
        return fail(error)


if __name__ == "__main__":
    sys.exit(main())
