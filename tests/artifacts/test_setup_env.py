# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ci.locks import example_requirements_path, lock_path, pinned
from tests.artifacts.test_install import sign
from tests.support.scripts import run_script
from tritonserver_jax import __version__

MARKER = ".tritonserver-jax.json"
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
# Reached by nobody: what is to fail for want of a network fails at once.
NO_NETWORK = {
    "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
    "PIP_EXTRA_INDEX_URL": "",
    "PIP_RETRIES": "0",
    "PIP_NO_CACHE_DIR": "1",
    "PIP_CONFIG_FILE": os.devnull,
    "UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple",
    "UV_HTTP_RETRIES": "0",
    "UV_NO_CACHE": "1",
}


def setup_env(root: Path, *arguments: str | Path, **env: str) -> tuple[int, str]:
    return run_script(root / "scripts" / "setup_env.sh", *arguments, env=env)


def unlock(root: Path) -> None:
    """Reduce every lock to one small package, so that an environment is made in no time.

    What is imported at the end is then not there: for the tests of what fails before.
    """
    for lock in (root / "locks").glob("requirements-cpu-*.txt"):
        text = lock.read_text()
        begin = text.index("absl-py==")
        lock.write_text(text[begin : text.index("\n", text.index("--hash", begin) + 90) + 1])
    sign(root)


@pytest.mark.slow
def test_it_makes_the_environment_from_the_lock_once(unpacked: Path) -> None:
    status, said = setup_env(unpacked)
    assert status == 0, said
    env = unpacked / "env"
    python = env / "bin" / "python"
    code = (
        "import importlib.metadata as m, json; "
        "print(json.dumps({d.metadata['Name'].lower().replace('_', '-'): d.version "
        "for d in m.distributions()}))"
    )
    listed = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=True)
    marker = json.loads((env / MARKER).read_text())
    locked = pinned(unpacked / "locks" / marker["lock"])
    installed = json.loads(listed.stdout)
    installed.pop("pip", None)
    installed.pop("setuptools", None)
    assert installed == {**locked, "tritonserver-jax": __version__}
    assert f"tritonserver_jax {__version__}, jax {locked['jax']}" in said
    assert marker["project_version"] == __version__
    assert Path(marker["libpython"]).is_file()

    before = python.lstat().st_ino
    status, said = setup_env(unpacked)
    assert (status, said) == (0, f"==> up to date: {env}\n")
    assert python.lstat().st_ino == before

    # Each of these means that the environment is not the one the backend was released with.
    lock = unpacked / "locks" / marker["lock"]
    text = lock.read_text()
    lock.write_text(text + "# changed\n")
    sign(unpacked)
    said = setup_env(unpacked, **NO_NETWORK)[1]
    assert "(it was made from another lock)" in said
    assert f"{env} is again as it was before" in said
    assert python.lstat().st_ino == before


def test_a_failed_download_is_shown_and_leaves_nothing(unpacked: Path) -> None:
    unlock(unpacked)
    for installer in ("uv", "pip"):
        if installer == "uv" and shutil.which("uv") is None:
            continue
        status, said = setup_env(unpacked, "--installer", installer, **NO_NETWORK)
        assert status != 0
        assert f"What {installer} said is above" in said
        assert "installing the packages of locks/requirements-cpu-py3" in said
        assert "env was removed (free space there:" in said
        left = sorted(path.name for path in unpacked.iterdir())
        assert not [name for name in left if "env" in name], left


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_a_package_with_another_hash_is_refused(unpacked: Path, installer: str) -> None:
    if installer == "uv" and shutil.which("uv") is None:
        pytest.skip("no uv on PATH")
    unlock(unpacked)
    for lock in (unpacked / "locks").glob("requirements-cpu-*.txt"):
        name, *_ = lock.read_text().splitlines()
        lock.write_text(f"{name}\n    --hash=sha256:{'0' * 64}\n")
    sign(unpacked)
    status, said = setup_env(unpacked, "--installer", installer)
    assert status != 0
    assert "hash" in said.lower()
    assert "0" * 64 in said
    assert not (unpacked / "env").exists()


TABULATE = example_requirements_path("haiku_mlp")


def only(package: str, source: Path, target: Path) -> Path:
    """Write the requirement of one package, from a file of several."""
    text = source.read_text()
    begin = text.index(f"{package}==")
    end = re.compile(r"^(?=[a-z])|\Z", re.MULTILINE).search(text, begin + 1)
    assert end is not None
    target.write_text(text[begin : end.start()])
    return target


@pytest.mark.slow
def test_packages_of_the_operators_own_are_added_and_remembered(
    unpacked: Path, tmp_path: Path
) -> None:
    mine = only("tabulate", TABULATE, tmp_path / "mine.txt")
    env = unpacked / "env"
    status, said = setup_env(unpacked, "--requirements", mine)
    assert status == 0, said
    assert f"installing the packages of {mine}" in said
    assert "checking that the packages go together" in said
    command = [str(env / "bin" / "python"), "-I", "-c", "import tabulate, jax"]
    subprocess.run(command, check=True)
    marker = json.loads((env / MARKER).read_text())
    assert list(marker["requirements"]) == [str(mine)]

    # It is up to date with or without saying so again, and until the file changes.
    assert setup_env(unpacked) == (0, f"==> up to date: {env}\n")
    assert setup_env(unpacked, "--requirements", mine) == (0, f"==> up to date: {env}\n")
    whole = mine.read_text()
    mine.write_text(f"{whole}# changed\n")
    status, said = setup_env(unpacked)
    assert status == 0, said
    assert f"({mine} changed)" in said
    assert f"installing the packages of {mine}" in said
    assert [path.name for path in unpacked.iterdir() if "env" in path.name] == ["env"]

    # Made anew for another reason, it gets them again; or says that it cannot.
    mine.rename(tmp_path / "moved.txt")
    status, said = setup_env(unpacked, "--force")
    assert status == 1
    assert f"was made with --requirements {mine}, which is gone; name the file again" in said
    subprocess.run(command, check=True)
    assert f"it has packages of {mine}" in setup_env(unpacked, "--no-requirements", **NO_NETWORK)[1]
    subprocess.run(command, check=True)


def test_packages_that_would_replace_the_locked_ones_are_refused(
    unpacked: Path, tmp_path: Path
) -> None:
    mine = tmp_path / "mine.txt"
    mine.write_text(f"NumPy==1.26.4 \\\n    --hash=sha256:{'0' * 64}\n")
    status, said = setup_env(unpacked, "--requirements", mine)
    assert status == 1
    assert f"{mine}: numpy==1.26.4, but the backend was tested with " in said
    assert "compile it with --constraint" in said
    assert not (unpacked / "env").exists()


def test_packages_without_a_hash_are_refused(unpacked: Path, tmp_path: Path) -> None:
    unlock(unpacked)
    mine = tmp_path / "mine.txt"
    mine.write_text("tabulate==0.10.0\n")
    status, said = setup_env(unpacked, "--requirements", mine)
    assert status == 1
    assert f"{mine}: expected a --hash for each package, found none for tabulate==0.10.0" in said
    assert "uv pip compile requirements.in --generate-hashes --constraint " in said
    assert "making" not in said
    assert not (unpacked / "env").exists()


HASH = f"--hash=sha256:{'0' * 64}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("equinox\n", "expected each package pinned with ==, got equinox"),
        (f"equinox>=1 {HASH}\n", "expected each package pinned with ==, got equinox>=1"),
        (f"equinox==1.* {HASH}\n", "expected each package pinned with ==, got equinox==1.*"),
        (f"a==1 {HASH}\nb==2 # {HASH}\n", "a --hash for each package, found none for b==2"),
        (f"a==1 \\\n    {HASH}\nb[x]==2 ; os_name\n", "found none for b[x]==2"),
        (f"a==1 {HASH}\n-r more.txt\n", "expected all requirements in this file, got -r more"),
        ("# nothing\n\n", "expected requirements, found none"),
        ("\x00\ud800", "expected a text file of requirements"),
    ],
)
def test_bad_requirements_are_refused_before_anything_is_touched(
    unpacked: Path, tmp_path: Path, text: str, said: str
) -> None:
    env = an_environment(unpacked / "env")
    mine = tmp_path / "mine.txt"
    mine.write_bytes(text.encode("utf-8", "surrogatepass"))
    status, output = setup_env(unpacked, "--requirements", mine)
    assert status == 1
    assert f"{mine}: " in output
    assert said in output
    assert "==> making" not in output
    assert (env / "kept").is_file()


def test_requirements_as_uv_writes_them_pass(unpacked: Path, tmp_path: Path) -> None:
    unlock(unpacked)
    mine = tmp_path / "mine.txt"
    text = f"--index-url https://index.invalid/simple\n\na==1 ; os_name == 'posix' \\\n    {HASH}\n"
    mine.write_text(f"# made\n{text}    # via b\nb @ https://index.invalid/b.whl \\\n    {HASH}\n")
    said = setup_env(unpacked, "--requirements", mine, "--requirements", TABULATE, **NO_NETWORK)[1]
    assert "==> making" in said


def an_environment(env: Path, requirements: Path | None = None) -> Path:
    """One that works as far as it goes, with a file to know it by; of another lock."""
    venv.create(env, with_pip=False)
    marker = {"lock_sha256": "", "requirements": {str(requirements): ""} if requirements else {}}
    (env / MARKER).write_text(json.dumps(marker))
    (env / "kept").touch()
    return env


def test_a_failure_puts_the_environment_from_before_back(unpacked: Path) -> None:
    unlock(unpacked)
    # With files that it was made with, which are not to be forgotten either.
    env = an_environment(unpacked / "env", TABULATE)
    for options in ([], ["--force"]):
        status, said = setup_env(unpacked, *options, **NO_NETWORK)
        assert status != 0
        assert f"{env} is again as it was before" in said
        assert (env / "kept").is_file()
        assert list(json.loads((env / MARKER).read_text())["requirements"]) == [str(TABULATE)]
        assert sorted(path.name for path in unpacked.iterdir() if "env" in path.name) == ["env"]


def test_an_interrupted_run_is_undone_by_the_next(unpacked: Path, tmp_path: Path) -> None:
    an_environment(unpacked / ".env.old")
    (unpacked / "env").mkdir()
    (unpacked / "env" / "pyvenv.cfg").touch()
    mine = tmp_path / "mine.txt"
    mine.write_text("equinox\n")
    said = setup_env(unpacked, "--requirements", mine)[1]
    assert "putting the environment from before back" in said
    assert (unpacked / "env" / "kept").is_file()
    assert not (unpacked / ".env.old").exists()


def test_a_signal_puts_the_environment_from_before_back(unpacked: Path, tmp_path: Path) -> None:
    unlock(unpacked)
    env = an_environment(unpacked / "env")
    uv = tmp_path / "uv"  # hangs where the packages are installed
    uv.write_text('#!/bin/sh\n[ "$1" = --version ] && exit\ntouch "$0.installs"\nexec sleep 60\n')
    uv.chmod(0o755)
    script = unpacked / "scripts" / "setup_env.sh"
    running = subprocess.Popen(
        [script, "--installer", "uv"], env={**os.environ, "UV": str(uv)}, start_new_session=True
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "uv.installs").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not (env / "kept").exists()
    os.killpg(running.pid, signal.SIGTERM)
    assert running.wait(30) != 0
    assert (env / "kept").is_file()
    assert not (unpacked / ".env.old").exists()


def test_packages_that_lack_others_are_refused(unpacked: Path, tmp_path: Path) -> None:
    unlock(unpacked)
    mine = only("dm-haiku", TABULATE, tmp_path / "mine.txt")
    status, said = setup_env(unpacked, "--requirements", mine)
    assert status != 0
    assert "jmp" in said
    assert "checking that the packages go together failed" in said
    assert not (unpacked / "env").exists()


def test_an_environment_that_cannot_import_is_no_environment(unpacked: Path) -> None:
    unlock(unpacked)
    status, said = setup_env(unpacked)
    assert status != 0
    assert "ModuleNotFoundError" in said
    assert "importing what was installed failed" in said
    assert not (unpacked / "env").exists()


def test_a_changed_wheel_or_lock_is_refused(unpacked: Path) -> None:
    with next((unpacked / "wheel").iterdir()).open("ab") as file:
        file.write(b"x")
    status, said = setup_env(unpacked)
    assert status == 1
    assert f"wheel/tritonserver_jax-{__version__}-py3-none-any.whl: FAILED" in said
    assert not (unpacked / "env").exists()


def test_it_removes_nothing_but_an_environment(unpacked: Path, tmp_path: Path) -> None:
    folder = tmp_path / "precious"
    folder.mkdir()
    (folder / "file").write_text("")
    status, said = setup_env(unpacked, "--env", folder)
    assert status == 1
    assert "exists and is no Python environment" in said
    assert (folder / "file").is_file()


def test_an_incomplete_environment_is_made_anew(unpacked: Path) -> None:
    unlock(unpacked)
    env = unpacked / "env"
    env.mkdir()
    (env / "pyvenv.cfg").write_text("")
    said = setup_env(unpacked, **NO_NETWORK)[1]
    assert f"making {env} (it is incomplete)" in said


def test_without_a_suitable_python_each_candidate_is_explained(
    unpacked: Path, tmp_path: Path
) -> None:
    # A lock for none of the Pythons here, a Python that fails, and one that is no Python.
    for lock in (unpacked / "locks").glob("requirements-cpu-*.txt"):
        lock.rename(lock.with_name("requirements-cpu-py399.txt"))
    sign(unpacked)
    shims = tmp_path / "shims"
    shims.mkdir()
    (shims / "python3").write_text("#!/bin/sh\necho 'no such version' >&2\nexit 127\n")
    (shims / "python3").chmod(0o755)
    (shims / "python3.11").symlink_to(sys.executable)
    status, said = setup_env(unpacked, PATH=f"{shims}{os.pathsep}{os.environ['PATH']}")
    assert status == 1
    assert "no suitable Python: expected CPython of 3.99" in said
    assert f"{shims}/python3: does not start" in said
    assert f"{shims}/python3.11: Python {PYTHON}: there is no lock for it" in said
    assert "apt-get install python3.11 libpython3.11 python3.11-venv" in said


def test_a_shim_that_fails_is_passed_over(unpacked: Path, tmp_path: Path) -> None:
    unlock(unpacked)
    shims = tmp_path / "shims"
    shims.mkdir()
    for name in ("python3", "uv"):
        (shims / name).write_text("#!/bin/sh\nexit 127\n")
        (shims / name).chmod(0o755)
    path = f"{shims}{os.pathsep}{os.environ['PATH']}"
    said = setup_env(unpacked, **{**NO_NETWORK, "PATH": path, "UV": ""})[1]
    assert "==> making" in said
    assert f"{shims}/python3," not in said
    assert "by pip" in said


def test_a_python_without_its_shared_library_is_refused(unpacked: Path, tmp_path: Path) -> None:
    # An interpreter that looks for its library where there is none.
    fake = tmp_path / "python3.11"
    fake.write_text(
        "#!/bin/sh\n"
        f'exec "{sys.executable}" -c "\n'
        "import sys, sysconfig\n"
        "real = sysconfig.get_config_var\n"
        "names = dict(INSTSONAME='libnone.so.1', LIBDIR='/none', MULTIARCH=None)\n"
        "sysconfig.get_config_var = lambda name: names.get(name, real(name))\n"
        "sys.base_prefix = '/none'\n"
        "code = sys.argv[3]\n"
        "sys.argv = sys.argv[3:]\n"
        'exec(code)" "$@"\n'
    )
    fake.chmod(0o755)
    status, said = setup_env(unpacked, "--python", fake)
    assert status == 1
    assert f"{fake}: Python {PYTHON}: its shared libnone.so.1 is missing" in said
    assert f"apt-get install libpython{PYTHON}" in said


def test_two_at_once_do_not_meet(unpacked: Path) -> None:
    unlock(unpacked)
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda _: setup_env(unpacked, **NO_NETWORK), range(2)))
    assert all("env was removed" in said for _, said in results)
    assert sum("waiting for another setup_env.sh" in said for _, said in results) <= 1
    assert not (unpacked / "env").exists()


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--help"], 0, "Usage: setup_env.sh"),
        (["--env"], 2, "--env: expected a value"),
        (["--python", "no-such-python"], 1, "--python: expected an executable"),
        (["--requirements"], 2, "--requirements: expected a value"),
        (["--requirements", "no-such-file"], 1, "--requirements: expected a file that can be read"),
        (["--no-requirements", "--requirements", "x"], 2, "--no-requirements: expected alone"),
        (["--installer", "conda"], 2, "--installer: expected uv or pip, got conda"),
        (["extra"], 2, "extra: no such option"),
    ],
)
def test_wrong_options_are_named(
    unpacked: Path, arguments: list[str], status: int, said: str
) -> None:
    got, output = setup_env(unpacked, *arguments)
    assert got == status
    assert said in output


def test_every_lock_has_what_the_runtime_imports() -> None:
    for python in ("3.11", "3.12", "3.13", "3.14"):
        versions = pinned(lock_path(python))
        assert {"jax", "jaxlib", "flax", "numpy", "ml-dtypes"} <= set(versions)
        assert versions["jax"] == versions["jaxlib"]
