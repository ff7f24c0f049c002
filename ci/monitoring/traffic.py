# SPDX-License-Identifier: Apache-2.0
"""Requests to the models of a site, of every kind that the alerts are about."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Self

from ci.monitoring.site import DIGITS
from examples.digits.client import DigitsClient
from examples.digits.data import held_out
from tritonserver_jax.server import TritonServer

__all__ = ["ORDINARY", "STREAMS", "Stream", "Traffic", "TrafficError"]

#: Sends the request of a number.
Send = Callable[[int], None]

#: Just over a bucket: 7 of 16 rows are padding, and 14 of 32.
WASTEFUL_ROWS: Final = 9
SLOW_SECONDS: Final = 0.05
STUCK_SECONDS: Final = 5.0
_ANSWER_SECONDS: Final = 60.0


class TrafficError(RuntimeError):
    """A request was not answered as it should be."""


@dataclass(frozen=True, slots=True)
class Stream:
    """Clients that send one kind of request.

    Attributes:
        name: Of the model.
        clients: How many send at once.
        pause: Seconds between an answer and the next request.
        connect: Opens a connection for one client.
        requests: How many each client sends; by default as many as there is time for.
    """

    name: str
    clients: int
    pause: float
    connect: Callable[[TritonServer], AbstractContextManager[Send]]
    requests: int | None = None


@contextlib.contextmanager
def _classify(server: TritonServer, rows: Callable[[int], int]) -> Iterator[Send]:
    images = held_out().images
    with DigitsClient("gRPC", server.grpc_url, DIGITS) as client:

        def send(number: int) -> None:
            client.logits(images[: rows(number)])

        yield send


@contextlib.contextmanager
def _post(
    server: TritonServer, model: str, values: Callable[[int], Sequence[float]], ok: Sequence[bool]
) -> Iterator[Send]:
    """Requests of some numbers; `ok` says in turn which of them are to be answered well."""
    connection = http.client.HTTPConnection(server.http_url, timeout=_ANSWER_SECONDS)

    def send(number: int) -> None:
        data = list(values(number))
        tensor = {"name": "x", "datatype": "FP32", "shape": [1, len(data)], "data": data}
        connection.request("POST", f"/v2/models/{model}/infer", json.dumps({"inputs": [tensor]}))
        response = connection.getresponse()
        said = response.read().decode("utf-8", "replace")
        expected = ok[number % len(ok)]
        if (response.status == 200) != expected:
            want = "an answer" if expected else "an error"
            raise TrafficError(f"{model}: expected {want}, got {response.status}: {said}")

    with contextlib.closing(connection):
        yield send


def _wasteful(server: TritonServer) -> AbstractContextManager[Send]:
    """Images in batches that are mostly padded."""
    return _classify(server, lambda _: WASTEFUL_ROWS)


def _mixed(server: TritonServer) -> AbstractContextManager[Send]:
    """Images in batches of every size, more often small."""
    chooser = random.Random(0)  # noqa: S311 - the same requests at each run
    return _classify(server, lambda _: min(64, 1 + int(chooser.expovariate(0.25))))


def _half_failing(server: TritonServer) -> AbstractContextManager[Send]:
    return _post(server, "faulty", lambda number: [(-1.0) ** number] * 4, (True, False))


def _half_too_long(server: TritonServer) -> AbstractContextManager[Send]:
    return _post(server, "sized", lambda number: [1.0] * (4, 9)[number % 2], (True, False))


def _ever_longer(server: TritonServer) -> AbstractContextManager[Send]:
    return _post(server, "growing", lambda number: [1.0] * (number + 1), (True,))


def _slow(server: TritonServer) -> AbstractContextManager[Send]:
    return _post(server, "slow", lambda _: [SLOW_SECONDS], (True,))


def _stuck(server: TritonServer) -> AbstractContextManager[Send]:
    return _post(server, "stuck", lambda _: [STUCK_SECONDS], (True,))


#: One kind for each alert that traffic can raise.
STREAMS: Final = (
    Stream(DIGITS, 2, 0.005, _wasteful),
    Stream("faulty", 1, 0.05, _half_failing),
    Stream("sized", 1, 0.05, _half_too_long),
    Stream("growing", 1, 1.0, _ever_longer),
    Stream("slow", 16, 0.0, _slow),
    Stream("stuck", 2, 0.0, _stuck, requests=1),
)

#: What a site is like on a day without trouble, or nearly so: for its picture.
ORDINARY: Final = (
    Stream(DIGITS, 4, 0.01, _mixed),
    Stream("faulty", 1, 1.5, _half_failing),
    Stream("growing", 1, 9.0, _ever_longer),
    Stream("slow", 2, 0.1, _slow),
)


class Traffic:
    """Streams that flow while it is entered; an unexpected answer is raised at the end."""

    def __init__(self, server: TritonServer, streams: Sequence[Stream] = STREAMS) -> None:
        self._server = server
        self._ended = threading.Event()
        self._errors: list[Exception] = []
        self._threads = [
            threading.Thread(target=self._flow, args=(stream,), name=stream.name)
            for stream in streams
            for _ in range(stream.clients)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()
        if self._errors and exception[0] is None:
            raise self._errors[0]

    def check(self) -> None:
        """Raise what went wrong so far."""
        if self._errors:
            raise self._errors[0]

    def _flow(self, stream: Stream) -> None:
        try:
            with stream.connect(self._server) as send:
                for number in itertools.count():
                    if self._ended.is_set() or number == stream.requests:
                        return
                    send(number)
                    self._ended.wait(stream.pause)
        except Exception as error:  # whatever it is, the main thread raises it
            self._errors.append(error)
