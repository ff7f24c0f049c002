# SPDX-License-Identifier: Apache-2.0
"""Tests that start a real tritonserver with the packaged backend."""
