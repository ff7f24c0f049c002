# SPDX-License-Identifier: Apache-2.0
"""What was released is accepted, and what was changed is refused, with the file and the reason."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ci.package import package
from ci.process import ROOT
from tests.artifacts.conftest import EPOCH
from tests.support.artifacts import (
    TarMember,
    change_json,
    changed_tar,
    describe_again,
    entry,
    flip,
    read_members,
    sum_again,
    write_tar,
)
from tests.support.scripts import run_script
from tritonserver_jax import __version__
from tritonserver_jax.artifacts import (
    Report,
    VerificationError,
    layout,
    verify_artifact,
    verify_directory,
    verify_installation,
)
from tritonserver_jax.artifacts.checksums import parse_checksums, sha256_of
from tritonserver_jax.releases import find_release


@pytest.fixture
def dist(tmp_path: Path, tarball: Path) -> Path:
    """A folder of artifacts to be tampered with."""
    return Path(shutil.copytree(tarball.parent, tmp_path / "24.10"))


@pytest.fixture
def copy(dist: Path, tarball: Path) -> Path:
    """The tarball in it."""
    return dist / tarball.name


@pytest.fixture(scope="session")
def other(tmp_path_factory: pytest.TempPathFactory, libraries: Sequence[Path], wheel: Path) -> Path:
    """The tarball of another release."""
    return package(
        find_release("23.10"),
        libraries=libraries,
        wheel=wheel,
        output=tmp_path_factory.mktemp("dist") / "23.10",
        source_date_epoch=EPOCH,
    )


def statuses(report: Report) -> dict[str, str]:
    return {check.name: check.status for check in report.checks}


def refused(folder: Path, *said: str, **asked: Any) -> VerificationError:
    with pytest.raises(VerificationError) as caught:
        verify_directory(folder, **asked)
    for text in said:
        assert text in str(caught.value)
    return caught.value


# -- what is accepted -----------------------------------------------------------------------------


def test_the_folder_of_a_release_is_accepted(dist: Path) -> None:
    report = verify_directory(dist, release="24.10")
    assert (report.kind, report.release, report.server_version) == ("directory", "24.10", "2.51.0")
    assert report.project_version == __version__
    contents = {name: content for name, content, _ in read_members(next(dist.glob("*.gz")))}
    info = json.loads(contents["jax/BUILD_INFO.json"])
    assert report.source_commit == info["source_commit"]
    assert statuses(report) == {
        "signature": "not checked",
        "checksums": "ok",
        "content": "ok",
        "sbom": "ok",
        "provenance": "ok",
    }
    assert not report.signed
    assert json.loads(json.dumps(report.as_json()))["release"] == "24.10"


def test_the_python_distributions_are_accepted(python_dist: Path) -> None:
    report = verify_directory(python_dist)
    assert report.release is None
    kinds = [check.detail for check in report.checks if check.name == "content"]
    assert len(kinds) == 2
    for path in python_dist.glob("tritonserver_jax-*"):
        if path.suffix in (".whl", ".gz"):
            assert verify_artifact(path).kind == ("wheel" if path.suffix == ".whl" else "sdist")
    refused(python_dist, "expected an artifact for release 24.10", "every release", release="24.10")


def test_one_tarball_alone_is_accepted_and_the_report_says_what_is_missing(
    tarball: Path, tmp_path: Path
) -> None:
    alone = Path(shutil.copy(tarball, tmp_path))
    report = verify_artifact(alone, release="24.10", sha256=sha256_of(tarball).upper())
    assert statuses(report) == {
        "sha256": "ok",
        "checksums": "not checked",
        "signature": "not checked",
        "content": "ok",
        "sbom": "not checked",
        "provenance": "not checked",
    }
    assert verify_artifact(tarball).checks[1].status == "ok"


def test_a_tarball_with_only_its_checksums_is_accepted(tarball: Path, tmp_path: Path) -> None:
    for name in (tarball.name, layout.CHECKSUMS):
        shutil.copy(tarball.parent / name, tmp_path)
    assert statuses(verify_artifact(tmp_path / tarball.name))["checksums"] == "ok"


def test_what_verifies_needs_nothing_but_python(tarball: Path) -> None:
    # -S: not even what pip has installed.
    code = (
        "import sys; from pathlib import Path; from tritonserver_jax.artifacts import *; "
        "verify_directory(Path(sys.argv[1])); "
        "assert not {'jax', 'numpy', 'cryptography'} & set(sys.modules)"
    )
    subprocess.run(
        [sys.executable, "-S", "-c", code, tarball.parent],
        env={**os.environ, "PYTHONPATH": str(ROOT / "backend" / "python")},
        check=True,
    )


# -- files and checksums --------------------------------------------------------------------------


@pytest.mark.parametrize("where", [0, 100, 5000, -1])
def test_a_flipped_bit_is_refused(dist: Path, copy: Path, where: int) -> None:
    expected = sha256_of(copy)
    flip(copy, where)
    error = refused(dist, f"{copy.name}: expected SHA-256 {expected}", "download it again")
    assert [problem.file for problem in error.problems] == [copy.name]
    with pytest.raises(VerificationError, match=f"expected SHA-256 {expected}"):
        verify_artifact(copy)


def test_every_damaged_file_is_named_at_once(dist: Path) -> None:
    names = sorted(path.name for path in dist.iterdir() if path.name != layout.CHECKSUMS)
    for name in names:
        if name != layout.LISTING:
            flip(dist / name, -2)
    error = refused(dist)
    assert {problem.file for problem in error.problems} == set(names) - {layout.LISTING}


@pytest.mark.parametrize("name", ["tarball", "sbom", layout.PROVENANCE, layout.LISTING])
def test_a_missing_file_is_refused(dist: Path, copy: Path, name: str) -> None:
    name = {"tarball": copy.name, "sbom": copy.name + layout.SBOM_SUFFIX}.get(name, name)
    (dist / name).unlink()
    refused(dist, f"{name}: expected a file of SHA-256", "got none")


def test_without_checksums_nothing_is_accepted(dist: Path) -> None:
    (dist / layout.CHECKSUMS).unlink()
    refused(dist, f"{layout.CHECKSUMS}: expected a file, got none")
    refused(dist / "absent", "expected a folder, got none")
    refused(dist / layout.LISTING, "expected a folder, got none")


def test_an_extra_file_is_refused(dist: Path) -> None:
    (dist / "install.sh").write_text("")
    (dist / "folder").mkdir()
    refused(
        dist,
        "install.sh: expected only what SHA256SUMS lists, got another file; move it away",
        "folder: expected only what SHA256SUMS lists",
    )


def test_a_link_is_no_artifact(dist: Path, copy: Path, tmp_path: Path) -> None:
    moved = tmp_path / copy.name
    copy.rename(moved)
    copy.symlink_to(moved)
    refused(dist, f"{copy.name}: expected a plain file, got a link")
    with pytest.raises(VerificationError, match="expected a plain file, got a link"):
        verify_artifact(copy)


def test_checksums_that_are_none_are_refused() -> None:
    digest = "0" * 64
    for content, said in [
        (b"", "an empty file"),
        (b"\xff", "expected UTF-8"),
        (b"hello\n", "line 1: expected"),
        (f"{digest} *a\n".encode(), "line 1: expected"),
        (f"{digest}  a\n{digest}  a\n".encode(), "line 2: expected each file once, got a again"),
        *(
            (f"{digest}  {name}\n".encode(), "expected a path inside the folder")
            for name in ("../a", "/etc/passwd", "a/../../b", "a//b", "./a", "..", "a\x1b[2J", "a/")
        ),
    ]:
        with pytest.raises(VerificationError, match=re.escape(said)):
            parse_checksums(content, "SHA256SUMS")


def test_checksums_of_other_folders_are_refused(dist: Path) -> None:
    sums = dist / layout.CHECKSUMS
    sums.write_text(sums.read_text() + "0" * 64 + "  sub/file\n")
    refused(dist, "expected files of its folder, got 'sub/file'")


def test_a_renamed_artifact_is_refused(dist: Path, copy: Path) -> None:
    renamed = copy.with_name(copy.name.replace("24.10", "23.10"))
    copy.rename(renamed)
    with pytest.raises(VerificationError, match="was it renamed"):
        verify_artifact(renamed)
    with pytest.raises(VerificationError, match=r"jax/BUILD_INFO\.json: expected release 23\.10"):
        verify_artifact(Path(shutil.copy(renamed, dist.parent)))
    with pytest.raises(VerificationError, match=r"backend\.tar\.gz: expected a name such as"):
        verify_artifact(Path(shutil.copy(renamed, dist.parent / "backend.tar.gz")))


def test_another_sha256_than_the_one_asked_for_is_refused(tarball: Path) -> None:
    with pytest.raises(VerificationError, match="expected SHA-256 aaaa"):
        verify_artifact(tarball, sha256="a" * 64)


# -- artifacts.json -------------------------------------------------------------------------------


def test_a_listing_that_contradicts_the_checksums_is_refused(dist: Path, copy: Path) -> None:
    def lie(listing: Any) -> None:
        listing["artifacts"][0]["sha256"] = "0" * 64

    change_json(dist / layout.LISTING, lie)
    sum_again(dist)
    refused(
        dist,
        f"artifacts.json: expected the files and digests of SHA256SUMS, got other ones "
        f"for {copy.name}",
    )


def test_a_listing_cannot_hide_an_artifact_from_the_checks(dist: Path, copy: Path) -> None:
    def disguise(listing: Any) -> None:
        listing["artifacts"][0].update(kind="other", size=1)

    change_json(dist / layout.LISTING, disguise)
    sum_again(dist)
    refused(
        dist,
        f"{copy.name}: expected 1 bytes, got {copy.stat().st_size}",
        f"artifacts.json: {copy.name}: kind: expected one of tarball, wheel, sdist, got 'other'",
        "artifacts.json: expected an artifact, got none",
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": 9}, "artifacts.json: schema: expected 1, got 9"),
        ({"schema": None}, "artifacts.json: schema: expected 1, got None"),
        ({"artifacts": "none"}, "artifacts.json: artifacts: expected a list"),
        ({"project_version": 3}, "artifacts.json: project_version: expected a text, got 3"),
        ({"project_version": "9.9.9"}, f"expected project version 9.9.9, got {__version__}"),
        ({"release": "23.10"}, "expected release 23.10, got 24.10"),
        ({"server_version": "2.39.0"}, "expected server version 2.39.0, got 2.51.0"),
    ],
)
def test_a_listing_that_says_something_else_is_refused(
    dist: Path, change: dict[str, Any], said: str
) -> None:
    values = json.loads((dist / layout.LISTING).read_text())
    names = [layout.LISTING, *(one["name"] for one in values["artifacts"])]
    change_json(dist / layout.LISTING, lambda listing: listing.update(change))
    lines = [f"{sha256_of(dist / name)}  {name}\n" for name in names]
    (dist / layout.CHECKSUMS).write_text("".join(lines))
    refused(dist, said)


def test_a_listing_that_is_no_json_is_refused(dist: Path) -> None:
    for text, said in [("{", "expected JSON"), ("[" * 100_000, "expected JSON"), ("[]", "an obj")]:
        (dist / layout.LISTING).write_text(text)
        sums = parse_checksums((dist / layout.CHECKSUMS).read_bytes(), "")
        sums[layout.LISTING] = sha256_of(dist / layout.LISTING)
        lines = [f"{digest}  {name}\n" for name, digest in sums.items()]
        (dist / layout.CHECKSUMS).write_text("".join(lines))
        refused(dist, said.replace("an obj", "expected a JSON object, got list"))


def test_the_wrong_release_is_refused(dist: Path, copy: Path, other: Path) -> None:
    said = "expected an artifact for release 23.10, got one for release 24.10; download the one"
    refused(dist, said, release="23.10")
    with pytest.raises(VerificationError, match=said):
        verify_artifact(copy, release="23.10")
    assert verify_artifact(other, release="23.10").server_version == "2.39.0"


# -- the SBOM and the provenance ------------------------------------------------------------------


def test_a_swapped_sbom_is_refused(dist: Path, copy: Path, other: Path) -> None:
    sbom = copy.name + layout.SBOM_SUFFIX
    shutil.copy(other.with_name(other.name + layout.SBOM_SUFFIX), dist / sbom)
    refused(dist, f"{sbom}: expected SHA-256")
    describe_again(dist)
    refused(
        dist,
        f"{sbom}: expected the SBOM of {copy.name}, SHA-256 {sha256_of(copy)}",
        f"got one of {other.name} {__version__}, SHA-256 {sha256_of(other)}",
        "download the SBOM that belongs to it",
    )


def test_an_sbom_beside_a_lone_tarball_is_compared_with_it(
    tarball: Path, other: Path, tmp_path: Path
) -> None:
    alone = Path(shutil.copy(tarball, tmp_path))
    sbom = alone.with_name(alone.name + layout.SBOM_SUFFIX)
    shutil.copy(tarball.with_name(sbom.name), sbom)
    assert statuses(verify_artifact(alone))["sbom"] == "ok"
    shutil.copy(other.with_name(other.name + layout.SBOM_SUFFIX), sbom)
    with pytest.raises(VerificationError, match=f"expected the SBOM of {re.escape(alone.name)}"):
        verify_artifact(alone)


@pytest.mark.parametrize("text", ["{}", '{"bomFormat": "CycloneDX"}', '{"metadata": 3}'])
def test_an_sbom_that_is_none_is_refused(dist: Path, copy: Path, text: str) -> None:
    sbom = copy.name + layout.SBOM_SUFFIX
    (dist / sbom).write_text(text)
    describe_again(dist)
    refused(dist, f"{sbom}: expected an SBOM in CycloneDX of one artifact, got none")


def test_a_tarball_without_an_sbom_is_refused(dist: Path, copy: Path) -> None:
    sbom = copy.name + layout.SBOM_SUFFIX
    (dist / sbom).unlink()
    describe_again(dist)
    refused(dist, f"artifacts.json: expected {sbom}, the SBOM of {copy.name}, got none")


def test_a_tampered_provenance_is_refused(dist: Path, copy: Path, other: Path) -> None:
    path = dist / layout.PROVENANCE
    good = path.read_bytes()

    def tampered(change: Any, *said: str) -> None:
        path.write_bytes(good)
        change_json(path, change)
        refused(dist, f"{layout.PROVENANCE}: expected SHA-256")
        describe_again(dist)
        refused(dist, *said)

    def subject(statement: Any) -> None:
        statement["subject"][0]["digest"]["sha256"] = "0" * 64

    def no_subject(statement: Any) -> None:
        del statement["subject"][0]

    def commit(statement: Any) -> None:
        for one in statement["predicate"]["buildDefinition"]["resolvedDependencies"]:
            if "gitCommit" in one["digest"]:
                one["digest"]["gitCommit"] = "0" * 40

    expected = f"provenance.json: expected the subject {copy.name}, SHA-256 {sha256_of(copy)}"
    tampered(subject, expected, f"got SHA-256 {'0' * 64}")
    tampered(no_subject, expected, "got no such subject")
    tampered(commit, "provenance.json: expected the source commit", "0" * 40)
    tampered(lambda s: s.update(_type="x"), "expected https://in-toto.io/Statement/v1 with")
    tampered(lambda s: s.pop("predicate"), "expected an in-toto statement of SLSA provenance")
    path.write_bytes((other.parent / layout.PROVENANCE).read_bytes())
    describe_again(dist)
    refused(dist, expected)


# -- what is inside -------------------------------------------------------------------------------


def test_a_changed_member_is_refused_even_if_everything_outside_agrees(
    dist: Path, copy: Path
) -> None:
    def changed(members: list[TarMember]) -> list[TarMember]:
        return [
            (name, content + b"\n" if name == "jax/scripts/install.sh" else content, facts)
            for name, content, facts in members
        ]

    changed_tar(copy, changed)
    describe_again(dist)
    error = refused(dist, f"{copy.name}: scripts/install.sh: expected SHA-256")
    assert len(error.problems) == 1


def without(name: str) -> Callable[[list[TarMember]], list[TarMember]]:
    return lambda members: [member for member in members if member[0] != name]


def test_a_member_more_or_less_is_refused(dist: Path, copy: Path) -> None:
    good = copy.read_bytes()
    changed_tar(copy, lambda members: [*members, entry("jax/model.py")])
    describe_again(dist)
    refused(dist, "model.py: expected a line for it in", "jax/SHA256SUMS, got none")
    for name in ("locks/requirements-cpu-py311.txt", "LICENSE"):
        copy.write_bytes(good)
        changed_tar(copy, without(f"jax/{name}"))
        describe_again(dist)
        refused(dist, f"{name}: expected SHA-256", "got no such file")
    for name in ("SHA256SUMS", "BUILD_INFO.json"):
        copy.write_bytes(good)
        changed_tar(copy, without(f"jax/{name}"))
        describe_again(dist)
        refused(dist, f"jax/{name}: expected it, got none")


def test_a_tarball_that_misses_what_installs_it_is_refused(tmp_path: Path) -> None:
    info = {"project_version": "1.0", "release": "24.10", "server_version": "2.51.0"}
    content = json.dumps(info).encode()
    path = tmp_path / layout.tarball_name("1.0", "24.10")
    (tmp_path / "info").write_bytes(content)
    sums = f"{sha256_of(tmp_path / 'info')}  BUILD_INFO.json\n".encode()
    write_tar(path, [entry("jax/BUILD_INFO.json", content), entry("jax/SHA256SUMS", sums)])
    with pytest.raises(VerificationError, match=r"jax/lib/libtriton_jax\.so: expected it, got non"):
        verify_artifact(path)


def rewritten_wheel(wheel: Path, folder: Path, change: dict[str, bytes | None]) -> Path:
    path = folder / wheel.name
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(path, "w") as target:
        for name in source.namelist():
            content = change.get(name, source.read(name))
            if content is not None:
                target.writestr(name, content)
        for name in set(change) - set(source.namelist()):
            target.writestr(name, change[name] or b"")
    return path


def test_a_changed_wheel_is_refused(wheel: Path, tmp_path: Path) -> None:
    info = f"tritonserver_jax-{__version__}.dist-info"
    changes: list[tuple[dict[str, bytes | None], str]] = [
        ({"tritonserver_jax/releases.toml": b"x"}, "releases.toml: expected SHA-256"),
        ({"tritonserver_jax/extra.py": b"x"}, "extra.py: expected a line for it in"),
        ({"tritonserver_jax/releases.toml": None}, "releases.toml: expected SHA-256 .* no such"),
        ({f"{info}/RECORD": None}, "expected one .dist-info/RECORD, got 0"),
        ({f"{info}/RECORD": b"a,md5=x,1\n"}, "expected sha256=… for a, got 'md5=x'"),
        ({f"{info}/RECORD": b"a\n"}, "a damaged one"),
        ({"../outside": b"x"}, "'../outside': expected a path inside it"),
        ({"/etc/x": b"x"}, "'/etc/x': expected a path inside it"),
    ]
    for change, said in changes:
        with pytest.raises(VerificationError, match=said):
            verify_artifact(rewritten_wheel(wheel, tmp_path, change))
    truncated = tmp_path / wheel.name
    truncated.write_bytes(wheel.read_bytes()[:-100])
    with pytest.raises(VerificationError, match="expected a whole archive, got a damaged one"):
        verify_artifact(truncated)
    renamed = tmp_path / wheel.name.replace(__version__, "9.9.9")
    shutil.copy(wheel, renamed)
    with pytest.raises(VerificationError, match="9"):
        verify_artifact(renamed)


def test_an_sdist_of_another_name_is_refused(python_dist: Path, tmp_path: Path) -> None:
    sdist = next(python_dist.glob("*.tar.gz"))
    renamed = Path(shutil.copy(sdist, tmp_path / layout.sdist_name("9.9.9")))
    with pytest.raises(VerificationError, match=r"a path inside tritonserver_jax-9\.9\.9/"):
        verify_artifact(renamed)
    top = "tritonserver_jax-9.9.9"
    write_tar(renamed, [entry(f"{top}/PKG-INFO", b"Name: tritonserver-jax\nVersion: 9.9.8\n\n")])
    with pytest.raises(VerificationError, match=r"expected project version 9\.9\.9, got 9\.9\.8"):
        verify_artifact(renamed)
    write_tar(renamed, [entry(f"{top}/PKG-INFO", b"Name: else\n\nVersion: 9.9.9\n")])
    with pytest.raises(VerificationError, match="expected the metadata of tritonserver-jax"):
        verify_artifact(renamed)


# -- what is installed ----------------------------------------------------------------------------


@pytest.fixture
def installed(unpacked: Path, backends: Path) -> Path:
    status, said = run_script(unpacked / "scripts" / "install.sh", "--backends", backends)
    assert status == 0, said
    (backends / "jax" / "env" / "bin").mkdir(parents=True)
    (backends / "jax" / "env" / "bin" / "python").symlink_to(sys.executable)
    return backends / "jax"


def test_an_installation_is_accepted(installed: Path, tarball: Path) -> None:
    report = verify_installation(installed, release="24.10", tarball=tarball)
    assert (report.kind, report.release, report.project_version) == (
        *("installation", "24.10"),
        __version__,
    )
    assert statuses(report) == {"checksums": "ok", "tarball": "ok"}
    assert statuses(verify_installation(installed))["tarball"] == "not checked"
    (installed / "notes.txt").write_text("of the operator")
    assert statuses(verify_installation(installed))["other files"] == "not checked"


def test_a_damaged_installation_is_refused(installed: Path, tarball: Path, other: Path) -> None:
    def said(text: str, **asked: Any) -> None:
        with pytest.raises(VerificationError, match=text):
            verify_installation(installed, **asked)

    said(r"expected an artifact for release 23\.10, got one for release 24\.10", release="23.10")
    said(r"BUILD_INFO\.json: expected the one of .*23\.10.*, got another one", tarball=other)
    library = installed / "libtriton_jax.so"
    good = library.read_bytes()
    flip(library, 100)
    said(r"libtriton_jax\.so: expected SHA-256 .*run install\.sh")
    sums = installed / "SHA256SUMS"
    text = sums.read_text()
    line = re.search(r"^\w{64}(?=  libtriton_jax\.so$)", text, re.MULTILINE)
    assert line is not None
    sums.write_text(text.replace(line[0], sha256_of(library)))
    verify_installation(installed)  # whoever changes both is found out by the tarball only
    said(r"libtriton_jax\.so: expected the one of .*got another one", tarball=tarball)
    library.write_bytes(good)
    sums.write_text(text)
    (installed / "model.py").write_text("")
    said(r"model\.py: expected no such file .*Python-based backend; remove it")
    (installed / "model.py").unlink()
    library.unlink()
    library.symlink_to("/lib/libc.so.6")
    said(r"libtriton_jax\.so: expected a plain file")
    library.unlink()
    said(r"libtriton_jax\.so: expected a file of SHA-256 .*got none")
    sums.unlink()
    said("SHA256SUMS: expected it, in an installed backend, got none")


def test_the_members_are_what_the_sbom_says(tarball: Path) -> None:
    sbom = json.loads(tarball.with_name(tarball.name + layout.SBOM_SUFFIX).read_text())
    listed = {
        property_["value"]: component["hashes"][0]["content"]
        for component in sbom["components"]
        for property_ in component["properties"]
        if property_["name"] == "tritonserver-jax:path"
    }
    with tarfile.open(tarball) as archive:
        names = {member.name.removeprefix("jax/") for member in archive if member.isfile()}
        stream = archive.extractfile("jax/SHA256SUMS")
        assert stream is not None
        sums = parse_checksums(stream.read(), "SHA256SUMS")
    assert set(listed) == names
    assert {name: digest for name, digest in listed.items() if name != "SHA256SUMS"} == sums
