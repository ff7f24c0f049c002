# SPDX-License-Identifier: Apache-2.0
"""The stand-in of NVIDIA's image, for where that cannot be pulled.

``nvcr.io/nvidia/tritonserver:<release>-py3`` is many gigabytes, behind a registry that not every
machine reaches. Everything that is said of our images (they build, they serve, they add so
many megabytes) is first shown on an image made here: Debian, with the real server of that release
from the Python package index, laid out as in the original. This is the one place that says what
the stand-in has and what it lacks.

As in the original: ``/opt/tritonserver`` with ``bin``, ``backends``, ``caches``, ``include`` and
``TRITON_VERSION``, the user ``triton-server`` (1000), the environment variables, the working
directory, and an entrypoint that runs what it is given.

Other than in the original: the system is Debian 12 with Python 3.11, and not Ubuntu; there is no
CUDA; the only other backend is ``python``; the server's libraries are in ``/nvidia_pytriton.libs``;
and the headers in ``include`` are made of our own declarations, so that comparing ours with them
shows that the comparison runs, and nothing else.

The image is one file, ``docker load`` and buildah read it, and the same packages of Debian give
the same bytes. ``python -m ci.base_image 24.10`` makes it.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import io
import json
import os
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Final

from ci import toolchain
from ci.build import FALLBACK_EPOCH
from ci.process import ROOT, CommandError, fail, run
from ci.toolchain import Requirement, ToolchainError
from tritonserver_jax.artifacts.checksums import sha256_of
from tritonserver_jax.releases import (
    DEFAULT_RELEASE,
    Release,
    UnknownReleaseError,
    find_release,
)
from tritonserver_jax.server import ServerError, obtain_server
from tritonserver_jax.server.distribution import default_cache_directory

__all__ = [
    "BASE_IMAGE_ERRORS",
    "PYTHON",
    "image_id",
    "make_base_image",
    "sdk_headers",
    "stand_in_name",
]

#: The Debian release of the stand-in, and the Python that it brings.
SUITE: Final = "bookworm"
PYTHON: Final = "3.11"
#: Where Debian's packages come from, unless ``TRITONSERVER_JAX_DEBIAN_MIRROR`` says otherwise.
MIRROR: Final = "http://deb.debian.org/debian"
PACKAGES: Final = ("ca-certificates", "python3", "python3-pip", "python3-venv", "libpython3.11")

#: Raised when what is made here changes, so that older files are made again.
LAYOUT: Final = 2

#: What may go wrong here, for those who report it in one line.
BASE_IMAGE_ERRORS: Final = (CommandError, ServerError, ToolchainError, UnknownReleaseError)

# The original's runs the scripts that print its banner, and then this.
_ENTRYPOINT: Final = """\
#!/bin/bash
# The stand-in's: the original prints a banner first.
exec "$@"
"""
# A builder mounts its own over these. Where they are not there it makes them for that time, and so
# gives the folder the time of the build.
_MOUNTED: Final = frozenset({"etc/hosts", "etc/resolv.conf"})
_HEADERS: Final = ROOT / "backend" / "src" / "core" / "triton_c_api.h"


def stand_in_name(release: Release) -> str:
    """Return the name under which the stand-in of a release's image is loaded."""
    return f"tritonserver-stand-in:{release.release}-py3"


def sdk_headers(release: Release, declarations: str | None = None) -> dict[str, str]:
    """Return headers that declare what ours does, in the place of the official ones.

    Args:
        release: Whose API levels they name.
        declarations: Other declarations than those of the project, to try a difference.
    """
    text = _HEADERS.read_text(encoding="utf-8") if declarations is None else declarations
    text = text.replace("TRITON_JAX_", "OFFICIAL_")
    level = release.backend_api
    versions = "" if level is None else _versions(level.major, level.minor)
    return {
        "triton/core/tritonserver.h": versions + text,
        "triton/core/tritonbackend.h": '#pragma once\n#include "tritonserver.h"\n',
    }


def _versions(major: int, minor: int) -> str:
    name = "#define TRITONBACKEND_API_VERSION_"
    return f"{name}MAJOR {major}\n{name}MINOR {minor}\n"


def make_base_image(release: Release, *, cache_dir: Path | None = None) -> Path:
    """Return the stand-in of a release's image as a file, made unless the cache has it.

    Args:
        release: A release with a server wheel in ``releases.toml``.
        cache_dir: Where it is kept; by default the project's cache.

    Returns:
        A tar file as ``docker save`` writes it, which names the image `stand_in_name`.

    Raises:
        ServerError: There is no server of that release, or it cannot be had.
        CommandError: Debian's packages cannot be had; mmdebstrap has said why.
        ToolchainError: mmdebstrap is missing and cannot be installed from here.
    """
    server = obtain_server(release)
    cache = (default_cache_directory() if cache_dir is None else cache_dir) / "base-images"
    cache.mkdir(parents=True, exist_ok=True)
    with _alone(cache / ".lock"):
        root = cache / f"debian-{SUITE}-{_digest(*PACKAGES)}.tar"
        if not root.is_file():
            _make_root(root)
        contents = (_ENTRYPOINT, *sdk_headers(release).values())
        entry = server.executable.parents[3]
        image = cache / f"{entry.name}-{_digest(str(LAYOUT), sha256_of(root), *contents)}.tar"
        if not image.is_file():
            for old in cache.glob(f"{release.release}-*.tar"):  # of another server or layout
                old.unlink()
            _make_image(image, root, release, entry)
    return image


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    with path.open("a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def _find_mmdebstrap() -> str | None:
    return shutil.which("mmdebstrap")


def image_id(path: Path) -> str:
    """Return the id that an engine gives to a file of `make_base_image`."""
    with tarfile.open(path) as archive:
        first = archive.next()
        if first is None or not first.name.endswith(".json"):
            raise CommandError(f"{path}: is no image of ours; remove it, it is made again")
        return f"sha256:{first.name.removesuffix('.json')}"


def _make_root(path: Path) -> None:
    """Make the file system of a small Debian with Python, and the server's user."""
    keyring = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
    toolchain.ensure(
        [
            Requirement("mmdebstrap", "any", "mmdebstrap", _find_mmdebstrap),
            Requirement(
                "Debian's keys",
                str(keyring),
                "debian-archive-keyring",
                lambda: str(keyring) if keyring.is_file() else None,
            ),
        ]
    )
    mirror = os.environ.get("TRITONSERVER_JAX_DEBIAN_MIRROR", MIRROR)
    source = f"deb [signed-by={keyring}] {mirror} {SUITE} main"
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(FALLBACK_EPOCH)}
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".new-") as scratch:
        fresh = Path(scratch, "root.tar")
        run(
            [
                *("mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(PACKAGES)}"),
                '--customize-hook=chroot "$1" useradd --create-home --uid 1000 triton-server',
                # Dates of today, and what only a build of packages reads.
                '--customize-hook=rm -rf "$1"/var/log/* "$1"/var/cache/ldconfig/aux-cache',
                *(SUITE, str(fresh), source),
            ],
            env=environment,
        )
        fresh.replace(path)


def _make_image(path: Path, root: Path, release: Release, entry: Path) -> None:
    """Add the server to the file system, and write both as one image of one layer."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".new-") as scratch:
        layer = Path(scratch, "layer.tar")
        with (
            tarfile.open(root) as source,
            tarfile.open(layer, "w", format=tarfile.GNU_FORMAT) as archive,
        ):
            for member in source:
                name = PurePosixPath(member.name)
                if str(name) in _MOUNTED:
                    continue
                if str(name) == "etc/apt/sources.list":
                    # The one that everybody has, whatever this one was made from.
                    line = f"deb {MIRROR} {SUITE} main\n".encode()
                    _add_file(archive, str(name), line, 0o644)
                    continue
                archive.addfile(member, source.extractfile(member) if member.isreg() else None)
            for mounted in sorted(_MOUNTED):
                _add_file(archive, mounted, b"", 0o644)
            _add_server(archive, release, entry)
        digest = sha256_of(layer)
        config = json.dumps(_config(release, digest), sort_keys=True).encode()
        fresh = Path(scratch, "image.tar")
        with tarfile.open(fresh, "w", format=tarfile.GNU_FORMAT) as archive:
            described = f"{hashlib.sha256(config).hexdigest()}.json"
            manifest = {
                "Config": described,
                "RepoTags": [stand_in_name(release)],
                "Layers": [f"{digest}/layer.tar"],
            }
            _add_file(archive, described, config, 0o644)
            _add_folder(archive, digest)
            _add_from(archive, f"{digest}/layer.tar", layer, 0o644)
            _add_file(archive, "manifest.json", json.dumps([manifest]).encode(), 0o644)
        fresh.replace(path)


def _add_server(archive: tarfile.TarFile, release: Release, entry: Path) -> None:
    server = entry / "pytriton" / "tritonserver"
    target = PurePosixPath("opt/tritonserver")
    stub = server / "python_backend_stubs" / PYTHON / "triton_python_backend_stub"
    added = {
        target / "TRITON_VERSION": f"{release.server_version}\n".encode(),
        **{target / "include" / name: text.encode() for name, text in sdk_headers(release).items()},
    }
    files: dict[PurePosixPath, Path | bytes] = dict(added)
    for folder in ("bin", "backends", "caches"):
        files.update(_files_below(server / folder, target / folder))
    for folder in ("nvidia_pytriton.libs",):
        files.update(_files_below(entry / folder, PurePosixPath(folder)))
    if stub.is_file():
        files[target / "backends" / "python" / stub.name] = stub
    files[PurePosixPath("opt/nvidia/nvidia_entrypoint.sh")] = _ENTRYPOINT.encode()

    folders = {parent for name in files for parent in name.parents} - {PurePosixPath(".")}
    for name in sorted(folders - {PurePosixPath("opt")}):
        _add_folder(archive, str(name))
    for name, content in sorted(files.items()):
        program = name.name in {"tritonserver", stub.name, "nvidia_entrypoint.sh"}
        mode = 0o755 if program else 0o644
        if isinstance(content, bytes):
            _add_file(archive, str(name), content, mode)
        else:
            _add_from(archive, str(name), content, mode)


def _files_below(folder: Path, target: PurePosixPath) -> dict[PurePosixPath, Path]:
    return {target / path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}


def _entry(name: str, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.mode = mode
    entry.mtime = FALLBACK_EPOCH
    return entry


def _add_folder(archive: tarfile.TarFile, name: str) -> None:
    entry = _entry(name, 0o755)
    entry.type = tarfile.DIRTYPE
    archive.addfile(entry)


def _add_file(archive: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    entry = _entry(name, mode)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def _add_from(archive: tarfile.TarFile, name: str, path: Path, mode: int) -> None:
    entry = _entry(name, mode)
    entry.size = path.stat().st_size
    with path.open("rb") as file:
        archive.addfile(entry, file)


def _config(release: Release, layer: str) -> dict[str, object]:
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    created = datetime.fromtimestamp(FALLBACK_EPOCH, UTC).isoformat()
    return {
        "architecture": "amd64",
        "os": "linux",
        "created": created,
        "config": {
            "Env": [
                f"PATH=/opt/tritonserver/bin:{path}",
                f"TRITON_SERVER_VERSION={release.server_version}",
                f"NVIDIA_TRITON_SERVER_VERSION={release.release}",
                "TRITON_SERVER_USER=triton-server",
            ],
            "Entrypoint": ["/opt/nvidia/nvidia_entrypoint.sh"],
            "WorkingDir": "/opt/tritonserver",
        },
        "history": [{"created": created, "created_by": "stand-in of the release's image"}],
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer}"]},
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the stand-in of one release, and print where it is."""
    parser = argparse.ArgumentParser(prog="python -m ci.base_image", description=__doc__)
    parser.add_argument("release", nargs="?", default=DEFAULT_RELEASE)
    options = parser.parse_args(arguments)
    try:
        release = find_release(options.release)
        print(f"{stand_in_name(release)}: {make_base_image(release)}")
    except BASE_IMAGE_ERRORS as error:
        return fail(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
