# SPDX-License-Identifier: Apache-2.0
"""Runs the blocks of one page, in order, in a folder of its own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from ci.guides import worker
from ci.guides.blocks import Block, GuideError
from ci.guides.commands import lines_of
from ci.process import ROOT
from tritonserver_jax import __version__
from tritonserver_jax.repository import write_config
from tritonserver_jax.server import ServerError, TritonServer
from tritonserver_jax.server.ports import HOST, PortReservation

__all__ = ["Place", "run_page"]

#: What the pages call it, and where readers have it.
IMAGE_BACKENDS: Final = "/opt/tritonserver/backends"
_SECONDS: Final = 300
_READY_SECONDS: Final = 120
_STOP_SECONDS: Final = 60
_USUAL_PORTS: Final = (8000, 8001, 8002)
_ADDRESS: Final = re.compile(
    rf"\b(?:localhost|127\.0\.0\.1):({'|'.join(map(str, _USUAL_PORTS))})\b"
)
_INSTALLS: Final = re.compile(r"tritonserver-jax install\b.*--backends")
_TARBALL: Final = re.compile(r"tritonserver-jax-\S+\.tar\.gz")
_SERVES: Final = re.compile(r"(?:tritonserver-jax serve|tritonserver) (?!--help)")
_SERVING: Final = "end it with Ctrl-C"
_ANYTHING: Final = "..."
_DECOUPLED: Final = "model_transaction_policy { decoupled: true }\n"


@dataclass(frozen=True)
class Place:
    """What the machine of a reader has.

    Attributes:
        package: A folder with the installed package of this project.
        dist: The artifacts, a folder for each release.
        backends: A backend directory in which the backend is installed.
        server: The folder of an installed server.
        shared: A server that runs, with models loaded by request, for pages that start none.
        repository: Its model repository.
        variables: Of the environment.
    """

    package: Path
    dist: Path
    backends: Path
    server: Path
    shared: TritonServer
    repository: Path
    variables: Mapping[str, str] = field(default_factory=dict)


def run_page(blocks: Sequence[Block], place: Place, directory: Path) -> None:
    """Run the blocks of a page.

    Args:
        blocks: All of them; those that have a reason are left out.
        place: What there is to run them with.
        directory: An empty folder, in which they are run.

    Raises:
        GuideError: One failed, or printed something else than its page says.
    """
    with _Page(blocks, place, directory) as page:
        for block in blocks:
            page.run(block)
        page.finish()


class _Page:
    def __init__(self, blocks: Sequence[Block], place: Place, directory: Path) -> None:
        self._page = blocks[0].page if blocks else ""
        self._place = place
        self._directory = directory
        self._models = directory / "models"
        self._backends = place.backends
        calls = [line for block in blocks if block.runs for line in lines_of(block.code)]
        if any(_INSTALLS.match(line) for line in calls):
            self._backends = directory / "backends"
        self._named = {name for line in calls for name in _TARBALL.findall(line)}
        self._python: subprocess.Popen[str] | None = None
        self._own: _Served | None = None
        self._loaded: dict[str, float] = {}
        self._variables: dict[str, str] = {}

    def __enter__(self) -> Self:
        if not self._backends.exists():
            self._backends.mkdir()
        (self._directory / "dist").symlink_to(self._place.dist)
        made = shutil.ignore_patterns("__pycache__", "params.*", "*.jaxexport")
        shutil.copytree(ROOT / "examples", self._directory / "examples", ignore=made)
        for name in self._named:
            for tarball in self._place.dist.glob(f"*/{name.replace('<version>', __version__)}"):
                shutil.copyfile(tarball, self._directory / tarball.name)
        programs = self._directory / ".bin"
        programs.mkdir()
        for name, command in {
            "python": [sys.executable],
            "tritonserver-jax": [sys.executable, "-m", "tritonserver_jax.cli"],
        }.items():
            program = programs / name
            program.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', encoding="utf-8")
            program.chmod(0o755)
        inherited = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        self._variables = {
            **inherited,
            **self._place.variables,
            "PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "PYTHONPATH": str(self._place.package),
            "CHECKOUT": str(ROOT),
            "JAX_PLATFORMS": "cpu",
        }
        return self

    def __exit__(self, *_: object) -> None:
        failed = sys.exc_info()[0] is not None
        if self._python is not None:
            self._python.communicate(timeout=_STOP_SECONDS)
        for name in self._loaded:
            with contextlib.suppress(ServerError):
                self._place.shared.unload_model(name)
            shutil.rmtree(self._place.repository / name, ignore_errors=True)
        if self._own is not None:
            self._own.stop(quietly=failed)

    def run(self, block: Block) -> None:
        """Run one block, if it is one that is run."""
        if block.path is not None:
            self._write(block)
        elif block.runs:
            code = self._here(block.code)
            {"python": self._run_python, "sh": self._run_shell, "console": self._run_console}[
                block.language
            ](block, code)

    def finish(self) -> None:
        """Load the models that the page shows and has not loaded."""
        if self._own is None:
            self._load_models("")

    # -- what is the reader's own -------------------------------------------------------------

    def _write(self, block: Block) -> None:
        assert block.path is not None  # noqa: S101  the caller looked
        path = self._directory / block.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self._here(block.code), encoding="utf-8")
        # What a reader is told to write for a server that is older.
        if path.name == "model.py" and not (config := path.parents[1] / "config.pbtxt").exists():
            write_config(path.parents[1])
            if re.search(r"^def stream\(", block.code, re.MULTILINE):
                config.write_text(config.read_text(encoding="utf-8") + _DECOUPLED, encoding="utf-8")

    def _here(self, code: str) -> str:
        """The code with the places of this machine in it."""
        code = code.replace(IMAGE_BACKENDS, str(self._backends)).replace("<version>", __version__)
        code = re.sub(r"(?<=[=\s])/models\b", str(self._models), code)
        if _ADDRESS.search(code):
            ports = self._ports(code)
            code = _ADDRESS.sub(lambda found: f"{HOST}:{ports[int(found[1])]}", code)
        return code

    def _ports(self, code: str) -> dict[int, int]:
        if self._own is not None:
            return self._own.ports
        self._load_models(code)
        shared = self._place.shared
        urls = (shared.http_url, shared.grpc_url, shared.metrics_url)
        actual = [int(url.rpartition(":")[2]) for url in urls]
        return dict(zip(_USUAL_PORTS, actual, strict=True))

    def _load_models(self, code: str) -> None:
        """Have the shared server serve the models of the page, as they are by now."""
        wanted = sorted(self._models.iterdir()) if self._models.is_dir() else []
        if "add_sub" in code:
            wanted.append(ROOT / "examples" / "add_sub")
        for model in wanted:
            changed = max(path.stat().st_mtime_ns for path in model.rglob("*"))
            if self._loaded.get(model.name) == changed:
                continue
            shutil.copytree(model, self._place.repository / model.name, dirs_exist_ok=True)
            self._loaded[model.name] = changed
            try:
                self._place.shared.load_model(model.name)
            except ServerError as error:
                raise GuideError(f"{self._page}: its model {model.name}: {error}") from error

    # -- the languages ------------------------------------------------------------------------

    def _run_python(self, block: Block, code: str) -> None:
        if self._python is None:
            self._python = subprocess.Popen(
                [sys.executable, worker.__file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                cwd=self._directory,
                env=self._variables,
                text=True,
            )
        stdin, stdout = self._python.stdin, self._python.stdout
        assert stdin is not None and stdout is not None  # noqa: S101, PT018  both are pipes
        asked = {"code": code, "page": block.page, "line": block.line}
        print(json.dumps(asked), file=stdin, flush=True)
        answer = json.loads(stdout.readline() or '{"failure": "Python ended", "output": ""}')
        if answer["failure"] is not None:
            raise GuideError(f"{block.where}: it failed:\n{answer['failure']}")
        _compare(block, answer["output"])

    def _run_shell(self, block: Block, code: str) -> None:
        lines = lines_of(code)
        serving = [number for number, line in enumerate(lines) if _SERVES.match(line)]
        if not serving:
            _compare(block, self._shell(block, code))
            return
        if serving != [len(lines) - 1]:
            raise GuideError(
                f"{block.where}: expected nothing after {lines[serving[0]]}, which goes on until "
                "it is ended; write a block of its own for it"
            )
        if lines[:-1]:
            self._shell(block, "\n".join(lines[:-1]))
        own = _Served(lines[-1], self._place, self._backends, self._directory, block)
        own.start(self._variables)
        self._own = own

    def _run_console(self, block: Block, code: str) -> None:
        for command, output in _prompts(code):
            _compare_text(block, self._shell(block, command), output)

    def _shell(self, block: Block, code: str) -> str:
        try:
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", code],
                cwd=self._directory,
                env=self._variables,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise GuideError(f"{block.where}: it took more than {_SECONDS} s:\n{code}") from error
        if done.returncode != 0:
            raise GuideError(
                f"{block.where}: it ended with status {done.returncode}:\n{code}\n{done.stdout}"
            )
        return done.stdout


def _prompts(code: str) -> Iterator[tuple[str, str]]:
    """The commands of a console, each with what it printed."""
    command, output = "", ""
    for line in code.splitlines(keepends=True):
        if line.startswith("$ "):
            if command:
                yield command, output
            command, output = line[2:], ""
        elif command.endswith("\\\n") and not output:
            command += line.removeprefix("> ")
        else:
            output += line
    if command:
        yield command, output


def _compare(block: Block, got: str) -> None:
    if block.output is not None:
        _compare_text(block, got, block.output)


def _compare_text(block: Block, got: str, expected: str) -> None:
    pattern = "".join(
        # Alone in its line: any number of lines, and none too.
        r"(?:[^\n]*\n)*" if line.strip() == _ANYTHING else f"{_loosely(line)}\n"
        for line in expected.rstrip("\n").splitlines()
    )
    text = "".join(f"{line.rstrip()}\n" for line in got.rstrip("\n").splitlines())
    if re.fullmatch(pattern, text) is None:
        raise GuideError(
            f"{block.where}: the page says that it prints\n{expected}\nbut it printed\n{got}"
        )


def _loosely(line: str) -> str:
    """A line as a pattern: where it says so, there may be anything."""
    return re.escape(line.rstrip()).replace(re.escape(_ANYTHING), ".*")


class _Served:
    """A server that a page starts, as its reader would."""

    def __init__(
        self, line: str, place: Place, backends: Path, directory: Path, block: Block
    ) -> None:
        reservation = PortReservation(3)
        self._block = block
        self._line = line
        self._said = ""
        # Appending, so that reading here does not move where the server writes.
        self._log = tempfile.TemporaryFile(mode="a+", encoding="utf-8")  # noqa: SIM115 closed below
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        words = shlex.split(line, comments=True)
        http, grpc, metrics = reservation.ports
        reservation.release()  # `serve` reserves them itself
        self.ports: dict[int, int] = dict(zip(_USUAL_PORTS, (http, grpc, metrics), strict=True))
        options = [f"--http-port={http}", f"--grpc-port={grpc}", f"--metrics-port={metrics}"]
        if words[0] == "tritonserver":
            words[0] = str(place.server / "bin" / "tritonserver")
            options += [f"--backend-directory={backends}", f"--http-address={HOST}"]
            options += [f"--grpc-address={HOST}"]
        else:
            options += [f"--backends={backends}"]
        self._says_so = words[0] == "tritonserver-jax"
        at = words.index("--") if "--" in words else len(words)
        self._command = [*words[:at], *options, *words[at:]]

    def start(self, variables: Mapping[str, str]) -> None:
        """Start it, and wait until its models are ready."""
        self._process = subprocess.Popen(
            self._command,
            cwd=self._directory,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            executable=shutil.which(self._command[0], path=variables["PATH"]),
        )
        deadline = time.monotonic() + _READY_SECONDS
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                state = "ended" if self._process.poll() is not None else "was not ready"
                self.stop(quietly=True)
                raise GuideError(f"{self._block.where}: {self._line} {state}:\n{self._said}")
            time.sleep(0.1)

    def _is_ready(self) -> bool:
        if self._says_so:
            # To a person, some moments after the server does.
            self._log.seek(0)
            return _SERVING in self._log.read()
        return _answers(f"http://{HOST}:{self.ports[8000]}/v2/health/ready")

    def stop(self, *, quietly: bool) -> None:
        """End it, and see that it ends well."""
        process = self._process
        assert process is not None  # noqa: S101  it was started
        code: int | None = None
        with contextlib.suppress(ProcessLookupError):
            process.terminate()  # not SIGINT: a job in the background ignores that
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = process.wait(_STOP_SECONDS)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self._log.seek(0)
        self._said = self._log.read()
        self._log.close()
        if code != 0 and not quietly:
            raise GuideError(
                f"{self._block.where}: {self._line} ended with {code} when it was told to end, "
                f"expected 0:\n{self._said}"
            )


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310  our own http://
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False
