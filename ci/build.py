# SPDX-License-Identifier: Apache-2.0
"""Builds the native libraries and the wheel.

One binary serves every Triton release, so nothing here depends on a release, with one
exception: when ``TRITON_SDK_DIR`` names the ``/opt/tritonserver`` of a release, the build also
compares our declarations of Triton's C API with the headers of that release.
``python -m ci.build`` builds both.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ci import symbols, toolchain
from ci.process import ROOT, CommandError, capture, fail, run
from tritonserver_jax.releases import UnknownReleaseError, find_release, load_releases

BUILD_DIRECTORY = ROOT / "build"
PRESETS = ROOT / "backend" / "CMakePresets.json"
#: The time of everything built where there is neither SOURCE_DATE_EPOCH nor a git checkout:
#: 2024-01-01, because zip archives cannot hold a time before 1980.
FALLBACK_EPOCH = 1704067200


class BuildError(RuntimeError):
    """The build could not start, or did not make what it should have made."""


class Libraries(NamedTuple):
    """The native libraries: what goes into ``lib/`` of an artifact."""

    core: Path
    python_engine: Path


#: The file names, in the order of `Libraries`: Triton looks for the first by that very name.
LIBRARY_NAMES = Libraries(Path("libtriton_jax.so"), Path("libtriton_jax_python.so"))


def source_date_epoch(root: Path = ROOT) -> int:
    """Returns the time to write into everything that is built.

    It is ``SOURCE_DATE_EPOCH`` when that is set, else the time of the last commit, else
    `FALLBACK_EPOCH`: never the clock, so that the same source gives the same bytes.

    Raises:
        BuildError: ``SOURCE_DATE_EPOCH`` is no whole number of seconds, or is before 1980.
    """
    text = os.environ.get("SOURCE_DATE_EPOCH")
    if text is None:
        committed = capture(["git", "log", "-1", "--format=%ct"], cwd=root)
        return int(committed) if committed else FALLBACK_EPOCH
    if not (text.isascii() and text.isdigit() and int(text) >= 315532800):
        raise BuildError(
            "SOURCE_DATE_EPOCH: expected the seconds since 1970 of a time after 1980, "
            f"got {text!r}; unset it to take the time of the last commit"
        )
    return int(text)


def _discard_foreign_cache(build_dir: Path) -> None:
    """Removes a CMake cache that was made for another place, as after a copy of the checkout."""
    cache = build_dir / "CMakeCache.txt"
    if not cache.is_file():
        return
    lines = cache.read_text(encoding="utf-8", errors="replace").splitlines()
    ours = {
        f"CMAKE_HOME_DIRECTORY:INTERNAL={ROOT / 'backend'}",
        f"CMAKE_CACHEFILE_DIR:INTERNAL={build_dir}",
    }
    if not ours <= set(lines):
        cache.unlink()
        shutil.rmtree(build_dir / "CMakeFiles", ignore_errors=True)


@contextmanager
def _alone(build_dir: Path) -> Iterator[None]:
    """Lets one process at a time work in a build directory."""
    build_dir.parent.mkdir(parents=True, exist_ok=True)
    with (build_dir.parent / f".{build_dir.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def preset_options(name: str, path: Path = PRESETS) -> list[str]:
    """Returns what a configure preset says, as options that every CMake understands.

    ``--preset`` itself came with CMake 3.19, and the backend builds with 3.17.

    Args:
        name: The preset.
        path: The ``CMakePresets.json``.

    Raises:
        BuildError: There is no such preset.
    """
    presets = json.loads(path.read_text(encoding="utf-8"))["configurePresets"]
    by_name = {preset["name"]: preset for preset in presets}
    visible = [preset["name"] for preset in presets if not preset.get("hidden")]
    if name not in visible:
        raise BuildError(f"{path}: expected a preset of {', '.join(visible)}, got {name}")
    generator: str | None = None
    variables: dict[str, str] = {}
    current: str | None = name
    while current is not None:
        preset = by_name[current]
        generator = generator or preset.get("generator")
        # What a preset says itself goes before what it inherits.
        variables = preset.get("cacheVariables", {}) | variables
        current = preset.get("inherits")
    options = ["-G", generator] if generator else []
    return [*options, *(f"-D{key}={value}" for key, value in variables.items())]


def _configure(
    build_dir: Path, preset: str, triton_sdk_dir: Path | None, options: Sequence[str] = ()
) -> None:
    _discard_foreign_cache(build_dir)
    ninja = shutil.which("ninja")
    if ninja is None:
        raise BuildError("there is no ninja on PATH; it comes with the sessions: ./ci/nox --list")
    command = [
        *("cmake", "-S", "backend", "-B", str(build_dir), *preset_options(preset)),
        # Each session brings a ninja and a Python of its own, and the cache would keep the first.
        f"-DCMAKE_MAKE_PROGRAM={ninja}",
        f"-DPython3_EXECUTABLE={sys.executable}",
        f"-DCMAKE_LIBRARY_OUTPUT_DIRECTORY={build_dir / 'lib'}",
        f"-DTRITON_SDK_DIR={triton_sdk_dir or ''}",
        *options,
    ]
    run(command)


def _sdk_directory(triton_sdk_dir: Path | None) -> Path | None:
    """Takes the SDK from the argument, else from the environment, and checks that it is one."""
    named = triton_sdk_dir or Path(os.environ.get("TRITON_SDK_DIR") or "")
    if named == Path():
        return None
    if not (named / "include").is_dir():
        raise BuildError(
            f"TRITON_SDK_DIR={named}: expected a directory with include/ in it, as "
            "/opt/tritonserver has in a release image; unset it to build without the comparison"
        )
    return named.resolve()


def configure(
    *,
    build_dir: Path | None = None,
    preset: str = "release",
    triton_sdk_dir: Path | None = None,
) -> Path:
    """Configures the native build, and returns its directory.

    That is enough for ``compile_commands.json``, from which clang-tidy works.

    Args:
        build_dir: Where to build; ``build/<preset>`` when not given.
        preset: One of ``backend/CMakePresets.json``.
        triton_sdk_dir: See `build_backend`.
    """
    directory = (build_dir or BUILD_DIRECTORY / preset).resolve()
    sdk = _sdk_directory(triton_sdk_dir)
    toolchain.ensure()
    with _alone(directory):
        _configure(directory, preset, sdk)
    return directory


def build_backend(
    *,
    build_dir: Path | None = None,
    preset: str = "release",
    triton_sdk_dir: Path | None = None,
) -> Libraries:
    """Builds the native libraries.

    Args:
        build_dir: Where to build; ``build/<preset>`` when not given.
        preset: One of ``backend/CMakePresets.json``: release, debug, asan or tsan.
        triton_sdk_dir: A release's ``/opt/tritonserver``, whose headers are compared with our
            declarations; ``$TRITON_SDK_DIR`` when not given, and no comparison without that.

    Returns:
        The libraries that were built.

    Raises:
        BuildError: There is no ninja or no such SDK, or a library was not made.
        CommandError: CMake or the compiler failed.
        ToolchainError: Something is missing which cannot be installed from here.
    """
    directory = (build_dir or BUILD_DIRECTORY / preset).resolve()
    sdk = _sdk_directory(triton_sdk_dir)
    toolchain.ensure()
    with _alone(directory):
        _configure(directory, preset, sdk)
        run(["cmake", "--build", directory, "--parallel", str(len(os.sched_getaffinity(0)))])
    libraries = Libraries(*(directory / "lib" / name for name in LIBRARY_NAMES))
    for library in libraries:
        if not library.is_file():
            raise BuildError(f"the build ended well and did not make {library}")
    return libraries


def build_targets(*targets: str, preset: str, options: Sequence[str] = ()) -> Path:
    """Builds single targets: programs that are not part of the backend.

    Args:
        *targets: As CMake knows them.
        preset: One of ``backend/CMakePresets.json``.
        options: More of ``-DNAME=VALUE``.

    Returns:
        The build directory, ``build/<preset>``.

    Raises:
        BuildError: There is no ninja.
        CommandError: CMake or the compiler failed.
        ToolchainError: Something is missing which cannot be installed from here.
    """
    directory = BUILD_DIRECTORY / preset
    toolchain.ensure()
    with _alone(directory):
        _configure(directory, preset, None, options)
        parallel = str(len(os.sched_getaffinity(0)))
        run(["cmake", "--build", directory, "--parallel", parallel, "--target", *targets])
    return directory


def build_wheel(output: Path | None = None) -> Path:
    """Builds the wheel and checks what PyPI would refuse.

    Args:
        output: Where to put it; ``build/wheel`` when not given. Wheels of ours that lie there
            are replaced.

    Returns:
        The wheel.

    Raises:
        BuildError: There is not exactly one wheel in the end.
        CommandError: The build or the check failed.
    """
    return _build_distribution("wheel", "*.whl", output)


def build_sdist(output: Path | None = None) -> Path:
    """Builds the sdist and checks what PyPI would refuse.

    Args:
        output: Where to put it; ``build/sdist`` when not given. Sdists of ours that lie there
            are replaced.

    Returns:
        The sdist.

    Raises:
        BuildError: There is not exactly one sdist in the end.
        CommandError: The build or the check failed.
    """
    return _build_distribution("sdist", "*.tar.gz", output)


def _build_distribution(kind: str, pattern: str, output: Path | None) -> Path:
    """Builds one kind; hatchling is in the locked group ``build``, hence no isolation."""
    directory = (output or BUILD_DIRECTORY / kind).resolve()
    env = {**os.environ, "SOURCE_DATE_EPOCH": str(source_date_epoch())}
    with _alone(directory), tempfile.TemporaryDirectory(dir=directory.parent) as scratch:
        run(
            [sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir", scratch],
            env=env,
        )
        built = sorted(Path(scratch).glob(pattern))
        if len(built) != 1:
            raise BuildError(f"expected one {kind}, got {[path.name for path in built]}")
        run([sys.executable, "-m", "twine", "check", "--strict", built[0]])
        directory.mkdir(parents=True, exist_ok=True)
        for old in directory.glob(f"tritonserver_jax-{pattern}"):
            old.unlink()
        return built[0].replace(directory / built[0].name)


def check_libraries(libraries: Libraries, name: str) -> None:
    """Checks that a release can load what was built.

    Args:
        libraries: What was built.
        name: The release, as in ``24.10``.

    Raises:
        SymbolError: It cannot.
        UnknownReleaseError: There is no such release.
    """
    release, releases = find_release(name), load_releases().values()
    symbols.check_core(libraries.core, release, releases)
    symbols.check_functions(libraries.python_engine, release, releases)
    for library in libraries:
        symbols.check_system(library, release)


def main(arguments: Sequence[str] | None = None) -> int:
    """Builds the libraries and the wheel, and prints where they are."""
    parser = argparse.ArgumentParser(prog="python -m ci.build", description=__doc__)
    parser.add_argument("--preset", default="release", help="a preset of CMakePresets.json")
    parser.add_argument("--no-wheel", action="store_true", help="the native libraries only")
    parser.add_argument("--release", help="also check that this release can load them")
    options = parser.parse_args(arguments)
    try:
        libraries = build_backend(preset=options.preset)
        if options.release:
            check_libraries(libraries, options.release)
        made = [*libraries]
        if not options.no_wheel:
            made.append(build_wheel())
    except (
        BuildError,
        CommandError,
        UnknownReleaseError,
        symbols.SymbolError,
        toolchain.ToolchainError,
    ) as error:
        return fail(error)
    print("\n".join(f"built {path.relative_to(ROOT)}" for path in made))
    return 0


if __name__ == "__main__":
    sys.exit(main())
