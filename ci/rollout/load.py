# SPDX-License-Identifier: Apache-2.0
"""Clients that send one request after another, and keep what became of each."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import numpy as np
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http

from tritonserver_jax.repository import write_config

__all__ = ["KINDS", "MODELS", "Load", "Tally", "write_models"]

_QUICK: Final = "double"
_SLOW: Final = "slow"
SLOW_SECONDS: Final = 2.0

#: Two models of the rehearsal: one answers at once, the other when it has slept.
MODELS: Final = {
    _QUICK: """\
SIGNATURE = {"inputs": {"X": ("FP32", [4])}, "max_batch_size": 8}


def predict(params, X):
    return {"Y": 2 * X}
""",
    _SLOW: f"""\
import time

SIGNATURE = {{"inputs": {{"X": ("FP32", [4])}}, "max_batch_size": 8}}


def preprocess(inputs):
    if inputs["X"].any():  # and not when the model is loaded, on zeros
        time.sleep({SLOW_SECONDS})
    return inputs


def predict(params, X):
    return {{"Y": 2 * X}}
""",
}

_TIMEOUT: Final = 60.0
#: Between two requests of a client: the servers that start need the machine, too.
_PAUSE: Final = 0.004
_SHOWN: Final = 5


def write_models(repository: Path) -> None:
    """Write the models, so that any user can read them."""
    repository.mkdir(parents=True, exist_ok=True)
    for name, code in MODELS.items():
        version = repository / name / "1"
        version.mkdir(parents=True)
        (version / "model.py").write_text(code, encoding="utf-8")
        write_config(repository / name)
    for path in [repository, *repository.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)


class WrongAnswerError(RuntimeError):
    """An answer is not that of the model."""


#: Sends one request, or raises.
Request = Callable[[], None]


def _send(client: Any, module: Any, model: str, options: Mapping[str, Any]) -> None:
    x = np.random.default_rng().integers(1, 100, (1, 4)).astype(np.float32)
    sent = module.InferInput("X", list(x.shape), "FP32")
    sent.set_data_from_numpy(x)
    y = client.infer(model, [sent], **options).as_numpy("Y")
    if y is None or not np.array_equal(y, 2 * x):
        raise WrongAnswerError(f"expected {2 * x}, got {y}")


def _http_client(address: str) -> Any:
    return triton_http.InferenceServerClient(
        address, connection_timeout=_TIMEOUT, network_timeout=_TIMEOUT
    )


@contextlib.contextmanager
def _http(address: str, model: str) -> Iterator[Request]:
    """One connection that is kept."""
    with _http_client(address) as client:
        yield lambda: _send(client, triton_http, model, {})


@contextlib.contextmanager
def _http_each(address: str, model: str) -> Iterator[Request]:
    """A connection for each request."""

    def request() -> None:
        with _http_client(address) as client:
            _send(client, triton_http, model, {})

    yield request


@contextlib.contextmanager
def _grpc(address: str, model: str) -> Iterator[Request]:
    """One channel that is kept, and has a connection of its own."""
    own = [("grpc.use_local_subchannel_pool", 1)]
    with triton_grpc.InferenceServerClient(address, channel_args=own) as client:
        yield lambda: _send(client, triton_grpc, model, {"client_timeout": _TIMEOUT})


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of client.

    Attributes:
        title: For people.
        protocol: ``http`` or ``grpc``.
        connect: Opens one, for an address and a model.
        clients: How many of them there are.
        model: What they ask.
    """

    title: str
    protocol: str
    connect: Callable[[str, str], contextlib.AbstractContextManager[Request]]
    clients: int = 3
    model: str = _QUICK


#: Every kind of client, by name.
KINDS: Final = {
    "http": Kind("HTTP, connections that are kept", "http", _http),
    "http-each": Kind("HTTP, a connection for each request", "http", _http_each, 2),
    "grpc": Kind("gRPC, channels that are kept", "grpc", _grpc),
    "http-slow": Kind(f"HTTP, requests of {SLOW_SECONDS:g} s", "http", _http, 1, _SLOW),
    "grpc-slow": Kind(f"gRPC, requests of {SLOW_SECONDS:g} s", "grpc", _grpc, 1, _SLOW),
}


@dataclass(slots=True)
class Tally:
    """What became of the requests of a kind.

    Attributes:
        answered: How many were answered, and rightly.
        failed: How often each error came.
    """

    answered: int = 0
    failed: Counter[str] = field(default_factory=Counter)

    @property
    def failures(self) -> int:
        """How many were not answered."""
        return self.failed.total()

    def reasons(self) -> list[str]:
        """The most frequent errors."""
        return [f"{count} times: {text}" for text, count in self.failed.most_common(_SHOWN)]


class Load:
    """Clients of all kinds, each in a thread, while the ``with`` statement lasts.

    Args:
        addresses: Where to send, by protocol.
    """

    def __init__(self, addresses: Mapping[str, str]) -> None:
        self.tallies = {name: Tally() for name in KINDS}
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._run, args=(name, kind, addresses[kind.protocol]))
            for name, kind in KINDS.items()
            for _ in range(kind.clients)
        ]

    @property
    def total(self) -> int:
        """How many requests there were."""
        with self._lock:
            return sum(tally.answered + tally.failures for tally in self.tallies.values())

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, name: str, kind: Kind, address: str) -> None:
        tally = self.tallies[name]
        with kind.connect(address, kind.model) as request:
            while not self._stop.wait(_PAUSE):
                try:
                    request()
                except Exception as error:
                    with self._lock:
                        tally.failed[f"{type(error).__name__}: {error}"[:200]] += 1
                    time.sleep(0.05)  # an error comes back faster than an answer
                else:
                    with self._lock:
                        tally.answered += 1
