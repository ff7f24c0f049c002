# SPDX-License-Identifier: Apache-2.0
"""The failure that making a model can have."""

from __future__ import annotations

__all__ = ["AuthoringError"]


class AuthoringError(Exception):
    """A model cannot be made, in words: what was expected, what was found; what to do."""
