# SPDX-License-Identifier: Apache-2.0
"""The engine's Python side: runs inside tritonserver, called by ``libtriton_jax_python.so``.

``entry`` is what the C++ side calls. Nothing here is for use outside a server.
"""
