# SPDX-License-Identifier: Apache-2.0
"""GitLab's project, as python-gitlab sees it, with our retries and our words for its errors."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

import requests
from gitlab import Gitlab
from gitlab.exceptions import GitlabError
from gitlab.v4.objects import Project

from ci.deploy.errors import PassingError, error_of_status
from ci.deploy.retries import persistently
from ci.deploy.variables import ProjectVariables

__all__ = ["ACCESS", "ask", "open_project"]

#: Where the password comes from, for messages.
ACCESS: Final = "CI_JOB_TOKEN"
TIMEOUT_SECONDS: Final = 300.0

Result = TypeVar("Result")


@contextlib.contextmanager
def open_project(variables: ProjectVariables) -> Iterator[Project]:
    """Give the project for a while; nothing is asked yet.

    Args:
        variables: Where it is, and who asks.
    """
    client = Gitlab(
        variables.api_url.removesuffix("/api/v4"),
        job_token=variables.token.get_secret_value(),
        timeout=TIMEOUT_SECONDS,
        # The API may be reached by another name than the one that it has for itself.
        keep_base_url=True,
    )
    with client:
        # The token of a job may not read the project itself, and need not.
        yield client.projects.get(variables.project_id, lazy=True)


def ask(what: str, action: Callable[[], Result]) -> Result:
    """Ask GitLab something, and again while it fails with what may pass.

    Args:
        what: For messages, as in ``package registry: SHA256SUMS``.
        action: Asks.

    Raises:
        DeployError: GitLab refused it, or failed too often.
    """

    def once() -> Result:
        try:
            return action()
        except GitlabError as error:
            raise error_of_status(
                what, error.response_code, str(error.error_message), ACCESS
            ) from error
        except requests.RequestException as error:
            raise PassingError(f"{what}: {error}") from error

    return persistently(once)
