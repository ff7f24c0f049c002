# SPDX-License-Identifier: Apache-2.0
"""Where an artifact comes from: a file, a folder, a URL with its hash, or ``./dist``.

The wheel of this project is pure Python: the compiled backend is in the tarball of a release.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import re
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from tritonserver_jax.artifacts.archives import MAXIMUM_BYTES
from tritonserver_jax.artifacts.checksums import sha256_of
from tritonserver_jax.artifacts.layout import TARBALL_NAME
from tritonserver_jax.installation.errors import ArtifactNotFoundError, InstallationError
from tritonserver_jax.server.distribution import default_cache_directory
from tritonserver_jax.variables import ARTIFACT, RELEASES_PAGE

__all__ = ["find_artifact", "releases_page"]

#: What `[project.urls]` in pyproject.toml calls that page.
_PAGE_LABEL: Final = "releases"

_FRAGMENT: Final = re.compile(r"(?:sha256=)?([0-9a-fA-F]{64})")
_CHUNK: Final = 1 << 20
_SECONDS: Final = 60


def find_artifact(
    given: str | None,
    release: str | None,
    *,
    named_by: str = "with --artifact",
    env: Mapping[str, str] | None = None,
    folder: Path | None = None,
    cache: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Path:
    """Return the tarball to install.

    Args:
        given: A file, a folder that holds it, or a URL with ``#sha256=`` and the hash; by default
            ``$TRITONSERVER_JAX_ARTIFACT``, else what lies in ``dist`` of the folder.
        release: The release that it is for, to choose among several; any when not given.
        named_by: How a caller names one, for messages.
        env: The environment, by default this one's.
        folder: Where ``dist`` is looked for, by default the working directory.
        cache: Where downloads are kept, by default the project's cache.
        say: Told what is done that may take long.

    Raises:
        InstallationError: There is none, or it could not be downloaded; says what to do.
    """
    env = os.environ if env is None else env
    wanted = given or env.get(ARTIFACT)
    if wanted is None:
        dist = (Path.cwd() if folder is None else folder) / "dist"
        found = _in_folder(dist, release)
        if len(found) == 1:
            return found[0]
        if found:
            raise _several(dist, found)
        where = _where_to_get_one(release, env, named_by)
        raise InstallationError(f"no artifact is named, and {dist} has none: {where}")
    if re.match(r"[a-z][a-z0-9+.-]*://", wanted):
        return _download(wanted, default_cache_directory(env) if cache is None else cache, say)
    path = Path(wanted).expanduser()
    if path.is_file():
        return path
    if not path.is_dir():
        raise ArtifactNotFoundError(
            f"{wanted}: expected a tarball, a folder that holds one, or a URL, found nothing "
            f"there; check the path, or leave it out for what is in ./dist"
        )
    found = _in_folder(path, release)
    if len(found) != 1:
        if found:
            raise _several(path, found)
        which = "" if release is None else f" for release {release}"
        raise InstallationError(
            f"{path}: expected tritonserver-jax-*.tar.gz{which} there or in a folder of the "
            f"release there, found none: {_where_to_get_one(release, env, named_by)}"
        )
    return found[0]


def _in_folder(folder: Path, release: str | None) -> list[Path]:
    """Return the tarballs in a folder, and in the folders of releases below it."""
    names = [path for path in [*folder.glob("*"), *folder.glob("*/*")] if path.is_file()]
    matches = [(path, TARBALL_NAME.fullmatch(path.name)) for path in sorted(names)]
    return [path for path, match in matches if match and release in (None, match["release"])]


def _several(folder: Path, found: list[Path]) -> InstallationError:
    names = ", ".join(str(path.relative_to(folder)) for path in found)
    return InstallationError(
        f"{folder}: expected one artifact, found {len(found)}: {names}; name the one to take, or "
        "its release with --release"
    )


def _where_to_get_one(release: str | None, env: Mapping[str, str], named_by: str) -> str:
    which = "of the server's release" if release is None else f"for release {release}"
    page = releases_page(env)
    where = "the project's releases page" if page is None else page
    return (
        f"the compiled backend is in an artifact, tritonserver-jax-*.tar.gz {which}; download it "
        f"from {where}, or make it in a checkout (./ci/nox -s package-{release or 'RELEASE'}), and "
        f"name it {named_by} or in ${ARTIFACT}"
    )


def releases_page(env: Mapping[str, str]) -> str | None:
    """Return where artifacts are published, if the wheel or the environment says so."""
    if own := env.get(RELEASES_PAGE):
        return own
    try:
        urls = metadata.metadata("tritonserver-jax").get_all("Project-URL") or []
    except metadata.PackageNotFoundError:  # run from a checkout
        return None
    for entry in urls:
        label, _, url = entry.partition(",")
        if label.strip().lower() == _PAGE_LABEL:
            return str(url.strip())
    return None


def _download(url: str, cache: Path, say: Callable[[str], None]) -> Path:
    """Return the file of a URL, from the cache when it is there."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        raise ArtifactNotFoundError(
            f"{url}: expected http:// or https://, got {parts.scheme}://; download it, and name "
            "the file"
        )
    match = _FRAGMENT.fullmatch(parts.fragment)
    if match is None:
        raise ArtifactNotFoundError(
            f"{url}: expected #sha256= and 64 hexadecimal digits at its end, so that what comes "
            "can be told from what should; take them from SHA256SUMS of the release"
        )
    digest = match[1].lower()
    name = parts.path.rsplit("/", 1)[-1]
    if not TARBALL_NAME.fullmatch(name):
        raise ArtifactNotFoundError(
            f"{url}: expected the URL of a tritonserver-jax-*.tar.gz; see the releases page"
        )
    target = cache / "artifacts" / digest / name
    if target.is_file() and sha256_of(target) == digest:
        return target
    address = parts._replace(fragment="").geturl()
    say(f"downloading {address}")
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, fresh_name = tempfile.mkstemp(dir=target.parent, prefix=".new-")
    fresh = Path(fresh_name)
    try:
        with os.fdopen(handle, "wb") as sink:
            got = _fetch(address, sink.write)
        if got != digest:
            raise InstallationError(
                f"{address}: SHA-256: expected {digest}, got {got}; this is not the file that the "
                "URL was written for, and nothing of it was used"
            )
        fresh.chmod(0o644)
        fresh.replace(target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            fresh.unlink()
    return target


def _fetch(address: str, write: Callable[[bytes], object]) -> str:
    """Download, through the proxies of the environment; return the SHA-256 of what came."""
    hasher, size = hashlib.sha256(), 0
    try:
        # Only http and https come here, see above.
        with urllib.request.urlopen(address, timeout=_SECONDS) as answer:  # noqa: S310
            while chunk := answer.read(_CHUNK):
                size += len(chunk)
                if size > MAXIMUM_BYTES:
                    raise InstallationError(
                        f"{address}: expected at most {MAXIMUM_BYTES >> 20} MiB, got more"
                    )
                hasher.update(chunk)
                write(chunk)
    except urllib.error.HTTPError as error:
        raise InstallationError(
            f"{address}: expected the file, got status {error.code} {error.reason}; check the URL"
        ) from error
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError) as error:
        reason = getattr(error, "reason", None) or error
        raise InstallationError(
            f"{address}: cannot be downloaded: {reason}; check the network and the proxy settings"
        ) from error
    return hasher.hexdigest()
