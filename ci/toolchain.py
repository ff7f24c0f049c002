# SPDX-License-Identifier: Apache-2.0
"""Makes sure that what pip cannot bring is there.

The backend is compiled, and it embeds Python, so a build needs a C++ compiler, CMake, one header
library and the files of a shared Python. ``python -m ci.toolchain`` shows what is needed and
what was found, installs what is missing where apt-get can be used without a password, and
otherwise ends with the one command to run.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import re
import shutil
import sys
import sysconfig
from collections.abc import Callable, Iterable, Mapping, Sequence
from ctypes.util import find_library
from dataclasses import dataclass
from pathlib import Path

from ci.process import CommandError, capture, fail, run

Version = tuple[int, ...]

#: The oldest that the backend is written for.
MINIMUM_COMPILER: Version = (9, 3)
MINIMUM_CMAKE: Version = (3, 17)
MINIMUM_CLANG: Version = (14,)


class ToolchainError(RuntimeError):
    """Something is missing which only a person can install."""


@dataclass(frozen=True)
class Requirement:
    """One thing that a build needs.

    Attributes:
        name: What it is, for people.
        needed: Which one is needed: a minimum, or a file.
        package: The Debian or Ubuntu package that has it.
        find: Looks for it, and says what was found: None when there is nothing fit.
    """

    name: str
    needed: str
    package: str
    find: Callable[[], str | None]


def parse_version(text: str) -> Version | None:
    """Returns the first dotted number of a text, as in ``cmake version 3.25.1``."""
    match = re.search(r"\d+(?:\.\d+)+|\b\d+\b", text)
    return tuple(int(part) for part in match[0].split(".")) if match else None


def format_version(version: Version) -> str:
    """Writes a version with dots."""
    return ".".join(str(part) for part in version)


def compiler() -> str | None:
    """Returns the C++ compiler that CMake will take: ``$CXX``, else ``g++`` or ``c++``."""
    chosen = os.environ.get("CXX")
    if chosen:
        return shutil.which(chosen)
    return shutil.which("g++") or shutil.which("c++")


def find_compiler() -> str | None:
    """Finds a C++ compiler that is new enough."""
    path = compiler()
    text = capture([path, "-dumpfullversion", "-dumpversion"]) if path else None
    return _at_least(path, text, MINIMUM_COMPILER)


def find_cmake() -> str | None:
    """Finds a CMake that is new enough."""
    path = shutil.which("cmake")
    text = capture([path, "--version"]) if path else None
    return _at_least(path, text, MINIMUM_CMAKE)


def find_header(name: str) -> str | None:
    """Finds a header by asking the compiler, which knows where it looks."""
    path = compiler()
    if path is None:
        return None
    command = [path, "-E", "-include", name, "-x", "c++", os.devnull, "-o", os.devnull]
    return name if capture(command) is not None else None


def find_json() -> str | None:
    """Finds nlohmann/json."""
    return find_header("nlohmann/json.hpp")


def find_doctest() -> str | None:
    """Finds doctest, with which the core's own tests are written."""
    return find_header("doctest/doctest.h")


def find_clang() -> str | None:
    """Finds Clang, whatever ``$CXX`` is: the fuzzers are compiled by it alone."""
    path = shutil.which("clang++")
    text = capture([path, "-dumpversion"]) if path else None
    return _at_least(path, text, MINIMUM_CLANG)


def find_fuzzer_runtime() -> str | None:
    """Finds libFuzzer, which is a part of Clang and often packed apart from it."""
    path = shutil.which("clang++")
    name = f"libclang_rt.fuzzer-{platform.machine()}.a"
    # Clang of LLVM 15 and newer may keep it in a directory per target, without the suffix.
    for file in (name, "libclang_rt.fuzzer.a"):
        found = capture([path, f"--print-file-name={file}"]) if path else None
        if not found or not Path(found).is_file():
            found = capture([path, "--print-resource-dir"]) if path else None
            found = str(Path(found, "lib", "linux", file)) if found else None
        if found and Path(found).is_file():
            return found
    return None


def find_python_header(paths: Mapping[str, str] | None = None) -> str | None:
    """Finds the ``Python.h`` of the running Python."""
    header = Path((paths or sysconfig.get_paths())["include"], "Python.h")
    return str(header) if header.is_file() else None


def find_libpython(variables: Mapping[str, object] | None = None) -> str | None:
    """Finds the shared library of the running Python, which the backend opens at run time."""
    known = sysconfig.get_config_vars() if variables is None else variables
    # INSTSONAME has the number by which the loader knows it; LDLIBRARY comes with the headers.
    for directory in (known.get("LIBDIR"), known.get("LIBPL")):
        for name in (known.get("INSTSONAME"), known.get("LDLIBRARY")):
            if not directory or not name or ".so" not in str(name):
                continue
            for folder in (Path(str(directory)), Path(str(directory), str(known.get("MULTIARCH")))):
                if (folder / str(name)).is_file():
                    return str(folder / str(name))
    return None


def find_venv() -> str | None:
    """Finds out whether the running Python can make a virtual environment with pip in it."""
    names = ("venv", "ensurepip")
    return ", ".join(names) if all(importlib.util.find_spec(name) for name in names) else None


def _at_least(path: str | None, text: str | None, minimum: Version) -> str | None:
    version = parse_version(text or "")
    if path is None or version is None or version < minimum:
        return None
    return f"{path} {format_version(version)}"


def requirements() -> list[Requirement]:
    """Returns what a build needs; the Python is the one that runs this."""
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return [
        Requirement("C++ compiler", f">= {format_version(MINIMUM_COMPILER)}", "g++", find_compiler),
        Requirement("CMake", f">= {format_version(MINIMUM_CMAKE)}", "cmake", find_cmake),
        Requirement("JSON for C++", "nlohmann/json.hpp", "nlohmann-json3-dev", find_json),
        Requirement("Python headers", "Python.h", f"{python}-dev", find_python_header),
        Requirement("Python library", f"lib{python}.so", f"lib{python}", find_libpython),
        Requirement("Python venv", "venv, ensurepip", f"{python}-venv", find_venv),
    ]


def native_test_requirements() -> list[Requirement]:
    """Returns what the core's own tests need beside a build."""
    return [Requirement("doctest", "doctest/doctest.h", "doctest-dev", find_doctest)]


def development_requirements() -> list[Requirement]:
    """Returns what an engineer needs beside a build and the tests."""
    return [Requirement("Git", "any", "git", lambda: shutil.which("git"))]


def clang_requirements() -> list[Requirement]:
    """Returns the compiler of the fuzzers."""
    return [Requirement("Clang", f">= {format_version(MINIMUM_CLANG)}", "clang", find_clang)]


def fuzzer_requirements() -> list[Requirement]:
    """Returns what the fuzzers need beside Clang, which says by which name it is packed."""
    major = (capture(["clang++", "-dumpversion"]) or "14").split(".")[0]
    package = f"libclang-rt-{major}-dev"
    return [Requirement("libFuzzer", "libclang_rt.fuzzer", package, find_fuzzer_runtime)]


def reproduction_requirements() -> list[Requirement]:
    """Returns what builds at another time, on fewer CPUs."""
    return [
        Requirement("faketime", "faketime", "faketime", lambda: shutil.which("faketime")),
        Requirement("taskset", "taskset", "util-linux", lambda: shutil.which("taskset")),
    ]


def diffoscope_requirements() -> list[Requirement]:
    """Returns the libraries that diffoscope, which pip brings, opens."""
    return [
        Requirement("libmagic", "libmagic.so", "libmagic1", lambda: find_library("magic")),
        Requirement("libarchive", "libarchive.so", "libarchive13", lambda: find_library("archive")),
    ]


def missing(needed: Iterable[Requirement]) -> list[Requirement]:
    """Returns those that are not there."""
    return [requirement for requirement in needed if requirement.find() is None]


def table(needed: Iterable[Requirement]) -> str:
    """Writes what is needed and what was found, one line each."""
    rows = [("", "needed", "found")]
    rows += [(r.name, r.needed, r.find() or f"MISSING (package {r.package})") for r in needed]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    return "\n".join(f"{a:{widths[0]}}  {b:{widths[1]}}  {c}" for a, b, c in rows)


def apt_command(*, user: int, has_apt: bool, has_sudo: bool) -> list[str] | None:
    """Returns the words that apt-get has to begin with here, or None when it cannot be used.

    Args:
        user: The effective user id; 0 is root.
        has_apt: Whether there is an apt-get.
        has_sudo: Whether sudo works without a password.
    """
    if not has_apt:
        return None
    if user == 0:
        return ["apt-get"]
    return ["sudo", "-n", "apt-get"] if has_sudo else None


def advice(packages: Sequence[str], *, has_apt: bool) -> str:
    """Says what a person should do about missing packages."""
    names = " ".join(packages)
    if has_apt:
        return f"run: sudo apt-get update && sudo apt-get install -y {names}"
    return f"there is no apt-get here; install what your system calls these packages: {names}"


def ensure(needed: Sequence[Requirement] | None = None) -> None:
    """Installs what is missing, or says how.

    Raises:
        ToolchainError: Something is missing and cannot be installed from here, or is still not
            there after it was installed.
    """
    wanted = requirements() if needed is None else needed
    absent = missing(wanted)
    if not absent:
        return
    packages = sorted({requirement.package for requirement in absent})
    names = ", ".join(f"{r.name} ({r.needed})" for r in absent)
    has_apt = shutil.which("apt-get") is not None
    has_sudo = has_apt and capture(["sudo", "-n", "true"]) is not None
    apt = apt_command(user=os.geteuid(), has_apt=has_apt, has_sudo=has_sudo)
    if apt is None:
        raise ToolchainError(f"missing: {names}; {advice(packages, has_apt=has_apt)}")
    try:
        run([*apt, "update", "-qq"])
        options = ["install", "-y", "-qq", "--no-install-recommends"]
        run([*apt, "-o", "DPkg::Lock::Timeout=300", *options, *packages])
    except CommandError as error:
        raise ToolchainError(f"missing: {names}; and {error}") from error
    still = missing(absent)
    if still:
        raise ToolchainError(
            "still missing after "
            + " ".join(packages)
            + " was installed: "
            + ", ".join(f"{r.name} ({r.needed})" for r in still)
            + f". The Python is {sys.executable}: one built with --enable-shared is needed; "
            "choose another with PYTHON=/path/to/python ./ci/nox"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Shows the table, and installs what is missing unless told only to look."""
    parser = argparse.ArgumentParser(prog="python -m ci.toolchain", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only look; fail if any is missing")
    parser.add_argument("--development", action="store_true", help="also what an engineer needs")
    options = parser.parse_args(arguments)
    needed = requirements()
    if options.development:
        needed += [*native_test_requirements(), *development_requirements()]
    print(table(needed))
    if options.check:
        return 1 if missing(needed) else 0
    try:
        if missing(needed):
            ensure(needed)
            print(table(needed))
    except ToolchainError as error:
        return fail(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
