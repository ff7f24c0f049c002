# SPDX-License-Identifier: Apache-2.0
"""The model.py of models that have trouble, each of one kind, for alerts to be raised about."""
