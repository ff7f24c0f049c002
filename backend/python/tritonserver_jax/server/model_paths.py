# SPDX-License-Identifier: Apache-2.0
"""How a request over HTTP names a model: as it is called, since Triton decodes nothing.

``%20`` in a path is three characters of a name to it. So a name goes into a path as the bytes that
it has in UTF-8, and a few names cannot be asked for at all.
"""

from __future__ import annotations

import http.client
import re
from typing import Final

from tritonserver_jax.server.errors import ServerError

__all__ = ["PlainConnection", "can_be_asked", "curl_takes", "model_path"]

#: What ends a path, or the line that it is in.
_ENDS: Final = re.compile(r"[\x00-\x20\x7f/?]")
#: What curl takes for something else than a part of a name.
_MEANT: Final = re.compile(r"[#\[\]{}\\]")


class PlainConnection(http.client.HTTPConnection):
    """A connection that sends a path as it is."""

    def _encode_request(self, request: str) -> bytes:
        return request.encode()


def can_be_asked(name: str) -> bool:
    """Whether a request over HTTP can name a model so."""
    return _ENDS.search(name) is None


def curl_takes(name: str) -> bool:
    """Whether curl, and what is made with it, asks for a model by its name.

    It encodes what is not ASCII.
    """
    return can_be_asked(name) and name.isascii() and _MEANT.search(name) is None


def model_path(name: str) -> str:
    """Return a model as a part of a path.

    Raises:
        ServerError: No request can name it.
    """
    if not can_be_asked(name):
        raise ServerError(
            f"model {name!r}: expected a name that a request over HTTP can have, which Triton "
            "takes as it is written: without a space, / and ?; rename its folder, or ask a server "
            "that has it by gRPC"
        )
    return name
