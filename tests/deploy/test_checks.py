# SPDX-License-Identifier: Apache-2.0
"""What is looked at before anything is published: no service runs here."""

from __future__ import annotations

import zipfile

import pytest

from ci import selection
from ci.python_artifacts import package_python
from tests.support.artifacts import flip
from tests.support.release import COMMIT, EPOCH, Factory, Job
from tritonserver_jax import __version__
from tritonserver_jax.artifacts import layout
from tritonserver_jax.releases import DEFAULT_RELEASE

REFUSED = "nothing was published, because of:"


def test_a_rehearsal_needs_no_tag_no_signature_and_no_service(job: Job) -> None:
    job.monkeypatch.delenv("CI_COMMIT_TAG")
    job.monkeypatch.setattr("ci.deploy.__main__.source_commit", lambda: "f" * 40 + "-modified")
    job.changelog.write_text("# Changelog\n\n## [Unreleased]\n\n### Added\n\n- Something.\n")
    code, said = job.deploy("--dry-run")
    assert code == 0, said
    assert "dry run: nothing was published" in said
    for file in job.plan().files:
        assert f"{file.package}/{__version__}/{file.name}" in said


@pytest.mark.parametrize("tag", ["v0.0.1", "nightly", f"{__version__}", f"v{__version__}rc1"])
def test_a_tag_that_is_not_the_version_is_refused(job: Job, tag: str) -> None:
    job.set("CI_COMMIT_TAG", tag)
    for words in ([], ["--dry-run"], ["wheel"]):
        code, said = job.deploy("--unsigned", *words)
        assert code == 1
        assert REFUSED in said
        assert f"CI_COMMIT_TAG: expected v{__version__}" in said
        assert f"got {tag}" in said


def test_everything_that_is_wrong_is_said_at_once(job: Job) -> None:
    job.monkeypatch.delenv("CI_COMMIT_TAG")
    job.monkeypatch.setattr("ci.deploy.__main__.source_commit", lambda: f"{COMMIT}-modified")
    job.changelog.write_text("# Changelog\n\n## [Unreleased]\n")
    (job.dist / DEFAULT_RELEASE / layout.PROVENANCE).unlink()
    code, said = job.deploy()
    assert code == 1
    assert f"CI_COMMIT_TAG: expected v{__version__}" in said
    assert "got none; a version is published from its own tag" in said
    assert "expected a checkout without changes" in said
    assert f"expected a section ## [{__version__}] - <date>, got none" in said
    assert f"expected {layout.PROVENANCE}, found none" in said
    assert f"run ./ci/nox -s package-{DEFAULT_RELEASE}" in said
    assert "python: expected a signature, found none" in said


def test_a_release_without_artifacts_says_how_to_get_them_or_do_without(job: Job) -> None:
    job.set(selection.RELEASES, f"23.10 {DEFAULT_RELEASE}")
    code, said = job.deploy("--dry-run")
    assert code == 1
    assert f"{job.dist / '23.10'}: expected a folder of artifacts, found none" in said
    assert "run ./ci/nox -s package-23.10, or name in TRITON_RELEASES" in said


def test_a_damaged_artifact_is_refused(job: Job) -> None:
    tarball = job.dist / DEFAULT_RELEASE / layout.tarball_name(__version__, DEFAULT_RELEASE)
    flip(tarball, 100)
    code, said = job.deploy("--unsigned")
    assert code == 1
    assert f"{tarball.name}: expected SHA-256" in said


def test_artifacts_of_another_commit_are_refused(job: Job) -> None:
    job.monkeypatch.setattr("ci.deploy.__main__.source_commit", lambda: "f" * 40)
    code, said = job.deploy("--unsigned")
    assert code == 1
    assert f"expected artifacts of the commit {'f' * 40}, got those of {COMMIT}" in said


def test_the_wheel_has_to_be_the_one_in_the_tarball(job: Job, factory: Factory) -> None:
    python = job.dist / "python"
    other = factory.scratch / "other" / factory.wheel.name
    other.parent.mkdir(exist_ok=True)
    # The same files, packed in another way.
    with zipfile.ZipFile(factory.wheel) as source, zipfile.ZipFile(other, "w") as target:
        for member in source.infolist():
            target.writestr(member.filename, source.read(member))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ci.python_artifacts.source_commit", lambda: COMMIT)
        package_python(other, factory.sdist, output=python, source_date_epoch=EPOCH)
    code, said = job.deploy("--unsigned")
    assert code == 1
    assert "expected the wheel in it to be" in said
    assert "build both from the same commit" in said


def test_variables_that_are_missing_are_named_and_none_is_shown(job: Job) -> None:
    job.set("CI_REGISTRY", "registry.example.com")
    job.set("CI_REGISTRY_PASSWORD", "a-secret")
    code, said = job.deploy("--unsigned", "images")
    assert code == 1
    assert "CI_REGISTRY_IMAGE: expected a value, got none" in said
    assert "CI_REGISTRY_USER: expected a value, got none" in said
    assert "docs/releasing.md says where each comes from" in said
    assert "a-secret" not in said


def test_an_unknown_part_is_refused(job: Job) -> None:
    with pytest.raises(SystemExit, match="2"):
        job.deploy("image")
