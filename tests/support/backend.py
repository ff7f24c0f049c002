# SPDX-License-Identifier: Apache-2.0
"""The packaged backend, installed once for a whole test run, and servers that use it."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ci.installation import install_artifact
from ci.package import tarball_name
from tritonserver_jax.releases import find_release
from tritonserver_jax.server import ServerDistribution, TritonServer, obtain_server

#: Importing JAX and compiling, on a machine that does other things too.
LOAD_TIMEOUT = 120


@dataclass(frozen=True)
class Backend:
    """An installed backend.

    Attributes:
        release: Of the artifact.
        directory: The backend directory; the backend is in ``jax`` there.
        environment: Its Python environment.
        distribution: A server of the release.
        variables: Set for every server.
    """

    release: str
    directory: Path
    environment: Path
    distribution: ServerDistribution
    variables: Mapping[str, str] = field(default_factory=dict)

    def server(
        self,
        *repositories: Path,
        explicit: bool = False,
        backend_config: Mapping[str, str] | None = None,
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        backend_directory: Path | None = None,
    ) -> TritonServer:
        """A server, not started yet.

        Args:
            *repositories: Where models are.
            explicit: Whether models are loaded one by one, by request.
            backend_config: More of ``--backend-config=jax,…``.
            args: More options of tritonserver.
            env: Variables to set.
            backend_directory: Another one than the installed.
        """
        settings = {"env": str(self.environment), **(backend_config or {})}
        return TritonServer(
            self.distribution,
            repositories,
            backend_directory=backend_directory or self.directory,
            extra_args=[
                *(["--model-control-mode=explicit"] if explicit else []),
                *(f"--backend-config=jax,{key}={value}" for key, value in settings.items()),
                *args,
            ],
            env={**self.variables, **(env or {})},
        )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def installed_backend(
    dist: Path,
    release: str,
    environment_of: str,
    shared: Path,
    *,
    environment: Path | None = None,
) -> Backend:
    """Install the artifact of a release, unless another worker of this run did already.

    Args:
        dist: Where the artifacts are, one folder for each release.
        release: Which one.
        environment_of: The release whose installation also gets the Python environment; the
            others use that one, which is the same for all.
        shared: A folder that all workers of the run share.
        environment: One that was made before: then none is made.
    """
    tarball = dist / release / tarball_name(find_release(release))
    if not tarball.is_file():
        raise FileNotFoundError(
            f"{tarball} is not there; make it with ./ci/nox -s package-{release}"
        )
    distribution = obtain_server(find_release(release))
    directory = shared / release / "backends"
    with _locked(shared / f"{release}.lock"):
        done = shared / f"{release}.json"
        if not done.exists():
            wanted = environment is None and release == environment_of
            install_artifact(tarball, directory, environment=wanted)
            done.write_text(json.dumps({"pid": os.getpid()}))
    if environment is None:
        if release != environment_of:
            installed_backend(dist, environment_of, environment_of, shared)
        environment = shared / environment_of / "backends" / "jax" / "env"
    return Backend(release, directory, environment, distribution)
