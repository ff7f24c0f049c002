# SPDX-License-Identifier: Apache-2.0
"""Makes the artifacts of releases: builds once, then packs what was built for each of them.

``python -m ci.artifacts 23.10 24.10`` leaves them in ``dist/23.10`` and ``dist/24.10``. With
``--wheel dist/python`` they carry the wheel that is there: the same bytes, whatever packs it here.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ci.build import BuildError, build_backend, build_wheel, check_libraries, source_date_epoch
from ci.package import PackageError, package
from ci.process import ROOT, CommandError, fail
from ci.provenance import source_commit
from ci.symbols import SymbolError
from ci.toolchain import ToolchainError, development_requirements, ensure
from tritonserver_jax import __version__
from tritonserver_jax.artifacts import VerificationError, layout, verify_directory
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


def _wheel_in(folder: Path) -> Path:
    """Return the wheel of a folder of Python artifacts, after a look whether that is whole."""
    path = folder / layout.wheel_name(__version__)
    try:
        verify_directory(folder)
    except VerificationError as error:
        raise PackageError(f"--wheel {folder}: {error}; run ./ci/nox -s package-python") from error
    if not path.is_file():
        raise PackageError(
            f"--wheel {folder}: expected {path.name} in it, found none; "
            "run ./ci/nox -s package-python"
        )
    return path.resolve()


def make_artifacts(
    names: Sequence[str], *, output: Path = DIST, python_dist: Path | None = None
) -> dict[str, Path]:
    """Builds the backend and packs it for each release, after a look whether that can load it.

    Args:
        names: The releases, as in ``["23.10", "24.10"]``.
        output: Where to put them: a directory for each release.
        python_dist: A folder with the wheel to put into them; None to build one.

    Returns:
        The tarball of each release.
    """
    releases = [find_release(name) for name in names]
    if (ROOT / ".git").exists():
        # Without it a checkout looks like an unpacked sdist, which has no commit and no time.
        ensure(development_requirements())
        if source_commit() is None:
            raise BuildError(
                f"{ROOT}: expected git to say which commit is built, it does not; git status there "
                "says why (for another user's checkout: git config --global --add safe.directory)"
            )
    epoch = source_date_epoch()
    wheel = None if python_dist is None else _wheel_in(python_dist)
    libraries = build_backend()
    wheel = wheel or build_wheel()
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
    parser.add_argument(
        "--wheel", type=Path, metavar="FOLDER", help="what package-python made; built if not given"
    )
    options = parser.parse_args(arguments)
    try:
        made = make_artifacts(options.release, output=options.output, python_dist=options.wheel)
        for name, tarball in made.items():
            print(f"{name}: {tarball}")
    except ARTIFACT_ERRORS as error:
        return fail(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
