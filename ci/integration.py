# SPDX-License-Identifier: Apache-2.0
"""Runs the integration tests on a real server of a release.

``python -m ci.integration 24.10 -k add_sub`` makes the artifacts and runs those tests; with
``--backend PATH`` it tests what was built elsewhere, and builds nothing native: a tarball, the
folder of a release's artifact as in ``dist/24.10``, or a ``libtriton_jax.so`` with the engine
beside it. What it does not know goes to pytest.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ci.artifacts import ARTIFACT_ERRORS, DIST, make_artifacts
from ci.build import LIBRARY_NAMES, build_wheel, source_date_epoch
from ci.package import package, tarball_name
from ci.process import ROOT, CommandError, fail, run
from tritonserver_jax.releases import DEFAULT_RELEASE, find_release, load_catalog

TESTS = ROOT / "tests" / "integration"


class GivenBackendError(RuntimeError):
    """What was given to be tested is no backend of ours."""


@contextmanager
def artifacts_of(backend: Path | None, names: Sequence[str]) -> Iterator[Path]:
    """The artifacts of releases, in a directory for each: made, or laid out from what is given.

    Args:
        backend: A tarball, the folder of one, or a ``libtriton_jax.so``; None to build.
        names: The releases. One binary serves all of them, so what is given is used for each.

    Raises:
        GivenBackendError: It is none of them.
    """
    if backend is None:
        make_artifacts(names)
        yield DIST
        return
    with tempfile.TemporaryDirectory(prefix="tritonserver-jax-") as scratch:
        dist = Path(scratch)
        for name in names:
            _lay_out(_given(backend.resolve()), name, dist / name)
        yield dist


def _given(backend: Path) -> Path:
    """Find the tarball in the folder of an artifact."""
    if not backend.is_dir():
        return backend
    found = sorted(backend.glob("*.tar.gz"))
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise GivenBackendError(
            f"--backend {backend}: expected one tarball in the folder, found {names}"
        )
    return found[0]


def _lay_out(backend: Path, name: str, output: Path) -> None:
    """Makes what is given into the artifact of a release."""
    release = find_release(name)
    output.mkdir(parents=True)
    if backend.name == LIBRARY_NAMES.core.name:
        libraries = [backend, backend.with_name(LIBRARY_NAMES.python_engine.name)]
        missing = [str(library) for library in libraries if not library.is_file()]
        if missing:
            raise GivenBackendError(
                f"--backend {backend}: expected {' and '.join(n.name for n in LIBRARY_NAMES)} in "
                f"one folder, found no {', '.join(missing)}"
            )
        package(
            release,
            libraries=libraries,
            wheel=build_wheel(),
            output=output,
            source_date_epoch=source_date_epoch(),
            for_tests=True,
        )
        return
    try:
        with tarfile.open(backend) as archive:
            archive.getmember(f"jax/lib/{LIBRARY_NAMES.core}")
    except (OSError, KeyError, tarfile.TarError) as error:
        raise GivenBackendError(
            f"--backend {backend}: expected a tarball of ours, or a path that ends in "
            f"{LIBRARY_NAMES.core}: {error}"
        ) from error
    shutil.copy2(backend, output / tarball_name(release))


def main(arguments: Sequence[str] | None = None) -> int:
    """Makes or takes the artifacts, and runs pytest on them."""
    parser = argparse.ArgumentParser(
        prog="python -m ci.integration", description=__doc__, allow_abbrev=False
    )
    parser.add_argument("release", nargs="?", default=DEFAULT_RELEASE)
    parser.add_argument(
        "--backend",
        type=Path,
        help="a tarball, its folder or a libtriton_jax.so to test, instead of building",
    )
    words = list(sys.argv[1:] if arguments is None else arguments)
    options, pytest_words = parser.parse_known_args(words)
    # Some tests compare the artifacts of several releases.
    names = sorted({options.release, *load_catalog().gate_releases})
    command = [sys.executable, "-m", "pytest", f"--release={options.release}"]
    if not any(Path(word.partition("::")[0]).exists() for word in pytest_words):
        command.append(str(TESTS))
    try:
        find_release(options.release)
        with artifacts_of(options.backend, names) as dist:
            run([*command, f"--backend-dist={dist}", *pytest_words])
    except (*ARTIFACT_ERRORS, CommandError, GivenBackendError) as error:
        return fail(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
