# SPDX-License-Identifier: Apache-2.0
"""Looks at everything that serving needs on this machine, and says what is wrong and what to do.

Each function is one question, and answers with findings. What belongs to another Python, such as
the backend's environment, is asked in a process of its own with a time limit: a broken JAX can hang
or crash there.
"""

from __future__ import annotations

import http.client
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from tritonserver_jax import __version__
from tritonserver_jax.artifacts import VerificationError, verify_installation
from tritonserver_jax.elf import ElfError, newest, read_elf
from tritonserver_jax.findings import Finding, Status
from tritonserver_jax.installation import InstallationError, run_script
from tritonserver_jax.installation.checks import machine_glibc
from tritonserver_jax.releases import MINIMUM_BACKEND_API
from tritonserver_jax.server.distribution import default_cache_directory
from tritonserver_jax.server.facts import IMAGE_ROOT, ServerFacts, find_servers, server_facts

__all__ = ["Place", "diagnose", "find_place"]

#: What the environment's marker is called: setup_env.sh writes it last.
_MARKER: Final = ".tritonserver-jax.json"
#: glibc that JAX's wheels need.
_GLIBC: Final = (2, 28)
#: Below so much, the environment or a server does not fit any more.
_LITTLE_ROOM: Final = 2 << 30
_NO_ROOM: Final = 128 << 20
_PORTS: Final = {8000: "HTTP", 8001: "gRPC", 8002: "metrics"}
_PORT_SECONDS: Final = 2.0

_PROBE: Final = """
import json, sys
from importlib import metadata
found = {"python": ".".join(map(str, sys.version_info[:3])), "packages": {}, "devices": []}
for name in ("tritonserver-jax", "jax", "jaxlib", "flax", "numpy"):
    try:
        found["packages"][name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        found["packages"][name] = None
print(json.dumps(found), flush=True)
import jax
found["devices"] = [
    {"platform": d.platform, "kind": d.device_kind, "id": d.id} for d in jax.devices()
]
print(json.dumps(found), flush=True)
"""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the backend is, or should be.

    Attributes:
        backends: The server's backend directory; None when there is none.
        found_by: How it was found.
        environment: The backend's Python environment, there or not.
    """

    backends: Path | None
    found_by: str
    environment: Path | None


def find_place(
    backends: Path | None, environment: Path | None, *, cache: Path | None = None
) -> Place:
    """Return which installation to look at.

    Args:
        backends: The backend directory that was named.
        environment: The Python environment that was named.
        cache: The project's cache.
    """
    found_by = "named"
    if backends is None:
        cache = default_cache_directory() if cache is None else cache
        own = Path(sys.prefix).parent  # env/ in jax/, when this runs there
        kept = [path.parent for path in (cache / "backends").glob("*/jax")]
        if (own / "libtriton_jax.so").is_file():
            backends, found_by = own.parent, "this program's own"
        elif (IMAGE_ROOT / "backends").is_dir():
            backends, found_by = IMAGE_ROOT / "backends", "of the image"
        elif kept:
            backends = max(kept, key=lambda path: path.stat().st_mtime)
            found_by = "kept by `serve`"
    if environment is None and backends is not None:
        environment = backends / "jax" / "env"
    return Place(backends, found_by if backends is not None else "", environment)


def diagnose(place: Place, *, timeout: float = 60, cache: Path | None = None) -> Iterator[Finding]:
    """Look at everything, one thing after the other.

    Args:
        place: The installation to look at.
        timeout: Seconds for JAX to say which devices it has.
        cache: The project's cache.
    """
    cache = default_cache_directory() if cache is None else cache
    yield from _program()
    yield _machine()
    facts, findings = _server(place, cache)
    yield from findings
    yield from _backend(place, facts)
    yield from _environment(place, timeout)
    yield from _disk(place, cache)
    for port, what in _PORTS.items():
        yield _port(port, what)


def _program() -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding("program", Status.OK, f"tritonserver-jax {__version__} in {sys.prefix}")
    supported = _supported_pythons()
    minor = ".".join(version.split(".")[:2])
    if supported and minor not in supported:
        yield Finding(
            "Python",
            Status.WARN,
            f"{version} runs this; the backend's environment can be of {', '.join(supported)}",
            "install one of them with its shared library, as python3.12 libpython3.12",
        )
    else:
        yield Finding("Python", Status.OK, f"{version}, {sys.executable}")


def _supported_pythons() -> list[str]:
    """Return the Pythons that the wheel declares; none in a checkout, where it declares nothing."""
    try:
        classifiers = metadata.metadata("tritonserver-jax").get_all("Classifier") or []
    except metadata.PackageNotFoundError:
        return []
    prefix = "Programming Language :: Python :: 3."
    return [text.rpartition(" ")[2] for text in classifiers if text.startswith(prefix)]


def _machine() -> Finding:
    machine, system = platform.machine(), platform.system()
    glibc = machine_glibc()
    said = f"{system} on {machine}, glibc {_dotted(glibc) if glibc else 'none'}"
    if (system, machine) != ("Linux", "x86_64"):
        return Finding("machine", Status.FAIL, said, "the backend runs on Linux on x86_64")
    if glibc is None or glibc < _GLIBC:
        needed = f"use a system with glibc {_dotted(_GLIBC)} or newer, as JAX needs"
        return Finding("machine", Status.FAIL, said, needed)
    return Finding("machine", Status.OK, said)


def _server(place: Place, cache: Path) -> tuple[ServerFacts | None, list[Finding]]:
    """Look for the server of the backend directory, or else for any."""
    if place.backends is not None:
        facts = server_facts(place.backends.resolve().parent)
        if facts.executable is not None:
            return facts, [_of_server(facts)]
    others = [server_facts(root) for root in find_servers(cache)]
    release = _release_of(place)
    fitting = [one for one in others if release in {known.release for known in one.releases}]
    if not others:
        return None, [
            Finding(
                "server",
                Status.WARN,
                "found none: not in the image's place, not on PATH, not in the cache",
                "`tritonserver-jax serve` downloads one, or use a release image",
            )
        ]
    chosen = (fitting or others)[-1]
    more = "" if len(others) == 1 else f"; and {len(others) - 1} more"
    return chosen if fitting else None, [_of_server(chosen, more)]


def _of_server(facts: ServerFacts, more: str = "") -> Finding:
    said = f"{facts.executable}: {facts.describe()}{more}"
    if facts.library is None:
        return Finding(
            "server",
            Status.WARN,
            f"{said}; {facts.trouble}, without which it does not start",
            "install the server whole, as its image or wheel has it",
        )
    return Finding("server", Status.OK, said)


def _release_of(place: Place) -> str | None:
    """Return the release that the installed backend says it is for."""
    if place.backends is None:
        return None
    try:
        text = (place.backends / "jax" / "BUILD_INFO.json").read_text(encoding="utf-8")
        return str(json.loads(text)["release"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _backend(place: Place, facts: ServerFacts | None) -> Iterator[Finding]:
    """Whether the backend is there, is whole, and fits the server and the machine."""
    if place.backends is None:
        yield Finding(
            "backend",
            Status.WARN,
            "found no backend directory",
            "`tritonserver-jax install --backends DIR` installs into a server, `serve` brings one",
        )
        return
    folder = place.backends / "jax"
    if not folder.is_dir():
        yield Finding(
            "backend",
            Status.FAIL if place.found_by == "named" else Status.WARN,
            f"{folder}: there is none",
            f"`tritonserver-jax install --backends {place.backends} --with-env` installs it",
        )
        return
    try:
        report = verify_installation(folder)
    except VerificationError as error:
        for one in error.problems:
            detail = f"{one.file}: expected {one.expected}, got {one.got}"
            yield Finding("backend", Status.FAIL, detail, one.remedy)
        return
    said = f"tritonserver-jax {report.project_version} for release {report.release}, whole"
    yield Finding("backend", Status.OK, f"{said}, in {folder} ({place.found_by})")
    if report.project_version != __version__:
        yield Finding(
            "versions",
            Status.NOTE,
            f"the backend is {report.project_version}, this program is {__version__}",
        )
    yield from _fit(folder, facts, report.release)


def _fit(folder: Path, facts: ServerFacts | None, release: str | None) -> Iterator[Finding]:
    try:
        libraries = [read_elf(path) for path in sorted(folder.glob("*.so"))]
    except (ElfError, OSError) as error:
        yield Finding("libraries", Status.FAIL, str(error), "install the backend again")
        return
    needed = max(
        (found for one in libraries if (found := newest(one.versions, "GLIBC"))), default=()
    )
    glibc = machine_glibc() or ()
    if needed and needed > glibc:
        yield Finding(
            "glibc",
            Status.FAIL,
            f"the backend needs {_dotted(needed)}, this machine has {_dotted(glibc)}",
            "use a newer system, or the release's image",
        )
    if facts is None:
        return
    if not facts.functions:
        yield Finding("API", Status.NOTE, f"the server's functions are not known: {facts.trouble}")
        return
    wanted = {n for one in libraries for n in one.required if n.startswith("TRITON")}
    missing = sorted(wanted - facts.functions)
    level = facts.backend_api
    if missing:
        yield Finding(
            "API",
            Status.FAIL,
            f"the backend needs {', '.join(missing)} (backend API {MINIMUM_BACKEND_API}), which "
            f"{facts.library} does not have",
            "use a newer server",
        )
    else:
        said = "" if level is None else f": backend API {level}, needed {MINIMUM_BACKEND_API}"
        yield Finding("API", Status.OK, f"the server has all {len(wanted)} functions{said}")
    if (
        release is not None
        and facts.releases
        and release not in {r.release for r in facts.releases}
    ):
        yield Finding(
            "release",
            Status.WARN,
            f"the backend is for {release}, the server is {facts.describe()}",
            "it works, as one binary serves every release; still take the artifact of the server's",
        )


def _environment(place: Place, timeout: float) -> Iterator[Finding]:
    """Whether the backend's Python is there and imports JAX, and which devices JAX has."""
    environment = place.environment
    if environment is None:
        return
    python = environment / "bin" / "python"
    remake = f"make it again: {environment.parent}/scripts/setup_env.sh"
    if not os.access(python, os.X_OK):
        yield Finding(
            "environment",
            Status.FAIL if environment.parent.is_dir() else Status.WARN,
            f"{python}: there is none, or its Python is gone",
            f"make it: {environment.parent}/scripts/setup_env.sh",
        )
        yield from _python_to_make_it(environment)
        return
    yield from _marker(environment, remake)
    answer, trouble = _probe(python, timeout)
    packages: Mapping[str, str | None] = answer.get("packages", {})
    absent = [name for name, version in packages.items() if version is None]
    if absent:
        said = f"its Python {answer['python']} has no {', '.join(absent)}"
        yield Finding("packages", Status.FAIL, said, remake)
    elif packages:
        said = ", ".join(f"{name} {version}" for name, version in packages.items())
        yield Finding("packages", Status.OK, f"Python {answer['python']}, {said}")
    if trouble:
        yield Finding("JAX", Status.FAIL, trouble, remake)
        return
    devices = [f"{one['platform']}:{one['id']} ({one['kind']})" for one in answer["devices"]]
    only_cpu = all(one["platform"] == "cpu" for one in answer["devices"])
    if only_cpu and Path("/dev/nvidiactl").exists():
        yield Finding(
            "devices",
            Status.WARN,
            f"JAX has {', '.join(devices)}, and this machine has an NVIDIA driver",
            "for the GPU, add JAX's plugin for its CUDA: setup_env.sh --requirements FILE",
        )
    else:
        yield Finding("devices", Status.OK, f"JAX has {', '.join(devices)}")


def _python_to_make_it(environment: Path) -> Iterator[Finding]:
    """Ask setup_env.sh which Python it would take."""
    script = environment.parent / "scripts" / "setup_env.sh"
    if not script.is_file():
        return
    said: list[str] = []
    try:
        run_script(script, "--check", "--env", environment, say=said.append)
    except InstallationError as error:
        yield Finding("environment", Status.FAIL, str(error))
        return
    yield Finding("environment", Status.OK, "; ".join(line.removeprefix("==> ") for line in said))


def _marker(environment: Path, remake: str) -> Iterator[Finding]:
    try:
        marker = json.loads((environment / _MARKER).read_text(encoding="utf-8"))
        libpython, place = Path(marker["libpython"]), marker["environment"]
        version = marker["project_version"]
    except OSError:
        said = f"{environment} was not made by setup_env.sh, or not to its end"
        yield Finding("environment", Status.WARN, said, remake)
        return
    except (ValueError, KeyError, TypeError):
        yield Finding("environment", Status.FAIL, f"{environment / _MARKER} is damaged", remake)
        return
    if place != str(environment.resolve()):
        said = f"{environment} was made as {place}, and moved or copied"
        yield Finding("environment", Status.FAIL, said, remake)
    else:
        said = f"{environment}, of {marker['lock']}, tritonserver-jax {version}"
        yield Finding("environment", Status.OK, said)
    if libpython.is_file():
        yield Finding("libpython", Status.OK, str(libpython))
    else:
        said = f"{libpython} is gone, which the backend loads"
        yield Finding("libpython", Status.FAIL, said, f"install its package again, or {remake}")


def _probe(python: Path, timeout: float) -> tuple[dict[str, Any], str]:
    """Ask an environment what it has; the second value is what went wrong."""
    command = [str(python), "-I", "-X", "utf8", "-c", _PROBE]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout, check=False, errors="replace"
        )
        out, trouble = done.stdout, ""
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
            trouble = f"`import jax` and its devices: status {done.returncode}: {last}"
    except subprocess.TimeoutExpired as error:
        raw: Any = error.stdout or b""  # bytes, whatever `text` says
        out = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
        trouble = f"`import jax` and its devices did not end within {timeout:g} s"
    except OSError as error:
        return {}, f"{python}: {error.strerror}"
    answers = []
    for line in out.splitlines():
        try:
            answers.append(json.loads(line))
        except ValueError:
            continue
    answer: dict[str, Any] = answers[-1] if answers else {}
    return answer, trouble


def _disk(place: Place, cache: Path) -> Iterator[Finding]:
    wanted = {"cache": cache}
    if place.backends is not None:
        wanted["backends"] = place.backends
    for what, path in wanted.items():
        there = path
        while not there.exists():
            there = there.parent
        try:
            free = shutil.disk_usage(there).free
        except OSError as error:
            yield Finding("disk", Status.FAIL, f"{there}: {error.strerror}")
            continue
        said = f"{free / (1 << 30):.1f} GiB free for the {what}, {path}"
        if free < _NO_ROOM:
            yield Finding("disk", Status.FAIL, said, "make room")
        elif free < _LITTLE_ROOM:
            needed = f"an environment or a server may need {_LITTLE_ROOM >> 30} GiB: make room"
            yield Finding("disk", Status.WARN, said, needed)
        else:
            yield Finding("disk", Status.OK, said)


def _port(port: int, what: str) -> Finding:
    name = f"port {port}"
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("0.0.0.0", port))  # noqa: S104  as tritonserver does; not listened on
    except OSError:
        server = _server_at(port) if what == "HTTP" else None
        if server is not None:
            return Finding(name, Status.NOTE, f"a tritonserver {server} answers there ({what})")
        if (pid := _triton_with(port)) is not None:
            said = f"tritonserver (process {pid}) has it ({what})"
            return Finding(name, Status.NOTE, said)
        return Finding(
            name,
            Status.WARN,
            f"another process has it, which is Triton's for {what}",
            "end that process (ss -ltnp says which), or give tritonserver another port",
        )
    return Finding(name, Status.OK, f"free ({what})")


def _triton_with(port: int) -> int | None:
    """Return the process of a tritonserver that listens at a port; None where it is another's.

    Linux tells the owner of a socket only of one's own processes; root sees all.
    """
    listening = "0A"
    sockets = set()
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        try:
            rows = [line.split() for line in table.read_text(encoding="ascii").splitlines()[1:]]
        except OSError:
            continue
        for row in rows:
            if row[3] == listening and int(row[1].rpartition(":")[2], 16) == port:
                sockets.add(f"socket:[{row[9]}]")
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "comm").read_text(encoding="utf-8").strip() != "tritonserver":
                continue
            if any(str(one.readlink()) in sockets for one in (process / "fd").iterdir()):
                return int(process.name)
        except OSError:  # it has ended, or is another user's
            continue
    return None


def _server_at(port: int) -> str | None:
    """Return the server version of a Triton at a port of this machine."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PORT_SECONDS)
    try:
        connection.request("GET", "/v2")
        answer = json.loads(connection.getresponse().read())
        return str(answer["version"]) if "extensions" in answer else None
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return None
    finally:
        connection.close()


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
