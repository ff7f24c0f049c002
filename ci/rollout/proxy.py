# SPDX-License-Identifier: Apache-2.0
"""A real HAProxy between the clients and the servers.

Nothing that hides a failure is on: it sends no request a second time, and no other server's way. It
opens a connection for each HTTP request, as many ingress controllers do, and keeps those of gRPC.
As ``tcp`` it looks into nothing, like the Service of a cluster: whoever has a connection keeps it.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from ci.rollout.pod import Probe, ServerSpec
from ci.service import running_service
from ci.toolchain import Requirement
from tritonserver_jax.server.ports import HOST, PortReservation

__all__ = ["Layer", "Proxy", "ProxyError", "configuration", "requirement", "running_proxy"]

Layer = Literal["http", "tcp"]

#: More than there ever are at a time.
SLOTS: Final = 6
_PORTS: Final = {"http": 8000, "grpc": 8001}
_CONFIGURATION: Final = """\
global
    stats socket {socket} mode 600 level admin
    maxconn 2000
    # What went wrong, and nothing else.
    log stdout format raw local0 info

defaults
    log global
    option dontlog-normal
    timeout connect 2s
    timeout client 120s
    timeout server 120s
    timeout check 5s
    retries 0
    balance roundrobin
{body}
"""
# The address is that of nobody, until a server is put there.
_SERVICE: Final = """
frontend {name}-in
    mode {mode}
    option {mode}log
    bind {host}:{port}{bind}
    default_backend {name}

backend {name}
    mode {mode}{options}
    option httpchk GET {path}
{servers}"""
# Not `server-template`, which forgets check-proto for all servers but the first.
_SERVER: Final = """\
    server pod{number} 192.0.2.1:{port} check port {check_port} check-proto h1 \
inter {period}s fall {failures} rise 1{protocol} disabled
"""


class ProxyError(RuntimeError):
    """HAProxy did not start, or did not understand."""


def find_haproxy() -> str | None:
    """Find HAProxy, which Debian keeps from ordinary users' paths."""
    return shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin:/sbin")


def requirement() -> Requirement:
    """Return HAProxy as something that the toolchain can install."""
    return Requirement("HAProxy", "any", "haproxy", find_haproxy)


def configuration(layer: Layer, readiness: Probe, ports: dict[str, int], control: Path) -> str:
    """Return what HAProxy is told.

    Args:
        layer: Whether it understands the protocols, or only passes bytes on.
        readiness: How it finds out which servers can be sent to.
        ports: Where it listens, by protocol.
        control: The socket by which it is told of servers.
    """
    body = ""
    for name, port in ports.items():
        understands = layer == "http"
        body += _SERVICE.format(
            name=name,
            mode=layer,
            host=HOST,
            port=port,
            bind=" proto h2" if understands and name == "grpc" else "",
            options="\n    option http-server-close" if understands and name == "http" else "",
            path=readiness.path,
            servers="".join(
                _SERVER.format(
                    number=number,
                    port=_PORTS[name],
                    check_port=readiness.port,
                    period=readiness.period,
                    failures=readiness.failures,
                    protocol=" proto h2" if understands and name == "grpc" else "",
                )
                for number in range(1, SLOTS + 1)
            ),
        )
    return _CONFIGURATION.format(socket=control, body=body)


@dataclass(slots=True)
class Proxy:
    """HAProxy, while it runs.

    Attributes:
        http: Where it takes HTTP.
        grpc: Where it takes gRPC.
        control: The socket by which it is told of servers.
        log: What it said.
    """

    http: str
    grpc: str
    control: Path
    log: Path
    _used: int = 0

    def add(self, address: str) -> int:
        """Send requests to one more server, and return by what number it is known."""
        self._used += 1
        if self._used > SLOTS:
            raise ProxyError(f"expected at most {SLOTS} servers in all")
        for name, port in _PORTS.items():
            self._tell(f"set server {name}/pod{self._used} addr {address} port {port}")
            self._tell(f"set server {name}/pod{self._used} state ready")
        return self._used

    def remove(self, number: int) -> None:
        """Send no new request to a server; what it has is its own."""
        for name in _PORTS:
            self._tell(f"set server {name}/pod{number} state drain")

    def _tell(self, command: str) -> None:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.control))
            connection.sendall(f"{command}\n".encode())
            said = b"".join(iter(lambda: connection.recv(4096), b"")).decode().strip()
        # It confirms a change of address in words, and anything else by saying nothing.
        if said and "changed" not in said and "no need to change" not in said:
            raise ProxyError(f"HAProxy: {command}: {said}")


@contextlib.contextmanager
def running_proxy(layer: Layer, spec: ServerSpec, folder: Path) -> Iterator[Proxy]:
    """Run HAProxy for a while.

    Args:
        layer: Whether it understands the protocols, or only passes bytes on.
        spec: Whose readiness probe it uses.
        folder: For its files.

    Raises:
        ProxyError: It did not start.
    """
    program = find_haproxy()
    if program is None:
        raise ProxyError(
            "HAProxy: expected it on this machine, found none; apt-get install haproxy"
        )
    control = folder / "haproxy.sock"
    path = folder / "haproxy.cfg"
    log = folder / "haproxy.log"
    with PortReservation(len(_PORTS)) as reservation:
        ports = dict(zip(_PORTS, reservation.ports, strict=True))
        path.write_text(configuration(layer, spec.readiness, ports, control), encoding="utf-8")
        command: list[str | Path] = [program, "-db", "-f", path]
        with running_service(command, control.exists, log, error=ProxyError):
            yield Proxy(f"{HOST}:{ports['http']}", f"{HOST}:{ports['grpc']}", control, log)
