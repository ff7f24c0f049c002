# SPDX-License-Identifier: Apache-2.0
"""Shows that the same source gives the same bytes, wherever and however it is built.

Two copies of the checkout are built in circumstances that differ in everything that ought not to
matter: folder, umask, locale, time zone, home, clock, times of the files, order of hashes, number
of CPUs, and PATH. Then each file of ``dist/<release>`` and ``dist/python`` is compared, and the
wheel also with the one that the sdist makes. Where a pair differs, diffoscope's report says how.
With ``--image``, each copy's artifact also becomes an image, and the layers of both are compared.

``python -m ci.reproduce`` does that; ``--compare A B`` compares two folders, or two files, that are
there already.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from ci import toolchain
from ci.build import BuildError, source_date_epoch
from ci.process import ROOT, CommandError, capture, fail
from tritonserver_jax.artifacts.checksums import sha256_of
from tritonserver_jax.releases import DEFAULT_RELEASE

__all__ = [
    "Difference",
    "ReproductionError",
    "Variation",
    "compare",
    "report",
    "reproduce",
    "show_layers",
]

#: What a copy of a checkout without git leaves out: outputs and environments.
_OUTPUTS: Final = ("build", "dist", ".nox", ".venv*", "__pycache__", ".*_cache", ".git")

#: More of a report nobody reads.
_REPORT_BYTES: Final = 200_000


class ReproductionError(RuntimeError):
    """Two builds differ, or one of them failed."""


@dataclass(frozen=True, slots=True)
class Variation:
    """The circumstances of one build.

    Attributes:
        folder: Where, below a common one.
        umask: Of the build, and of the files of its source.
        environment: Variables that are set for it.
        clock: What is added to the time, in days.
        file_time: The time of the source's files, in seconds since 1970.
        cpus: How many it may use; all when None.
    """

    folder: str
    umask: int
    environment: Mapping[str, str]
    clock: int
    file_time: int
    cpus: int | None


#: What can be different is different. The time zones are written out, so that no data are needed.
VARIATIONS: Final = (
    Variation(
        folder="a",
        umask=0o022,
        environment={
            "LC_ALL": "C",
            "TZ": "UTC0",
            "PYTHONHASHSEED": "0",
        },
        clock=0,
        file_time=1_000_000_000,
        cpus=None,
    ),
    Variation(
        folder="another place/with a longer name, and blanks in it",
        umask=0o077,
        environment={
            "LC_ALL": "C.UTF-8",
            "LANGUAGE": "de:fr",
            "TZ": "<+14>-14",
            "PYTHONHASHSEED": "4242",
            "CAPTURED_BY_NOBODY": "a variable that no build should look at",
        },
        clock=421,
        file_time=1_600_000_000,
        cpus=1,
    ),
)


@dataclass(frozen=True, slots=True)
class Difference:
    """A file that two builds do not agree about.

    Attributes:
        name: Its path, below what was compared.
        first: Its SHA-256 in the first; None where there is none.
        second: Its SHA-256 in the second.
    """

    name: str
    first: str | None
    second: str | None

    def __str__(self) -> str:
        return f"{self.name}: {self.first or 'not there'} and {self.second or 'not there'}"


def _digests(path: Path) -> dict[str, str]:
    if path.is_file():
        return {path.name: sha256_of(path)}
    if not path.is_dir():
        raise ReproductionError(f"{path}: expected a file or a folder to compare, found none")
    return {
        str(file.relative_to(path)): sha256_of(file)
        for file in sorted(path.rglob("*"))
        if file.is_file()
    }


def compare(first: Path, second: Path) -> tuple[dict[str, str], list[Difference]]:
    """Compare two files, or all files of two folders.

    Args:
        first: A file or a folder.
        second: What should have the same bytes.

    Returns:
        The SHA-256 of each file that is the same in both, and those that differ.

    Raises:
        ReproductionError: One of them is not there.
    """
    one, two = _digests(first), _digests(second)
    if first.is_file() and second.is_file():
        two = {first.name: sha256_of(second)}
    same = {name: digest for name, digest in one.items() if two.get(name) == digest}
    differences = [
        Difference(name, one.get(name), two.get(name)) for name in sorted({*one, *two} - set(same))
    ]
    return same, differences


def report(first: Path, second: Path) -> str:
    """Return what diffoscope says of two files that differ.

    Raises:
        ReproductionError: diffoscope is not there, or failed.
    """
    # Beside the Python that runs this: the session brings it.
    program = shutil.which("diffoscope", path=str(Path(sys.executable).parent)) or shutil.which(
        "diffoscope"
    )
    if program is None:
        raise ReproductionError(
            "diffoscope: expected beside this Python or on PATH, found none; it comes with "
            "./ci/nox -s reproduce"
        )
    toolchain.ensure(toolchain.diffoscope_requirements())
    command = [program, "--text=-", "--text-color=never", "--no-progress"]
    command += [f"--max-text-report-size={_REPORT_BYTES}", str(first), str(second)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, errors="replace")
    if done.returncode not in (0, 1):  # 1: they differ
        raise ReproductionError(
            f"diffoscope ended with status {done.returncode}: {done.stderr.strip()[-2000:]}"
        )
    return done.stdout


def copy_source(target: Path, file_time: int, umask: int) -> None:
    """Copy the checkout as it is, uncommitted changes and all, with other times and modes."""
    target.parent.mkdir(parents=True, exist_ok=True)
    listed = capture(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT
    )
    if listed is None:
        shutil.copytree(ROOT, target, ignore=shutil.ignore_patterns(*_OUTPUTS))
    else:
        # A repository of its own, so that commit and state are those of the checkout.
        clone = ["git", "clone", "--quiet", "--shared", str(ROOT), str(target)]
        done = subprocess.run(clone, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ReproductionError(f"cannot copy {ROOT}: {done.stderr.strip()}")
        for name in filter(None, listed.split("\0")):
            source, copy = ROOT / name, target / name
            if source.is_file():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, copy)
            else:
                copy.unlink(missing_ok=True)  # removed, and not committed
    for path in sorted(target.rglob("*")):
        if path.is_symlink() or ".git" in path.relative_to(target).parts:
            continue
        executable = path.is_dir() or path.stat().st_mode & 0o100
        path.chmod((0o777 if executable else 0o666) & ~umask)
        if path.is_file():
            os.utime(path, (file_time, file_time))


def _build(source: Path, variation: Variation, release: str | None, home: Path) -> None:
    """Build everything in a copy of the source."""
    programs = home / "programs"
    programs.mkdir(parents=True)
    environment = {
        **os.environ,
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "TMPDIR": str(home),
        "PATH": os.pathsep.join([str(programs), os.environ["PATH"]]),
        "SOURCE_DATE_EPOCH": str(source_date_epoch()),
        **variation.environment,
    }
    prefix = ["faketime", "-f", f"+{variation.clock}d"] if variation.clock else []
    if variation.cpus is not None:
        first = min(os.sched_getaffinity(0))
        prefix += ["taskset", "--cpu-list", f"{first}-{first + variation.cpus - 1}"]
    commands = [["ci.python_artifacts", "--output", str(source / "dist" / "python")]]
    if release is not None:
        commands.insert(0, ["ci.artifacts", release, "--output", str(source / "dist")])
    for command in commands:
        done = subprocess.run(
            [*prefix, sys.executable, "-m", *command],
            cwd=source,
            env=environment,
            umask=variation.umask,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode != 0:
            raise ReproductionError(
                f"{command[0]} in {source} ended with status {done.returncode}:\n"
                + done.stdout[-4000:]
            )


def _image_layers(
    source: Path, variation: Variation, release: str, scratch: Path, *, stand_in: bool
) -> list[str]:
    """Make the image of a copy's artifact, and return the digests of its layers."""
    layers = scratch / "layers.txt"
    command = [sys.executable, "-m", "ci.images", "build", release, "--no-cache"]
    command += [f"--layers={layers}", *(["--stand-in"] if stand_in else [])]
    # With this home: what the image stands on is kept there, and is the same for both.
    environment = {**os.environ, **variation.environment}
    done = subprocess.run(
        command, cwd=source, env=environment, umask=variation.umask, text=True, check=False
    )
    if done.returncode != 0:
        raise ReproductionError(
            f"the image of {source} ended with status {done.returncode}; its output is above"
        )
    return layers.read_text(encoding="ascii").splitlines()


def show_layers(first: Sequence[str], second: Sequence[str]) -> int:
    """Print which layers of two images are the same; return how many differ."""
    differing = 0
    for number, (one, two) in enumerate(itertools.zip_longest(first, second), 1):
        name = f"layer {number} of the image"
        differing += one != two
        print(
            f"same    {one}  {name}"
            if one == two
            else f"DIFFERS {name}: {one or 'not there'} and {two or 'not there'}"
        )
    return differing


def _wheel_of_sdist(dist: Path, scratch: Path) -> Path:
    """Build the wheel from the sdist, as pip does where no wheel fits."""
    (sdist,) = (dist / "python").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(scratch)  # noqa: S202 # we have just made it
    source = scratch / sdist.name.removesuffix(".tar.gz")
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(source_date_epoch())}
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir"]
    done = subprocess.run(
        [*command, str(scratch / "wheel")],
        cwd=source,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ReproductionError(f"the sdist does not build:\n{done.stdout}{done.stderr}")
    (wheel,) = (scratch / "wheel").glob("*.whl")
    return wheel


def _show(first: Path, second: Path) -> int:
    """Compare, print what is the same and how the rest differs; return how much differs."""
    same, differences = compare(first, second)
    for name, digest in same.items():
        print(f"same    {digest}  {name}", flush=True)
    for difference in differences:
        print(f"DIFFERS {difference}", flush=True)
        if difference.first and difference.second:
            files = first.is_file()
            one = first if files else first / difference.name
            print(report(one, second if files else second / difference.name), flush=True)
    return len(differences)


def reproduce(
    release: str | None,
    scratch: Path,
    variations: tuple[Variation, Variation] = VARIATIONS,
    *,
    image: Literal["none", "released", "stand-in"] = "none",
) -> None:
    """Build twice, and compare.

    Args:
        release: The Triton release whose tarball is made; None compares the wheel and the sdist
            alone, for which nothing is compiled.
        scratch: A folder to work in.
        variations: The circumstances of both.
        image: What an image of each is made on, whose layers are compared too: on the release's
            own, or on what stands in for it.

    Raises:
        ReproductionError: A build failed, or a file differs; the report is printed before.
    """
    if release is not None:
        toolchain.ensure()
    toolchain.ensure(toolchain.reproduction_requirements())
    for variation in variations:  # both at once: somebody may be at work in the checkout
        copy_source(scratch / variation.folder, variation.file_time, variation.umask)
    folders = []
    for number, variation in enumerate(variations):
        begin = time.monotonic()
        source = scratch / variation.folder
        _build(source, variation, release, scratch / f"home-{number}")
        folders.append(source / "dist")
        print(f"built {number + 1} of 2 in {time.monotonic() - begin:.0f} s: {source}", flush=True)
    differing = _show(*folders)
    (wheel,) = (folders[0] / "python").glob("*.whl")
    print("and the wheel that the sdist makes:")
    differing += _show(wheel, _wheel_of_sdist(folders[0], scratch / "from-sdist"))
    if release is not None and image != "none":
        differing += show_layers(
            *(
                _image_layers(
                    scratch / one.folder,
                    one,
                    release,
                    scratch / f"home-{number}",
                    stand_in=image == "stand-in",
                )
                for number, one in enumerate(variations)
            )
        )
    if differing:
        raise ReproductionError(f"{differing} files or layers differ; the reports are above")
    print("the same bytes in every file" + ("" if image == "none" else ", and in every layer"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Build twice and compare, or compare what is there."""
    parser = argparse.ArgumentParser(prog="python -m ci.reproduce", description=__doc__)
    parser.add_argument("--release", default=DEFAULT_RELEASE)
    parser.add_argument("--python-only", action="store_true", help="compile nothing")
    parser.add_argument(
        "--image",
        nargs="?",
        choices=["none", "released", "stand-in"],
        const="released",
        default="none",
        help="also compare images, made on the release's own or on the one that stands in for it",
    )
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("A", "B"))
    parser.add_argument("--keep", type=Path, help="work in this new folder, and leave it there")
    options = parser.parse_args(arguments)
    try:
        if options.compare:
            if _show(*options.compare):
                raise ReproductionError("they differ; the report is above")
            return 0
        release = None if options.python_only else options.release
        if options.keep:
            options.keep.mkdir(parents=True)
            reproduce(release, options.keep.resolve(), image=options.image)
        else:
            with tempfile.TemporaryDirectory(prefix="tritonserver-jax-") as scratch:
                reproduce(release, Path(scratch), image=options.image)
    except (
        BuildError,
        CommandError,
        OSError,
        ReproductionError,
        toolchain.ToolchainError,
    ) as error:
        return fail(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
