# SPDX-License-Identifier: Apache-2.0
"""Where the tritonserver of a release comes from.

For twelve releases a wheel on the Python package index carries a whole server. `obtain_server`
downloads that wheel with pip (so that the user's index, proxy and certificates apply), checks its
SHA-256, and unpacks it once into a cache. `ServerDistribution.from_directory` takes a server that
is there already, such as ``/opt/tritonserver`` in a release image.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from tritonserver_jax.artifacts.checksums import sha256_of
from tritonserver_jax.releases import Release, ServerWheel, load_releases
from tritonserver_jax.server.errors import ServerError
from tritonserver_jax.server.wheels import download_wheel, locked
from tritonserver_jax.variables import CACHE

__all__ = ["ServerDistribution", "default_cache_directory", "obtain_server"]

_LOG = logging.getLogger(__name__)

#: Written last into a cache entry; without it, or with another hash in it, the entry is remade.
MARKER: Final = ".tritonserver-jax.json"
#: Raised when the way an entry is laid out changes, so that older entries are remade.
_LAYOUT: Final = 1

SERVER_FOLDER = PurePosixPath("pytriton/tritonserver")
_LIBRARIES = PurePosixPath("nvidia_pytriton.libs")
_STUB: Final = "triton_python_backend_stub"


@dataclass(frozen=True, slots=True)
class ServerDistribution:
    """A tritonserver on this machine's disk.

    Attributes:
        release: The release it is of.
        root: Holds ``bin``, ``backends`` and, in an image, ``lib``.
        executable: The server itself.
        library_directory: The shared libraries it was delivered with.
        backend_directory: Its own backends: the folder that holds ``python``.
    """

    release: Release
    root: Path
    executable: Path
    library_directory: Path
    backend_directory: Path

    @classmethod
    def from_directory(
        cls, path: Path, release: Release | None = None, *, env: Mapping[str, str] | None = None
    ) -> ServerDistribution:
        """Use an installed server, such as ``/opt/tritonserver`` in a release image.

        Args:
            path: The folder that holds ``bin/tritonserver``.
            release: Its release; by default found from the ``TRITON_VERSION`` file which the
                images carry, or from ``$TRITON_SERVER_VERSION``.
            env: The environment to look in; by default this process's.
        """
        root = path.absolute()
        executable = root / "bin" / "tritonserver"
        if not os.access(executable, os.X_OK):
            raise ServerError(
                f"{executable}: expected an executable tritonserver, found "
                f"{'a file that cannot be executed' if executable.exists() else 'nothing'}; give "
                "the folder that holds bin/tritonserver (/opt/tritonserver in a release image)"
            )
        backends = root / "backends"
        if not backends.is_dir():
            raise ServerError(f"{backends}: expected the server's backends, found no folder")
        if release is None:
            release = _release_of(root, os.environ if env is None else env)
        return cls(
            release=release,
            root=root,
            executable=executable,
            library_directory=root / "lib",
            backend_directory=backends,
        )


def _release_of(root: Path, env: Mapping[str, str]) -> Release:
    version_file = root / "TRITON_VERSION"
    if version_file.is_file():
        said, where = version_file.read_text(encoding="utf-8").strip(), str(version_file)
    else:
        said, where = env.get("TRITON_SERVER_VERSION", ""), "$TRITON_SERVER_VERSION"
    for release in load_releases().values():
        if release.server_version == said:
            return release
    raise ServerError(
        f"{root}: which release is it? {where} says {said or 'nothing'!r}, which is the server "
        "version of no release in releases.toml; name the release"
    )


def default_cache_directory(env: Mapping[str, str] | None = None) -> Path:
    """Return ``$TRITONSERVER_JAX_CACHE``, or the XDG cache folder of this project."""
    env = os.environ if env is None else env
    if own := env.get(CACHE):
        return Path(own)
    base = env.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "tritonserver-jax"


def obtain_server(release: Release, *, cache_dir: Path | None = None) -> ServerDistribution:
    """Return the server of a release, downloading it when the cache does not hold it.

    Safe to call from several processes at once: one downloads, the others wait for it.

    Args:
        release: The release; it needs a server wheel in ``releases.toml``.
        cache_dir: Where servers are kept; by default `default_cache_directory`.

    Raises:
        ServerError: There is no wheel for the release, it could not be downloaded, or it is not
            the one whose hash is in ``releases.toml``.
    """
    wheel = release.server
    if wheel is None:
        local = [name for name, other in load_releases().items() if other.server is not None]
        raise ServerError(
            f"release {release.release}: no wheel carries its server; those with one are "
            f"{', '.join(local)}. Use the image {release.image}, and inside it "
            "ServerDistribution.from_directory('/opt/tritonserver')"
        )
    cache = (default_cache_directory() if cache_dir is None else cache_dir).absolute()
    servers = cache / "servers"
    try:
        servers.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ServerError(
            f"{servers}: cannot make the cache folder: {error.strerror}; "
            f"set {CACHE} to a folder you may write to"
        ) from error
    entry = servers / f"{release.release}-{wheel.sha256[:16]}"
    with locked(servers / f".{entry.name}.lock"):
        reason = _defect(entry, wheel)
        if reason is not None:
            _LOG.info("release %s: getting its server (%s)", release.release, reason)
            _make_entry(entry, wheel)
        backends = _backends_for_this_python(entry)
    root = entry / SERVER_FOLDER
    return ServerDistribution(
        release=release,
        root=root,
        executable=root / "bin" / "tritonserver",
        library_directory=entry / _LIBRARIES,
        backend_directory=backends,
    )


def _defect(entry: Path, wheel: ServerWheel) -> str | None:
    """Say what is wrong with a cache entry, or None when it can be used.

    Every file's size is compared, and the bytes of the executable: that finds what an interrupted
    copy, a full disk or a cleaner of old files does, in some milliseconds.
    """
    if not entry.is_dir():
        return "not in the cache"
    try:
        marker = json.loads((entry / MARKER).read_text(encoding="utf-8"))
        if marker["layout"] != _LAYOUT or marker["sha256"] != wheel.sha256:
            return "the cached one is another"
        for name, size in marker["files"].items():
            got = (entry / name).stat().st_size
            if got != size:
                return f"the cached {name} has {got} bytes instead of {size}"
        executable = entry / SERVER_FOLDER / "bin" / "tritonserver"
        if sha256_of(executable) != marker["executable_sha256"]:
            return "the cached executable was changed"
        if not os.access(executable, os.X_OK):
            return "the cached executable lost its permission"
    except OSError as error:
        return f"the cached one is damaged: {error.filename}: {error.strerror}"
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"the cached one is damaged: {MARKER} cannot be read"
    return None


def _make_entry(entry: Path, wheel: ServerWheel) -> None:
    """Fill a new folder beside the entry, then move it into place: an entry is whole or absent."""
    with tempfile.TemporaryDirectory(dir=entry.parent, prefix=".new-") as scratch:
        downloaded = download_wheel(wheel, Path(scratch) / "download")
        got = sha256_of(downloaded)
        if got != wheel.sha256:  # pip has checked this; an unpacked server is worth a second look
            raise ServerError(
                f"{wheel.wheel}: SHA-256: expected {wheel.sha256} (releases.toml), got {got}; "
                "the file was changed on its way, nothing of it was used"
            )
        fresh = Path(scratch) / "entry"
        try:
            files = _unpack(downloaded, fresh)
        except (OSError, zipfile.BadZipFile) as error:
            raise ServerError(f"{wheel.wheel}: cannot be unpacked into {entry}: {error}") from error
        executable = fresh / SERVER_FOLDER / "bin" / "tritonserver"
        if not executable.is_file():
            raise ServerError(
                f"{wheel.wheel}: expected {SERVER_FOLDER}/bin/tritonserver in it, found none; "
                "this wheel carries no server: correct releases.toml"
            )
        marker = {
            "layout": _LAYOUT,
            "wheel": wheel.wheel,
            "sha256": wheel.sha256,
            "executable_sha256": sha256_of(executable),
            "files": files,
        }
        (fresh / MARKER).write_text(json.dumps(marker, indent=1), encoding="utf-8")
        if entry.exists():
            entry.rename(Path(scratch) / "old")  # removed with the scratch folder
        fresh.rename(entry)


def _unpack(wheel: Path, target: Path) -> dict[str, int]:
    """Unpack the server's part of a wheel; return each file's size."""
    sizes: dict[str, int] = {}
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            name = PurePosixPath(member.filename)
            if member.is_dir() or not (
                name.is_relative_to(SERVER_FOLDER)
                or name.is_relative_to(_LIBRARIES)
                or name.parts[0].endswith(".dist-info")  # the licences of what is in it
            ):
                continue
            if name.is_absolute() or ".." in name.parts:
                raise zipfile.BadZipFile(f"{member.filename}: a path that leads out of the folder")
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(member) as source, path.open("wb") as sink:
                shutil.copyfileobj(source, sink, 1 << 20)
            # Wheels do not keep the permission that these need.
            path.chmod(0o755 if name.name in {"tritonserver", _STUB} else 0o644)
            sizes[str(name)] = member.file_size
    return sizes


def _backends_for_this_python(entry: Path) -> Path:
    """Return a backend folder whose python backend runs models with this Python's minor version.

    The python backend's stub is linked against one libpython, and the wheel carries one stub per
    Python. Each Python gets a folder of its own, so that processes under different ones can share
    the cache entry. It lies at the depth of the original: the libraries are found relative to it.
    """
    original = entry / SERVER_FOLDER / "backends"
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    stub = entry / SERVER_FOLDER / "python_backend_stubs" / minor / _STUB
    if not stub.is_file():
        _LOG.info("the python backend of %s has no stub for Python %s", entry.name, minor)
        return original
    backends = original.with_name(f"backends-py{minor}")
    made = backends / "python" / _STUB
    if made.is_file() and made.stat().st_size == stub.stat().st_size:
        return backends
    with tempfile.TemporaryDirectory(dir=original.parent, prefix=".new-") as scratch:
        fresh = Path(scratch) / "backends"
        shutil.copytree(original, fresh)
        shutil.copy2(stub, fresh / "python" / _STUB)
        if backends.exists():
            shutil.rmtree(backends)
        fresh.rename(backends)
    return backends
