# SPDX-License-Identifier: Apache-2.0
"""What the doctor finds, on machines and installations that lack something."""

from __future__ import annotations

import hashlib
import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.test_installation import compiled
from tritonserver_jax import __version__, diagnosis
from tritonserver_jax.diagnosis import Place, diagnose, find_place
from tritonserver_jax.findings import Finding, Status


@pytest.fixture
def backends(tmp_path: Path) -> Path:
    """An installed backend of one small library, without an environment."""
    folder = tmp_path / "server" / "backends"
    jax = folder / "jax"
    jax.mkdir(parents=True)
    library = compiled(tmp_path, "libtriton_jax", "int a(void) { return 1; }")
    library.rename(jax / library.name)
    info = {"project_version": __version__, "release": "24.10", "server_version": "2.51.0"}
    (jax / "BUILD_INFO.json").write_text(json.dumps(info), encoding="utf-8")
    seal(jax)
    return folder


def seal(jax: Path) -> None:
    files = [path for path in sorted(jax.iterdir()) if path.is_file()]
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in files
        if path.name != "SHA256SUMS"
    ]
    (jax / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")


def environment(place: Path, code: str, **marker: object) -> Path:
    """One whose Python is this one, with a module `jax` of the test's own."""
    (place / "bin").mkdir(parents=True)
    site = place / "site"
    site.mkdir()
    (site / "jax.py").write_text(code, encoding="utf-8")
    for name in ("tritonserver-jax", "jax", "jaxlib", "flax", "numpy"):
        info = site / f"{name.replace('-', '_')}-9.9.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 9.9\n")
    python = place / "bin" / "python"
    # Not isolated, as the probe asks for, so that it sees the module of the test.
    python.write_text(
        f'#!/bin/sh\nshift\nexec env PYTHONPATH={site} {sys.executable} -S "$@"\n',
        encoding="utf-8",
    )
    python.chmod(0o755)
    written = {
        "environment": str(place.resolve()),
        "libpython": sys.executable,
        "lock": "requirements-cpu-py311.txt",
        "project_version": __version__,
        **marker,
    }
    (place / ".tritonserver-jax.json").write_text(json.dumps(written), encoding="utf-8")
    return place


DEVICES = """
class Device:
    platform, device_kind, id = "cpu", "cpu", 0
def devices():
    return [Device()]
"""


def look(backends: Path | None, tmp_path: Path, timeout: float = 20) -> dict[str, Finding]:
    place = Place(backends, "named", None if backends is None else backends / "jax" / "env")
    found = list(diagnose(place, timeout=timeout, cache=tmp_path / "cache"))
    return {one.name: one for one in found}


def test_all_is_well_with_a_whole_installation(backends: Path, tmp_path: Path) -> None:
    environment(backends / "jax" / "env", DEVICES)
    found = look(backends, tmp_path)
    assert found["backend"].status is Status.OK
    assert found["environment"].status is Status.OK
    assert found["libpython"].detail == sys.executable
    assert "jax 9.9" in found["packages"].detail
    assert "cpu:0 (cpu)" in found["devices"].detail
    assert found["machine"].status is Status.OK


def test_a_machine_with_nothing_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(diagnosis, "find_servers", lambda _: [])
    found = look(None, tmp_path)
    assert found["server"].status is Status.WARN
    assert "serve` downloads one" in found["server"].remedy
    assert found["backend"].status is Status.WARN
    assert "install --backends DIR" in found["backend"].remedy


def test_a_damaged_backend_is_named(backends: Path, tmp_path: Path) -> None:
    with (backends / "jax" / "libtriton_jax.so").open("ab") as file:
        file.write(b"x")
    found = look(backends, tmp_path)
    assert found["backend"].status is Status.FAIL
    assert "libtriton_jax.so" in found["backend"].detail
    assert "install.sh" in found["backend"].remedy


def test_a_folder_without_the_backend_is_named(tmp_path: Path) -> None:
    found = look(tmp_path, tmp_path)
    assert found["backend"].status is Status.FAIL
    assert f"install --backends {tmp_path} --with-env" in found["backend"].remedy


def test_a_missing_environment_says_how_to_make_it(backends: Path, tmp_path: Path) -> None:
    found = look(backends, tmp_path)
    assert found["environment"].status is Status.FAIL
    assert "jax/scripts/setup_env.sh" in found["environment"].remedy


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise ImportError('libcuda.so.1: no such file')", "ImportError: libcuda.so.1"),
        ("import os\nos.abort()", "status -6"),
        ("import time\ntime.sleep(60)", "did not end within 2 s"),
    ],
)
def test_a_jax_that_breaks_is_survived(
    backends: Path, tmp_path: Path, code: str, said: str
) -> None:
    environment(backends / "jax" / "env", code)
    found = look(backends, tmp_path, timeout=2)
    assert found["JAX"].status is Status.FAIL
    assert said in found["JAX"].detail
    assert "setup_env.sh" in found["JAX"].remedy
    assert found["packages"].status is Status.OK


def test_an_environment_that_was_moved_is_named(backends: Path, tmp_path: Path) -> None:
    environment(backends / "jax" / "env", DEVICES, environment="/elsewhere")
    found = look(backends, tmp_path)
    assert "was made as /elsewhere, and moved" in found["environment"].detail


def test_a_libpython_that_is_gone_is_named(backends: Path, tmp_path: Path) -> None:
    environment(backends / "jax" / "env", DEVICES, libpython="/gone/libpython3.11.so.1.0")
    found = look(backends, tmp_path)
    assert found["libpython"].status is Status.FAIL
    assert "/gone/libpython3.11.so.1.0 is gone" in found["libpython"].detail


def test_a_package_that_is_absent_is_named(backends: Path, tmp_path: Path) -> None:
    env = environment(backends / "jax" / "env", DEVICES)
    (env / "site" / "flax-9.9.dist-info" / "METADATA").unlink()
    (env / "site" / "flax-9.9.dist-info").rmdir()
    found = look(backends, tmp_path)
    assert found["packages"].status is Status.FAIL
    assert "has no flax" in found["packages"].detail


def test_a_backend_of_a_newer_glibc_and_another_server_is_named(
    backends: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jax = backends / "jax"
    library = compiled(
        tmp_path,
        "libtriton_jax",
        "#include <stdlib.h>\nint TRITONSERVER_New(void);\n"
        'int a(void) { return TRITONSERVER_New() + (getenv("A") != 0); }',
    )
    library.replace(jax / library.name)
    server = backends.parent
    (server / "bin").mkdir()
    (server / "lib").mkdir()
    program = compiled(tmp_path, "program", "int b(void) { return 1; }")
    program.rename(server / "bin" / "tritonserver")
    there = compiled(tmp_path, "libtritonserver", "int TRITONSERVER_Old(void) { return 1; }")
    there.rename(server / "lib" / there.name)
    (server / "TRITON_VERSION").write_text("2.39.0", encoding="utf-8")
    seal(jax)
    monkeypatch.setattr(diagnosis, "machine_glibc", lambda: (2, 1))
    found = look(backends, tmp_path)
    assert found["glibc"].status is Status.FAIL
    assert "this machine has 2.1" in found["glibc"].detail
    assert found["API"].status is Status.FAIL
    assert "needs TRITONSERVER_New" in found["API"].detail
    assert found["release"].status is Status.WARN
    assert "is for 24.10, the server is server version 2.39.0 (23.10)" in found["release"].detail


def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        found = diagnosis._port(port, "gRPC")
    assert found.status is Status.WARN
    assert "another process has it" in found.detail
    assert diagnosis._port(port, "gRPC").status is Status.OK


def test_the_place_is_the_named_one_or_the_newest_of_serve(tmp_path: Path) -> None:
    named = find_place(tmp_path, None)
    assert named == Place(tmp_path, "named", tmp_path / "jax" / "env")
    kept = tmp_path / "backends" / "24.10-0" / "jax"
    kept.mkdir(parents=True)
    found = find_place(None, tmp_path / "own", cache=tmp_path)
    assert found == Place(kept.parent, "kept by `serve`", tmp_path / "own")


#: Listens at a port, says which, and waits to be ended.
LISTENER = """
import socket, sys
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("name", ["tritonserver", "another"])
def test_a_port_of_a_tritonserver_is_nothing_to_mend(tmp_path: Path, name: str) -> None:
    program = tmp_path / name  # what the kernel calls a process
    program.symlink_to(Path(sys.executable).resolve())
    with subprocess.Popen(
        [program, "-S", "-c", LISTENER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        found = diagnosis._port(int(process.stdout.readline()), "gRPC")
        process.communicate("")
    if name == "tritonserver":
        assert found.status is Status.NOTE
        assert f"process {process.pid}" in found.detail
    else:
        assert found.status is Status.WARN
        assert "end that process" in found.remedy
