# SPDX-License-Identifier: Apache-2.0
"""How often a service that fails is asked again, and how long it is left alone before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import tenacity

from ci.deploy.errors import DeployError, PassingError

__all__ = ["ATTEMPTS", "persistently"]

ATTEMPTS: Final = 6
#: 1, 2, 4, 8 and 16 seconds between them, and a little more, so that jobs do not go in step.
WAIT: tenacity.wait.wait_base = tenacity.wait_exponential_jitter(initial=1, max=30, jitter=0.5)

Result = TypeVar("Result")


def persistently(action: Callable[[], Result]) -> Result:
    """Do something, and again while it fails with what may pass.

    Args:
        action: Does it; a `PassingError` asks for another attempt.

    Raises:
        DeployError: The last attempt failed too, or an attempt failed for good.
    """
    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(PassingError),
        stop=tenacity.stop_after_attempt(ATTEMPTS),
        wait=WAIT,
        before_sleep=_say,
        reraise=True,
    )
    try:
        return retrying(action)
    except PassingError as error:
        raise DeployError(
            f"{error}; so it was {ATTEMPTS} times. When the service is well, run the job again: "
            "what is published already is kept"
        ) from error


def _say(state: tenacity.RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    print(f"{error}; attempt {state.attempt_number + 1} of {ATTEMPTS} follows", flush=True)
