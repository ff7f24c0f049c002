# SPDX-License-Identifier: Apache-2.0
"""A JAX backend for NVIDIA Triton Inference Server.

This package is the Python half of the backend. It is split by where it runs:

* ``tritonserver_jax.runtime`` runs inside the server, in the interpreter which the backend embeds;
* ``tritonserver_jax.server`` and ``tritonserver_jax.releases`` run outside it, in tools and tests.

Importing the package itself costs nothing: JAX is imported only by the parts that need it.
"""

#: The project version. This is its only declaration: the wheel, the native libraries, the
#: artifacts and the tag check (``python -m ci.version``) all read it from here.
__version__ = "0.1.0"
