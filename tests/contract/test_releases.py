# SPDX-License-Identifier: Apache-2.0
"""One binary for every release: what each of them offers, against what the libraries need."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ci.add_release import levels_of_library
from ci.process import ROOT
from ci.symbols import SERVER_PREFIXES, c_api, check_core, check_system, exported, required
from tests.support.api_host import REFUSED, answer_to
from tritonserver_jax.releases import MINIMUM_BACKEND_API, Release, load_releases
from tritonserver_jax.server import obtain_server

RELEASES = load_releases()
SERVED = [name for name, release in RELEASES.items() if release.server]
LEVELS = {name: one.backend_api for name, one in RELEASES.items() if one.backend_api}

every_release = pytest.mark.parametrize("release", list(RELEASES.values()), ids=list(RELEASES))


@pytest.fixture(scope="module")
def core(libraries: Path) -> Path:
    return libraries / "libtriton_jax.so"


@every_release
def test_it_has_every_function_that_the_core_links_to(core: Path, release: Release) -> None:
    check_core(core, release, RELEASES.values())
    needed = {name for name in required(core) if name.startswith(SERVER_PREFIXES)}
    assert len(needed) > 20
    assert needed <= c_api(release, RELEASES.values())


@every_release
def test_its_image_has_the_system_libraries(libraries: Path, release: Release) -> None:
    for library in sorted(libraries.glob("*.so")):
        check_system(library, release)


@pytest.mark.parametrize("release", LEVELS)
def test_its_backend_api_is_accepted_and_the_one_before_the_oldest_is_not(
    core: Path, api_host: Path, release: str
) -> None:
    level = LEVELS[release]
    assert answer_to((level.major, level.minor), core, api_host) == "2 the version was accepted"
    oldest = MINIMUM_BACKEND_API
    older = (oldest.major, oldest.minor - 1)
    assert answer_to(older, core, api_host) == REFUSED.format(*older)


@pytest.mark.parametrize("name", SERVED)
def test_its_server_has_the_c_api_that_is_declared(core: Path, name: str) -> None:
    """The data of releases.toml, against the real thing: no function less, and none more."""
    server = obtain_server(RELEASES[name])
    library = next(server.library_directory.glob("libtritonserver-*.so*"))
    offered = {symbol for symbol in exported(library) if symbol.startswith(SERVER_PREFIXES)}
    assert offered == c_api(RELEASES[name], RELEASES.values())
    levels = {"backend_api": str(LEVELS[name]), "server_api": str(RELEASES[name].server_api)}
    assert levels_of_library(library) == levels
    assert {symbol for symbol in required(core) if symbol.startswith(SERVER_PREFIXES)} <= offered


def test_what_is_looked_up_at_run_time_exists_in_some_release() -> None:
    """A misspelt name would be looked up in vain for ever."""
    source = ROOT / "backend" / "src" / "core" / "optional_api.cc"
    looked_up = set(re.findall(r'"(TRITON\w+)"', source.read_text(encoding="utf-8")))
    added = {name for one in RELEASES.values() for name in one.c_api_functions_added or ()}
    assert len(looked_up) >= 7
    assert looked_up <= added
