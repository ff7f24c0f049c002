# SPDX-License-Identifier: Apache-2.0
"""The services that a release is published to, on this machine, for as long as they are needed.

`local_services` starts a real container registry (Debian's ``docker-registry``) and a real package
index (pypiserver), both with passwords, and the stand-in of GitLab's API (`ci.gitlab_stand_in`).
``./ci/nox -s services`` keeps them running until Ctrl-C, and prints the variables that make
``./ci/nox -s deploy`` publish to them.
"""

from __future__ import annotations

import argparse
import contextlib
import secrets
import shlex
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import bcrypt
import uvicorn
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from ci import sign, toolchain
from ci.deploy.published import PublishedNames
from ci.deploy.variables import PUBLIC_KEY_FILE
from ci.faulty_gate import FaultyGate, faulty_gate
from ci.gitlab_stand_in import GitLabStandIn
from ci.process import fail
from ci.service import running_service
from ci.toolchain import Requirement, ToolchainError
from tritonserver_jax.artifacts.checksums import sha256_of
from tritonserver_jax.server.errors import ServerError
from tritonserver_jax.server.ports import HOST, PortReservation

__all__ = ["LocalServices", "ServicesError", "local_services"]

PROJECT: Final = "group/tritonserver-jax"
PROJECT_ID: Final = "42"
USER: Final = "publisher"
START_SECONDS: Final = 30

_REGISTRY_CONFIG: Final = """\
version: 0.1
log:
  level: warn
storage:
  filesystem:
    rootdirectory: {folder}/registry
  delete:
    enabled: true
http:
  addr: 127.0.0.1:{port}
  secret: {secret}
  # Behind the gate it has another port than it knows of.
  relativeurls: true
auth:
  htpasswd:
    realm: registry
    path: {passwords}
"""


class ServicesError(RuntimeError):
    """A service could not be started."""


@dataclass(frozen=True)
class LocalServices:
    """Services that run.

    Attributes:
        directory: Where they keep what was published.
        variables: What a job has to be given to publish to them, and to sign.
        registry: The gate before the container registry; ``fail_next`` makes it fail.
        index: The gate before the package index.
        gitlab: The stand-in of GitLab's API; it has a ``fail_next`` of its own.
    """

    directory: Path
    variables: Mapping[str, str]
    registry: FaultyGate
    index: FaultyGate
    gitlab: GitLabStandIn

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must be in no log."""
        names = ("CI_JOB_TOKEN", "CI_REGISTRY_PASSWORD", "TWINE_PASSWORD")
        return tuple(self.variables[name] for name in names)

    @property
    def registry_password(self) -> dict[str, str]:
        """User and password of the container registry, as an engine wants them."""
        return {
            "username": self.variables["CI_REGISTRY_USER"],
            "password": self.variables["CI_REGISTRY_PASSWORD"],
        }

    def image_digests(self) -> dict[str, str]:
        """Return the digest of each ``<repository>:<tag>`` in the container registry."""
        root = self.directory / "registry" / "docker" / "registry" / "v2" / "repositories"
        found = {}
        for link in sorted(root.glob("**/_manifests/tags/*/current/link")):
            tag = link.parent.parent
            repository = tag.parent.parent.parent.relative_to(root)
            name = f"{self.registry.address}/{repository}:{tag.name}"
            found[name] = link.read_text(encoding="ascii").strip()
        return found

    def distributions(self) -> dict[str, str]:
        """Return the SHA-256 of each file in the package index."""
        folder = self.directory / "index"
        return {path.name: sha256_of(path) for path in sorted(folder.iterdir()) if path.is_file()}

    def package_files(self) -> dict[str, str]:
        """Return the SHA-256 of each ``<package>/<version>/<file>`` in the package registry."""
        return {
            f"{package.name}/{package.version}/{file.name}": file.sha256
            for package in self.gitlab.packages.values()
            for file in package.files.values()
        }

    def published(self) -> PublishedNames:
        """Return the names of all that is in the three of them."""
        return PublishedNames(
            images=frozenset(self.image_digests()),
            packages=frozenset(self.package_files()),
            distributions=frozenset(self.distributions()),
            links=frozenset(
                f"{release.tag}: {link}"
                for release in self.gitlab.releases.values()
                for link in release.links
            ),
        )


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


@contextlib.contextmanager
def _program(command: Sequence[str | Path], port: int, log: Path) -> Iterator[FaultyGate]:
    """Run a server behind a gate, from when its port answers; gives the gate."""
    with (
        running_service(command, lambda: _listens(port), log, error=ServicesError),
        faulty_gate(port) as gate,
    ):
        yield gate


def _password_file(path: Path, password: str) -> Path:
    # Few rounds: the password is as random as a key, and every request checks it.
    hashed = bcrypt.hashpw(password.encode(), bcrypt.gensalt(rounds=4, prefix=b"2b")).decode()
    path.write_text(f"{USER}:{hashed}\n", encoding="ascii")
    return path


@contextlib.contextmanager
def _registry(directory: Path, password: str) -> Iterator[FaultyGate]:
    toolchain.ensure(
        [Requirement("registry", "any", "docker-registry", lambda: shutil.which("docker-registry"))]
    )
    config = directory / "registry.yml"
    passwords = _password_file(directory / "registry.htpasswd", password)
    with PortReservation(1) as reservation:
        (port,) = reservation.ports
        config.write_text(
            _REGISTRY_CONFIG.format(
                folder=directory, port=port, passwords=passwords, secret=secrets.token_hex()
            ),
            encoding="utf-8",
        )
        command: list[str | Path] = ["docker-registry", "serve", config]
        with _program(command, port, directory / "registry.log") as gate:
            yield gate


@contextlib.contextmanager
def _index(directory: Path, password: str) -> Iterator[FaultyGate]:
    folder = directory / "index"
    folder.mkdir(exist_ok=True)
    passwords = _password_file(directory / "index.htpasswd", password)
    with PortReservation(1) as reservation:
        (port,) = reservation.ports
        command: list[str | Path] = [
            Path(sys.executable).with_name("pypi-server"),
            "run",
            f"--interface={HOST}",
            f"--port={port}",
            "--authenticate=update,download,list",
            f"--passwords={passwords}",
            "--hash-algo=sha256",
            "--disable-fallback",
            folder,
        ]
        with _program(command, port, directory / "index.log") as gate:
            yield gate


@contextlib.contextmanager
def _gitlab(directory: Path, token: str) -> Iterator[tuple[GitLabStandIn, str]]:
    folder = directory / "packages"
    stand_in = GitLabStandIn(folder, project=PROJECT, project_id=PROJECT_ID, token=token)
    config = uvicorn.Config(stand_in.app, log_level="warning", lifespan="off")
    server = uvicorn.Server(config)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            deadline = time.monotonic() + START_SECONDS
            while not server.started:
                if not thread.is_alive() or time.monotonic() > deadline:
                    raise ServicesError("the stand-in of GitLab's API does not start")
                time.sleep(0.02)
            yield stand_in, address
        finally:
            server.should_exit = True
            thread.join()


def _signing_keys(directory: Path) -> dict[str, str]:
    """Make a key to sign with, which is worth nothing elsewhere."""
    key = Ed25519PrivateKey.generate()
    private, public = directory / "signing-key.pem", directory / "signing-key.pub"
    private.touch(mode=0o600)
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(
        key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    return {sign.KEY_FILE: str(private), PUBLIC_KEY_FILE: str(public)}


@contextlib.contextmanager
def local_services(directory: Path) -> Iterator[LocalServices]:
    """Run the services for a while.

    Args:
        directory: Where they keep what was published, and their logs; made if it is not there.

    Raises:
        ServerError: No port is free.
        ServicesError: One does not start; its log is shown.
        ToolchainError: The registry is not there, and cannot be installed from here.
    """
    directory.mkdir(parents=True, exist_ok=True)
    token, password, other = (secrets.token_urlsafe(24) for _ in range(3))
    with (
        _registry(directory, password) as registry,
        _index(directory, other) as index,
        _gitlab(directory, token) as (gitlab, address),
    ):
        variables = {
            "CI_API_V4_URL": f"http://{address}/api/v4",
            "CI_JOB_TOKEN": token,
            "CI_PROJECT_ID": PROJECT_ID,
            "CI_PROJECT_PATH": PROJECT,
            "CI_PROJECT_URL": f"http://{address}/{PROJECT}",
            "CI_REGISTRY": registry.address,
            "CI_REGISTRY_IMAGE": f"{registry.address}/{PROJECT}",
            "CI_REGISTRY_PASSWORD": password,
            "CI_REGISTRY_USER": USER,
            "CI_SERVER_URL": f"http://{address}",
            "TWINE_PASSWORD": other,
            "TWINE_REPOSITORY_URL": f"http://{index.address}/",
            "TWINE_USERNAME": USER,
            **_signing_keys(directory),
        }
        yield LocalServices(directory, variables, registry, index, gitlab)


def main(arguments: Sequence[str] | None = None) -> int:
    """Keep the services until a signal ends them; print the variables first."""
    parser = argparse.ArgumentParser(prog="./ci/nox -s services --", description=__doc__)
    parser.add_argument("--directory", type=Path, help="default: one that goes away afterwards")
    options = parser.parse_args(arguments)
    ended = threading.Event()
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, lambda *_: ended.set())
    try:
        with contextlib.ExitStack() as stack:
            directory = options.directory or Path(
                stack.enter_context(tempfile.TemporaryDirectory(prefix="tritonserver-jax-"))
            )
            services = stack.enter_context(local_services(directory.resolve()))
            for name, value in services.variables.items():
                print(f"export {name}={shlex.quote(value)}")
            print("# end it with Ctrl-C", flush=True)
            ended.wait()
    except (ServerError, ServicesError, ToolchainError) as error:
        return fail(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
