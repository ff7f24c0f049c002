# SPDX-License-Identifier: Apache-2.0
"""Adds a release to ``releases.toml``, or what has become known of one.

``python -m ci.add_release 26.09 --from DIRECTORY`` reads the facts from an unpacked release image,
or from its ``/opt/tritonserver``: server version, API levels, the functions that came to the C
API, Ubuntu, Python, CUDA. Each can be given by an option too. ``--wheel newest`` takes the newest
wheel on the package index that carries a server, and asks that server for its version.

The file keeps its comments and its order, what cannot be is refused before anything is written,
and what derives from it (tables of the documentation, files for images) is made anew.
"""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.items import KeyType, SingleKey, Table

from ci.process import ROOT, CommandError, fail, run
from ci.symbols import SERVER_PREFIXES, SymbolError, c_api, exported
from tritonserver_jax.artifacts.checksums import sha256_of
from tritonserver_jax.releases import (
    Release,
    ReleaseDataError,
    ServerWheel,
    load_releases,
)
from tritonserver_jax.server import ServerError, TritonServer, obtain_server
from tritonserver_jax.server.wheels import pip_command

RELEASES_FILE = ROOT / "releases.toml"
#: The distribution whose wheels carry servers.
PACKAGE = "nvidia-pytriton"
#: The modules that make something of the releases, to be run again.
DERIVED = ("ci.docs", "ci.image_plan", "ci.pipeline_plan")
#: The keys of a release in the order in which they are written.
KEYS = (
    "server_version",
    "support",
    "backend_api",
    "server_api",
    "ubuntu",
    "python",
    "cuda",
    "driver",
    "image_digest",
    "sdk_image_digest",
    "c_api_functions_added",
    "features_added",
)

Facts = dict[str, Any]

_API_LEVEL = r"^\s*#\s*define\s+{}_API_VERSION_{}\s+(\d+)\b"
_ASK_LEVELS = """
import ctypes, json, sys
library = ctypes.CDLL(sys.argv[1])
major, minor, levels = ctypes.c_uint32(), ctypes.c_uint32(), {}
for kind in ("backend", "server"):
    library[f"TRITON{kind.upper()}_ApiVersion"](ctypes.byref(major), ctypes.byref(minor))
    levels[f"{kind}_api"] = f"{major.value}.{minor.value}"
print(json.dumps(levels))
"""


class AddReleaseError(RuntimeError):
    """A fact is missing, or contradicts another one."""


def levels_of_headers(include: Path) -> Facts:
    """Reads the levels of both C APIs from the official headers.

    Args:
        include: The folder that holds ``triton/core``.

    Raises:
        AddReleaseError: A header does not say it.
    """
    facts: Facts = {}
    for kind in ("backend", "server"):
        path = include / "triton" / "core" / f"triton{kind}.h"
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise AddReleaseError(f"{path}: cannot be read: {error.strerror}") from error
        numbers = []
        for part in ("MAJOR", "MINOR"):
            pattern = _API_LEVEL.format(f"TRITON{kind.upper()}", part)
            found = re.search(pattern, text, re.MULTILINE)
            if found is None:
                name = f"TRITON{kind.upper()}_API_VERSION_{part}"
                raise AddReleaseError(f"{path}: expected #define {name}, found none")
            numbers.append(found[1])
        facts[f"{kind}_api"] = ".".join(numbers)
    return facts


def levels_of_library(library: Path) -> Facts:
    """Asks a server's library for the levels of both C APIs, in a process of its own.

    Raises:
        AddReleaseError: It cannot be opened.
    """
    done = subprocess.run(
        [sys.executable, "-c", _ASK_LEVELS, str(library)],
        env={**os.environ, "LD_LIBRARY_PATH": str(library.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        raise AddReleaseError(f"{library}: cannot be asked for its API levels: {reason}")
    levels: Facts = json.loads(done.stdout)
    return levels


def functions_added(library: Path, before: Sequence[Release]) -> list[str]:
    """Compares what a server's library exports with the C API of the releases before it.

    Raises:
        AddReleaseError: It lacks functions which those have.
    """
    offered = {name for name in exported(library) if name.startswith(SERVER_PREFIXES)}
    known = c_api(before[-1], before)
    if missing := sorted(known - offered):
        raise AddReleaseError(
            f"{library}: expected every function of release {before[-1].release}, found no "
            f"{', '.join(missing)}; if the C API lost them, the backend must not link to them, and "
            "releases.toml needs a way to say so"
        )
    return sorted(offered - known)


def facts_of(directory: Path, before: Sequence[Release]) -> Facts:
    """Reads the facts of a release from its image. None of its programs are run.

    Args:
        directory: The unpacked image, or its ``/opt/tritonserver``, or a folder with its headers.
        before: The releases before it, the oldest first.

    Raises:
        AddReleaseError: It is neither, or says something that cannot be.
    """
    image = directory
    root = image / "opt" / "tritonserver"
    if not root.is_dir():
        root = directory
    facts: Facts = {}
    version = root / "TRITON_VERSION"
    if version.is_file():
        facts["server_version"] = version.read_text(encoding="utf-8").strip()
    libraries = sorted(
        [*root.glob("lib*/libtritonserver.so*"), *root.glob("libtritonserver-*.so*")]
    )
    if (root / "include").is_dir():
        facts |= levels_of_headers(root / "include")
    if libraries:
        facts["c_api_functions_added"] = functions_added(libraries[0], before)
    if not facts:
        raise AddReleaseError(
            f"{directory}: expected an unpacked release image or its /opt/tritonserver, with "
            "TRITON_VERSION, include/ or lib/libtritonserver.so; found none of them"
        )
    return facts | _facts_of_system(image)


def _facts_of_system(image: Path) -> Facts:
    """Ubuntu, Python and CUDA, where the whole image is there."""
    facts: Facts = {}
    os_release = image / "etc" / "os-release"
    if os_release.is_file() and (
        found := re.search(r'^VERSION_ID="?(\d+\.\d+)"?$', os_release.read_text("utf-8"), re.M)
    ):
        facts["ubuntu"] = found[1]
    status = image / "var" / "lib" / "dpkg" / "status"
    if status.is_file() and (
        found := re.search(
            r"^Package: python3\.\d+-minimal$(?:\n.+)*?\nVersion: (\d+\.\d+\.\d+)",
            status.read_text("utf-8", "replace"),
            re.M,
        )
    ):
        facts["python"] = found[1]
    cuda = image / "usr" / "local" / "cuda" / "version.json"
    if cuda.is_file():
        facts["cuda"] = json.loads(cuda.read_text("utf-8"))["cuda"]["version"]
    return facts


def server_wheel(version: str, server_version: str) -> tuple[ServerWheel, Facts]:
    """Downloads a wheel that carries a server, and starts that server to see which it is.

    Args:
        version: Of the wheel, or "newest".
        server_version: What the server has to be.

    Returns:
        The wheel, and the facts that its library tells.

    Raises:
        AddReleaseError: It cannot be downloaded, or carries another server.
        ServerError: It does not start.
    """
    requirement = PACKAGE if version == "newest" else f"{PACKAGE}=={version}"
    with tempfile.TemporaryDirectory(prefix="tritonserver-jax-") as name:
        scratch = Path(name)
        options = ["--no-deps", "--only-binary=:all:", "--no-input", "--progress-bar=off"]
        run(
            [
                *pip_command(scratch),
                "download",
                *options,
                f"--dest={scratch / 'wheel'}",
                requirement,
            ]
        )
        path = next((scratch / "wheel").glob("*.whl"))
        wheel = ServerWheel(
            package=PACKAGE,
            version=path.name.split("-")[1],
            wheel=path.name,
            sha256=sha256_of(path),
        )
    with tempfile.TemporaryDirectory(prefix="tritonserver-jax-") as name:
        scratch = Path(name)
        # Which release it is of shows when it runs; until then it is filed under a known one.
        candidate = dataclasses.replace(list(load_releases().values())[-1], server=wheel)
        server = obtain_server(candidate, cache_dir=scratch / "cache")
        (scratch / "models").mkdir()
        backends = server.backend_directory
        with TritonServer(server, [scratch / "models"], backend_directory=backends) as running:
            running.wait_live(60)
            said = running.server_version()
        if said != server_version:
            release = next(
                (one.release for one in load_releases().values() if one.server_version == said), "?"
            )
            raise AddReleaseError(
                f"{wheel.wheel}: expected server version {server_version} in it, got {said} "
                f"(release {release}); give another version of {PACKAGE}, or leave --wheel out: "
                "the release can be had as an image only"
            )
        library = next(server.library_directory.glob("libtritonserver-*.so*"))
        before = [one for one in load_releases().values() if _key(one.server_version) < _key(said)]
        added = functions_added(library, before)
        return wheel, {**levels_of_library(library), "c_api_functions_added": added}


def _key(dotted: str) -> tuple[int, ...]:
    return tuple(int(part) for part in dotted.split("."))


def merged(*sources: tuple[str, Facts]) -> Facts:
    """Puts facts from several sources together.

    Raises:
        AddReleaseError: Two of them contradict each other.
    """
    facts: Facts = {}
    origin: dict[str, str] = {}
    for source, found in sources:
        for key, value in found.items():
            if value is None:
                continue
            if key in facts and facts[key] != value:
                raise AddReleaseError(
                    f"{key}: {origin[key]} says {facts[key]!r}, and {source} says {value!r}; "
                    "leave one of them out, or correct it"
                )
            facts[key] = value
            origin[key] = source
    return facts


def support_level(facts: Facts, *, server: bool) -> str:
    """How far a release is supported of which this is known."""
    if server:
        return "tested"
    return "built" if "backend_api" in facts else "image only"


def _value(value: Any) -> Any:
    if not isinstance(value, (list, tuple)):
        return value
    array = tomlkit.array()
    array.extend(value)
    return array.multiline(len(value) > 0)


def _fill(table: Table, facts: Facts, wheel: ServerWheel | None) -> None:
    for key in KEYS:
        if key in facts:
            table[key] = _value(facts[key])
    if wheel is not None:
        server = tomlkit.table()
        server.update(dataclasses.asdict(wheel))
        table["server"] = server


def _block(name: str, facts: Facts, wheel: ServerWheel | None) -> str:
    document = tomlkit.document()
    releases = tomlkit.table(is_super_table=True)
    table = tomlkit.table()
    _fill(table, facts, wheel)
    releases.append(SingleKey(name, KeyType.Basic), table)
    document.append("release", releases)
    return tomlkit.dumps(document).strip("\n") + "\n"


def with_release(text: str, name: str, facts: Facts, wheel: ServerWheel | None) -> str:
    """The text of ``releases.toml`` with one more release, or with more facts of one it has.

    Args:
        text: The file.
        name: The release.
        facts: By key.
        wheel: Of its server, or None to leave what there is.
    """
    document = tomlkit.parse(text)
    listed: Any = document["release"]
    if name in listed:
        _fill(listed[name], facts, wheel)
        return tomlkit.dumps(document)
    block = _block(name, facts, wheel)
    later = [one for one in listed if _key(one) > _key(name)]
    if not later:
        return text.rstrip("\n") + "\n\n" + block
    at = text.index(f'[release."{later[0]}"]')
    return text[:at] + block + "\n" + text[at:]


def add_release(
    path: Path, name: str, given: Facts, *, source: Path | None, wheel: str | None, update: bool
) -> list[str]:
    """Adds a release to the file, or facts to one that it has.

    Args:
        path: ``releases.toml``.
        name: The release.
        given: Facts from the command line, by key.
        source: Its unpacked image, or the ``/opt/tritonserver`` of it.
        wheel: The version of the wheel that carries its server, or "newest".
        update: Whether the release has to be there already.

    Returns:
        The lines that were added.

    Raises:
        AddReleaseError: A fact is missing or contradicts another one.
        ReleaseDataError: The file would say something that cannot be.
        ServerError: The server of the wheel does not start.
    """
    if not re.fullmatch(r"\d\d\.\d\d", name):
        raise AddReleaseError(
            f'release: expected a name such as "26.09" (year.month), got {name!r}'
        )
    text = path.read_text(encoding="utf-8")
    known = load_releases(path)
    if (name in known) != update:
        hint = "add --update to add to it" if name in known else "leave --update out to add it"
        state = "is there already" if name in known else "is not there"
        raise AddReleaseError(f"{path}: release {name} {state}; {hint}")
    before = [one for one in known.values() if _key(one.release) < _key(name)]
    if not before:
        raise AddReleaseError(f"release {name}: expected one after {next(iter(known))}")
    facts = merged(
        ("the command line", given),
        (str(source), facts_of(source, before) if source else {}),
        ("releases.toml", {"server_version": known[name].server_version} if update else {}),
    )
    found: ServerWheel | None = None
    if wheel is not None:
        if "server_version" not in facts:
            raise AddReleaseError("--wheel: also give --server-version, which it has to carry")
        found, told = server_wheel(wheel, facts["server_version"])
        facts = merged(("what was given", facts), (found.wheel, told))
    if update:
        complete = {**facts, "backend_api": known[name].backend_api or facts.get("backend_api")}
        has_server = found is not None or known[name].server is not None
    else:
        complete, has_server = facts, found is not None
        needed = ("server_version", "ubuntu", "python")
        if missing := [key for key in needed if key not in facts]:
            options = ", ".join(f"--{key.replace('_', '-')}" for key in missing)
            raise AddReleaseError(
                f"release {name}: expected {', '.join(missing)} to be known; give {options}, or "
                "--from the whole unpacked image"
            )
    if complete.get("backend_api") is None:
        complete.pop("backend_api", None)
    facts["support"] = support_level(complete, server=has_server)
    changed = with_release(text, name, facts, found)
    fresh = path.with_name(f".{path.name}.new")
    try:
        fresh.write_text(changed, encoding="utf-8")
        load_releases(fresh)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    compared = difflib.unified_diff(text.splitlines(), changed.splitlines(), lineterm="", n=0)
    return [line[1:] for line in compared if line.startswith("+") and not line.startswith("+++")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Adds a release, and makes anew what derives from the releases."""
    parser = argparse.ArgumentParser(prog="python -m ci.add_release", description=__doc__)
    parser.add_argument("release", help='as in "26.09"')
    parser.add_argument("--update", action="store_true", help="add to a release that is there")
    parser.add_argument("--from", dest="source", type=Path, metavar="DIRECTORY")
    parser.add_argument("--wheel", metavar="VERSION", help=f'of {PACKAGE}, or "newest"')
    for key in KEYS:
        if key in ("c_api_functions_added", "features_added"):
            parser.add_argument(f"--{key.replace('_', '-')}", nargs="*", metavar="NAME")
        elif key != "support":
            parser.add_argument(f"--{key.replace('_', '-')}")
    options = parser.parse_args(arguments)
    given = {key: getattr(options, key, None) for key in KEYS if key != "support"}
    try:
        lines = add_release(
            RELEASES_FILE,
            options.release,
            given,
            source=options.source,
            wheel=options.wheel,
            update=options.update,
        )
        print("\n".join(f"+ {line}" for line in lines))
        for module in DERIVED:
            run([sys.executable, "-m", module])
    except (AddReleaseError, CommandError, ReleaseDataError, ServerError, SymbolError) as error:
        return fail(error)
    print(
        f"release {options.release} is in {RELEASES_FILE.relative_to(ROOT)}; look at the changes "
        "(git diff), run ./ci/nox, then ./ci/nox -s matrix"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
