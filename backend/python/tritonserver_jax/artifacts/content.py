# SPDX-License-Identifier: Apache-2.0
"""Whether an artifact agrees with what it says about itself: its name, its checksums inside."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tritonserver_jax.artifacts import layout
from tritonserver_jax.artifacts.archives import Member, read_tar, read_wheel
from tritonserver_jax.artifacts.checksums import parse_checksums
from tritonserver_jax.artifacts.errors import Problem, VerificationError
from tritonserver_jax.artifacts.report import Findings, Identity, adopt, build_info

__all__ = ["check_content", "kind_of"]

_AGAIN: Final = "download it again"

#: The two files of a tarball that describe the rest.
_DESCRIBED_BY: Final = ("SHA256SUMS", "BUILD_INFO.json")


def kind_of(file: Path) -> str:
    """Return ``tarball``, ``wheel`` or ``sdist``, which the name of an artifact says."""
    if layout.TARBALL_NAME.fullmatch(file.name):
        return "tarball"
    if re.fullmatch(r"tritonserver_jax-[0-9][0-9a-z.]*-py3-none-any\.whl", file.name):
        return "wheel"
    if re.fullmatch(r"tritonserver_jax-[0-9][0-9a-z.]*\.tar\.gz", file.name):
        return "sdist"
    raise VerificationError(
        Problem(
            file.name,
            f"a name such as {layout.tarball_name('0.1.0', '24.10')}, "
            f"{layout.wheel_name('0.1.0')} or {layout.sdist_name('0.1.0')}",
            "another one",
            "give it the name that it was released with",
        )
    )


def check_content(file: Path, kind: str, found: Findings) -> None:
    """Look into an artifact; nothing of it is unpacked."""
    # The kind of artifacts.json is not taken on trust: the name says it as well.
    named = kind_of(file)
    if named != kind:
        raise VerificationError(Problem(file.name, f"a {kind}", f"a {named} by its name", _AGAIN))
    if kind == "tarball":
        _check_tarball(file, found)
    elif kind == "wheel":
        _check_wheel(file, found)
    else:
        _check_sdist(file, found)


def _check_tarball(file: Path, found: Findings) -> None:
    """Its own SHA256SUMS and BUILD_INFO.json, and its name."""
    name = layout.TARBALL_NAME.fullmatch(file.name)
    if name is None:
        raise AssertionError(f"kind_of has taken {file.name} for a tarball")
    adopt(
        found.identity,
        Identity(project_version=name["version"], release=name["release"]),
        f"the name {file.name}",
    )
    members = read_tar(file, keep=lambda name: name in _DESCRIBED_BY)
    kept = {}
    for described_by in _DESCRIBED_BY:
        member = members.get(described_by)
        if member is None or member.content is None:
            where = f"{file.name}: {layout.TOP}/{described_by}"
            raise VerificationError(Problem(where, "it", "none", _AGAIN))
        kept[described_by] = member.content
    where = f"{file.name}: {layout.TOP}/SHA256SUMS"
    sums = parse_checksums(kept["SHA256SUMS"], where)
    _compare_members(file, members, sums, where=where, without="SHA256SUMS")
    where = f"{file.name}: {layout.TOP}/BUILD_INFO.json"
    adopt(found.identity, build_info(kept["BUILD_INFO.json"], where, _AGAIN), where)
    wheel = f"wheel/{layout.wheel_name(name['version'])}"
    for needed in ("lib/libtriton_jax.so", "scripts/install.sh", "scripts/setup_env.sh", wheel):
        if needed not in members:
            where = f"{file.name}: {layout.TOP}/{needed}"
            raise VerificationError(Problem(where, "it", "none", _AGAIN))
    found.ok("content", f"{len(members)} files in {file.name} are those of its own SHA256SUMS")


def _compare_members(
    file: Path, members: Mapping[str, Member], sums: Mapping[str, str], *, where: str, without: str
) -> None:
    got = {name: member.sha256 for name, member in members.items() if name != without}
    problems = [
        Problem(
            f"{file.name}: {name}",
            f"SHA-256 {sums[name]}" if name in sums else f"a line for it in {where}",
            got.get(name, "no such file") if name in sums else "none",
            _AGAIN,
        )
        for name in sorted({*got, *sums})
        if got.get(name) != sums.get(name)
    ]
    if problems:
        raise VerificationError(*problems)


def _metadata_version(content: bytes | None, where: str) -> str:
    """The version in a METADATA or PKG-INFO, of this project."""
    head = (content or b"").decode(errors="replace").split("\n\n", 1)[0]
    fields = dict(re.findall(r"^(Name|Version): (.+)$", head, re.MULTILINE))
    if fields.get("Name") != "tritonserver-jax" or "Version" not in fields:
        got = repr(fields or "nothing of that")
        raise VerificationError(
            Problem(where, "the metadata of tritonserver-jax and its version", got, _AGAIN)
        )
    return str(fields["Version"])


def _check_wheel(file: Path, found: Findings) -> None:
    """Its RECORD, and the version in its name and its metadata."""
    version = file.name.split("-")[1]
    adopt(found.identity, Identity(project_version=version), f"the name {file.name}")
    metadata = f"tritonserver_jax-{version}.dist-info/METADATA"
    members, record = read_wheel(file, keep=lambda name: name == metadata)
    records = f"tritonserver_jax-{version}.dist-info/RECORD"
    _compare_members(file, members, record, where=records, without=records)
    where = f"{file.name}: {metadata}"
    content = members[metadata].content if metadata in members else None
    said = _metadata_version(content, where)
    adopt(found.identity, Identity(project_version=said), where)
    found.ok("content", f"{len(members)} files in {file.name} are those of its RECORD")


def _check_sdist(file: Path, found: Findings) -> None:
    """The version in its name and its metadata; it has no checksums inside."""
    top = file.name.removesuffix(".tar.gz")
    version = top.split("-")[1]
    adopt(found.identity, Identity(project_version=version), f"the name {file.name}")
    members = read_tar(file, top, keep=lambda name: name == "PKG-INFO")
    content = members["PKG-INFO"].content if "PKG-INFO" in members else None
    where = f"{file.name}: {top}/PKG-INFO"
    said = _metadata_version(content, where)
    adopt(found.identity, Identity(project_version=said), where)
    found.ok("content", f"{len(members)} files in {file.name}, all in {top}/")
