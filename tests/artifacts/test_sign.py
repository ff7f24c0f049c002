# SPDX-License-Identifier: Apache-2.0
"""Signatures: by a key, which openssl agrees with; and by a job's identity, through cosign."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from typer.testing import CliRunner

from ci.process import ROOT
from ci.sign import KEY, KEY_FILE, PASSWORD, TOKEN, SigningError, folders_of_artifacts, sign_folder
from tests.support.artifacts import change_json, describe_again, flip
from tritonserver_jax.artifacts import (
    SigstoreIdentity,
    VerificationError,
    layout,
    verify_artifact,
    verify_directory,
)
from tritonserver_jax.artifacts.signature import PAYLOAD_TYPE, pre_authentication_encoding
from tritonserver_jax.cli.app import make_app


def pem(key: Ed25519PrivateKey | rsa.RSAPrivateKey, password: bytes | None = None) -> bytes:
    encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if password is not None:
        encryption = serialization.BestAvailableEncryption(password)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
    )


def write_public(key: Ed25519PrivateKey | rsa.RSAPrivateKey, path: Path) -> Path:
    content = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    path.write_bytes(content)
    return path


@pytest.fixture
def dist(tmp_path: Path, tarball: Path) -> Path:
    return Path(shutil.copytree(tarball.parent, tmp_path / "24.10"))


@pytest.fixture
def key() -> Ed25519PrivateKey:
    return Ed25519PrivateKey.generate()


@pytest.fixture
def public(key: Ed25519PrivateKey, tmp_path: Path) -> Path:
    return write_public(key, tmp_path / "key.pub")


@pytest.fixture
def variables(key: Ed25519PrivateKey, tmp_path: Path) -> Mapping[str, str]:
    """What a pipeline's settings would be."""
    path = tmp_path / "key.pem"
    path.write_bytes(pem(key))
    return {KEY_FILE: str(path)}


@pytest.fixture
def signed(dist: Path, variables: Mapping[str, str]) -> Path:
    sign_folder(dist, variables)
    return dist


def refused(folder: Path, said: str, public_key: Path) -> None:
    with pytest.raises(VerificationError, match=said):
        verify_directory(folder, public_key=public_key)


def test_a_signed_folder_is_accepted_with_its_key(
    signed: Path, public: Path, tarball: Path
) -> None:
    report = verify_directory(signed, release="24.10", public_key=public)
    assert report.signed
    names = [check.name for check in report.checks if check.status == "ok"]
    assert names == [
        *("signature", "checksums", "content", "sbom", "provenance", "signed provenance")
    ]
    assert verify_artifact(signed / tarball.name, public_key=public).signed
    without = verify_directory(signed)
    assert not without.signed
    assert "no public key was given" in without.checks[0].detail


def test_a_signature_counts_for_what_is_installed(
    signed: Path, public: Path, tarball: Path, unpacked: Path, backends: Path
) -> None:
    script = unpacked / "scripts" / "install.sh"
    subprocess.run(["bash", str(script), "--backends", str(backends)], check=True)
    arguments = ["verify", str(backends / "jax"), "--tarball", str(signed / tarball.name)]
    for options, said in (
        (["--key", str(public)], "signed by the key"),
        ([], "no signature was checked"),
    ):
        shown = CliRunner().invoke(make_app(), [*arguments, *options])
        assert shown.exit_code == 0, shown.output
        assert said in shown.stdout
        told = CliRunner().invoke(make_app(), [*arguments, *options, "--json"])
        assert json.loads(told.stdout)["signed"] is bool(options)


def test_openssl_agrees(signed: Path, public: Path) -> None:
    """The way that docs/verify.md shows for those who do not want to run our code."""
    command = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", str(public), "-rawin"]
    sums = ["-in", layout.CHECKSUMS, "-sigfile", layout.SIGNATURE]
    subprocess.run([*command, *sums], cwd=signed, check=True)

    envelope = json.loads((signed / layout.ENVELOPE).read_text())
    assert envelope["payloadType"] == PAYLOAD_TYPE == "application/vnd.in-toto+json"
    payload = base64.b64decode(envelope["payload"])
    assert payload == (signed / layout.PROVENANCE).read_bytes()
    (signature,) = envelope["signatures"]
    message = b"DSSEv1 28 application/vnd.in-toto+json %d %b" % (len(payload), payload)
    assert pre_authentication_encoding(payload) == message
    (signed / "message").write_bytes(message)
    (signed / "signature").write_bytes(base64.b64decode(signature["sig"]))
    sums = ["-in", "message", "-sigfile", "signature"]
    subprocess.run([*command, *sums], cwd=signed, check=True)

    der = ["openssl", "pkey", "-pubin", "-in", str(public), "-outform", "DER"]
    content = subprocess.run(der, capture_output=True, check=True).stdout
    digest = subprocess.run(["sha256sum"], input=content, capture_output=True, check=True).stdout
    assert digest.decode().split()[0] == signature["keyid"]


def test_the_same_key_signs_the_same_bytes(signed: Path, variables: Mapping[str, str]) -> None:
    before = {name: (signed / name).read_bytes() for name in (layout.SIGNATURE, layout.ENVELOPE)}
    sign_folder(signed, variables)
    assert before == {name: (signed / name).read_bytes() for name in before}


def test_signatures_are_no_part_of_what_is_signed(signed: Path, tarball: Path) -> None:
    for name in (layout.CHECKSUMS, layout.LISTING, layout.PROVENANCE):
        assert (signed / name).read_bytes() == (tarball.parent / name).read_bytes()
    subprocess.run(["sha256sum", "--check", "--strict", layout.CHECKSUMS], cwd=signed, check=True)


def test_a_wrong_key_is_refused(signed: Path, tmp_path: Path) -> None:
    wrong = write_public(Ed25519PrivateKey.generate(), tmp_path / "wrong.pub")
    refused(signed, r"SHA256SUMS\.sig: expected a signature of SHA256SUMS by the key", wrong)
    (signed / layout.SIGNATURE).unlink()
    refused(signed, r"SHA256SUMS\.sig: expected a signature by the key .*, got none", wrong)


def test_what_is_changed_after_signing_is_refused(
    signed: Path, public: Path, key: Ed25519PrivateKey
) -> None:
    tarball = next(signed.glob("*.tar.gz"))
    flip(tarball, 1000)
    describe_again(signed)
    refused(signed, r"SHA256SUMS\.sig: expected .*; either SHA256SUMS was changed or", public)
    with pytest.raises(VerificationError, match=r"SHA256SUMS\.sig: expected"):
        verify_artifact(tarball, public_key=public)


@pytest.mark.parametrize("length", [0, 63, 65, 1000])
def test_a_signature_of_another_length_is_refused(signed: Path, public: Path, length: int) -> None:
    (signed / layout.SIGNATURE).write_bytes(bytes(length))
    refused(signed, r"SHA256SUMS\.sig: expected a signature", public)


def test_a_tampered_envelope_is_refused(signed: Path, public: Path, tmp_path: Path) -> None:
    path = signed / layout.ENVELOPE
    good = path.read_bytes()
    envelope = json.loads(good)
    statement = json.loads(base64.b64decode(envelope["payload"]))
    statement["predicate"]["runDetails"]["builder"]["id"] = "https://example.com/trusted"
    payload = base64.b64encode(json.dumps(statement).encode()).decode()

    change_json(path, lambda value: value.update(payload=payload))
    refused(signed, r"provenance\.intoto\.jsonl: expected a signature of", public)
    with pytest.raises(VerificationError, match=r"expected the statement of provenance\.json"):
        verify_directory(signed)  # the contradiction shows without a key as well
    path.write_bytes(good)
    change_json(path, lambda value: value.update(payloadType="text/plain"))
    refused(signed, "expected a payload of application/vnd.in-toto", public)
    for text in ("", "{}", '{"payload": "%", "payloadType": "x", "signatures": []}', "[]"):
        path.write_text(text)
        refused(signed, r"provenance\.intoto\.jsonl: expected a DSSE envelope", public)
    path.write_bytes(good)
    change_json(path, lambda value: value.update(signatures=[]))
    refused(signed, "expected a signature by the key .*, got one by nobody", public)


def test_a_lone_tarball_is_not_accepted_with_a_key(
    tarball: Path, tmp_path: Path, public: Path
) -> None:
    alone = Path(shutil.copy(tarball, tmp_path))
    with pytest.raises(VerificationError, match=r"download SHA256SUMS and SHA256SUMS\.sig"):
        verify_artifact(alone, public_key=public)


def test_what_is_no_public_key_is_refused(
    signed: Path, tmp_path: Path, key: Ed25519PrivateKey
) -> None:
    path = tmp_path / "key.pub"
    refused(signed, "expected an Ed25519 public key in PEM, got none", tmp_path / "absent")
    path.write_text("no key")
    refused(signed, "expected an Ed25519 public key in PEM, got something else", path)
    path.write_bytes(pem(key))
    refused(signed, "got a private key; give nobody that file", path)
    write_public(rsa.generate_private_key(65537, 2048), path)
    refused(signed, r"got another kind of key \(RSAPublicKey\)", path)


def test_without_cryptography_the_remedy_is_named(
    signed: Path, public: Path, tmp_path: Path
) -> None:
    code = (
        "import sys; from pathlib import Path; from tritonserver_jax.artifacts import *\n"
        "try: verify_directory(Path(sys.argv[1]), public_key=Path(sys.argv[2]))\n"
        "except VerificationError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code, signed, public],
        env={**os.environ, "PYTHONPATH": str(ROOT / "backend" / "python")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "install it: pip install cryptography; or check by hand" in done.stdout


# -- signing --------------------------------------------------------------------------------------


def test_without_anything_to_sign_with_nothing_is_signed(dist: Path) -> None:
    with pytest.raises(SigningError, match=f"expected a key in {KEY_FILE} or {KEY}, or a") as said:
        sign_folder(dist, {})
    assert "; make a key with openssl genpkey -algorithm ed25519 -out KEY" in str(said.value)
    assert f"set {KEY_FILE}=KEY" in str(said.value)
    assert not any((dist / name).exists() for name in layout.SIGNATURES)


def test_a_key_may_be_in_the_variable_itself_and_locked(
    dist: Path, key: Ed25519PrivateKey, public: Path
) -> None:
    locked = {KEY: pem(key, b"secret").decode()}
    with pytest.raises(SigningError, match=f"set {PASSWORD}"):
        sign_folder(dist, locked)
    with pytest.raises(SigningError, match="or another password"):
        sign_folder(dist, {**locked, PASSWORD: "wrong"})
    with pytest.raises(SigningError, match=f"unset {PASSWORD}"):
        sign_folder(dist, {KEY: pem(key).decode(), PASSWORD: "secret"})
    sign_folder(dist, {**locked, PASSWORD: "secret"})
    assert verify_directory(dist, public_key=public).signed


def test_a_key_that_is_none_is_refused_and_never_shown(
    dist: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SigningError, match="expected a file that can be read: No such file"):
        sign_folder(dist, {KEY_FILE: str(tmp_path / "absent")})
    broken = "MC4CAQAwBQYDK2VwBCIEIBroken"
    text = f"-----BEGIN PRIVATE KEY-----\n{broken}\n-----END PRIVATE KEY-----\n"
    with pytest.raises(SigningError, match="expected an Ed25519 private key") as caught:
        sign_folder(dist, {KEY: text})
    assert broken not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    other = pem(rsa.generate_private_key(65537, 2048)).decode()
    with pytest.raises(SigningError, match="got another kind of key"):
        sign_folder(dist, {KEY: other})
    assert broken not in "".join(capfd.readouterr())


def test_what_is_not_whole_is_not_signed(dist: Path, variables: Mapping[str, str]) -> None:
    flip(next(dist.glob("*.tar.gz")), 1000)
    with pytest.raises(VerificationError, match="expected SHA-256"):
        sign_folder(dist, variables)
    assert not (dist / layout.SIGNATURE).exists()


def test_a_new_build_takes_the_old_signatures_away(signed: Path) -> None:
    from ci.describe import write_folder

    write_folder(signed, [], release=None, commit=None, epoch=0)
    assert not any((signed / name).exists() for name in layout.SIGNATURES)


def test_the_command_signs_and_says_so(
    dist: Path, variables: Mapping[str, str], key: Ed25519PrivateKey
) -> None:
    chart = dist.parent / "helm"
    chart.mkdir()
    command = [sys.executable, "-m", "ci.sign", str(dist), str(chart)]
    python = os.pathsep.join([str(ROOT), str(ROOT / "backend" / "python")])
    environment = {**os.environ, "PYTHONPATH": python, **variables}
    environment.pop(TOKEN, None)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "signed by the key " in done.stdout
    assert f"{chart}: left out" in done.stdout
    for line in pem(key).decode().splitlines()[1:-1]:
        assert line not in done.stdout + done.stderr
    del environment[KEY_FILE]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: expected a key in ")


def test_what_is_no_folder_of_artifacts_is_left_out_in_words(
    dist: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """As of ``dist/*``, when the chart has been packaged, or somebody has left something there."""
    chart, stray = tmp_path / "helm", tmp_path / "notes.txt"
    chart.mkdir()
    (chart / "tritonserver-jax-0.1.0.tgz").touch()
    stray.touch()
    assert folders_of_artifacts([dist, chart, stray]) == [dist]
    said = capfd.readouterr().out
    for path in (chart, stray):
        assert f"{path}: left out, because it is no folder of artifacts\n" in said
    # What was one is not left out: it is refused when it is verified.
    for name in (layout.CHECKSUMS, layout.LISTING, layout.PROVENANCE):
        (dist / name).unlink()
        assert folders_of_artifacts([dist, chart]) == [dist]
    python = tmp_path / "python"
    python.mkdir()
    (python / layout.wheel_name("0.1.0")).touch()
    assert folders_of_artifacts([python]) == [python]
    with pytest.raises(SigningError, match=r"expected a folder of artifacts, got .*; name such as"):
        folders_of_artifacts([chart, stray])
    with pytest.raises(SigningError, match=r"absent: expected .*, found nothing; build it with"):
        folders_of_artifacts([dist, tmp_path / "absent"])


# -- by an identity -------------------------------------------------------------------------------

#: Stands where cosign would: it notes how it was called, and writes the bundle that is asked for.
COSIGN = """\
#!/bin/sh
printf '%s\\n' "$@" >"$RECORD"
printf '%s\\n' "${SIGSTORE_ID_TOKEN:-}" >"$RECORD.token"
for word; do
    case $word in --bundle=*) [ "$1" = sign-blob ] && echo '{}' >"${word#--bundle=}" ;; esac
done
[ "$1" = sign-blob ] || [ ! -e "$RECORD.refuse" ] || {
    echo 'Error: none of the expected identities matched' >&2
    exit 1
}
"""


@pytest.fixture
def cosign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What cosign was asked, and its folder on PATH."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "cosign").write_text(COSIGN)
    (programs / "cosign").chmod(0o755)
    record = tmp_path / "record"
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("RECORD", str(record))
    return record


IDENTITY = SigstoreIdentity(
    "https://gitlab.com/group/project//.gitlab-ci.yml@refs/tags/v1.2.3", "https://gitlab.com"
)


def test_a_jobs_identity_signs_through_cosign(
    dist: Path, cosign: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    identity = "the.token.itself"
    # A job that signs by a key has that in its environment.
    own = {name: value for name, value in os.environ.items() if name not in {KEY, KEY_FILE}}
    made = sign_folder(dist, {**own, TOKEN: identity})
    bundle = dist / layout.BUNDLE
    assert made == [bundle]
    assert cosign.read_text().splitlines() == [
        *("sign-blob", "--yes", f"--bundle={bundle}", str(dist / layout.CHECKSUMS))
    ]
    # It is given in the environment, and stands in no argument and no log.
    assert cosign.with_suffix(".token").read_text().strip() == identity
    assert identity not in "".join(capfd.readouterr())

    report = verify_directory(dist, identity=IDENTITY)
    assert report.signed
    assert cosign.read_text().splitlines() == [
        *("verify-blob", f"--bundle={bundle}"),
        f"--certificate-identity={IDENTITY.identity}",
        f"--certificate-oidc-issuer={IDENTITY.issuer}",
        str(dist / layout.CHECKSUMS),
    ]
    cosign.with_suffix(".refuse").write_text("")
    with pytest.raises(VerificationError, match="none of the expected identities matched"):
        verify_directory(dist, identity=IDENTITY)


def test_without_cosign_or_a_bundle_the_remedy_is_named(
    dist: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(VerificationError, match=r"SHA256SUMS\.sigstore\.json: expected a signatu"):
        verify_directory(dist, identity=IDENTITY)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SigningError, match="cosign: expected on PATH, because SIGSTORE_ID_TOKEN"):
        sign_folder(dist, {"PATH": "/nowhere", TOKEN: "token"})
    (dist / layout.BUNDLE).write_text("{}")
    with pytest.raises(VerificationError, match="cosign: expected on PATH"):
        verify_directory(dist, identity=IDENTITY)
