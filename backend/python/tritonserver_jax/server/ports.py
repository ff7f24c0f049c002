# SPDX-License-Identifier: Apache-2.0
"""Free TCP ports that two processes never take at the same time.

"Bind port 0, close, hand the number on" races: between the close and the server's own bind another
process can be given the same port. Here each port has a lock file that is held for the server's
whole life, and the range lies below the one from which the kernel serves outgoing connections.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import socket
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

from tritonserver_jax.server.errors import ServerError

__all__ = ["HOST", "PortReservation"]

#: Servers are for this machine only.
HOST: Final = "127.0.0.1"

_FIRST: Final = 20000
_LAST: Final = 31999
_TRIES: Final = 500


def _lock_directory() -> Path:
    # Per user: a file in the shared folder that another user owns could not be opened.
    return Path(tempfile.gettempdir()) / f"tritonserver-jax-ports-{os.getuid()}"


class PortReservation:
    """Some ports, reserved until `release`; the kernel gives them back if the process dies.

    Args:
        count: How many.
        wanted: Which; by default free ones are chosen.

    Raises:
        ServerError: There are not so many free ones, or a wanted one is taken.
    """

    def __init__(self, count: int, wanted: Sequence[int] | None = None) -> None:
        self.ports: list[int] = []
        self._locks: list[int] = []
        directory = _lock_directory()
        try:
            directory.mkdir(mode=0o700, exist_ok=True)
            if wanted is not None:
                self._take(directory, count, wanted)
                return
            # No seed: two processes started at once must not try the same ports in turn.
            chooser = random.SystemRandom()
            for _ in range(_TRIES):
                if len(self.ports) == count:
                    return
                self._try(directory, chooser.randint(_FIRST, _LAST))
        except OSError as error:
            self.release()
            raise ServerError(f"{directory}: cannot lock a port there: {error}") from error
        got = len(self.ports)
        self.release()
        raise ServerError(
            f"ports: expected {count} free ones between {_FIRST} and {_LAST}, found {got} in "
            f"{_TRIES} tries; stop some of the servers on this machine (ss -ltnp lists them)"
        )

    def _take(self, directory: Path, count: int, wanted: Sequence[int]) -> None:
        if len(set(wanted)) != count:
            raise ServerError(
                f"ports: expected {count} different ones, got {list(wanted)}; choose others"
            )
        for port in wanted:
            before = len(self.ports)
            self._try(directory, port)
            if len(self.ports) == before:
                self.release()
                raise ServerError(
                    f"port {port}: expected a free one, another process has it (ss -ltnp says "
                    "which); choose another port, or end that process"
                )

    def _try(self, directory: Path, port: int) -> None:
        lock = os.open(directory / f"{port}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind((HOST, port))
        except OSError:  # locked by another process, or in use
            os.close(lock)
            return
        self._locks.append(lock)
        self.ports.append(port)

    def release(self) -> None:
        """Give the ports back; the lock files stay, since removing them would race."""
        while self._locks:
            with contextlib.suppress(OSError):
                os.close(self._locks.pop())
        self.ports = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
