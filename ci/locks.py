# SPDX-License-Identifier: Apache-2.0
"""The locks of the backend's environment: one file of hashed requirements for each Python.

``setup_env.sh`` installs from them with every hash checked. They are made from the project's
dependencies with the very versions of ``uv.lock``, so that the environment in the server is the
one that the tests ran with. What a GPU needs besides is resolved against each of them. The
requirements of an example that needs more than that come from
``uv.lock`` too. ``python -m ci.locks`` writes all of them, ``python -m ci.locks --check`` says,
without network, whether they still fit.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ci.process import ROOT, CommandError, fail

__all__ = [
    "ACCELERATORS",
    "EXAMPLES",
    "LOCKS",
    "PYTHONS",
    "LockError",
    "accelerator_lock_path",
    "check_accelerator_locks",
    "check_example_requirements",
    "check_locks",
    "example_requirements_path",
    "lock_path",
    "pinned",
    "write_accelerator_locks",
    "write_example_requirements",
    "write_locks",
]

#: Where the locks are; an artifact carries this folder.
LOCKS: Final = ROOT / "packaging" / "locks"

#: The Pythons that the backend's environment can have.
PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")

#: What JAX can use beside a CPU, by its extra: each has files for `setup_env.sh --requirements`.
ACCELERATORS: Final = ("cuda12", "cuda13")

#: The examples that need more than the backend's environment has, and what: a dependency group.
EXAMPLES: Final = {"equinox_mlp": "equinox", "haiku_mlp": "haiku"}

#: glibc 2.28: what JAX's own wheels need, and older than that of any release image.
PLATFORM: Final = "x86_64-manylinux_2_28"

_HEADER = """\
# SPDX-License-Identifier: Apache-2.0
# The environment of the JAX backend under Python {python} on {platform}.
# Made by `python -m ci.locks` from pyproject.toml and uv.lock; do not edit.
# inputs-sha256: {inputs}
# content-sha256: {content}
"""
_ACCELERATOR_HEADER = """\
# SPDX-License-Identifier: Apache-2.0
# What jax[{accelerator}] adds to {lock}:
# setup_env.sh --requirements THIS_FILE
# Made by `python -m ci.locks` from that file; do not edit.
# inputs-sha256: {inputs}
# content-sha256: {content}
"""
_EXAMPLE_HEADER = """\
# SPDX-License-Identifier: Apache-2.0
# What this example needs beside the backend's environment: setup_env.sh --requirements THIS_FILE
# Made by `python -m ci.locks` from uv.lock; do not edit.
"""
_HEADER_LINES: Final = _HEADER.count("\n")
_ACCELERATOR_HEADER_LINES: Final = _ACCELERATOR_HEADER.count("\n")


class LockError(RuntimeError):
    """A lock could not be made, or does not fit what it is made from."""


def lock_path(python: str, folder: Path = LOCKS) -> Path:
    """Return the lock of one Python, as in ``"3.11"``."""
    return folder / f"requirements-cpu-py{python.replace('.', '')}.txt"


def accelerator_lock_path(accelerator: str, python: str, folder: Path = LOCKS) -> Path:
    """Return what an accelerator adds to the lock of one Python, as in ``"cuda12", "3.11"``."""
    return folder / f"requirements-{accelerator}-py{python.replace('.', '')}.txt"


def _uv(arguments: Sequence[str], cwd: Path) -> str:
    uv = os.environ.get("UV") or shutil.which("uv")
    if uv is None:
        raise LockError("uv: expected on PATH or in $UV, found neither; ./ci/nox brings it")
    done = subprocess.run([uv, *arguments], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LockError(f"uv {arguments[0]} ended with {done.returncode}:\n{done.stderr.strip()}")
    return done.stdout


def _inputs(root: Path) -> tuple[list[str], str]:
    """Return the project's dependencies, and every version that uv.lock has for them."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    export = ["export", "--frozen", "--no-default-groups", "--no-emit-project", "--no-hashes"]
    versions = _uv([*export, "--no-header", "--no-annotate", "--quiet"], root)
    return sorted(project["dependencies"]), versions


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def write_locks(root: Path = ROOT, folder: Path = LOCKS) -> list[Path]:
    """Resolve and write the lock of every Python; needs the package index.

    Args:
        root: The checkout.
        folder: Where the locks go.

    Raises:
        LockError: uv is missing, or there is no set of versions that fits.
    """
    dependencies, versions = _inputs(root)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        requirements = Path(scratch, "requirements.in")
        requirements.write_text("".join(f"{line}\n" for line in dependencies), encoding="utf-8")
        constraints = Path(scratch, "constraints.txt")
        constraints.write_text(versions, encoding="utf-8")
        for python in PYTHONS:
            content = _uv(
                [
                    *("pip", "compile", "requirements.in", "--constraints", "constraints.txt"),
                    *("--python-version", python, "--python-platform", PLATFORM),
                    *_COMPILE,
                ],
                Path(scratch),
            )
            header = _HEADER.format(
                python=python,
                platform=PLATFORM,
                inputs=_digest(python, PLATFORM, *dependencies, versions),
                content=_digest(content),
            )
            fresh = Path(scratch, "lock.txt")
            fresh.write_text(header + content, encoding="utf-8")
            shutil.copyfile(fresh, lock_path(python, folder))
    return [lock_path(python, folder) for python in PYTHONS]


def check_locks(root: Path = ROOT, folder: Path = LOCKS) -> None:
    """Check that each lock was made from today's inputs and not edited since.

    Args:
        root: The checkout.
        folder: Where the locks are.

    Raises:
        LockError: One does not fit; the message names it.
    """
    dependencies, versions = _inputs(root)
    for python in PYTHONS:
        path = lock_path(python, folder)
        remedy = "run: python -m ci.locks"
        if not path.is_file():
            raise LockError(f"{path}: expected a lock for Python {python}, found none; {remedy}")
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines(keepends=True)
        got = "".join(lines[:_HEADER_LINES])
        inputs = _digest(python, PLATFORM, *dependencies, versions)
        content = _digest("".join(lines[_HEADER_LINES:]))
        if f"# content-sha256: {content}\n" not in got:
            raise LockError(f"{path}: was edited by hand; {remedy}")
        if f"# inputs-sha256: {inputs}\n" not in got:
            raise LockError(
                f"{path}: the dependencies in pyproject.toml or their versions in uv.lock have "
                f"changed since it was made; {remedy}"
            )


_COMPILE: Final = (
    *("--generate-hashes", "--only-binary", ":all:", "--no-header"),
    *("--no-emit-index-url", "--no-emit-find-links", "--no-emit-build-options"),
    *("--no-annotate", "--quiet"),
)


def _entries(text: str) -> list[str]:
    """Split requirements into one distribution each: a name and version, and lines of hashes."""
    return [entry for entry in re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE) if entry]


def _accelerator_inputs(accelerator: str, python: str, pins: dict[str, str]) -> str:
    return _digest(accelerator, python, PLATFORM, *(f"{k}=={v}" for k, v in sorted(pins.items())))


def write_accelerator_locks(folder: Path = LOCKS) -> list[Path]:
    """Resolve and write what each accelerator adds to each lock; needs the package index.

    A version that was chosen once stays until it no longer fits.

    Args:
        folder: Where the locks are, and go.

    Raises:
        LockError: uv is missing, or there is no set of versions that fits.
    """
    paths = []
    for accelerator, python in itertools.product(ACCELERATORS, PYTHONS):
        lock = lock_path(python, folder)
        path = accelerator_lock_path(accelerator, python, folder)
        pins = pinned(lock)
        with tempfile.TemporaryDirectory() as scratch:
            wanted = Path(scratch, "requirements.in")
            wanted.write_text(f"jax[{accelerator}]=={pins['jax']}\n", encoding="utf-8")
            shutil.copyfile(lock, Path(scratch, "constraints.txt"))
            if path.is_file():
                shutil.copyfile(path, Path(scratch, "lock.txt"))
            resolve = ["pip", "compile", "requirements.in", "--constraints", "constraints.txt"]
            resolve += ["--python-version", python, "--python-platform", PLATFORM]
            _uv([*resolve, *_COMPILE, "--output-file", "lock.txt"], Path(scratch))
            content = Path(scratch, "lock.txt").read_text(encoding="utf-8")
        added = [entry for entry in _entries(content) if entry.split("==", 1)[0] not in pins]
        content = "".join(added)
        header = _ACCELERATOR_HEADER.format(
            accelerator=accelerator,
            lock=lock.name,
            inputs=_accelerator_inputs(accelerator, python, pins),
            content=_digest(content),
        )
        path.write_text(header + content, encoding="utf-8")
        paths.append(path)
    return paths


def check_accelerator_locks(folder: Path = LOCKS) -> None:
    """Check that what accelerators add was made from today's locks and not edited since.

    Args:
        folder: Where the locks are.

    Raises:
        LockError: One does not fit; the message names it.
    """
    remedy = "run: python -m ci.locks"
    for accelerator, python in itertools.product(ACCELERATORS, PYTHONS):
        path = accelerator_lock_path(accelerator, python, folder)
        if not path.is_file():
            raise LockError(
                f"{path}: expected what {accelerator} adds for Python {python}, found none; "
                f"{remedy}"
            )
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        header = "".join(lines[:_ACCELERATOR_HEADER_LINES])
        if (
            f"# content-sha256: {_digest(''.join(lines[_ACCELERATOR_HEADER_LINES:]))}\n"
            not in header
        ):
            raise LockError(f"{path}: was edited by hand; {remedy}")
        lock = lock_path(python, folder)
        inputs = _accelerator_inputs(accelerator, python, pinned(lock))
        if f"# inputs-sha256: {inputs}\n" not in header:
            raise LockError(f"{path}: {lock.name} has changed since it was made; {remedy}")


def example_requirements_path(example: str, root: Path = ROOT) -> Path:
    """Return the requirements of an example."""
    return root / "examples" / example / "requirements.txt"


def _example_requirements(example: str, root: Path, folder: Path) -> str:
    """Make the requirements of an example: what its group has and no lock has."""
    export = ["export", "--frozen", "--only-group", EXAMPLES[example], "--no-emit-project"]
    content = _uv([*export, "--no-header", "--no-annotate", "--quiet"], root)
    locked = {name for python in PYTHONS for name in pinned(lock_path(python, folder))}
    kept = [entry for entry in _entries(content) if entry.split("==", 1)[0] not in locked]
    # The platform is the backend's own; a marker that says so adds nothing.
    platform = r" ; platform_machine == 'x86_64' and sys_platform == 'linux'"
    return _EXAMPLE_HEADER + "".join(kept).replace(platform, "")


def write_example_requirements(root: Path = ROOT, folder: Path = LOCKS) -> list[Path]:
    """Write the requirements of the examples that need more than the backend does.

    Args:
        root: The checkout.
        folder: Where the locks are.

    Raises:
        LockError: uv is missing.
    """
    paths = []
    for example in EXAMPLES:
        path = example_requirements_path(example, root)
        path.write_text(_example_requirements(example, root, folder), encoding="utf-8")
        paths.append(path)
    return paths


def check_example_requirements(root: Path = ROOT, folder: Path = LOCKS) -> None:
    """Check that the requirements of the examples are what uv.lock says.

    Args:
        root: The checkout.
        folder: Where the locks are.

    Raises:
        LockError: One is not; the message names it.
    """
    for example in EXAMPLES:
        path = example_requirements_path(example, root)
        expected = _example_requirements(example, root, folder)
        if not path.is_file() or path.read_text(encoding="utf-8") != expected:
            raise LockError(f"{path}: is not what uv.lock says; run: python -m ci.locks")


def pinned(lock: Path) -> dict[str, str]:
    """Return the version of every distribution in a lock."""
    text = lock.read_text(encoding="utf-8")
    return dict(re.findall(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", text, flags=re.MULTILINE))


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the locks, or check them with ``--check``."""
    parser = argparse.ArgumentParser(prog="python -m ci.locks", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing, fail when outdated")
    options = parser.parse_args(arguments)
    try:
        if options.check:
            check_locks()
            check_accelerator_locks()
            check_example_requirements()
            print("the locks fit pyproject.toml and uv.lock")
        else:
            for path in [
                *write_locks(),
                *write_accelerator_locks(),
                *write_example_requirements(),
            ]:
                print(f"wrote {path.relative_to(ROOT)}: {len(pinned(path))} distributions")
    except (LockError, CommandError) as error:
        return fail(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
