# SPDX-License-Identifier: Apache-2.0
"""The release under test: that it is the one, and that the artifact's health check says so."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.backend import LOAD_TIMEOUT, Backend
from tests.support.scripts import run_script

pytestmark = [pytest.mark.core, pytest.mark.integration]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_the_health_check_of_the_artifact(backend: Backend, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES / "add_sub", tmp_path / "add_sub")
    check = backend.directory / "jax" / "scripts" / "health_check.py"
    with backend.server(tmp_path) as server:
        server.wait_model("add_sub", timeout=LOAD_TIMEOUT)
        assert server.server_version() == backend.distribution.release.server_version
        url = server.http_url
        status, text = run_script(check, "--url", url, "--model", "add_sub")
        assert status == 0, text
        status, text = run_script(check, "--url", url, "--model", "nobody", "--timeout", "2")
        assert status != 0
        assert "nobody" in text
    status, text = run_script(check, "--url", url, "--timeout", "2")
    assert status != 0
    assert url in text
