# SPDX-License-Identifier: Apache-2.0
"""The one exception of this package."""

from __future__ import annotations

__all__ = ["InstallationError"]


class InstallationError(RuntimeError):
    """An artifact was not found, or could not be installed; the message says why."""
