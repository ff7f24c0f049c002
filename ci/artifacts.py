# SPDX-License-Identifier: Apache-2.0
"""Makes the artifacts of releases: builds once, then packs what was built for each of them.

``python -m ci.artifacts 23.10 24.10`` leaves them in ``dist/23.10`` and ``dist/24.10``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ci.build import BuildError, build_backend, build_wheel, check_libraries, source_date_epoch
from ci.package import PackageError, package
from ci.process import ROOT, CommandError, fail
from ci.symbols import SymbolError
from ci.toolchain import ToolchainError
from tritonserver_jax.releases import DEFAULT_RELEASE, UnknownReleaseError, find_release

#: Below it, one directory for each release.
DIST = ROOT / "dist"

#: What may go wrong here, for those who report it in one line.
ARTIFACT_ERRORS = (
    BuildError,
    CommandError,
    PackageError,
    SymbolError,
    ToolchainError,
    UnknownReleaseError,
)


def make_artifacts(names: Sequence[str], *, output: Path = DIST) -> dict[str, Path]:
    """Builds the backend and packs it for each release, after a look whether that can load it.

    Args:
        names: The releases, as in ``["23.10", "24.10"]``.
        output: Where to put them: a directory for each release.

    Returns:
        The tarball of each release.
    """
    releases = [find_release(name) for name in names]
    epoch = source_date_epoch()
    libraries = build_backend()
    wheel = build_wheel()
    for name in names:
        check_libraries(libraries, name)
    return {
        release.release: package(
            release,
            libraries=libraries,
            wheel=wheel,
            output=output / release.release,
            source_date_epoch=epoch,
        )
        for release in releases
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Makes the artifacts of the releases that are named, and prints where they are."""
    parser = argparse.ArgumentParser(prog="python -m ci.artifacts", description=__doc__)
    parser.add_argument("release", nargs="*", default=[DEFAULT_RELEASE])
    parser.add_argument("--output", type=Path, default=DIST)
    options = parser.parse_args(arguments)
    try:
        for name, tarball in make_artifacts(options.release, output=options.output).items():
            print(f"{name}: {tarball}")
    except ARTIFACT_ERRORS as error:
        return fail(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
