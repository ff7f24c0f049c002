# SPDX-License-Identifier: Apache-2.0
"""``tritonserver-jax serve`` and ``doctor`` with a real server and the installed backend."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ci.package import tarball_name
from ci.process import ROOT
from tests.support.backend import LOAD_TIMEOUT, Backend
from tests.support.models import LINEAR, write_model
from tritonserver_jax.releases import find_release

pytestmark = [pytest.mark.integration, pytest.mark.slow]

PROGRAM = [sys.executable, "-m", "tritonserver_jax.cli"]
PARAMS = {"w": np.ones((4, 3), np.float32), "b": np.zeros(3, np.float32)}


def environment(backend: Backend) -> dict[str, str]:
    path = {"PYTHONPATH": str(ROOT / "backend" / "python"), "PYTHONUNBUFFERED": "1"}
    return {**os.environ, **backend.variables, **path}


class Serving:
    """The command as a process, with what it has printed."""

    def __init__(self, backend: Backend, arguments: Sequence[str | Path]) -> None:
        self.process = subprocess.Popen(
            [*PROGRAM, "serve", *map(str, arguments)],
            env=environment(backend),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # Where the tests run in the background, a signal from the keyboard is ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        self.out: list[str] = []
        self.err: list[str] = []
        self._readers = [
            threading.Thread(target=self._read, args=(stream, lines))
            for stream, lines in ((self.process.stdout, self.out), (self.process.stderr, self.err))
        ]
        for reader in self._readers:
            reader.start()

    @staticmethod
    def _read(stream: Any, lines: list[str]) -> None:
        with stream:
            lines.extend(iter(stream.readline, ""))

    def wait_for(self, text: str) -> str:
        deadline = time.monotonic() + LOAD_TIMEOUT
        while True:
            for line in [*self.out, *self.err]:
                if text in line:
                    return line
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.05)

    def end(self, number: int | None = None) -> int:
        if number is not None:
            self.process.send_signal(number)
        code = self.process.wait(LOAD_TIMEOUT)
        for reader in self._readers:
            reader.join()
        # Of this program: a model's own is a part of the server's log, which is set apart.
        assert not any(line.startswith("Traceback") for line in self.err), self.said()
        return code

    def said(self) -> str:
        return "".join([*self.out, *self.err])


@contextmanager
def serving(backend: Backend, *arguments: str | Path) -> Iterator[Serving]:
    running = Serving(backend, arguments)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.process.terminate()
            running.end()


@pytest.fixture
def models(tmp_path: Path) -> Path:
    write_model(tmp_path / "models", "good", LINEAR, params=PARAMS)
    return tmp_path / "models"


def installed(backend: Backend) -> list[str | Path]:
    """The options that take what the tests have installed already."""
    return ["--release", backend.release, "--backends", backend.directory]


def environment_option(backend: Backend) -> list[str]:
    return ["--", f"--backend-config=jax,env={backend.environment}"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_a_signal_and_what_it_shows_works(
    backend: Backend, models: Path, number: signal.Signals
) -> None:
    options = [models, *installed(backend), *environment_option(backend)]
    with serving(backend, *options) as running:
        running.wait_for("end it with Ctrl-C")
        shown = "".join(running.out)
        assert "models   good" in shown
        line = next(line for line in running.out if "curl" in line)
        answer = subprocess.run(shlex.split(line), capture_output=True, text=True, check=True)
        outputs = json.loads(answer.stdout)["outputs"]
        assert outputs[0]["data"] == [0.0, 0.0, 0.0]
        # The log, one line each: when, how bad, what.
        running.wait_for(" info    successfully loaded 'good'")
        assert running.end(number) == 0
    assert "stopped" in running.err[-1]


def test_a_machine_gets_events(backend: Backend, models: Path) -> None:
    options = [models, *installed(backend), "--json", *environment_option(backend)]
    with serving(backend, *options) as running:
        ready = json.loads(running.wait_for('"event": "ready"'))
        assert ready["models"] == [{"model": "good", "version": "1"}]
        address = ready["http"] + "/v2/health/ready"
        assert subprocess.run(["curl", "-sf", address], check=False).returncode == 0
        assert running.end(signal.SIGTERM) == 0
    events = [json.loads(line) for line in running.out]
    assert [one["event"] for one in events if one["event"] != "log"] == ["ready", "stopped", "end"]
    assert events[-1]["ok"]
    assert any(one["event"] == "log" and one["level"] == "info" for one in events)


def test_a_model_that_fails_is_named_with_its_reason(backend: Backend, models: Path) -> None:
    write_model(models, "broken", "import no_such_module\n")
    options = [models, *installed(backend), "--quiet", *environment_option(backend)]
    with serving(backend, *options) as running:
        assert running.end() == 1
    said = "".join(running.err)
    assert "error: model broken version 1: " in said
    assert "no_such_module" in said
    assert "correct it and serve again" in running.err[-1]
    assert not any(" info " in line for line in running.err)


def test_a_port_that_is_taken_is_named(backend: Backend, models: Path) -> None:
    options = [*installed(backend), *environment_option(backend)]
    with serving(backend, models, "--http-port=18471", *options) as running:
        running.wait_for("end it with Ctrl-C")
        with serving(backend, models, "--http-port=18471", *options) as second:
            assert second.end() == 1
        assert "error: port 18471: expected a free one" in "".join(second.err)


def test_ports_that_are_handed_on_are_those_that_are_asked(backend: Backend, models: Path) -> None:
    ports = ["--http-port=18481", "--grpc-port", "18482", "--metrics-port=18483"]
    options = [models, *installed(backend), "--json", *environment_option(backend), *ports]
    with serving(backend, *options) as running:
        ready = json.loads(running.wait_for('"event": "ready"'))
        assert (ready["http"], ready["grpc"]) == ("http://127.0.0.1:18481", "127.0.0.1:18482")
        assert ready["metrics"] == "http://127.0.0.1:18483/metrics"
        for address in (f"{ready['http']}/v2/health/ready", ready["metrics"]):
            assert subprocess.run(["curl", "-sf", address], check=False).returncode == 0
        assert running.end(signal.SIGTERM) == 0


def test_an_artifact_is_installed_once_and_checked_by_the_doctor(
    backend: Backend, models: Path, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    dist: Path = pytestconfig.getoption("--backend-dist")
    artifact = dist.resolve() / backend.release / tarball_name(find_release(backend.release))
    # A cache of its own for backends; the server is the one that is there.
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "servers").symlink_to(backend.distribution.root.parents[2])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITONSERVER_JAX_CACHE", str(cache))
        patch.chdir(tmp_path)
        for again in (False, True):
            with serving(backend, models, "--artifact", artifact) as running:
                running.wait_for("end it with Ctrl-C")
                assert running.end(signal.SIGINT) == 0
            said = "".join(running.err)
            assert ("==> already installed" in said) == again
            assert ("==> up to date" in said) == again
        command = [*PROGRAM, "doctor", "--json"]
        done = subprocess.run(command, env=environment(backend), capture_output=True, text=True)
        found = {one["name"]: one for one in json.loads(done.stdout)["checks"]}
        own = next((cache / "backends").iterdir()) / "jax" / "env" / "bin" / "tritonserver-jax"
        version = subprocess.run([own, "--version"], capture_output=True, text=True, check=True)
    assert found["backend"]["status"] == "ok"
    assert "kept by `serve`" in found["backend"]["detail"]
    for name in ("environment", "libpython", "packages", "API"):
        assert found[name]["status"] == "ok", found[name]
    assert "cpu:0" in found["devices"]["detail"]
    assert version.stdout.startswith("tritonserver-jax ")


def test_what_is_no_artifact_or_no_backend_is_refused(
    backend: Backend, models: Path, tmp_path: Path
) -> None:
    with serving(backend, models, "--backends", tmp_path) as running:
        assert running.end() == 2
    assert f"expected the backend in {tmp_path / 'jax'}" in "".join(running.err)
    empty = tmp_path / "empty"
    empty.mkdir()
    with serving(backend, empty) as running:
        assert running.end() == 2
    assert "expected models in it" in "".join(running.err)
