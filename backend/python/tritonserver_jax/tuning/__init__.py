# SPDX-License-Identifier: Apache-2.0
"""Measuring a served model, and looking for the configuration that serves it best."""
