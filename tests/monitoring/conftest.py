# SPDX-License-Identifier: Apache-2.0
"""One server, one Prometheus, and all that was seen of them."""

from __future__ import annotations

import pytest

from ci.monitoring.rehearsal import Observed, rehearse
from ci.monitoring.site import SERVER_ARGS, watched, write_models
from tests.support.backend import LOAD_TIMEOUT, Backend


@pytest.fixture(scope="session")
def observed(backend: Backend, tmp_path_factory: pytest.TempPathFactory) -> Observed:
    """What a real Prometheus saw of a real server: without traffic, under it, and at its end."""
    folder = tmp_path_factory.mktemp("monitoring")
    repository, cache = folder / "models", folder / "cache"
    repository.mkdir()
    cache.mkdir()
    write_models(repository)
    settings = {"compile-cache": str(cache)}
    with backend.server(repository, backend_config=settings, args=SERVER_ARGS) as server:
        server.wait_live(LOAD_TIMEOUT)
        with watched(server, folder / "prometheus") as prometheus:
            return rehearse(server, prometheus)
