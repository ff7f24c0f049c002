# SPDX-License-Identifier: Apache-2.0
"""What each competitor runs: the same network, in the form that it wants."""
