# SPDX-License-Identifier: Apache-2.0
"""The one exception of this package."""

from __future__ import annotations

__all__ = ["ServerError"]


class ServerError(RuntimeError):
    """A tritonserver could not be obtained, started, reached or stopped; the message says why."""
