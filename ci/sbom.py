# SPDX-License-Identifier: Apache-2.0
"""The SBOM of an artifact, in CycloneDX: what is in it, and what it brings with it.

It is about one file: its SHA-256 is the hash of the component in ``metadata``, so an SBOM that lies
beside another build is found out. The same artifact gives the same bytes: the serial number comes
from the content, and the time is that of the source.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.model.tool import ToolRepository
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from packageurl import PackageURL

from ci.locks import ACCELERATORS, PYTHONS, accelerator_lock_path, lock_path, pinned
from ci.process import ROOT
from tritonserver_jax import __version__

__all__ = ["SbomError", "distribution_sbom", "normalise_sbom", "tarball_sbom", "validate_sbom"]

#: Names of properties have a namespace, as CycloneDX asks for.
_PATH: Final = "tritonserver-jax:path"
_PYTHON: Final = "tritonserver-jax:python"
_ACCELERATOR: Final = "tritonserver-jax:accelerator"
_REQUIREMENT: Final = "tritonserver-jax:requirement"
_RELEASE: Final = "tritonserver-jax:triton-release"

_SERIAL_NAMESPACE: Final = uuid.UUID("6f0a3b52-6c35-5b55-9a5e-0d7b6f7f9c11")
_NO_SERIAL: Final = uuid.UUID(int=0)


class SbomError(RuntimeError):
    """An SBOM is not what the schema of CycloneDX says."""


def tarball_sbom(
    name: str, content: bytes, members: Mapping[str, bytes], *, release: str, epoch: int
) -> bytes:
    """Make the SBOM of a tarball.

    It has every file of the tarball, and every distribution that ``setup_env.sh`` installs from the
    locks in it, with the Pythons for which it does.

    Args:
        name: The file name of the tarball.
        content: The tarball.
        members: Its files by name.
        release: The Triton release that it is for.
        epoch: The time of the source, in seconds since 1970.

    Raises:
        SbomError: The schema refuses it.
    """
    subject = _subject(name, content, ComponentType.APPLICATION)
    subject.properties.add(Property(name=_RELEASE, value=release))
    bom = Bom(metadata=BomMetaData(component=subject))
    files = {path: _file(path, data) for path, data in members.items()}
    locked = _locked_distributions()
    bom.components.update(files.values())
    bom.components.update(locked.values())
    bom.register_dependency(subject, files.values())
    for path, _, _ in _locks():
        entries = [locked[entry] for entry in pinned(path).items()]
        bom.register_dependency(files[f"locks/{path.name}"], entries)
    wheel = next(component for path, component in files.items() if path.startswith("wheel/"))
    direct = {_name_of(requirement) for requirement in _requirements()}
    bom.register_dependency(wheel, [one for (name, _), one in locked.items() if name in direct])
    for one, needs in _edges(locked):
        bom.register_dependency(one, needs)
    return _finished(bom, epoch)


def distribution_sbom(name: str, content: bytes, *, epoch: int) -> bytes:
    """Make the SBOM of a wheel or an sdist.

    It brings nothing with it but asks for what it needs, in versions that pip chooses; these are
    its components, with the requirement as it is written.

    Args:
        name: The file name.
        content: The file.
        epoch: The time of the source, in seconds since 1970.

    Raises:
        SbomError: The schema refuses it.
    """
    subject = _subject(name, content, ComponentType.LIBRARY)
    bom = Bom(metadata=BomMetaData(component=subject))
    needed = [
        Component(
            name=_name_of(requirement),
            type=ComponentType.LIBRARY,
            bom_ref=f"pkg:pypi/{_name_of(requirement)}",
            purl=PackageURL("pypi", None, _name_of(requirement)),
            properties=[Property(name=_REQUIREMENT, value=requirement)],
        )
        for requirement in _requirements()
    ]
    bom.components.update(needed)
    bom.register_dependency(subject, needed)
    return _finished(bom, epoch)


def validate_sbom(content: bytes) -> None:
    """Check an SBOM against the schema of CycloneDX.

    Raises:
        SbomError: The schema refuses it.
    """
    # Takes seconds to import, and most of what imports this file validates nothing.
    from cyclonedx.validation.json import JsonStrictValidator

    found = JsonStrictValidator(SchemaVersion.V1_6).validate_str(content.decode())
    if found is not None:
        raise SbomError(f"SBOM: expected what the schema of CycloneDX 1.6 says, got: {found!r}")


def _subject(name: str, content: bytes, kind: ComponentType) -> Component:
    qualifiers = {"file_name": name} if kind is ComponentType.LIBRARY else None
    return Component(
        name=name,
        version=__version__,
        type=kind,
        bom_ref=name,
        hashes=[_sha256(content)],
        licenses=[LicenseExpression("Apache-2.0")],
        purl=PackageURL("pypi", None, "tritonserver-jax", __version__, qualifiers)
        if kind is ComponentType.LIBRARY
        else PackageURL("generic", None, "tritonserver-jax", __version__, {"file_name": name}),
    )


def _sha256(content: bytes) -> HashType:
    return HashType(alg=HashAlgorithm.SHA_256, content=hashlib.sha256(content).hexdigest())


def _file(path: str, content: bytes) -> Component:
    """A file of the tarball; what can be linked or imported is a library."""
    is_library = path.startswith(("lib/", "wheel/"))
    purl = PackageURL("pypi", None, "tritonserver-jax", __version__)
    return Component(
        name=path.rsplit("/", 1)[-1],
        version=__version__ if is_library else None,
        type=ComponentType.LIBRARY if is_library else ComponentType.FILE,
        bom_ref=f"file:{path}",
        hashes=[_sha256(content)],
        licenses=[LicenseExpression("Apache-2.0")] if is_library else None,
        purl=purl if path.startswith("wheel/") else None,
        properties=[Property(name=_PATH, value=path)],
    )


def _locks() -> list[tuple[Path, str, str | None]]:
    """Every lock of a tarball, the Python it is for, and the accelerator if it is for one."""
    return [
        *((lock_path(python), python, None) for python in PYTHONS),
        *(
            (accelerator_lock_path(accelerator, python), python, accelerator)
            for accelerator in ACCELERATORS
            for python in PYTHONS
        ),
    ]


def _locked_distributions() -> dict[tuple[str, str], Component]:
    """Every distribution of the locks by name and version, and what it is installed for.

    What only an accelerator needs is optional: no environment has it unless it is asked for.
    """
    used: dict[tuple[str, str], list[tuple[str, str | None]]] = {}
    for path, python, accelerator in _locks():
        for entry in pinned(path).items():
            used.setdefault(entry, []).append((python, accelerator))
    return {
        (name, version): Component(
            name=name,
            version=version,
            type=ComponentType.LIBRARY,
            bom_ref=f"pkg:pypi/{name}@{version}",
            purl=PackageURL("pypi", None, name, version),
            scope=ComponentScope.REQUIRED
            if None in {accelerator for _, accelerator in uses}
            else ComponentScope.OPTIONAL,
            properties=[
                *(Property(name=_PYTHON, value=python) for python, _ in uses),
                *(
                    Property(name=_ACCELERATOR, value=accelerator)
                    for _, accelerator in uses
                    if accelerator is not None
                ),
            ],
        )
        for (name, version), uses in used.items()
    }


def _requirements() -> list[str]:
    """What the project's metadata ask for."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    dependencies: list[str] = tomllib.loads(text)["project"]["dependencies"]
    return sorted(dependencies)


def _name_of(requirement: str) -> str:
    """Return the normalised name of a requirement, as in ``ml-dtypes`` of ``ml_dtypes>=0.5``."""
    name = re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def _edges(
    locked: Mapping[tuple[str, str], Component],
) -> Iterable[tuple[Component, list[Component]]]:
    """What needs what, as uv.lock says, among the distributions of the locks."""
    lock = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))
    by_name: dict[str, list[Component]] = {}
    for (name, _), component in locked.items():
        by_name.setdefault(name, []).append(component)
    for package in lock["package"]:
        entry = (package["name"], package.get("version", ""))
        if entry not in locked:
            continue
        needs = [
            one
            for dependency in package.get("dependencies", [])
            for one in by_name.get(dependency["name"], [])
            if dependency.get("version", one.version) == one.version
        ]
        yield locked[entry], needs


def _finished(bom: Bom, epoch: int) -> bytes:
    """Give it a time and a serial number of its own, check it, and write it down."""
    generator = Component(
        name="tritonserver-jax ci.sbom", version=__version__, type=ComponentType.APPLICATION
    )
    bom.metadata.tools = ToolRepository(components=[generator])
    bom.metadata.timestamp = datetime.fromtimestamp(epoch, UTC)
    bom.serial_number = _NO_SERIAL
    bom.serial_number = uuid.uuid5(_SERIAL_NAMESPACE, JsonV1Dot6(bom).output_as_string())
    values: dict[str, Any] = json.loads(JsonV1Dot6(bom).output_as_string())
    content = (json.dumps(values, indent=2, ensure_ascii=False) + "\n").encode()
    validate_sbom(content)
    return content


def normalise_sbom(path: Path, *, epoch: int) -> None:
    """Make an SBOM of another tool (such as syft, of an image) the same at every run.

    The time becomes that of the source, the lists are sorted, and the serial number is made from
    the rest. The file is replaced.

    Args:
        path: The SBOM, in CycloneDX as JSON.
        epoch: The time of the source, in seconds since 1970.
    """
    values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    values.pop("serialNumber", None)
    values.setdefault("metadata", {})["timestamp"] = datetime.fromtimestamp(epoch, UTC).isoformat()
    for key in ("components", "dependencies"):
        if key in values:
            values[key] = sorted(values[key], key=lambda one: json.dumps(one, sort_keys=True))
    serial = uuid.uuid5(_SERIAL_NAMESPACE, json.dumps(values, sort_keys=True))
    values["serialNumber"] = f"urn:uuid:{serial}"
    path.write_text(json.dumps(values, indent=2, sort_keys=True) + "\n", encoding="utf-8")
