# SPDX-License-Identifier: Apache-2.0
"""``tritonserver-jax install``: refused before anything is touched, else whole or undone."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ci.process import ROOT
from tests.artifacts.test_install import install as install_sh
from tests.artifacts.test_install import left_over, rebuilt, sign
from tests.artifacts.test_setup_env import NO_NETWORK, an_environment, unlock
from tests.unit.test_installation import compiled
from tritonserver_jax import __version__
from tritonserver_jax.findings import Status
from tritonserver_jax.installation import Unpacked, check_libraries, check_server, checks

PROGRAM = [sys.executable, "-m", "tritonserver_jax.cli", "install"]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "backend" / "python"), **more}


def install(*arguments: str | Path, **more: str) -> tuple[int, str]:
    done = subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        env=environment(**more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout + done.stderr


def whole(jax: Path) -> bool:
    command = ["sha256sum", "--check", "--strict", "--status", "SHA256SUMS"]
    return subprocess.run(command, cwd=jax, check=False).returncode == 0


def packed(root: Path, name: str) -> Path:
    """Pack an unpacked artifact again, after a change; it has to have been signed."""
    path = root.parent.parent / name
    with gzip.open(path, "wb") as zipped, tarfile.open(fileobj=zipped, mode="w") as archive:
        archive.add(root, "jax")
    return path


def test_it_installs_says_so_and_does_it_once(tarball: Path, backends: Path) -> None:
    status, said = install(tarball, "--backends", backends)
    assert status == 0, said
    for line in ("ok   artifact: ", "ok   glibc: ", "ok   backend: can be installed: "):
        assert line in said
    assert f"installed: tritonserver-jax {__version__} for release 24.10" in said
    assert whole(backends / "jax")
    before = (backends / "jax").stat().st_ino
    status, said = install(tarball.parent, "--backends", backends)
    assert status == 0, said
    assert "ok   backend: already installed: " in said
    assert (backends / "jax").stat().st_ino == before
    assert left_over(backends) == []


def test_a_check_changes_nothing_and_tells_a_machine(tarball: Path, backends: Path) -> None:
    done = subprocess.run(
        [*PROGRAM, str(tarball), "--backends", str(backends), "--check", "--json"],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    answer = json.loads(done.stdout)
    assert (answer["ok"], answer["release"]) == (True, "24.10")
    assert {one["name"] for one in answer["checks"]} >= {"artifact", "release", "API", "glibc"}
    assert list(backends.iterdir()) == []


@pytest.mark.parametrize("said_in", ["file", "functions"])
def test_the_server_of_another_release_is_refused(
    tarball: Path, backends: Path, tmp_path: Path, said_in: str
) -> None:
    if said_in == "file":
        (backends.parent / "TRITON_VERSION").write_text("2.39.0\n", encoding="utf-8")
        it_is = "server version 2.39.0 (23.10)"
    else:
        # A server that says nothing; its library has what came with 23.07, and nothing newer.
        functions = [
            "TRITONBACKEND_ModelInstanceReportMemoryUsage",
            "TRITONBACKEND_ModelReportMemoryUsage",
            "TRITONSERVER_InferenceRequestPriorityUInt64",
            "TRITONSERVER_InferenceRequestSetPriorityUInt64",
        ]
        a_server(backends.parent, tmp_path, functions)
        it_is = "release 23.07, by the functions of its library"
    status, said = install(tarball, "--backends", backends)
    assert status == 1
    assert f"the artifact is for release 24.10, the server is {it_is}" in said
    assert "take the artifact of the server's release, or use --force" in said
    assert list(backends.iterdir()) == []
    status, said = install(tarball, "--backends", backends, "--force")
    assert status == 0, said
    assert "warn release: " in said
    assert whole(backends / "jax")


def a_server(root: Path, scratch: Path, functions: list[str]) -> None:
    for name in ("bin", "lib"):
        (root / name).mkdir()
    source = "".join(f"int {name}(void) {{ return 1; }}\n" for name in functions)
    library = compiled(scratch, "libtritonserver", source)
    shutil.move(library, root / "lib" / "libtritonserver.so")
    program = compiled(scratch, "program", "int main(void) { return 0; }")
    shutil.move(program, root / "bin" / "tritonserver")


def an_artifact(tmp_path: Path, source: str) -> Unpacked:
    root = tmp_path / "artifact" / "jax"
    (root / "lib").mkdir(parents=True)
    library = compiled(tmp_path, "libtriton_jax", source)
    shutil.move(library, root / "lib" / library.name)
    return Unpacked(root, "1.0", "24.10", "2.51.0")


def test_a_server_without_a_function_is_refused_whatever_is_forced(tmp_path: Path) -> None:
    source = "int TRITONSERVER_New(void);\nint a() { return TRITONSERVER_New(); }"
    artifact = an_artifact(tmp_path, source)
    server = tmp_path / "server"
    server.mkdir()
    a_server(server, tmp_path, ["TRITONSERVER_Old"])
    for force in (False, True):
        found = {one.name: one for one in check_server(artifact, server, force=force, env={})}
        assert found["API"].status is Status.FAIL
        assert "needs TRITONSERVER_New (backend API 1.12)" in found["API"].detail


def test_an_older_c_library_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = an_artifact(tmp_path, '#include <stdlib.h>\nint a() { return getenv("A") != 0; }')
    monkeypatch.setattr(checks, "machine_glibc", lambda: (2, 1))
    (found,) = check_libraries(artifact)
    assert found.status is Status.FAIL
    assert found.detail.startswith("libtriton_jax.so needs glibc 2.")
    assert found.detail.endswith("this machine has 2.1")


def test_a_changed_artifact_is_refused(tarball: Path, backends: Path, tmp_path: Path) -> None:
    bad = tmp_path / tarball.name
    content = bytearray(tarball.read_bytes())
    content[len(content) // 2] ^= 1
    bad.write_bytes(content)
    status, said = install(bad, "--backends", backends)
    assert status == 1
    assert "fail artifact: " in said
    assert "error: nothing was installed: artifact is not well, see above" in said
    assert said.count("expected SHA-256") <= 1
    assert list(backends.iterdir()) == []


def test_the_wrong_release_and_a_missing_signature_are_refused(
    tarball: Path, backends: Path, tmp_path: Path
) -> None:
    status, said = install(tarball, "--backends", backends, "--release", "23.10")
    assert status == 1
    assert "expected an artifact for release 23.10, got one for release 24.10" in said
    key = tmp_path / "key.pem"
    key.write_text("no key", encoding="utf-8")
    assert install(tarball, "--backends", backends, "--key", key)[0] == 1
    assert list(backends.iterdir()) == []


def test_a_python_without_a_lock_is_refused(unpacked: Path, backends: Path, tarball: Path) -> None:
    for lock in (unpacked / "locks").glob("requirements-cpu-*.txt"):
        lock.rename(lock.with_name("requirements-cpu-py399.txt"))
    sign(unpacked)
    bad = packed(unpacked, tarball.name)
    status, said = install(bad, "--backends", backends, "--with-env")
    assert status == 1
    assert "no suitable Python: expected CPython of 3.99" in said
    assert "there is no lock for it" in said
    assert list(backends.iterdir()) == []


@pytest.fixture
def small(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A backend directory on a file system of so many KiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    size = f"size={request.param}k"
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", folder], check=False)
    if mount.returncode != 0:
        pytest.skip("a small file system can be mounted by root alone")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize("small", [100], indirect=True)
def test_no_room_for_the_backend_is_refused_with_both_figures(tarball: Path, small: Path) -> None:
    status, said = install(tarball, "--backends", small)
    assert status == 1
    assert "KiB of free space for the backend, found 100 KiB" in said
    assert list(small.iterdir()) == []


@pytest.mark.parametrize("small", [20_480], indirect=True)
def test_no_room_for_the_environment_is_refused_with_both_figures(
    tarball: Path, small: Path
) -> None:
    status, said = install(tarball, "--backends", small, "--with-env")
    assert status == 1
    assert "expected 1024 MiB of free space for the environment, found 20 MiB" in said
    assert list(small.iterdir()) == []


def test_a_failed_environment_leaves_nothing_of_a_first_installation(
    unpacked: Path, backends: Path
) -> None:
    unlock(unpacked)
    bad = packed(unpacked, f"tritonserver-jax-{__version__}-triton24.10-linux-x86_64.tar.gz")
    status, said = install(bad, "--backends", backends, "--with-env", **NO_NETWORK)
    assert status == 1
    assert "installing the packages of locks/" in said
    assert list(backends.iterdir()) == []


def test_a_failed_environment_puts_the_backend_from_before_back(
    unpacked: Path, tarball: Path, backends: Path
) -> None:
    assert install(tarball, "--backends", backends)[0] == 0
    an_environment(backends / "jax" / "env")
    rebuilt(unpacked, "9.9.9")
    unlock(unpacked)
    status, said = run_sh(unpacked, backends, "--force", "--with-env", **NO_NETWORK)
    assert status != 0
    assert "is again as it was before" in said
    assert project_version(backends / "jax") == __version__
    assert whole(backends / "jax")
    assert (backends / "jax" / "env" / "kept").is_file()
    assert left_over(backends) == []


def run_sh(root: Path, backends: Path, *options: str, **more: str) -> tuple[int, str]:
    done = subprocess.run(
        [root / "scripts" / "install.sh", "--backends", backends, *options],
        env={**os.environ, **more},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def project_version(jax: Path) -> str:
    return str(json.loads((jax / "BUILD_INFO.json").read_text(encoding="utf-8"))["project_version"])


# -- ended at every step ---------------------------------------------------------------------------

# Bash runs this before each command of the script, and ends it before the one with that number.
END_AT = """
number=0
before_each() {
    [[ $BASHPID == "$$" ]] || return 0 # a subshell has no steps of its own
    ((++number))
    echo $number >"$COUNT"
    ((number != END_AT)) || kill -s "$END_BY" $$
}
set -T
trap before_each DEBUG
"""


def steps(root: Path, backends: Path, scratch: Path) -> dict[str, str]:
    hook = scratch / "end_at.sh"
    hook.write_text(END_AT, encoding="utf-8")
    return {"BASH_ENV": str(hook), "COUNT": str(scratch / "count"), "END_BY": "KILL"}


def chosen(count: int, last: int) -> list[int]:
    """All of the last steps, where things are moved, and some of the many that check and copy."""
    return sorted({*range(1, count + 1, 60), *range(max(1, count - last), count + 1)})


@pytest.mark.slow
@pytest.mark.parametrize("how", ["KILL", "TERM"])
def test_ended_at_any_step_a_first_installation_is_whole_or_not_there(
    unpacked: Path, backends: Path, tmp_path: Path, how: str
) -> None:
    hook = steps(unpacked, backends, tmp_path)
    assert run_sh(unpacked, backends, **hook, END_AT="0")[0] == 0
    count = int((tmp_path / "count").read_text())
    shutil.rmtree(backends / "jax")
    ended = []
    for number in chosen(count, 10):
        options = {**hook, "END_BY": how, "END_AT": str(number)}
        ended.append(run_sh(unpacked, backends, **options)[0])
        there = (backends / "jax").is_dir()
        assert not there or whole(backends / "jax"), number
        if how == "TERM":
            assert left_over(backends) == [], number
        assert run_sh(unpacked, backends)[0] == 0, number
        assert whole(backends / "jax"), number
        assert left_over(backends) == [], number
        shutil.rmtree(backends / "jax")
    assert sum(status != 0 for status in ended) > 3  # it was ended, not only run


@pytest.mark.slow
@pytest.mark.parametrize("how", ["KILL", "TERM"])
def test_ended_at_any_step_another_build_or_the_one_from_before_is_there(
    unpacked: Path, tarball: Path, backends: Path, tmp_path: Path, how: str
) -> None:
    before = tmp_path / "before"
    install_sh(unpacked, "--backends", backends)
    an_environment(backends / "jax" / "env")
    shutil.move(backends / "jax", before)
    rebuilt(unpacked, "9.9.9")
    hook = steps(unpacked, backends, tmp_path)

    def put_before() -> None:
        shutil.rmtree(backends / "jax", ignore_errors=True)
        shutil.copytree(before, backends / "jax", symlinks=True)

    put_before()
    assert run_sh(unpacked, backends, "--force", **hook, END_AT="0")[0] == 0
    count = int((tmp_path / "count").read_text())
    ended = []
    for number in chosen(count, 30):
        put_before()
        options = {**hook, "END_BY": how, "END_AT": str(number)}
        ended.append(run_sh(unpacked, backends, "--force", **options)[0])
        kept = [backends / "jax", *backends.glob(".jax.old.*")]
        assert any(path.is_dir() and whole(path) for path in kept), number
        if how == "TERM":  # it had the time to put things back
            assert whole(backends / "jax"), number
            assert (backends / "jax" / "env" / "kept").is_file(), number
            assert left_over(backends) == [], number
        status, said = run_sh(unpacked, backends, "--force")
        assert status == 0, (number, said)
        assert project_version(backends / "jax") == "9.9.9"
        assert whole(backends / "jax"), number
        assert (backends / "jax" / "env" / "kept").is_file(), number
        assert left_over(backends) == [], number
    assert sum(status != 0 for status in ended) > 3


def test_told_to_end_it_puts_back_what_the_script_moved(
    unpacked: Path, backends: Path, tmp_path: Path
) -> None:
    unlock(unpacked)
    made = packed(unpacked, f"tritonserver-jax-{__version__}-triton24.10-linux-x86_64.tar.gz")
    uv = tmp_path / "uv"  # hangs where the packages are installed
    uv.write_text('#!/bin/sh\n[ "$1" = --version ] && exit\ntouch "$0.installs"\nexec sleep 60\n')
    uv.chmod(0o755)
    command = [*PROGRAM, str(made), "--backends", str(backends), "--with-env"]
    running = subprocess.Popen(command, env=environment(UV=str(uv)), start_new_session=True)
    deadline = time.monotonic() + 60
    while not (tmp_path / "uv.installs").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    running.send_signal(signal.SIGTERM)
    assert running.wait(60) == 143
    assert list(backends.iterdir()) == []
