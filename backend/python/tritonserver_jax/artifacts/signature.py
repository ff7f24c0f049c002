# SPDX-License-Identifier: Apache-2.0
"""Signatures by a key: Ed25519, over ``SHA256SUMS`` and, as a DSSE envelope, over the provenance.

Both are made of what other tools know as well. ``SHA256SUMS.sig`` is the bare signature, which
``openssl pkeyutl -verify -rawin`` checks. The envelope is DSSE (Dead Simple Signing Envelope), as
the in-toto attestation framework has it: the payload in Base64, and signatures over its
"pre-authentication encoding", which binds the payload's type to it.

A key is named by its *key id*: the SHA-256 of the public key in DER (SubjectPublicKeyInfo).
Only this module needs the package ``cryptography``, and imports it when it is used.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tritonserver_jax.artifacts.errors import Problem, VerificationError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

__all__ = [
    "PAYLOAD_TYPE",
    "PublicKey",
    "key_id_of",
    "load_public_key",
    "make_envelope",
    "pre_authentication_encoding",
    "read_envelope",
]

#: The type of an in-toto statement in an envelope.
PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"

_INSTALL: Final = "install it: pip install cryptography; or check by hand with openssl"


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key that signatures are checked with.

    Attributes:
        key_id: The SHA-256 of the key in DER.
        where: Where it was read, for errors.
    """

    key_id: str
    where: str
    _key: Ed25519PublicKey

    def check(self, signature: bytes, message: bytes, *, file: str, of: str) -> None:
        """Check a signature.

        Args:
            signature: It.
            message: What was signed.
            file: The file that it is in.
            of: The file that was signed.

        Raises:
            VerificationError: This key did not make it, or what was signed is not what is there.
        """
        from cryptography.exceptions import InvalidSignature

        try:
            self._key.verify(signature, message)
        except InvalidSignature as error:
            raise VerificationError(
                Problem(
                    file,
                    f"a signature of {of} by the key {self.key_id[:16]}… ({self.where})",
                    "one that does not fit",
                    f"either {of} was changed or another key signed it: do not use these files, "
                    "and compare the key with the one that the project publishes",
                )
            ) from error


def key_id_of(key: Ed25519PublicKey) -> str:
    """Return the key id of a public key."""
    from cryptography.hazmat.primitives import serialization

    der = key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return hashlib.sha256(der).hexdigest()


def load_public_key(path: Path) -> PublicKey:
    """Read an Ed25519 public key in PEM, as ``openssl pkey -pubout`` writes it.

    Raises:
        VerificationError: There is no such key in the file, or no ``cryptography`` to use it.
    """
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise VerificationError(
            Problem("cryptography", "the package, to check a signature", "none", _INSTALL)
        ) from error
    remedy = "name the public key that the project publishes, a PEM file"
    expected = "an Ed25519 public key in PEM"
    try:
        content = path.read_bytes()
    except OSError as error:
        got = f"none that can be read ({error.strerror})"
        raise VerificationError(Problem(str(path), expected, got, remedy)) from error
    try:
        key = serialization.load_pem_public_key(content)
    except Exception as error:
        got = "something else"
        if b"PRIVATE KEY" in content:
            got, remedy = "a private key", "give nobody that file; name the public key"
        raise VerificationError(Problem(str(path), expected, got, remedy)) from error
    if not isinstance(key, ed25519.Ed25519PublicKey):
        got = f"another kind of key ({type(key).__name__.strip('_')})"
        raise VerificationError(Problem(str(path), expected, got, remedy))
    return PublicKey(key_id_of(key), str(path), key)


def pre_authentication_encoding(payload: bytes, payload_type: str = PAYLOAD_TYPE) -> bytes:
    """Return what a DSSE signature is over."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def make_envelope(payload: bytes, key: Ed25519PrivateKey) -> bytes:
    """Return a DSSE envelope around a statement, on one line."""
    signature = key.sign(pre_authentication_encoding(payload))
    envelope = {
        "payloadType": PAYLOAD_TYPE,
        "payload": base64.b64encode(payload).decode(),
        "signatures": [
            {
                "keyid": key_id_of(key.public_key()),
                "sig": base64.b64encode(signature).decode(),
            }
        ],
    }
    return (json.dumps(envelope) + "\n").encode()


def read_envelope(content: bytes, where: str, key: PublicKey | None) -> bytes:
    """Return the payload of a DSSE envelope; checked when a key is given.

    Args:
        content: The envelope.
        where: The file that it is in.
        key: One of its signatures must be by it.

    Raises:
        VerificationError: It is no envelope of a statement, or the key did not sign it.
    """
    remedy = "download it again"
    try:
        envelope = json.loads(content)
        payload = base64.b64decode(envelope["payload"], validate=True)
        kind = envelope["payloadType"]
        signatures = {
            str(one["keyid"]): base64.b64decode(one["sig"], validate=True)
            for one in envelope["signatures"]
        }
    except (AttributeError, KeyError, TypeError, ValueError, binascii.Error) as error:
        raise VerificationError(
            Problem(where, "a DSSE envelope", f"something else ({error!r})", remedy)
        ) from error
    if kind != PAYLOAD_TYPE:
        raise VerificationError(Problem(where, f"a payload of {PAYLOAD_TYPE}", repr(kind), remedy))
    if key is not None:
        signature = signatures.get(key.key_id)
        if signature is None:
            by = ", ".join(f"{one[:16]}…" for one in signatures) or "nobody"
            raise VerificationError(
                Problem(
                    where,
                    f"a signature by the key {key.key_id[:16]}… ({key.where})",
                    f"one by {by}",
                    "name the public key that the project publishes, or do not use these files",
                )
            )
        key.check(signature, pre_authentication_encoding(payload, kind), file=where, of=where)
    return payload
