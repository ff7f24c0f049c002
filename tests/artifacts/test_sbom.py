# SPDX-License-Identifier: Apache-2.0
"""SBOMs say what is in an artifact, fit the schema, and are the same at every build."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ci.locks import ACCELERATORS, PYTHONS, accelerator_lock_path, lock_path, pinned
from ci.sbom import (
    SbomError,
    distribution_sbom,
    normalise_sbom,
    validate_sbom,
)
from tests.artifacts.conftest import EPOCH
from tritonserver_jax import __version__
from tritonserver_jax.artifacts import layout
from tritonserver_jax.artifacts.checksums import sha256_of


def sbom_of(artifact: Path) -> dict[str, Any]:
    content = artifact.with_name(artifact.name + layout.SBOM_SUFFIX).read_bytes()
    validate_sbom(content)
    values: dict[str, Any] = json.loads(content)
    return values


def properties(component: dict[str, Any], name: str) -> set[str]:
    return {one["value"] for one in component.get("properties", ()) if one["name"] == name}


@pytest.fixture(scope="session")
def sbom(tarball: Path) -> dict[str, Any]:
    return sbom_of(tarball)


def test_it_is_of_the_tarball_and_of_its_time(sbom: dict[str, Any], tarball: Path) -> None:
    assert (sbom["bomFormat"], sbom["specVersion"]) == ("CycloneDX", "1.6")
    subject = sbom["metadata"]["component"]
    assert (subject["name"], subject["version"]) == (tarball.name, __version__)
    assert subject["hashes"] == [{"alg": "SHA-256", "content": sha256_of(tarball)}]
    assert subject["purl"].startswith(f"pkg:generic/tritonserver-jax@{__version__}")
    assert properties(subject, "tritonserver-jax:triton-release") == {"24.10"}
    assert subject["licenses"] == [{"expression": "Apache-2.0"}]
    time = datetime.fromisoformat(sbom["metadata"]["timestamp"])
    assert time == datetime.fromtimestamp(EPOCH, UTC)
    assert uuid.UUID(sbom["serialNumber"]).version == 5


def test_every_distribution_of_every_lock_is_there_with_its_pythons(sbom: dict[str, Any]) -> None:
    there = {
        (one["name"], one["version"]): one
        for one in sbom["components"]
        if one["bom-ref"].startswith("pkg:pypi/")
    }
    wanted: dict[tuple[str, str], set[str]] = {}
    plain: set[tuple[str, str]] = set()
    for python in PYTHONS:
        plain |= set(pinned(lock_path(python)).items())
        paths = [lock_path(python), *(accelerator_lock_path(one, python) for one in ACCELERATORS)]
        for path in paths:
            for entry in pinned(path).items():
                wanted.setdefault(entry, set()).add(python)
    assert set(there) == set(wanted)
    for entry, component in there.items():
        assert properties(component, "tritonserver-jax:python") == wanted[entry], entry
        assert component["purl"] == f"pkg:pypi/{entry[0]}@{entry[1]}"
        assert component["scope"] == ("required" if entry in plain else "optional")
        needs_gpu = properties(component, "tritonserver-jax:accelerator")
        assert needs_gpu <= set(ACCELERATORS)
        assert entry in plain or needs_gpu
    assert {name for name, _ in plain} >= {"jax", "jaxlib", "flax", "numpy"}


def test_what_needs_what_is_there(sbom: dict[str, Any], tarball: Path) -> None:
    needs = {one["ref"]: set(one.get("dependsOn", ())) for one in sbom["dependencies"]}
    known = {tarball.name, *(one["bom-ref"] for one in sbom["components"])}
    assert set(needs) <= known
    assert set().union(*needs.values()) <= known
    files = {ref for ref in known if ref.startswith("file:")}
    assert needs[tarball.name] == files
    lock = lock_path("3.11")
    assert needs[f"file:locks/{lock.name}"] == {
        f"pkg:pypi/{name}@{version}" for name, version in pinned(lock).items()
    }
    versions = pinned(lock)
    jax = needs[f"pkg:pypi/jax@{versions['jax']}"]
    assert f"pkg:pypi/jaxlib@{versions['jaxlib']}" in jax
    (wheel,) = (ref for ref in files if ref.startswith("file:wheel/"))
    assert f"pkg:pypi/flax@{versions['flax']}" in needs[wheel]


def test_a_wheel_asks_for_what_its_metadata_say(python_dist: Path) -> None:
    for path in python_dist.glob("tritonserver_jax-*"):
        if path.name.endswith(layout.SBOM_SUFFIX):
            continue
        values = sbom_of(path)
        subject = values["metadata"]["component"]
        assert subject["hashes"][0]["content"] == sha256_of(path)
        asked = {
            one["name"]: properties(one, "tritonserver-jax:requirement")
            for one in values["components"]
        }
        assert asked["jax"] == {"jax>=0.7"}
        assert asked["ml-dtypes"] == {"ml_dtypes"}


def test_the_serial_number_is_that_of_the_content() -> None:
    def serial(content: bytes, epoch: int = EPOCH) -> str:
        sbom = distribution_sbom("a-1.whl", content, epoch=epoch)
        validate_sbom(sbom)
        return str(json.loads(sbom)["serialNumber"])

    assert serial(b"a") == serial(b"a")
    assert len({serial(b"a"), serial(b"b"), serial(b"a", EPOCH + 1)}) == 3


def test_what_is_no_sbom_is_refused() -> None:
    with pytest.raises(SbomError, match=r"the schema of CycloneDX 1\.6"):
        validate_sbom(b'{"bomFormat": "CycloneDX", "specVersion": "1.6", "unknown": 1}')


def test_the_sbom_of_another_tool_is_made_the_same(tmp_path: Path, tarball: Path) -> None:
    def of_another_run(name: str, *, turned: bool) -> bytes:
        values = sbom_of(tarball)
        values["serialNumber"] = f"urn:uuid:{uuid.uuid4()}"
        values["metadata"]["timestamp"] = datetime.now(UTC).isoformat()
        if turned:
            values["components"].reverse()
            values["dependencies"].reverse()
        path = tmp_path / name
        path.write_text(json.dumps(values))
        normalise_sbom(path, epoch=EPOCH)
        validate_sbom(path.read_bytes())
        return path.read_bytes()

    first = of_another_run("one", turned=False)
    assert first == of_another_run("two", turned=True)
    path = tmp_path / "one"
    normalise_sbom(path, epoch=EPOCH)
    assert path.read_bytes() == first
