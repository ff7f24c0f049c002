# SPDX-License-Identifier: Apache-2.0
"""A tritonserver as a child process: start, wait with a deadline, ask, stop."""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from tritonserver_jax.server.distribution import ServerDistribution
from tritonserver_jax.server.errors import ServerError
from tritonserver_jax.server.model_paths import PlainConnection, model_path
from tritonserver_jax.server.ports import HOST, PortReservation

__all__ = ["ModelState", "TritonServer"]

_POLL_SECONDS: Final = 0.05
_ASK_SECONDS: Final = 5.0
_STARTS: Final = 5
_TAIL_LINES: Final = 40
_HEAD_LINES: Final = 3
_NO_METRICS: Final = re.compile(r"--allow-metrics[= ](false|False|0)\b")
_ERROR_LINE: Final = re.compile(r"E\d{4} ")

# What the three front ends write when another process has their port.
_PORT_TAKEN: Final = ("Address already in use", "already in use")

# Ends the server's process group when this process is gone, however it went: `read` then meets the
# end of the pipe. PR_SET_PDEATHSIG would not do: it fires when the *thread* that started the
# server ends. The group's number is an argument, never part of the text.
_WATCHDOG: Final = """
read -r word && exit 0
kill -TERM "-$1" 2>/dev/null || exit 0
tries=0
while [ "$tries" -lt 100 ] && kill -0 "-$1" 2>/dev/null; do
    tries=$((tries + 1))
    sleep 0.1
done
kill -KILL "-$1" 2>/dev/null
"""


@dataclasses.dataclass(frozen=True, slots=True)
class ModelState:
    """One line of the server's repository index.

    Attributes:
        name: The model.
        version: The model version; empty when the model was never loaded.
        state: ``READY``, ``LOADING``, ``UNLOADING`` or ``UNAVAILABLE``; empty when never loaded.
        reason: Why it is unavailable, in the server's words.
    """

    name: str
    version: str
    state: str
    reason: str

    @property
    def failed(self) -> bool:
        """Whether the server has given up on it."""
        return self.state == "UNAVAILABLE" and bool(self.reason)


class TritonServer:
    """A running tritonserver; use it in a ``with`` statement.

    Entering starts the process and does not wait: call `wait_live`, `wait_ready` or `wait_model`.
    Triton opens its ports only after it has loaded its models, so a port that another program took
    in the meantime shows late; the server is then started again on other ports. Read the URLs
    after a wait.

    Args:
        distribution: The server to run.
        model_repositories: The folders that hold models.
        backend_directory: The folder that holds the backends, such as ``jax``.
        extra_args: More options of tritonserver.
        env: Variables to set for it, beside this process's environment.
        log_path: Where its output goes; by default a temporary file, removed at the end.
        ports: Of HTTP, gRPC and the metrics; by default free ones are chosen.
    """

    def __init__(
        self,
        distribution: ServerDistribution,
        model_repositories: Sequence[Path],
        *,
        backend_directory: Path,
        extra_args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        log_path: Path | None = None,
        ports: Sequence[int] | None = None,
    ) -> None:
        if not model_repositories:
            raise ServerError("model_repositories: expected at least one folder, got none")
        for folder in [*model_repositories, backend_directory]:
            if not folder.is_dir():
                raise ServerError(f"{folder}: expected a folder, found none")
        self.distribution = distribution
        self._repositories = [folder.absolute() for folder in model_repositories]
        self._backends = backend_directory.absolute()
        self._extra_args = list(extra_args)
        self._env = {**os.environ, **(env or {})}
        self._own_log = log_path is None
        self._log_path = log_path
        self._log_of_old: str | None = None
        self._reservation: PortReservation | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None
        self._wanted_ports = ports
        self._ports: list[int] = []
        self._has_metrics = _NO_METRICS.search(" ".join(extra_args)) is None
        self._metrics_open = False
        self._starts = 0
        self._asked_to_end = False

    # -- life ---------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        process = self._process
        died = process is not None and process.poll() is not None and not self._asked_to_end
        try:
            code = self.stop()
        except ServerError as failure:
            if error is None:
                raise
            error.add_note(str(failure))  # the first error is the one to show
            return
        if error is None and died:
            raise ServerError(self._with_log(f"{self._name} ended by itself, exit {code}"))

    def start(self) -> None:
        """Start the process; ``with`` does this."""
        if self._process is not None:
            raise ServerError(f"{self._name} was started already")
        if self._log_path is None:
            handle, name = tempfile.mkstemp(prefix="tritonserver-", suffix=".log")
            os.close(handle)
            self._log_path = Path(name)
        else:
            self._log_path.parent.mkdir(parents=True, exist_ok=True)
            self._log_path.write_bytes(b"")
        self._log_of_old = None
        self._asked_to_end = False
        self._starts = 0
        self._launch()

    def _launch(self) -> None:
        self._starts += 1
        self._metrics_open = not self._has_metrics
        self._reservation = PortReservation(3, self._wanted_ports)
        self._ports = list(self._reservation.ports)
        http_port, grpc_port, metrics_port = self._ports
        caches = self.distribution.root / "caches"
        command = [
            str(self.distribution.executable),
            *(f"--model-repository={folder}" for folder in self._repositories),
            f"--backend-directory={self._backends}",
            # The metrics port listens on the address of HTTP.
            *(f"--http-address={HOST}", f"--grpc-address={HOST}"),
            *(f"--http-port={http_port}", f"--grpc-port={grpc_port}"),
            f"--metrics-port={metrics_port}",
            *([f"--cache-directory={caches}"] if caches.is_dir() else []),
            *self._extra_args,
        ]
        assert self._log_path is not None  # noqa: S101  set by start()
        try:
            with self._log_path.open("ab") as log:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=self._env,
                    start_new_session=True,
                )
        except OSError as error:
            self._close()
            raise ServerError(f"{command[0]}: cannot be started: {error}") from error
        self._watchdog = subprocess.Popen(
            ["/bin/sh", "-c", _WATCHDOG, "watchdog", str(self._process.pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def terminate(self) -> None:
        """Ask the server to end (SIGTERM) and return at once."""
        process = self._started()
        self._asked_to_end = True
        process.terminate()

    def stop(self, timeout: float = 30) -> int:
        """End the server and return its exit code; harmless when it has ended already.

        Args:
            timeout: Seconds between SIGTERM and SIGKILL.

        Raises:
            ServerError: It had to be killed.
        """
        process = self._process
        if process is None:
            return 0
        killed = False
        if process.poll() is None:
            self.terminate()
            try:
                process.wait(timeout)
            except subprocess.TimeoutExpired:
                killed = True
        # The group also holds what the server started, such as the python backend's stubs.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
        self._asked_to_end = True
        name = self._name
        text = self.log_text()
        self._close()
        if self._own_log and self._log_path is not None:
            self._log_of_old = text
            self._log_path.unlink(missing_ok=True)
            self._log_path = None
        if killed:
            raise ServerError(
                f"{name}: expected to end within {timeout:g} s of SIGTERM, was still there and "
                f"was killed.\n{_tail(text)}"
            )
        return code

    def _close(self) -> None:
        """Dismiss the watchdog and give the ports back."""
        if self._watchdog is not None:
            with contextlib.suppress(BrokenPipeError, ValueError):
                self._watchdog.communicate(b"done\n", timeout=10)
            self._watchdog = None
        if self._reservation is not None:
            self._reservation.release()
            self._reservation = None

    # -- where it is --------------------------------------------------------------------------

    @property
    def http_url(self) -> str:
        """``127.0.0.1:<port>`` of HTTP."""
        return self._url(0)

    @property
    def grpc_url(self) -> str:
        """``127.0.0.1:<port>`` of gRPC."""
        return self._url(1)

    @property
    def metrics_url(self) -> str:
        """``127.0.0.1:<port>`` of the metrics; the path is ``/metrics``."""
        return self._url(2)

    @property
    def pid(self) -> int:
        """The server's process id, which is its process group too."""
        return self._started().pid

    @property
    def returncode(self) -> int | None:
        """The exit code, or None while it runs."""
        return None if self._process is None else self._process.poll()

    def log_text(self) -> str:
        """Everything the server has written so far; still there after `stop`."""
        if self._log_of_old is not None:
            return self._log_of_old
        if self._log_path is None:
            return ""
        return self._log_path.read_text(encoding="utf-8", errors="replace")

    def _url(self, which: int) -> str:
        self._started()
        return f"{HOST}:{self._ports[which]}"

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise ServerError("tritonserver was not started; use it in a with statement")
        return self._process

    @property
    def _name(self) -> str:
        pid = "" if self._process is None else f" (pid {self._process.pid})"
        return f"tritonserver {self.distribution.release.release}{pid}"

    # -- waiting ------------------------------------------------------------------------------

    def wait_live(self, timeout: float = 60) -> None:
        """Wait until the server answers, which it does after having loaded its models."""
        deadline = time.monotonic() + timeout
        while not self._answers_ok("/v2/health/live"):
            self._pause(deadline, f"to be live within {timeout:g} s")

    def wait_ready(self, timeout: float = 60) -> None:
        """Wait until the server and its models are ready; a model that failed ends the wait."""
        deadline = time.monotonic() + timeout
        while not self._answers_ok("/v2/health/ready"):
            self._pause(deadline, f"to be ready within {timeout:g} s")
            for state in self._states_or_none():
                if state.failed and state.reason != "unloaded":
                    raise self._model_failed(state)

    def wait_model(self, name: str, version: str | None = None, timeout: float = 60) -> None:
        """Wait until a model is ready; that the server has given up on it ends the wait.

        Args:
            name: The model.
            version: One model version; by default the one that the server would choose.
            timeout: Seconds to wait.

        Raises:
            ServerError: The server died, the model failed to load (with the server's reason), or
                the deadline passed.
        """
        path = f"/v2/models/{model_path(name)}"
        if version is not None:
            path += f"/versions/{version}"
        deadline = time.monotonic() + timeout
        last = "the server did not answer yet"
        while not self._answers_ok(f"{path}/ready"):
            self._pause(deadline, f"model {name} to be ready within {timeout:g} s; last: {last}")
            index = self._states_or_none()
            states = [
                state
                for state in index
                if state.name == name and (version is None or state.version == version)
            ]
            if states and all(state.failed for state in states):
                raise self._model_failed(states[-1])
            if states:
                last = ", ".join(
                    f"version {s.version or '?'} {s.state or 'never loaded'}" for s in states
                )
            elif index:
                last = f"the repository has only {', '.join(sorted({s.name for s in index}))}"

    def _model_failed(self, state: ModelState) -> ServerError:
        return ServerError(
            self._with_log(
                f"model {state.name} version {state.version}: expected READY, got "
                f"{state.state}: {state.reason}"
            )
        )

    def _pause(self, deadline: float, expected: str) -> None:
        """Between two questions: look whether the server lives and whether time is left."""
        process = self._started()
        code = process.poll()
        if code is not None:
            tail = _tail(self.log_text())
            taken = any(text in tail for text in _PORT_TAKEN)
            others = self._wanted_ports is None and self._starts < _STARTS
            if taken and others and not self._asked_to_end:
                self._close()
                self._launch()
                return
            raise ServerError(self._with_log(f"{self._name}: expected {expected}, ended: {code}"))
        if time.monotonic() >= deadline:
            raise ServerError(self._with_log(f"{self._name}: expected {expected}, it was not"))
        time.sleep(_POLL_SECONDS)

    def _answers_ok(self, path: str) -> bool:
        try:
            if self._ask("GET", path)[0] != 200:
                return False
            # The metrics port opens last, some milliseconds after HTTP.
            if not self._metrics_open:
                self.metrics()
                self._metrics_open = True
        except ServerError:
            return False
        return True

    def _states_or_none(self) -> list[ModelState]:
        try:
            return self.model_index()
        except ServerError:
            return []

    # -- asking -------------------------------------------------------------------------------

    def server_version(self) -> str:
        """Return what the server says that it is, as in ``2.51.0``."""
        return str(json.loads(self._expect_ok("GET", "/v2", None))["version"])

    def model_index(self) -> list[ModelState]:
        """Return the state of every model version that the server knows of."""
        answer = json.loads(self._expect_ok("POST", "/v2/repository/index", {}))
        return [
            ModelState(
                name=entry["name"],
                version=entry.get("version", ""),
                state=entry.get("state", ""),
                reason=entry.get("reason", ""),
            )
            for entry in answer
        ]

    def model_state(self, name: str, version: str | None = None) -> ModelState:
        """Return the state of one model, of its highest version when none is named."""
        index = self.model_index()
        states = [s for s in index if s.name == name and (version is None or s.version == version)]
        if not states:
            known = sorted({f"{s.name} {s.version}".strip() for s in index})
            raise ServerError(
                f"model {name}{'' if version is None else f' version {version}'}: expected in the "
                f"repository, got {', '.join(known) or 'an empty repository'}"
            )
        return max(states, key=lambda state: int(state.version or 0))

    def model_config(self, name: str) -> dict[str, object]:
        """Return the configuration of a model that is loaded, as Triton completed it."""
        path = f"/v2/models/{model_path(name)}/config"
        config: dict[str, object] = json.loads(self._expect_ok("GET", path, None))
        return config

    def model_metadata(self, name: str) -> dict[str, Any]:
        """Return what the server says of a model: its inputs and outputs."""
        path = f"/v2/models/{model_path(name)}"
        metadata: dict[str, Any] = json.loads(self._expect_ok("GET", path, None))
        return metadata

    def load_model(
        self, name: str, config: Mapping[str, object] | None = None, *, timeout: float = 300
    ) -> None:
        """Load or reload a model; needs ``--model-control-mode=explicit``.

        Args:
            name: The model.
            config: A model configuration to use in place of the repository's.
            timeout: Seconds to wait.
        """
        body: dict[str, object] = {}
        if config is not None:
            body["parameters"] = {"config": json.dumps(config)}
        path = f"/v2/repository/models/{model_path(name)}/load"
        self._expect_ok("POST", path, body, timeout=timeout)

    def unload_model(self, name: str, *, timeout: float = 60) -> None:
        """Unload a model and wait until it is gone; needs ``--model-control-mode=explicit``."""
        path = f"/v2/repository/models/{model_path(name)}/unload"
        self._expect_ok("POST", path, {}, timeout=timeout)
        deadline = time.monotonic() + timeout
        gone = {"", "UNAVAILABLE"}
        while any(s.name == name and s.state not in gone for s in self.model_index()):
            self._pause(deadline, f"model {name} to be unloaded within {timeout:g} s")

    def metrics(self) -> str:
        """Return the metrics page in Prometheus' text format."""
        return self._expect_ok("GET", "/metrics", None, url=self.metrics_url)

    def _expect_ok(
        self,
        method: str,
        path: str,
        body: object,
        *,
        timeout: float = _ASK_SECONDS,
        url: str | None = None,
    ) -> str:
        status, text = self._ask(method, path, body, timeout=timeout, url=url)
        if status == 200:
            return text
        try:
            said = str(json.loads(text)["error"])
        except (ValueError, KeyError, TypeError):
            said = text.strip() or "nothing"
        raise ServerError(f"{method} {path}: expected status 200, got {status}: {said}")

    def _ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        timeout: float = _ASK_SECONDS,
        url: str | None = None,
    ) -> tuple[int, str]:
        # http.client rather than urllib: the latter would follow http_proxy.
        address = url or self.http_url
        connection = PlainConnection(address, timeout=timeout)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            response = connection.getresponse()
            return response.status, response.read().decode("utf-8", "replace")
        except (OSError, http.client.HTTPException) as error:
            what = f"{method} http://{address}{path}: expected an answer, got {error!r}"
            code = self.returncode
            if code is not None:
                what = self._with_log(f"{what}; {self._name} has ended: {code}")
            raise ServerError(what) from error
        finally:
            connection.close()

    def _with_log(self, what: str) -> str:
        return f"{what}.\n{_tail(self.log_text())}"


def _tail(text: str) -> str:
    """Show of a log what tells why: its first lines, the errors, its last lines."""
    lines = text.rstrip().splitlines()
    if not lines:
        return "The server's log is empty."
    first_of_tail = max(0, len(lines) - _TAIL_LINES)
    shown = [
        line
        for number, line in enumerate(lines)
        if number < _HEAD_LINES or number >= first_of_tail or _ERROR_LINE.match(line)
    ]
    body = "\n".join(f"    {line}" for line in shown)
    return f"The end of the server's log:\n{body}"
