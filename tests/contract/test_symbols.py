# SPDX-License-Identifier: Apache-2.0
"""Symbols of the libraries, against those of real servers."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from ci.process import ROOT
from ci.symbols import SERVER_PREFIXES, exported, required

ENTRY_POINTS = {
    "TRITONBACKEND_Initialize",
    "TRITONBACKEND_Finalize",
    "TRITONBACKEND_ModelInitialize",
    "TRITONBACKEND_ModelFinalize",
    "TRITONBACKEND_ModelInstanceInitialize",
    "TRITONBACKEND_ModelInstanceFinalize",
    "TRITONBACKEND_ModelInstanceExecute",
    "TRITONBACKEND_ModelInstanceReady",
}
SYSTEM_LIBRARIES = {
    "libc.so.6",
    "libdl.so.2",
    "libgcc_s.so.1",
    "libm.so.6",
    "libpthread.so.0",
    "libstdc++.so.6",
    "ld-linux-x86-64.so.2",
}


def dynamic_section(library: Path) -> str:
    command = ["readelf", "--dynamic", "--wide", str(library)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_the_core_exports_the_entry_points_and_nothing_else(libraries: Path) -> None:
    assert exported(libraries / "libtriton_jax.so") == ENTRY_POINTS


def test_the_engine_exports_its_one_function(libraries: Path) -> None:
    assert exported(libraries / "libtriton_jax_python.so") == {"triton_jax_python_engine"}


@pytest.mark.parametrize("name", ["libtriton_jax.so", "libtriton_jax_python.so"])
def test_the_libraries_need_the_system_only(libraries: Path, name: str) -> None:
    section = dynamic_section(libraries / name)
    assert "libpython" not in section
    assert set(re.findall(r"\(NEEDED\).*\[(.*)\]", section)) <= SYSTEM_LIBRARIES
    assert "RPATH" not in section
    assert "RUNPATH" not in section


def test_the_core_knows_nothing_of_python(libraries: Path) -> None:
    assert not [name for name in required(libraries / "libtriton_jax.so") if "Py" in name[:4]]


def test_the_engine_knows_nothing_of_triton(libraries: Path) -> None:
    needed = required(libraries / "libtriton_jax_python.so")
    assert not [name for name in needed if name.startswith(SERVER_PREFIXES)]


@pytest.mark.parametrize(
    ("name", "left_to_the_process"),
    [
        ("libtriton_jax.so", ("TRITONBACKEND_", "TRITONSERVER_")),
        ("libtriton_jax_python.so", ("Py", "_Py")),
    ],
)
def test_the_loader_finds_every_other_symbol(
    libraries: Path, name: str, left_to_the_process: tuple[str, ...]
) -> None:
    """What only shows when a server opens the library: a symbol that nothing defines."""
    done = subprocess.run(
        ["ldd", "-r", libraries / name], check=False, capture_output=True, text=True
    )
    report = done.stdout + done.stderr
    assert "not found" not in report
    unresolved = set(re.findall(r"undefined symbol: (\w+)", report))
    assert unresolved, "those that the server, or Python, brings"
    assert not [found for found in unresolved if not found.startswith(left_to_the_process)]


@pytest.mark.parametrize("name", ["libtriton_jax.so", "libtriton_jax_python.so"])
def test_no_path_of_the_building_machine_is_inside(libraries: Path, name: str) -> None:
    assert str(ROOT).encode() not in (libraries / name).read_bytes()
