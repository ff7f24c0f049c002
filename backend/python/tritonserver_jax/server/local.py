# SPDX-License-Identifier: Apache-2.0
"""A server and the backend of this machine, made ready to serve: each is made once and kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tritonserver_jax.artifacts import verify_installation
from tritonserver_jax.artifacts.checksums import sha256_of
from tritonserver_jax.artifacts.layout import TARBALL_NAME
from tritonserver_jax.findings import Finding, failure
from tritonserver_jax.installation import (
    check_artifact,
    check_libraries,
    check_server,
    find_artifact,
    install_artifact,
    unpacked,
)
from tritonserver_jax.releases import DEFAULT_RELEASE, find_release
from tritonserver_jax.server.distribution import (
    ServerDistribution,
    default_cache_directory,
    obtain_server,
)
from tritonserver_jax.server.errors import ServerError
from tritonserver_jax.server.facts import IMAGE_ROOT, server_facts

__all__ = ["Ready", "prepare"]


@dataclass(frozen=True, slots=True)
class Ready:
    """What a server is started with.

    Attributes:
        distribution: The server.
        backends: The backend directory; the backend is in ``jax`` there.
        findings: What was looked at; one that failed says why not to start.
    """

    distribution: ServerDistribution
    backends: Path
    findings: tuple[Finding, ...]


def prepare(
    *,
    release: str | None = None,
    artifact: str | None = None,
    backends: Path | None = None,
    server: Path | None = None,
    python: str | None = None,
    force: bool = False,
    cache: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Ready:
    """Get a server and install the backend, unless they are there.

    Args:
        release: Of the server; by default that of the server, backend or artifact that is given.
        artifact: What to install, as `find_artifact` takes it.
        backends: Where the backend is installed already; nothing is installed then.
        server: The folder of an installed server; by default the one of the release image that
            this is, else one that is downloaded.
        python: The Python of the backend's environment.
        force: Whether an artifact of another release will do.
        cache: Where servers and backends are kept, by default the project's cache.
        say: Told what is done that may take long.

    Raises:
        ServerError: The server could not be had.
        InstallationError: The artifact could not be found or installed.
        VerificationError: The installed backend is damaged.
    """
    cache = default_cache_directory() if cache is None else cache
    if server is not None:
        distribution = ServerDistribution.from_directory(
            server, None if release is None else find_release(release)
        )
        release = release or distribution.release.release
    if backends is not None:
        if not (backends / "jax" / "libtriton_jax.so").is_file():
            raise ServerError(
                f"{backends}: expected the backend in jax/ there, found no libtriton_jax.so; "
                "install it with `tritonserver-jax install --backends`"
            )
        report = verify_installation(backends / "jax")
        if server is None:
            distribution = _distribution(release or report.release or DEFAULT_RELEASE, cache)
        return Ready(distribution, backends, ())

    tarball = find_artifact(artifact, release, cache=cache, say=say)
    named = TARBALL_NAME.fullmatch(tarball.name)
    if server is None:
        of_artifact = named["release"] if named else DEFAULT_RELEASE
        distribution = _distribution(release or of_artifact, cache)
    findings = check_artifact(tarball)
    if failure(findings) is not None:
        return Ready(distribution, cache, tuple(findings))
    with unpacked(tarball) as content:
        findings += check_server(content, distribution.root, force=force)
        findings += check_libraries(content)
        digest = sha256_of(tarball)
        own = cache / "backends" / f"{content.release}-{digest[:16]}"
        if failure(findings) is None:
            own.mkdir(parents=True, exist_ok=True)
            # In a folder of this very artifact: what is there of another build is a fault there.
            install_artifact(content, own, python=python, force=True, say=say)
    return Ready(distribution, own, tuple(findings))


def _distribution(release: str, cache: Path) -> ServerDistribution:
    """Return the server of a release: the one that is in its image, or one from the cache."""
    wanted = find_release(release)
    if (IMAGE_ROOT / "bin" / "tritonserver").is_file():
        facts = server_facts(IMAGE_ROOT)
        if wanted in facts.releases:
            return ServerDistribution.from_directory(IMAGE_ROOT, wanted)
    return obtain_server(wanted, cache_dir=cache)
