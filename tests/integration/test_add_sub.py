# SPDX-License-Identifier: Apache-2.0
"""The smallest example, on an older and the current release, with the same binary."""

from __future__ import annotations

import importlib
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from ci.package import tarball_name
from tests.support.backend import LOAD_TIMEOUT, Backend
from tritonserver_jax.releases import find_release

client = importlib.import_module("examples.add_sub.client")

pytestmark = pytest.mark.integration

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
RELEASES = ("23.10", "24.10")


@pytest.mark.parametrize("release", RELEASES)
def test_add_sub_is_served_by_an_artifact_of_either_release(
    backend_of: Callable[[str], Backend],
    release: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "add_sub").symlink_to(EXAMPLES / "add_sub")
    with backend_of(release).server(tmp_path) as server:
        server.wait_model("add_sub", timeout=LOAD_TIMEOUT)
        arguments = ["--url", server.http_url, "--grpc-url", server.grpc_url]
        assert client.main(arguments) == 0, capsys.readouterr()


def test_the_artifact_of_one_release_serves_on_the_other(
    backend_of: Callable[[str], Backend], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "add_sub").symlink_to(EXAMPLES / "add_sub")
    newer, older = backend_of("24.10"), backend_of("23.10")
    with older.server(tmp_path, backend_directory=newer.directory) as server:
        server.wait_model("add_sub", timeout=LOAD_TIMEOUT)
        arguments = ["--url", server.http_url, "--grpc-url", server.grpc_url]
        assert client.main(arguments) == 0, capsys.readouterr()


def test_the_libraries_of_both_releases_are_the_same(pytestconfig: pytest.Config) -> None:
    dist: Path = pytestconfig.getoption("--backend-dist")
    found = []
    for release in RELEASES:
        with tarfile.open(dist / release / tarball_name(find_release(release))) as archive:
            names = [name for name in archive.getnames() if name.startswith("jax/lib/")]
            found.append({name: archive.extractfile(name).read() for name in names})  # type: ignore[union-attr]
    assert set(found[0]) == {"jax/lib/libtriton_jax.so", "jax/lib/libtriton_jax_python.so"}
    assert found[0] == found[1]
