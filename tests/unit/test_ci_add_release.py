# SPDX-License-Identifier: Apache-2.0
"""Adding releases, to a copy of releases.toml, from files as they are in a release image."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ci.add_release import AddReleaseError, add_release, facts_of, server_wheel
from ci.process import ROOT
from ci.symbols import c_api
from tritonserver_jax.releases import ReleaseDataError, load_releases

KNOWN = load_releases()
NEWEST = list(KNOWN.values())[-1]
FACTS = {"server_version": "2.99.0", "ubuntu": "24.04", "python": "3.12.3"}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copy(ROOT / "releases.toml", tmp_path / "releases.toml"))


def image(folder: Path, functions: set[str], *, minor: int = 20) -> Path:
    """What of a release image is read: real files, and a real library."""
    root = folder / "opt" / "tritonserver"
    include = root / "include" / "triton" / "core"
    include.mkdir(parents=True)
    for kind, level in (("BACKEND", minor), ("SERVER", minor + 15)):
        (include / f"triton{kind.lower()}.h").write_text(
            f"#pragma once\n#define TRITON{kind}_API_VERSION_MAJOR 1\n"
            f"#define TRITON{kind}_API_VERSION_MINOR {level}\n"
        )
    (root / "TRITON_VERSION").write_text("2.99.0\n")
    (root / "lib").mkdir()
    source = "".join(f"void {name}(void) {{}}\n" for name in sorted(functions))
    library = root / "lib" / "libtritonserver.so"
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)]
    subprocess.run(command, input=source, text=True, check=True)
    (folder / "etc").mkdir()
    (folder / "etc" / "os-release").write_text('NAME="Ubuntu"\nVERSION_ID="24.04"\n')
    status = folder / "var" / "lib" / "dpkg" / "status"
    status.parent.mkdir(parents=True)
    status.write_text(
        "Package: passwd\nStatus: install ok installed\nVersion: 1:4.13\n\n"
        "Package: python3.12-minimal\nStatus: install ok installed\nVersion: 3.12.3-1ubuntu0.9\n"
    )
    cuda = folder / "usr" / "local" / "cuda"
    cuda.mkdir(parents=True)
    (cuda / "version.json").write_text(json.dumps({"cuda": {"version": "13.3.1"}}))
    return folder


def test_a_release_is_added_at_the_end_and_nothing_else_changes(copy: Path) -> None:
    before = copy.read_text()
    lines = add_release(copy, "26.09", FACTS, source=None, wheel=None, update=False)
    after = copy.read_text()
    assert after.startswith(before)
    assert after == before + (
        '\n[release."26.09"]\nserver_version = "2.99.0"\nsupport = "image only"\n'
        'ubuntu = "24.04"\npython = "3.12.3"\n'
    )
    assert "\n".join(lines).strip("\n") == after[len(before) :].strip("\n")
    assert load_releases(copy)["26.09"].support == "image only"


def test_a_release_that_was_left_out_is_put_where_it_belongs(copy: Path) -> None:
    text = copy.read_text()
    start, end = text.index('[release."25.03"]'), text.index('[release."25.04"]')
    copy.write_text(text[:start] + text[end:])
    release = KNOWN["25.03"]
    facts: dict[str, object] = {
        "server_version": release.server_version,
        "backend_api": str(release.backend_api),
        "server_api": str(release.server_api),
        "ubuntu": release.ubuntu,
        "python": release.python,
        "cuda": release.cuda,
        "driver": release.driver,
        "c_api_functions_added": [],
    }
    add_release(copy, "25.03", facts, source=None, wheel=None, update=False)
    assert copy.read_text() == text, "byte for byte what was there"


def test_the_facts_are_read_from_an_unpacked_image(copy: Path, tmp_path: Path) -> None:
    known = c_api(NEWEST, KNOWN.values())
    source = image(tmp_path / "image", known | {"TRITONSERVER_New", "TRITONBACKEND_New", "other"})
    add_release(copy, "26.09", {"driver": "620.1"}, source=source, wheel=None, update=False)
    added = load_releases(copy)["26.09"]
    assert (added.server_version, added.support) == ("2.99.0", "built")
    assert (str(added.backend_api), str(added.server_api)) == ("1.20", "1.35")
    assert (added.ubuntu, added.python, added.cuda) == ("24.04", "3.12.3", "13.3.1")
    assert added.driver == "620.1"
    assert added.c_api_functions_added == ("TRITONBACKEND_New", "TRITONSERVER_New")
    inside = facts_of(source / "opt" / "tritonserver", list(KNOWN.values()))
    assert inside["server_version"] == "2.99.0"
    assert "ubuntu" not in inside


def test_what_becomes_known_later_is_added(copy: Path, tmp_path: Path) -> None:
    release = next(one for one in KNOWN.values() if one.support == "image only")
    before = [one for one in KNOWN.values() if one.release < release.release]
    source = image(tmp_path / "image", c_api(before[-1], before))
    (source / "opt" / "tritonserver" / "TRITON_VERSION").write_text(release.server_version)
    digest = "sha256:" + "ab" * 32
    add_release(
        copy, release.release, {"image_digest": digest}, source=source, wheel=None, update=True
    )
    found = load_releases(copy)[release.release]
    assert (found.support, str(found.backend_api)) == ("built", "1.20")
    assert found.c_api_functions_added == ()
    assert found.image_digest == digest
    kept = [line for line in (ROOT / "releases.toml").read_text().splitlines() if "#" in line]
    assert [line for line in copy.read_text().splitlines() if "#" in line] == kept


@pytest.mark.parametrize(
    ("name", "change", "update", "said"),
    [
        ("24.10", {}, False, "release 24.10 is there already; add --update"),
        ("26.09", {}, True, "release 26.09 is not there; leave --update out"),
        ("22.12", {}, False, "release 22.12: expected one after 23.04"),
        ("26.09", {"ubuntu": None}, False, "expected ubuntu to be known; give --ubuntu"),
        ("26.09", {"server_version": "2.1.0"}, False, "server_version: expected more than 2.72.0"),
        ("26.09", {"ubuntu": "26.04"}, False, "ubuntu: expected one of those in [ubuntu]"),
        ("26.09", {"backend_api": "1.1"}, False, "backend_api: expected at least 1."),
        ("next", {}, False, "expected a name such as \"26.09\" (year.month), got 'next'"),
        ("26.13", {}, False, 'expected a name such as "24.10"'),
        ("24.10", {"server_version": "2.50.0"}, True, "and releases.toml says '2.51.0'"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(
    copy: Path, name: str, change: dict[str, str | None], update: bool, said: str
) -> None:
    before = copy.read_bytes()
    facts = change if update else {**FACTS, **change}
    with pytest.raises((AddReleaseError, ReleaseDataError)) as raised:
        add_release(copy, name, facts, source=None, wheel=None, update=update)
    assert said in str(raised.value)
    assert copy.read_bytes() == before
    assert sorted(copy.parent.iterdir()) == [copy]


def test_an_image_that_contradicts_what_is_given_is_refused(copy: Path, tmp_path: Path) -> None:
    source = image(tmp_path / "image", c_api(NEWEST, KNOWN.values()))
    given = {"server_version": "2.98.0"}
    said = r"the command line says '2\.98\.0', and .*image says '2\.99\.0'"
    with pytest.raises(AddReleaseError, match=said):
        add_release(copy, "26.09", given, source=source, wheel=None, update=False)


def test_functions_that_are_gone_are_named(tmp_path: Path) -> None:
    known = c_api(NEWEST, KNOWN.values())
    source = image(tmp_path / "image", known - {"TRITONBACKEND_RequestRelease"})
    with pytest.raises(AddReleaseError, match="found no TRITONBACKEND_RequestRelease;"):
        facts_of(source, list(KNOWN.values()))


def test_an_empty_folder_is_no_image(tmp_path: Path) -> None:
    with pytest.raises(AddReleaseError, match="expected an unpacked release image"):
        facts_of(tmp_path, list(KNOWN.values()))


def test_a_header_without_its_level_is_named(tmp_path: Path) -> None:
    source = image(tmp_path / "image", c_api(NEWEST, KNOWN.values()))
    header = source / "opt/tritonserver/include/triton/core/tritonserver.h"
    header.write_text("#define TRITONSERVER_API_VERSION_MAJOR 1\n")
    with pytest.raises(AddReleaseError, match=r"h: expected #define TRITONSERVER_API_VERSION_MINO"):
        facts_of(source, list(KNOWN.values()))


def test_what_derives_from_the_file_is_made_anew(tmp_path: Path) -> None:
    """On a copy of the checkout: the session's own command line."""
    checkout = tmp_path / "checkout"
    for name in (".devcontainer", "backend", "ci", "docs", "packaging"):
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, checkout / name, ignore=ignore)
    for name in (".gitlab-ci.yml", "releases.toml", "pyproject.toml"):
        shutil.copy(ROOT / name, checkout)
    facts = ["--server-version=2.99.0", "--ubuntu=24.04", "--python=3.12.3", "--backend-api=1.20"]
    command = [sys.executable, "-m", "ci.add_release", "26.09", *facts]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert '+ [release."26.09"]' in done.stdout
    page = (checkout / "docs" / "releases.md").read_text()
    assert "| 26.09 | 2.99.0 | built | 1.20 | 24.04 | 3.12.3 | not known |" in page
    assert "`nvcr.io/nvidia/tritonserver:26.09-py3-sdk`" in page
    bake = (checkout / "packaging" / "docker" / "docker-bake.hcl").read_text()
    assert "nvcr.io/nvidia/tritonserver:26.09-py3" in bake
    jobs = (checkout / "ci" / "gitlab" / "releases.yml").read_text()
    assert "\nbuild-26.09:\n" in jobs
    assert "health-26.09" not in jobs
    again = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    assert again.returncode == 1
    assert "error: " in again.stderr
    assert "release 26.09 is there already" in again.stderr


@pytest.mark.slow
def test_a_wheel_is_asked_for_its_server(copy: Path) -> None:
    """What the index has, downloaded and started: the entry of 24.10 is found again."""
    release = KNOWN["24.10"]
    wheel, facts = server_wheel(str(release.server and release.server.version), "2.51.0")
    assert wheel == release.server
    assert facts == {
        "backend_api": str(release.backend_api),
        "server_api": str(release.server_api),
        "c_api_functions_added": [],
    }
    with pytest.raises(AddReleaseError, match=r"expected server version 2\.99\.0 in it, got 2\."):
        server_wheel("newest", "2.99.0")
