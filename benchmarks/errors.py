# SPDX-License-Identifier: Apache-2.0
"""What may go wrong while measuring."""


class BenchmarkError(RuntimeError):
    """Something could not be started or measured, or answered with wrong values."""
