# SPDX-License-Identifier: Apache-2.0
"""A gate before a server: connections pass through it, and some are answered with an error.

So a real server, which has no reason to fail, answers 500 as often as a test wants, and otherwise
does what it always does. What fails is the first request of a connection; later ones on the same
connection go to the server unseen.
"""

from __future__ import annotations

import contextlib
import http
import socket
import socketserver
import threading
from collections.abc import Iterator
from typing import Final

__all__ = ["FaultyGate", "faulty_gate"]

_END_OF_HEAD: Final = b"\r\n\r\n"
_BLOCK: Final = 1 << 16
#: How long a client may go on sending what nobody wants any more.
_DRAIN_SECONDS: Final = 2.0


class FaultyGate(socketserver.ThreadingTCPServer):
    """What listens before a server; see this module."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port: int) -> None:
        """Listen on a port of this machine that is free.

        Args:
            port: Of the server, on this machine.
        """
        super().__init__(("127.0.0.1", 0), _Connection)
        self.target = ("127.0.0.1", port)
        self._lock = threading.Lock()
        self._failures = 0
        self._status = http.HTTPStatus.INTERNAL_SERVER_ERROR

    @property
    def address(self) -> str:
        """Where clients reach the server, as in ``127.0.0.1:5000``."""
        return f"127.0.0.1:{self.server_address[1]}"

    def fail_next(self, times: int, status: int = 500) -> None:
        """Answer the next new connections with an error, in the place of the server."""
        with self._lock:
            self._failures, self._status = times, http.HTTPStatus(status)

    @property
    def failures_left(self) -> int:
        """How many connections are still to be answered with an error."""
        return self._failures

    def take_failure(self) -> http.HTTPStatus | None:
        """Say with what the next connection is to be answered; None lets it pass."""
        with self._lock:
            if self._failures == 0:
                return None
            self._failures -= 1
            return self._status


class _Connection(socketserver.BaseRequestHandler):
    server: FaultyGate
    request: socket.socket

    def handle(self) -> None:
        with contextlib.suppress(OSError):  # either side may leave at any time
            head = self._head()
            if not head:
                return
            # Clients that try TLS first find no HTTP here, and try again without: no failure.
            status = self.server.take_failure() if _is_http(head) else None
            if status is not None:
                self._refuse(status)
                return
            with socket.create_connection(self.server.target) as upstream:
                upstream.sendall(head)
                answers = threading.Thread(target=_pass, args=(upstream, self.request), daemon=True)
                answers.start()
                _pass(self.request, upstream)
                answers.join()

    def _head(self) -> bytes:
        received = b""
        while _END_OF_HEAD not in received:
            block = self.request.recv(_BLOCK)
            if not block:
                break
            received += block
            if not _is_http(received):
                break
        return received

    def _refuse(self, status: http.HTTPStatus) -> None:
        text = f"{status.value} {status.phrase}"
        head = f"HTTP/1.1 {text}\r\nContent-Type: text/plain\r\nConnection: close\r\n"
        self.request.sendall(f"{head}Content-Length: {len(text)}\r\n\r\n{text}".encode())
        self.request.shutdown(socket.SHUT_WR)
        # A client that is still sending would miss the answer if the connection were torn down.
        self.request.settimeout(_DRAIN_SECONDS)
        while self.request.recv(_BLOCK):
            pass


def _is_http(received: bytes) -> bool:
    """Say whether a connection begins as a request does: with the name of a method."""
    return received[:1].isalpha()


def _pass(source: socket.socket, target: socket.socket) -> None:
    """Hand on what one side sends, and that it has ended."""
    with contextlib.suppress(OSError):
        while block := source.recv(_BLOCK):
            target.sendall(block)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def faulty_gate(port: int) -> Iterator[FaultyGate]:
    """Keep a gate before a server of this machine for a while.

    Args:
        port: Of the server.
    """
    with FaultyGate(port) as gate:
        thread = threading.Thread(target=gate.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield gate
        finally:
            gate.shutdown()
            thread.join()
