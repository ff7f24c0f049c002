# SPDX-License-Identifier: Apache-2.0
"""The launcher ``ci/nox``: it makes its environment once, remakes it when it must, or says why.

These run the real script in a copy of a checkout; pip installs from a local wheel, so that they
need no network.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from ci.process import ROOT

pytestmark = pytest.mark.slow

NOX = """\
import os, sys
assert "PYTHONDONTWRITEBYTECODE" not in os.environ
print("nox", os.getcwd(), os.environ["PATH"].split(":")[0], *sys.argv[1:])
"""


def wheel(
    directory: Path, name: str, version: str, main: str, scripts: dict[str, str] | None = None
) -> Path:
    """Makes a small pure Python wheel, as the format asks for it."""
    info = f"{name}-{version}.dist-info"
    members = {
        f"{name}/__init__.py": "",
        f"{name}/__main__.py": main,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    for script, text in (scripts or {}).items():
        members[f"{name}-{version}.data/scripts/{script}"] = text
    record = ""
    for member, text in members.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        record += f"{member},sha256={digest.decode()},{len(text.encode())}\n"
    members[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n"
    path = directory / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in members.items():
            entry = zipfile.ZipInfo(member)
            entry.external_attr = (0o100755 if "/scripts/" in member else 0o100644) << 16
            archive.writestr(entry, text)
    return path


class Checkout:
    """A directory with the launcher, and requirements that a local directory can meet."""

    def __init__(self, root: Path, python: Path) -> None:
        self.python = python
        self.root = root / "check out"
        self.wheels = root / "wheels"
        self.wheels.mkdir(parents=True)
        (self.root / "ci").mkdir(parents=True)
        shutil.copy2(ROOT / "ci" / "nox", self.root / "ci" / "nox")
        self.require("1.0")

    def require(self, version: str, *, digest: str | None = None) -> None:
        lines = []
        for name, main in (("nox", NOX), ("uv", "")):
            path = wheel(self.wheels, name, version, main)
            found = digest or hashlib.sha256(path.read_bytes()).hexdigest()
            lines.append(f"{name}=={version} --hash=sha256:{found}\n")
        requirements = self.root / "ci" / "requirements-nox.txt"
        requirements.write_text("".join(lines), encoding="utf-8")

    def start(self, *arguments: str, **changes: str) -> subprocess.Popen[str]:
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PIP_", "VIRTUAL_ENV", "PYTHON"))
        }
        environment |= {
            "PYTHON": str(self.python),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.wheels).replace(" ", "%20"),
            "PIP_CONFIG_FILE": os.devnull,
        }
        return subprocess.Popen(
            [str(self.root / "ci" / "nox"), *arguments],
            env=environment | changes,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, **changes: str) -> tuple[int, str, str]:
        process = self.start(*arguments, **changes)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err


@pytest.fixture(scope="module")
def python_with_pip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("python") / "with pip"
    venv.create(folder, with_pip=True)
    return folder / "bin" / "python"


@pytest.fixture
def checkout(tmp_path: Path, python_with_pip: Path) -> Checkout:
    return Checkout(tmp_path, python_with_pip)


@pytest.mark.parametrize("pip", [True, False])
def test_it_makes_the_environment_once_and_passes_the_arguments(
    checkout: Checkout, tmp_path: Path, *, pip: bool
) -> None:
    if not pip:
        venv.create(tmp_path / "without pip", with_pip=False)
        checkout.python = tmp_path / "without pip" / "bin" / "python"
    status, out, err = checkout.run("-s", "a b")
    assert status == 0, err
    assert "making" in err
    made = checkout.root / ".venv-nox"
    assert out == f"nox {checkout.root} {made}/bin -s a b\n"
    assert (made / "bin" / "pip").exists() is not pip
    status, out, err = checkout.run()
    assert (status, err) == (0, "")


def test_it_remakes_the_environment_when_the_pins_change(checkout: Checkout) -> None:
    checkout.run()
    session = checkout.root / ".nox" / "lint"
    session.mkdir(parents=True)
    checkout.run()
    assert session.exists()
    checkout.require("2.0")
    status, _, err = checkout.run()
    assert status == 0
    assert "making" in err
    site = next((checkout.root / ".venv-nox" / "lib").glob("python*/site-packages"))
    assert (site / "nox-2.0.dist-info").is_dir()
    assert not (site / "nox-1.0.dist-info").exists()
    assert not session.exists()


def test_it_remakes_an_environment_that_was_moved_or_broken(checkout: Checkout) -> None:
    checkout.run()
    moved = checkout.root.rename(checkout.root.with_name("moved"))
    checkout.root = moved
    status, out, err = checkout.run()
    assert status == 0
    assert "making" in err
    assert str(moved) in out
    (moved / ".venv-nox" / "bin" / "python").unlink()
    status, _, err = checkout.run()
    assert status == 0
    assert "making" in err


def test_a_wrong_hash_is_refused_and_nothing_is_kept(checkout: Checkout) -> None:
    checkout.require("1.0", digest="0" * 64)
    status, _, err = checkout.run()
    assert status == 1
    assert "DO NOT MATCH THE HASHES" in err
    assert "ci/nox: error: pip could not install" in err
    checkout.require("1.0")
    assert checkout.run()[0] == 0


def test_two_at_once_make_one_environment(checkout: Checkout) -> None:
    processes = [checkout.start(str(number)) for number in range(3)]
    results = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert sum("making" in err for _, err in results) == 1


def test_a_python_that_does_not_run_is_named(checkout: Checkout, tmp_path: Path) -> None:
    status, _, err = checkout.run(PYTHON=str(tmp_path / "absent"))
    assert status == 1
    assert err == (
        f"ci/nox: error: PYTHON={tmp_path}/absent does not run, or is older than 3.11.\n"
    )


def test_an_old_python3_is_passed_over_for_a_newer_one(checkout: Checkout, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "dirname", "id", "cat", "rm", "mkdir", "flock", "env"):
        found = shutil.which(name)
        assert found
        (programs / name).symlink_to(found)
    old = programs / "python3"
    old.write_text(
        '#!/bin/sh\ncase "$1" in -V) echo "Python 3.9.2" ;; *) exit 1 ;; esac\n', encoding="utf-8"
    )
    old.chmod(0o755)
    status, _, err = checkout.run(PYTHON="", PATH=str(programs))
    assert status == 1
    assert "Python 3.11 or newer is needed, and python3 is Python 3.9.2" in err
    new = programs / "python3.13"
    new.write_text(f'#!/bin/sh\nexec "{checkout.python}" "$@"\n', encoding="utf-8")
    new.chmod(0o755)
    status, _, err = checkout.run(PYTHON="", PATH=str(programs))
    assert status == 0, err


#: What uv does when it is told to install a Python, as far as the launcher looks.
UV = """\
#!/bin/sh
while [ $# -gt 1 ]; do
    case "$1" in
        --install-dir) directory=$2 ;;
        --python-downloads-json-url) grep -q "cpython-3.12.14-" "$2" || exit 1 ;;
    esac
    shift
done
bin=$directory/cpython-$1-linux-x86_64-gnu/bin
mkdir -p "$bin"
printf '#!/bin/sh\\nexec "%s" "$@"\\n' "$REAL_PYTHON" >"$bin/python3.12"
chmod +x "$bin/python3.12"
"""


def test_where_python3_is_too_old_the_pinned_one_is_fetched(
    checkout: Checkout, tmp_path: Path
) -> None:
    docker = checkout.root / "packaging" / "docker"
    docker.mkdir(parents=True)
    shutil.copy2(ROOT / "packaging" / "docker" / "python-downloads.json", docker)
    tool = wheel(tmp_path, "uv", "2.0", "", {"uv": UV})
    digest = hashlib.sha256(tool.read_bytes()).hexdigest()
    requirements = docker / "requirements-uv.txt"
    requirements.write_text(f"uv==2.0 --hash=sha256:{digest}\n", encoding="utf-8")
    programs = tmp_path / "bin"
    programs.mkdir()
    tools = "sh dirname id cat chmod rm mkdir flock grep sed tail"
    for name in tools.split():
        found = shutil.which(name)
        assert found
        (programs / name).symlink_to(found)
    old = programs / "python3"
    old.write_text(
        '#!/bin/sh\ncase "$1" in -V) echo "Python 3.10.12" ;; '
        f'-m) exec "{checkout.python}" "$@" ;; *) exit 1 ;; esac\n',
        encoding="utf-8",
    )
    old.chmod(0o755)
    changes = {"PYTHON": "", "PATH": str(programs), "REAL_PYTHON": str(checkout.python)}
    links = f"{checkout.wheels} {tmp_path}".replace("check out", "check%20out")
    status, out, err = checkout.run("-l", PIP_FIND_LINKS=links, **changes)
    assert status == 0, err
    assert "python3 is Python 3.10.12: getting Python 3.12.14 into build/python (once)" in err
    assert out.endswith(" -l\n")
    status, _, err = checkout.run("-l", **changes)
    assert (status, err) == (0, "")
    requirements.write_text(f"uv==2.0 --hash=sha256:{'0' * 64}\n", encoding="utf-8")
    shutil.rmtree(checkout.root / "build" / "python")
    status, _, err = checkout.run("-l", PIP_FIND_LINKS=links, **changes)
    assert status == 1
    assert "DO NOT MATCH THE HASHES" in err
    assert "Python 3.11 or newer is needed, and python3 is Python 3.10.12" in err


def test_a_missing_venv_module_names_the_command_for_a_user_without_root(
    checkout: Checkout, tmp_path: Path
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    scripts = {
        # A Python as Debian has it before python3-venv is installed.
        "python3": f'case "$*" in *ensurepip*) exit 1 ;; esac\nexec "{sys.executable}" "$@"',
        "sudo": "exit 1",
        "apt-get": "exit 0",
        "id": "echo 1000",
    }
    for name, body in scripts.items():
        (programs / name).write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        (programs / name).chmod(0o755)
    status, _, err = checkout.run(PYTHON="", PATH=f"{programs}:/usr/bin:/bin")
    package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
    assert status == 1
    assert err == (
        f"ci/nox: error: missing: {package}. "
        f"Run: sudo apt-get update && sudo apt-get install -y {package}\n"
    )
