# SPDX-License-Identifier: Apache-2.0
"""The container registry: what is under a tag, and another tag for the same digest.

skopeo asks it. No layer travels when a tag is moved, so an image of many gigabytes gets another tag
at once, and no Docker engine is needed for it.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import ipaddress
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ci import toolchain
from ci.deploy.errors import DeployError, error_of_text
from ci.deploy.retries import persistently
from ci.deploy.variables import RegistryVariables
from ci.toolchain import Requirement

__all__ = ["ACCESS", "ImageConfiguration", "Manifest", "Registry", "open_registry"]

#: Where the password comes from, for messages.
ACCESS: Final = "CI_REGISTRY_USER and CI_REGISTRY_PASSWORD"
_ABSENT: Final = re.compile(r"manifest unknown|name unknown|repository name not known", re.I)


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a registry has under a tag or a digest.

    Attributes:
        content: The manifest, byte for byte.
    """

    content: bytes

    @property
    def digest(self) -> str:
        """By which it is pulled."""
        return f"sha256:{hashlib.sha256(self.content).hexdigest()}"

    @property
    def image_id(self) -> str:
        """The digest of its configuration: the id that an engine gives to the image."""
        return str(json.loads(self.content).get("config", {}).get("digest", ""))

    @property
    def layers(self) -> list[str]:
        """The digests of its layers, which for a chart is that of the file."""
        return [str(one["digest"]) for one in json.loads(self.content).get("layers", [])]

    def is_image(self, identifier: str) -> bool:
        """Say whether it is an engine's image; some engines name one by its manifest's digest."""
        return identifier in (self.image_id, self.digest)


@dataclass(frozen=True, slots=True)
class ImageConfiguration:
    """What an image says of itself.

    Attributes:
        labels: Its labels.
        layers: The digests of its layers before they are packed, which do not depend on who packs.
    """

    labels: Mapping[str, str]
    layers: tuple[str, ...]

    @classmethod
    def read(cls, content: bytes) -> ImageConfiguration:
        """Read it from an image's configuration."""
        values: dict[str, Any] = json.loads(content)
        return cls(
            labels=values.get("config", {}).get("Labels") or {},
            layers=tuple(values.get("rootfs", {}).get("diff_ids") or ()),
        )


@dataclass(frozen=True, slots=True)
class Registry:
    """A container registry.

    Attributes:
        variables: Where it is.
        authfile: A file with the password, which only we can read.
    """

    variables: RegistryVariables
    authfile: Path

    @property
    def password(self) -> dict[str, str]:
        """User and password, as an engine wants them."""
        return {
            "username": self.variables.user,
            "password": self.variables.password.get_secret_value(),
        }

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine, where none needs TLS (as Docker has it)."""
        name = self.variables.host.rpartition(":")[0] or self.variables.host
        if name == "localhost":
            return True
        try:
            return ipaddress.ip_address(name.strip("[]")).is_loopback
        except ValueError:
            return False

    def manifest(self, name: str) -> Manifest | None:
        """Return what is under ``<repository>:<tag>`` or ``<repository>@<digest>``, if anything is.

        Raises:
            DeployError: The registry does not say.
        """
        content = self._inspect("--raw", name=name)
        return None if content is None else Manifest(content)

    def configuration(self, name: str) -> ImageConfiguration | None:
        """Return what an image says of itself, if there is one of that name.

        Raises:
            DeployError: The registry does not say.
        """
        content = self._inspect("--raw", "--config", name=name)
        return None if content is None else ImageConfiguration.read(content)

    def tags(self, repository: str) -> list[str]:
        """Return the tags of a repository; none where there is no such repository."""
        command = ["list-tags", *self._options(""), f"docker://{repository}"]
        content = self._answer(repository, command)
        return [] if content is None else sorted(json.loads(content)["Tags"])

    def copy(self, source: str, target: str) -> None:
        """Give an image another name, with the same digest.

        Args:
            source: ``<repository>@<digest>``.
            target: ``<repository>:<tag>``.

        Raises:
            DeployError: The registry refused it, or has another digest afterwards.
        """
        command = ["copy", "--quiet", "--all", "--preserve-digests"]
        command += [*self._options("src-"), *self._options("dest-")]
        command += [f"docker://{source}", f"docker://{target}"]
        if self._answer(target, command) is None:
            raise DeployError(f"{source}: expected it in the registry, found none")
        digest = source.rpartition("@")[2]
        there = self.manifest(target)
        if there is None or there.digest != digest:
            got = "none" if there is None else there.digest
            raise DeployError(
                f"{target}: expected {digest} after it was copied, got {got}; does somebody else "
                "publish at the same time?"
            )

    def _inspect(self, *options: str, name: str) -> bytes | None:
        return self._answer(name, ["inspect", *options, *self._options(""), f"docker://{name}"])

    def _options(self, prefix: str) -> list[str]:
        return [f"--{prefix}tls-verify={'false' if self.is_local else 'true'}"]

    def _answer(self, name: str, command: list[str]) -> bytes | None:
        """Run skopeo; None where there is nothing of that name."""
        # No policy of this machine about signatures: what we push is signed in another way.
        program = [
            "skopeo",
            "--insecure-policy",
            command[0],
            f"--authfile={self.authfile}",
            *command[1:],
        ]

        def once() -> bytes | None:
            done = subprocess.run(
                program, stdin=subprocess.DEVNULL, capture_output=True, check=False
            )
            if done.returncode == 0:
                return done.stdout
            said = done.stderr.decode("utf-8", "replace")
            if _ABSENT.search(said):
                return None
            raise error_of_text(name, said, ACCESS)

        return persistently(once)


@contextlib.contextmanager
def open_registry(variables: RegistryVariables) -> Iterator[Registry]:
    """Give a registry for a while.

    Args:
        variables: Where it is, and who asks.

    Raises:
        ToolchainError: There is no skopeo, and none can be installed from here.
    """
    toolchain.ensure([Requirement("skopeo", "any", "skopeo", lambda: shutil.which("skopeo"))])
    password = variables.password.get_secret_value()
    known = base64.b64encode(f"{variables.user}:{password}".encode()).decode()
    with tempfile.TemporaryDirectory(prefix="tritonserver-jax-") as scratch:
        # Not on a command line, which every user of the machine can read.
        authfile = Path(scratch, "auth.json")
        authfile.touch(mode=0o600)
        authfile.write_text(
            json.dumps({"auths": {variables.host: {"auth": known}}}), encoding="utf-8"
        )
        yield Registry(variables, authfile)
