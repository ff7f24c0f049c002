# SPDX-License-Identifier: Apache-2.0
"""What is released: how it is laid out, and how a stranger verifies it.

* `verify_directory`, `verify_artifact`, `verify_installation`: is it what was released?
* `unpack_tarball`: unpack one that may be hostile.
* `tritonserver_jax.artifacts.layout`: the names of files.

Nothing here needs more than Python, except `cryptography` where a signature is checked.
"""

from tritonserver_jax.artifacts.archives import unpack_tarball
from tritonserver_jax.artifacts.errors import Problem, VerificationError
from tritonserver_jax.artifacts.keyless import SigstoreIdentity
from tritonserver_jax.artifacts.verify import (
    Check,
    Report,
    verify_artifact,
    verify_directory,
    verify_installation,
)

__all__ = [
    "Check",
    "Problem",
    "Report",
    "SigstoreIdentity",
    "VerificationError",
    "unpack_tarball",
    "verify_artifact",
    "verify_directory",
    "verify_installation",
]
