# SPDX-License-Identifier: Apache-2.0
"""The commands, one module each: ``NAME.py`` has a function ``NAME`` decorated by `command`."""
