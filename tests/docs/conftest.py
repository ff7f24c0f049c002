# SPDX-License-Identifier: Apache-2.0
"""What the tests of the documentation share."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import pytest

from ci import toolchain
from ci.guides.__main__ import summary
from ci.guides.blocks import guides, parse_page
from ci.guides.page import Place
from ci.toolchain import Requirement
from tests.support.backend import Backend
from tritonserver_jax.server import TritonServer

#: What the guides' readers have, and a bare machine may not.
PROGRAMS = {"curl": "curl", "jq": "jq", "openssl": "openssl"}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what is run of the guides, and why the rest is not."""
    ran = terminalreporter.stats.get("passed", []) + terminalreporter.stats.get("failed", [])
    if any("test_guides.py" in report.nodeid for report in ran):
        terminalreporter.section("blocks of the guides")
        for line in summary(block for page in guides() for block in parse_page(page)):
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def place(
    pytestconfig: pytest.Config,
    tmp_path_factory: pytest.TempPathFactory,
    backend: Backend,
    server: TritonServer,
    repository: Path,
) -> Place:
    """A machine on which the guides are followed: the installed package, and a server."""
    toolchain.ensure(
        [
            Requirement(name, "any", package, partial(shutil.which, name))
            for name, package in PROGRAMS.items()
        ]
    )
    package = tmp_path_factory.mktemp("package")
    for installed in backend.environment.glob("lib/python3*/site-packages/tritonserver_jax*"):
        (package / installed.name).symlink_to(installed)
    dist: Path = pytestconfig.getoption("--backend-dist")
    return Place(
        package=package,
        dist=dist.resolve(),
        backends=backend.directory,
        server=backend.distribution.root,
        shared=server,
        repository=repository,
        variables=backend.variables,
    )
