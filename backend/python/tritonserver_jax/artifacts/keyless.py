# SPDX-License-Identifier: Apache-2.0
"""Signatures without a key: Sigstore's, by the identity of the job that made the artifacts.

cosign checks them, because that needs Sigstore's roots of trust and its public log.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tritonserver_jax.artifacts import layout
from tritonserver_jax.artifacts.errors import Problem, VerificationError

__all__ = ["SigstoreIdentity", "check_bundle"]


@dataclass(frozen=True, slots=True)
class SigstoreIdentity:
    """Who has to have signed.

    Attributes:
        identity: The subject of the certificate, such as
            ``https://gitlab.com/GROUP/PROJECT//.gitlab-ci.yml@refs/tags/v1.2.3``.
        issuer: Who vouches for it, such as ``https://gitlab.com``.
    """

    identity: str
    issuer: str


def check_bundle(folder: Path, identity: SigstoreIdentity) -> None:
    """Check the Sigstore bundle over ``SHA256SUMS``.

    Raises:
        VerificationError: It is not there, there is no cosign, or cosign refuses it.
    """
    expected = f"a signature of {layout.CHECKSUMS} by {identity.identity} ({identity.issuer})"
    bundle = folder / layout.BUNDLE
    if not bundle.is_file():
        raise VerificationError(
            Problem(
                layout.BUNDLE,
                expected,
                "none",
                "download it too; what is not signed cannot be trusted to be ours",
            )
        )
    cosign = shutil.which("cosign")
    if cosign is None:
        raise VerificationError(
            Problem(
                "cosign",
                f"on PATH, to check {layout.BUNDLE}",
                "none",
                "install it (docs.sigstore.dev), or check the signature by a key",
            )
        )
    command = [
        *(cosign, "verify-blob", f"--bundle={bundle}"),
        f"--certificate-identity={identity.identity}",
        f"--certificate-oidc-issuer={identity.issuer}",
        str(folder / layout.CHECKSUMS),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, errors="replace")
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        raise VerificationError(
            Problem(
                layout.BUNDLE,
                expected,
                f"a refusal of cosign ({said})",
                "do not use these files",
            )
        )
