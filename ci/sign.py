# SPDX-License-Identifier: Apache-2.0
"""Signs folders of artifacts: by a key, by the identity of a pipeline's job, or by both.

``python -m ci.sign dist/24.10 dist/python`` takes what it is given:

* ``TRITONSERVER_JAX_SIGNING_KEY_FILE`` names a file with an Ed25519 private key in PEM (or
  ``TRITONSERVER_JAX_SIGNING_KEY`` holds the PEM itself; ``…_PASSWORD`` unlocks it). It signs
  without a network: ``SHA256SUMS.sig`` and ``provenance.intoto.jsonl``.
* ``SIGSTORE_ID_TOKEN`` is a job's identity (GitLab's ``id_tokens`` with ``aud: sigstore``). cosign
  then signs without a key, and enters it into the public log: ``SHA256SUMS.sigstore.json``.

A folder is verified before it is signed; what is no folder of artifacts is left out. No key is ever
written to the log or to a file.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from ci.process import CommandError, fail, run
from tritonserver_jax.artifacts import VerificationError, layout, verify_directory
from tritonserver_jax.artifacts.signature import key_id_of, make_envelope

__all__ = [
    "KEY",
    "KEY_FILE",
    "PASSWORD",
    "TOKEN",
    "SigningError",
    "folders_of_artifacts",
    "sign_folder",
]

#: The variables; GitLab calls the first one a variable of type "file".
KEY_FILE: Final = "TRITONSERVER_JAX_SIGNING_KEY_FILE"
KEY: Final = "TRITONSERVER_JAX_SIGNING_KEY"
PASSWORD: Final = "TRITONSERVER_JAX_SIGNING_KEY_PASSWORD"  # noqa: S105 # its name
TOKEN: Final = "SIGSTORE_ID_TOKEN"  # noqa: S105 # its name


class SigningError(RuntimeError):
    """There is nothing to sign with, or it is not what it should be."""


def private_key(variables: Mapping[str, str]) -> Ed25519PrivateKey | None:
    """Return the key that the variables name, or None when they name none.

    Raises:
        SigningError: It cannot be read, or is another kind of key. The message holds no key.
    """
    if path := variables.get(KEY_FILE):
        where = f"{KEY_FILE}={path}"
        try:
            content = Path(path).read_bytes()
        except OSError as error:
            raise SigningError(
                f"{where}: expected a file that can be read: {error.strerror}"
            ) from error
    elif text := variables.get(KEY):
        where, content = KEY, text.encode()
    else:
        return None
    password = variables.get(PASSWORD)
    try:
        key = load_pem_private_key(content, password.encode() if password else None)
    except TypeError:
        remedy = f"set {PASSWORD}" if password is None else f"unset {PASSWORD}"
        raise SigningError(f"{where}: the key does not fit its password; {remedy}") from None
    except ValueError:
        # Whatever the library says about the content is left out: it is a secret.
        raise SigningError(
            f"{where}: expected an Ed25519 private key in PEM, got something else (or another "
            "password); make one with: openssl genpkey -algorithm ed25519 -out KEY"
        ) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise SigningError(f"{where}: expected an Ed25519 private key, got another kind of key")
    return key


def sign_folder(folder: Path, variables: Mapping[str, str]) -> list[Path]:
    """Sign a folder of artifacts, by every means that there is.

    Args:
        folder: As in ``dist/24.10``.
        variables: Where the key or the identity is; see this module.

    Returns:
        The signatures.

    Raises:
        SigningError: There is nothing to sign with.
        VerificationError: The folder is not whole.
        CommandError: cosign failed.
    """
    key = private_key(variables)
    token = variables.get(TOKEN)
    if key is None and not token:
        raise SigningError(
            f"expected a key in {KEY_FILE} or {KEY}, or a job's identity in {TOKEN}, got none; "
            "make a key with openssl genpkey -algorithm ed25519 -out KEY, outside of every "
            f"repository, and set {KEY_FILE}=KEY (a protected variable, in a pipeline); "
            "docs/verify.md#sign says more"
        )
    verify_directory(folder)
    made = []
    if key is not None:
        signature, envelope = folder / layout.SIGNATURE, folder / layout.ENVELOPE
        signature.write_bytes(key.sign((folder / layout.CHECKSUMS).read_bytes()))
        envelope.write_bytes(make_envelope((folder / layout.PROVENANCE).read_bytes(), key))
        print(f"{folder}: signed by the key {key_id_of(key.public_key())}")
        made += [signature, envelope]
    if token:
        made.append(_sign_keyless(folder, variables))
    return made


def folders_of_artifacts(paths: Sequence[Path]) -> list[Path]:
    """Choose the folders of artifacts among what was named, and say what is left out.

    ``dist/*`` has the Helm chart as well, once it has been packaged. A folder with anything of a
    folder of artifacts is one, so that what is damaged is refused, and not left out.

    Raises:
        SigningError: There is none, or something is not there.
    """
    found = []
    for path in paths:
        if not path.exists():
            raise SigningError(
                f"{path}: expected a folder of artifacts, found nothing; build it with "
                "./ci/nox -s package-24.10 package-python"
            )
        if _is_of_artifacts(path):
            found.append(path)
        else:
            print(f"{path}: left out, because it is no folder of artifacts", flush=True)
    if not found:
        raise SigningError(
            f"expected a folder of artifacts, got {', '.join(map(str, paths))}; name such as "
            "dist/24.10 or dist/python"
        )
    return found


def _is_of_artifacts(path: Path) -> bool:
    """Whether a folder has an artifact, or something that describes one."""
    if not path.is_dir():
        return False
    described = (layout.CHECKSUMS, layout.LISTING, layout.PROVENANCE, *layout.SIGNATURES)
    python = (layout.wheel_name("*"), layout.sdist_name("*"))
    return (
        any((path / name).exists() for name in described)
        or any(layout.TARBALL_NAME.fullmatch(one.name) for one in path.iterdir())
        or any(one for pattern in python for one in path.glob(pattern))
    )


def _sign_keyless(folder: Path, variables: Mapping[str, str]) -> Path:
    """Sign SHA256SUMS, which has the digest of everything else, by the job's identity."""
    cosign = shutil.which("cosign", path=variables.get("PATH"))
    if cosign is None:
        raise SigningError(
            f"cosign: expected on PATH, because {TOKEN} is set; got none: use an image that has "
            f"it, or unset {TOKEN} and sign with a key"
        )
    bundle = folder / layout.BUNDLE
    # cosign takes the token from the environment, so that no list of processes shows it.
    sums = str(folder / layout.CHECKSUMS)
    command = [cosign, "sign-blob", "--yes", f"--bundle={bundle}", sums]
    run(command, env=variables)
    if not bundle.is_file():
        raise SigningError(f"cosign ended well and did not make {bundle}")
    print(f"{folder}: signed by the identity of this job")
    return bundle


def main(arguments: Sequence[str] | None = None) -> int:
    """Sign the folders that are named."""
    parser = argparse.ArgumentParser(
        prog="python -m ci.sign",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "folder", nargs="+", type=Path, help="a folder of artifacts; what is none is left out"
    )
    options = parser.parse_args(arguments)
    try:
        for folder in folders_of_artifacts(options.folder):
            for path in sign_folder(folder.resolve(), os.environ):
                print(path)
    except (CommandError, OSError, SigningError, VerificationError) as error:
        return fail(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
