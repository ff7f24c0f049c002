# SPDX-License-Identifier: Apache-2.0
"""The core in C++, without a server and without Python, under sanitizers."""
