# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from ci import base_image
from ci.process import CommandError
from tritonserver_jax.releases import DEFAULT_RELEASE, find_release

RELEASE = find_release(DEFAULT_RELEASE)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The file system of a very small Debian."""
    path = tmp_path / "root.tar"
    with tarfile.open(path, "w") as archive:
        for name, text in (("etc/apt/sources.list", b"deb http://mirror.local/"), ("bin/sh", b"")):
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text))
    return path


@pytest.fixture
def entry(tmp_path: Path) -> Path:
    """A server, as the cache has it."""
    server = tmp_path / "entry" / "pytriton" / "tritonserver"
    for name in (
        "bin/tritonserver",
        "backends/python/model.py",
        "caches/local/libtritoncache_local.so",
        f"python_backend_stubs/{base_image.PYTHON}/triton_python_backend_stub",
        "../../nvidia_pytriton.libs/libtritonserver.so",
    ):
        (server / name).parent.mkdir(parents=True, exist_ok=True)
        (server / name).write_text(name)
    return tmp_path / "entry"


def test_it_is_laid_out_as_the_original(root: Path, entry: Path, tmp_path: Path) -> None:
    image = tmp_path / "image.tar"
    base_image._make_image(image, root, RELEASE, entry)
    with tarfile.open(image) as archive:
        manifest = json.load(archive.extractfile("manifest.json") or io.BytesIO())[0]
        config = json.load(archive.extractfile(manifest["Config"]) or io.BytesIO())
        layer = archive.extractfile(manifest["Layers"][0])
        assert layer is not None
        with tarfile.open(fileobj=layer) as files:
            members = {member.name: member for member in files}
            sources = files.extractfile("etc/apt/sources.list")
            assert sources is not None
            assert "mirror.local" not in sources.read().decode()
    assert manifest["RepoTags"] == [f"tritonserver-stand-in:{DEFAULT_RELEASE}-py3"]
    assert base_image.image_id(image) == f"sha256:{manifest['Config'].removesuffix('.json')}"
    for name in ("bin/tritonserver", "TRITON_VERSION", "include/triton/core/tritonbackend.h"):
        assert f"opt/tritonserver/{name}" in members
    for name in ("bin/tritonserver", "backends/python/triton_python_backend_stub"):
        assert members[f"opt/tritonserver/{name}"].mode == 0o755
    assert "nvidia_pytriton.libs/libtritonserver.so" in members
    assert f"TRITON_SERVER_VERSION={RELEASE.server_version}" in config["config"]["Env"]
    assert config["config"]["Entrypoint"] == ["/opt/nvidia/nvidia_entrypoint.sh"]


def test_the_same_files_give_the_same_bytes(root: Path, entry: Path, tmp_path: Path) -> None:
    for name in ("first", "second"):
        base_image._make_image(tmp_path / name, root, RELEASE, entry)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_a_file_that_is_no_image_is_named(root: Path) -> None:
    with pytest.raises(CommandError, match=r"root\.tar: is no image of ours"):
        base_image.image_id(root)
