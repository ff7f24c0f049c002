# SPDX-License-Identifier: Apache-2.0
"""What may go wrong when something is published, and whether to try again."""

from __future__ import annotations

import re
from typing import Final

__all__ = [
    "AccessError",
    "DeployError",
    "DifferentBytesError",
    "PassingError",
    "error_of_status",
    "error_of_text",
]

_REFUSED: Final = re.compile(
    r"unauthorized|authentication required|denied|forbidden|incorrect username or password"
    r"|\b40[13]\b",
    re.IGNORECASE,
)


class DeployError(RuntimeError):
    """Something is not published, and the message says what to do."""


class AccessError(DeployError):
    """A service does not let us in; to try again would change nothing."""

    def __init__(self, service: str, said: str, variables: str) -> None:
        super().__init__(
            f"{service}: access was refused ({said}), and is not tried again; look at {variables}: "
            "is it set in this job, not expired, and allowed to write there? (A protected variable "
            "is only there on a protected tag.) Then run the job again: what is published already "
            "is kept"
        )


class DifferentBytesError(DeployError):
    """Under this name there is something else already."""

    def __init__(self, name: str, published: str, ours: str) -> None:
        super().__init__(
            f"{name}: expected to publish {ours}, got {published}, which is there already; what "
            "is published never changes. If this is a new build of the same tag, run the failed "
            "jobs of the first pipeline again instead; otherwise cut a new version"
        )


class PassingError(DeployError):
    """A service failed in a way that may pass, and is asked again."""


def error_of_status(service: str, status: int | None, said: str, variables: str) -> DeployError:
    """Return the error for what a service answered over HTTP.

    Args:
        service: Which, and what was asked.
        status: Of the answer; None when there was none.
        said: Its own words.
        variables: Where the password comes from.
    """
    if status in (401, 403):
        return AccessError(service, f"{status}: {said}", variables)
    if status is None or status >= 500 or status in (408, 429):
        return PassingError(f"{service}: {said}")
    return DeployError(f"{service}: it answered {status}: {said}")


def error_of_text(service: str, said: str, variables: str) -> DeployError:
    """Return the error for what a program said of a service, which has no status of its own."""
    last = said.strip().splitlines()[-1] if said.strip() else "it said nothing"
    if _REFUSED.search(said):
        return AccessError(service, last, variables)
    return PassingError(f"{service}: {last}")
