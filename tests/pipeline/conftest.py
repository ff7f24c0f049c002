# SPDX-License-Identifier: Apache-2.0
"""The pipeline, and what runs it on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci.gitlab_ci_local import install_runner
from tests.support.gitlab import Pipeline, read_pipeline


@pytest.fixture(scope="session")
def pipeline() -> Pipeline:
    """The pipeline as GitLab reads it."""
    return read_pipeline()


@pytest.fixture(scope="session")
def program() -> Path:
    """gitlab-ci-local, as it is pinned."""
    return install_runner()
