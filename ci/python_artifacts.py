# SPDX-License-Identifier: Apache-2.0
"""Makes the Python distributions: the wheel and the sdist, and all that describes them.

``python -m ci.python_artifacts`` leaves them in ``dist/python``. They serve every release, so
there is one such folder. The wheel is the very one that the tarballs carry.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ci.build import BuildError, build_sdist, build_wheel, source_date_epoch
from ci.describe import Artifact, write_folder
from ci.process import ROOT, CommandError, fail
from ci.provenance import source_commit
from ci.sbom import SbomError, distribution_sbom

__all__ = ["PYTHON_DIST", "make_python_artifacts", "package_python"]

#: Where they go.
PYTHON_DIST = ROOT / "dist" / "python"


def package_python(
    wheel: Path, sdist: Path, *, output: Path, source_date_epoch: int
) -> tuple[Path, Path]:
    """Lay a wheel and an sdist out with what describes them.

    Args:
        wheel: The wheel.
        sdist: The sdist.
        output: The folder, as in ``dist/python``.
        source_date_epoch: The time of every file in them, in seconds since 1970.

    Returns:
        The wheel and the sdist there.
    """
    artifacts = []
    for kind, path, platform in (("wheel", wheel, "any"), ("sdist", sdist, "source")):
        content = path.read_bytes()
        sbom = distribution_sbom(path.name, content, epoch=source_date_epoch)
        artifacts.append(Artifact(path.name, kind, platform, content, sbom))
    commit = source_commit()
    write_folder(output, artifacts, release=None, commit=commit, epoch=source_date_epoch)
    return output / wheel.name, output / sdist.name


def make_python_artifacts(output: Path = PYTHON_DIST) -> tuple[Path, Path]:
    """Build the wheel and the sdist, and lay them out.

    Args:
        output: The folder.
    """
    return package_python(
        build_wheel(), build_sdist(), output=output, source_date_epoch=source_date_epoch()
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Make them, and print where they are."""
    parser = argparse.ArgumentParser(prog="python -m ci.python_artifacts", description=__doc__)
    parser.add_argument("--output", type=Path, default=PYTHON_DIST)
    options = parser.parse_args(arguments)
    try:
        for path in make_python_artifacts(options.output):
            print(path)
    except (BuildError, CommandError, OSError, SbomError) as error:
        return fail(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
