# SPDX-License-Identifier: Apache-2.0
"""The one exception of this package."""

from __future__ import annotations

__all__ = ["ArtifactNotFoundError", "InstallationError"]


class InstallationError(RuntimeError):
    """An artifact was not found, or could not be installed; the message says why."""


class ArtifactNotFoundError(InstallationError):
    """What was named as an artifact is none, or is not there; the message says why."""
