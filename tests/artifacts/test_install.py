# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.scripts import run_script
from tritonserver_jax import __version__


def install(root: Path, *arguments: str | Path) -> tuple[int, str]:
    return run_script(root / "scripts" / "install.sh", *arguments)


def rebuilt(root: Path, version: str) -> None:
    """Make of an unpacked tarball the one of another project version."""
    path = root / "BUILD_INFO.json"
    info = json.loads(path.read_text())
    info["project_version"] = version
    path.write_text(json.dumps(info, indent=2) + "\n")
    sign(root)


def sign(root: Path) -> None:
    names = sorted(
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path.is_file() and path.name != "SHA256SUMS"
    )
    sums = subprocess.run(
        ["sha256sum", *names], cwd=root, capture_output=True, text=True, check=True
    )
    (root / "SHA256SUMS").write_text(sums.stdout)


def left_over(backends: Path) -> list[str]:
    return sorted(path.name for path in backends.iterdir() if path.name != "jax")


def test_it_lays_the_backend_flat_and_whole(unpacked: Path, backends: Path) -> None:
    status, said = install(unpacked, "--backends", backends)
    assert status == 0, said
    assert f"installed: tritonserver-jax {__version__} for release 24.10" in said
    assert "setup_env.sh" in said
    jax = backends / "jax"
    assert (jax / "libtriton_jax.so").stat().st_mode & 0o777 == 0o755
    assert (jax / "libtriton_jax_python.so").is_file()
    assert not (jax / "lib").exists()
    assert not list(jax.rglob("model.py"))
    assert (jax / "scripts" / "health_check.py").is_file()
    assert (jax / "LICENSE").is_file()
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=jax, check=True)
    assert left_over(backends) == []


def test_a_server_that_does_not_say_its_release_is_pointed_out(
    unpacked: Path, backends: Path
) -> None:
    pointed_out = "does not say its release: see that it is 24.10 (server version 2.51.0)"
    assert pointed_out in install(unpacked, "--backends", backends)[1]
    (backends.parent / "TRITON_VERSION").write_text("2.51.0\n")
    assert pointed_out not in install(unpacked, "--backends", backends)[1]


def test_twice_is_said_and_changes_nothing(unpacked: Path, backends: Path) -> None:
    install(unpacked, "--backends", backends)
    before = (backends / "jax").stat().st_ino
    status, said = install(unpacked, "--backends", backends)
    assert status == 0
    assert f"already installed: tritonserver-jax {__version__} for release 24.10" in said
    assert (backends / "jax").stat().st_ino == before


def test_a_damaged_installation_is_repaired(unpacked: Path, backends: Path) -> None:
    install(unpacked, "--backends", backends)
    library = backends / "jax" / "libtriton_jax.so"
    library.write_bytes(b"damaged")
    status, said = install(unpacked, "--backends", backends)
    assert status == 0
    assert "repairing" in said
    assert library.read_bytes() == (unpacked / "lib" / "libtriton_jax.so").read_bytes()


def test_another_build_needs_force_and_keeps_the_environment(
    unpacked: Path, backends: Path
) -> None:
    install(unpacked, "--backends", backends)
    environment = backends / "jax" / "env"
    environment.mkdir()
    (environment / "kept").write_text("")
    rebuilt(unpacked, "9.9.9")
    status, said = install(unpacked, "--backends", backends)
    assert status == 1
    assert f"holds another build (tritonserver-jax {__version__} for release 24.10)" in said
    assert "this one is tritonserver-jax 9.9.9" in said
    info = backends / "jax" / "BUILD_INFO.json"
    assert json.loads(info.read_text())["project_version"] == __version__
    assert (environment / "kept").is_file()

    status, said = install(unpacked, "--backends", backends, "--force")
    assert status == 0, said
    assert json.loads(info.read_text())["project_version"] == "9.9.9"
    assert (environment / "kept").is_file()
    assert left_over(backends) == []


def test_a_foreign_folder_needs_force(unpacked: Path, backends: Path) -> None:
    (backends / "jax").mkdir()
    (backends / "jax" / "model.py").write_text("")
    status, said = install(unpacked, "--backends", backends)
    assert status == 1
    assert "no JAX backend of this project" in said
    assert (backends / "jax" / "model.py").is_file()
    status, said = install(unpacked, "--backends", backends, "--force")
    assert status == 0, said
    assert not (backends / "jax" / "model.py").exists()


def test_a_changed_file_is_refused(unpacked: Path, backends: Path) -> None:
    with (unpacked / "lib" / "libtriton_jax.so").open("ab") as file:
        file.write(b"x")
    status, said = install(unpacked, "--backends", backends)
    assert status == 1
    assert "lib/libtriton_jax.so: FAILED" in said
    assert list(backends.iterdir()) == []


def test_a_missing_file_is_refused(unpacked: Path, backends: Path) -> None:
    (unpacked / "LICENSE").unlink()
    status, said = install(unpacked, "--backends", backends)
    assert status == 1
    assert "LICENSE" in said
    assert list(backends.iterdir()) == []


def test_no_model_py_gets_into_the_backend(unpacked: Path, backends: Path) -> None:
    (unpacked / "stray").write_text("not listed, so not installed")
    (unpacked / "lib" / "model.py").write_text("")
    status, said = install(unpacked, "--backends", backends)
    assert status == 0, said
    assert not (backends / "jax" / "stray").exists()
    assert not (backends / "jax" / "model.py").exists()
    (backends / "jax").rename(backends / "before")
    sign(unpacked)  # now it is listed
    status, said = install(unpacked, "--backends", backends)
    assert status == 1
    assert "model.py would make Triton take this for a Python-based backend" in said
    assert [path.name for path in backends.iterdir()] == ["before"]


def test_an_interrupted_move_is_undone(unpacked: Path, backends: Path) -> None:
    install(unpacked, "--backends", backends)
    (backends / "jax" / "env").mkdir()
    (backends / "jax").rename(backends / ".jax.old.1")
    (backends / ".jax.new.1").mkdir()
    status, said = install(unpacked, "--backends", backends)
    assert status == 0
    assert "putting the backend back" in said
    assert "already installed" in said
    assert (backends / "jax" / "env").is_dir()
    assert left_over(backends) == []


def test_several_at_once_leave_one_whole_backend(unpacked: Path, backends: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: install(unpacked, "--backends", backends), range(4)))
    assert [status for status, _ in results] == [0] * 4
    assert sum("==> installed" in said for _, said in results) == 1
    assert sum("already installed" in said for _, said in results) == 3
    assert left_over(backends) == []


def test_a_server_of_another_release_is_refused(unpacked: Path, backends: Path) -> None:
    (backends.parent / "TRITON_VERSION").write_text("2.39.0\n")
    status, said = install(unpacked, "--backends", backends)
    assert status == 1
    both = "for release 24.10 (server version 2.51.0), and the server there is 2.39.0; take the"
    assert both in said
    assert list(backends.iterdir()) == []
    status, said = install(unpacked, "--backends", backends, "--force")
    assert status == 0
    assert "warning" in said
    assert both in said
    (backends.parent / "TRITON_VERSION").write_text("2.51.0\n")
    assert "server there is" not in install(unpacked, "--backends", backends)[1]


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ([], 2, "--backends: expected the server's backend directory"),
        (["--backends"], 2, "--backends: expected a value"),
        (["--backend", "x"], 2, "--backend: no such option"),
        (["--backends", "/no/such/folder"], 1, "/no/such/folder: expected the server's backend"),
        (["--help"], 0, "Usage: install.sh --backends DIR"),
    ],
)
def test_wrong_options_are_named(
    unpacked: Path, arguments: list[str], status: int, said: str
) -> None:
    got, output = install(unpacked, *arguments)
    assert got == status
    assert said in output


def test_an_installed_backend_is_no_tarball(unpacked: Path, backends: Path) -> None:
    install(unpacked, "--backends", backends)
    status, said = install(backends / "jax", "--backends", backends)
    assert status == 1
    assert "run the install.sh of an unpacked tarball" in said
