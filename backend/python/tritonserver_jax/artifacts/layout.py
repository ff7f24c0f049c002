# SPDX-License-Identifier: Apache-2.0
"""The names of the files that are released, and of those that describe them.

A folder of artifacts (``dist/24.10``, ``dist/python``) holds:

* the artifacts: a tarball, or a wheel and an sdist;
* an SBOM of each, ``<artifact>.cdx.json``;
* ``provenance.json``: how all of them were made;
* ``artifacts.json``: every file above, with kind, size and SHA-256;
* ``SHA256SUMS``: the SHA-256 of every file above, in the form of ``sha256sum``;
* signatures, when it was signed. They are over the files above, so nothing lists them.

`ci` writes such folders, and `tritonserver_jax.artifacts.verify` reads them.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = [
    "BUNDLE",
    "CHECKSUMS",
    "ENVELOPE",
    "LISTING",
    "LISTING_SCHEMA",
    "NEEDS_SBOM",
    "PROVENANCE",
    "SBOM_SUFFIX",
    "SIGNATURE",
    "SIGNATURES",
    "TARBALL_NAME",
    "TOP",
    "sdist_name",
    "tarball_name",
    "wheel_name",
]

LISTING: Final = "artifacts.json"
CHECKSUMS: Final = "SHA256SUMS"
PROVENANCE: Final = "provenance.json"
SBOM_SUFFIX: Final = ".cdx.json"

#: The 64 bytes of an Ed25519 signature over ``SHA256SUMS``, as ``openssl pkeyutl -rawin`` makes it.
SIGNATURE: Final = "SHA256SUMS.sig"
#: A Sigstore bundle over ``SHA256SUMS``, as ``cosign sign-blob --bundle`` makes it.
BUNDLE: Final = "SHA256SUMS.sigstore.json"
#: A DSSE envelope around ``provenance.json``, on one line.
ENVELOPE: Final = "provenance.intoto.jsonl"
SIGNATURES: Final = (SIGNATURE, BUNDLE, ENVELOPE)

#: The form of ``artifacts.json``.
LISTING_SCHEMA: Final = 1

#: The kinds of artifacts that come with an SBOM.
NEEDS_SBOM: Final = ("tarball", "wheel", "sdist")

#: The one folder in a tarball.
TOP: Final = "jax"

TARBALL_NAME: Final = re.compile(
    r"tritonserver-jax-(?P<version>[0-9][0-9a-z.]*)-triton(?P<release>\d\d\.\d\d)"
    r"-linux-x86_64\.tar\.gz"
)


def tarball_name(version: str, release: str) -> str:
    """Return the file name of a tarball, as of ``"0.1.0"`` for ``"24.10"``."""
    return f"tritonserver-jax-{version}-triton{release}-linux-x86_64.tar.gz"


def wheel_name(version: str) -> str:
    """Return the file name of the wheel of a project version."""
    return f"tritonserver_jax-{version}-py3-none-any.whl"


def sdist_name(version: str) -> str:
    """Return the file name of the sdist of a project version."""
    return f"tritonserver_jax-{version}.tar.gz"
