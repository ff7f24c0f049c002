# SPDX-License-Identifier: Apache-2.0
"""A version is published to real services: whole, once, and again after whatever went wrong."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from ci import images as real_images
from ci.deploy import post_deploy
from ci.deploy.errors import DeployError, DifferentBytesError
from ci.deploy.images import ImagePublisher, MovingTags
from ci.deploy.project import open_project
from ci.deploy.published import PublishedNames
from ci.deploy.publisher import MOST_NAMED
from ci.deploy.registry import open_registry
from ci.deploy.retries import ATTEMPTS
from ci.deploy.variables import ProjectVariables, RegistryVariables
from ci.local_services import LocalServices
from tests.support.release import (
    COMMIT,
    EPOCH,
    Factory,
    Images,
    Job,
    assert_no_secret,
    declared,
    moving_tag,
    sign,
)
from tritonserver_jax import __version__
from tritonserver_jax.artifacts.checksums import sha256_of
from tritonserver_jax.releases import DEFAULT_RELEASE

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def test_what_is_published_is_exactly_what_is_declared(
    publishing: Job, services: LocalServices, capfd: pytest.CaptureFixture[str]
) -> None:
    code, said = publishing.deploy()
    assert code == 0, said
    assert_no_secret(said, services)
    assert services.published() == declared(publishing, services)

    # Byte for byte.
    plan = publishing.plan()
    assert services.package_files() == {
        f"{file.package}/{__version__}/{file.name}": sha256_of(file.path) for file in plan.files
    }
    assert services.distributions() == {path.name: sha256_of(path) for path in plan.distributions}
    fixed, moving = (moving_tag(services, tag) for tag in plan.images[0].tags)
    assert fixed == moving is not None
    release = services.gitlab.releases[f"v{__version__}"]
    assert "- What the notes of the release say." in release.description
    assert str(fixed) in release.description

    # A second run finds all of it there.
    uploads = list(services.gitlab.uploads)
    code, said = publishing.deploy()
    assert code == 0, said
    assert services.gitlab.uploads == uploads
    assert services.published() == declared(publishing, services)
    assert "uploaded, 0 there already" not in said

    # And a stranger gets all of it.
    code = post_deploy.main(["--serve", "nothing"])
    said = "".join(capfd.readouterr())
    assert code == 0, said
    assert_no_secret(said, services)
    assert said.count("signed by the key") >= len(plan.folders)
    for folder in plan.folders:
        assert f"release v{__version__}: /{folder.name}/SHA256SUMS leads to the file" in said


def test_a_permanent_link_that_leads_elsewhere_is_named(
    publishing: Job, services: LocalServices, capfd: pytest.CaptureFixture[str]
) -> None:
    assert publishing.deploy()[0] == 0
    links = services.gitlab.releases[f"v{__version__}"].links
    name, other = f"{DEFAULT_RELEASE}/SHA256SUMS", f"{DEFAULT_RELEASE}/artifacts.json"
    good, path = links[name], f"/{DEFAULT_RELEASE}/SHA256SUMS"
    links[name] = good.model_copy(update={"direct_asset_path": "/elsewhere"})
    assert post_deploy.main(["--serve", "nothing"]) == 1
    assert f"v{__version__}: permanent link {path}: it answered 404" in capfd.readouterr().err
    links[other] = links[other].model_copy(update={"direct_asset_path": path})
    assert post_deploy.main(["--serve", "nothing"]) == 1
    assert f"permanent link {path}, got another one; correct" in capfd.readouterr().err


def test_post_deploy_says_what_is_missing_and_which_job_to_look_at(
    publishing: Job, services: LocalServices, capfd: pytest.CaptureFixture[str]
) -> None:
    def said() -> str:
        capfd.readouterr()
        assert post_deploy.main(["--serve", "nothing"]) == 1
        return capfd.readouterr().err

    plan = publishing.plan()
    first = plan.folders[0]
    too_early = said()
    assert f"{first.package} {__version__}: expected {len(first.required)} files" in too_early
    assert "registry, found none. Has the job deploy-packages ended well?" in too_early

    # While that job is at it.
    services.gitlab.fail_next(10 * ATTEMPTS, 503, passed=1)
    assert publishing.deploy("packages")[0] == 1
    services.gitlab.fail_next(0)
    missing = len(first.required) - 1
    assert f"{missing} of them are missing: {', '.join(first.required[1:4])} and" in said()

    assert publishing.deploy("images", "packages")[0] == 0
    links = len(plan.links(ProjectVariables.read(services.variables), "https://example.com/"))
    names = ", ".join(path.name for path in plan.distributions)
    early = said()
    assert len(early.splitlines()) == 1
    assert f"expected all of it to be published, {2 + links + 1} are missing: " in early
    assert f"2 of part wheel: {names}; {links + 1} of part release: v{__version__}: " in early
    assert f" and {links + 1 - MOST_NAMED} more. Has the job deploy-wheel ended well?" in early
    assert "Wait for it, or retry it and those after it, and then this one" in early


def test_a_run_that_failed_half_way_is_completed_by_the_next(
    publishing: Job, services: LocalServices
) -> None:
    services.gitlab.fail_next(10 * ATTEMPTS, 503, passed=3)
    code, said = publishing.deploy()
    assert code == 1
    assert "503" in said
    assert "run the job again: what is published already is kept" in said
    assert len(services.gitlab.uploads) == 3
    # Nothing is announced that is not there.
    assert moving_tag(services) is None
    assert services.gitlab.releases == {}
    assert services.distributions() == {}

    services.gitlab.fail_next(0)
    code, said = publishing.deploy()
    assert code == 0, said
    assert services.published() == declared(publishing, services)
    assert len(services.gitlab.uploads) == len(set(services.gitlab.uploads))


def test_the_parts_are_published_one_by_one_and_the_release_waits_for_the_others(
    publishing: Job, services: LocalServices
) -> None:
    code, said = publishing.deploy("release")
    assert code == 1
    for part in ("images", "packages", "wheel"):
        assert f" of part {part}: " in said
    assert "Run the job deploy-images and those after it first; by hand: ./ci/nox -s deploy" in said
    assert len(said.splitlines()[-1]) < 1200
    assert services.gitlab.releases == {}
    assert moving_tag(services) is None
    for part in ("images", "packages", "wheel", "release"):
        code, said = publishing.deploy(part)
        assert code == 0, said
    assert services.published() == declared(publishing, services)


@pytest.mark.parametrize("service", ["registry", "index", "gitlab"])
def test_a_service_that_answers_500_twice_is_asked_again(
    publishing: Job, services: LocalServices, service: str
) -> None:
    getattr(services, service).fail_next(2)
    code, said = publishing.deploy()
    assert code == 0, said
    # One call of skopeo may take both.
    assert f"attempt 2 of {ATTEMPTS} follows" in said
    assert_no_secret(said, services)
    assert services.published() == declared(publishing, services)


@pytest.mark.parametrize(
    ("variable", "part"),
    [
        ("CI_REGISTRY_PASSWORD", "images"),
        ("CI_JOB_TOKEN", "packages"),
        ("TWINE_PASSWORD", "wheel"),
    ],
)
def test_a_wrong_password_is_not_tried_again_and_names_its_variable(
    publishing: Job, services: LocalServices, variable: str, part: str
) -> None:
    publishing.set(variable, "not-the-password")
    code, said = publishing.deploy(part)
    assert code == 1
    assert "access was refused" in said
    assert f"{variable}: is it set in this job" in said
    assert "attempt" not in said
    assert "not-the-password" not in said
    assert_no_secret(said, services)
    assert services.published() == PublishedNames.nothing()


def test_other_bytes_under_a_published_version_are_refused_by_both_hashes(
    publishing: Job, services: LocalServices, factory: Factory
) -> None:
    assert publishing.deploy()[0] == 0
    before = services.package_files()
    (tarball,) = (name for name in before if name.endswith("x86_64.tar.gz"))

    shutil.rmtree(publishing.dist)
    factory.make(publishing.dist, epoch=EPOCH + 60)
    sign(publishing.dist, services)
    code, said = publishing.deploy()
    assert code == 1
    ours = sha256_of(publishing.dist / DEFAULT_RELEASE / Path(tarball).name)
    assert ours != before[tarball]
    assert f"{tarball}: expected to publish SHA-256 {ours}, got SHA-256 {before[tarball]}" in said
    assert "cut a new version" in said
    assert services.package_files() == before
    assert services.published() == declared(publishing, services)


def test_another_image_under_a_published_version_is_refused_by_both_ids(
    publishing: Job, services: LocalServices, images: Images
) -> None:
    assert publishing.deploy("images")[0] == 0
    (image,) = publishing.plan().images
    before = services.image_digests()
    published = images.client.images.get(f"{images.name}:{image.tags[0]}").id
    other = images.make(image, content="two")
    code, said = publishing.deploy()
    assert code == 1
    assert f"expected to publish {other}, got {published}" in said
    assert services.image_digests() == before
    # It was found before anything else was published.
    assert services.package_files() == {}


def test_an_image_of_another_commit_is_not_taken(
    publishing: Job, services: LocalServices, images: Images, capfd: pytest.CaptureFixture[str]
) -> None:
    (image,) = publishing.plan().images
    images.make(image, commit="f" * 40)
    with open_registry(RegistryVariables.read(services.variables)) as registry:
        publisher = ImagePublisher(images.client, registry, publishing.plan(), COMMIT)
        (item,) = publisher.survey()
        assert (item.digest, item.there) == (None, False)
        assert f"revision: expected {COMMIT}, got {'f' * 40}" in capfd.readouterr().out

        # Nor is what somebody has published from another one.
        images.push(services, image.tags[0])
        with pytest.raises(DifferentBytesError, match=f"expected to publish an image.*{COMMIT}"):
            publisher.survey()


def test_a_file_that_is_not_declared_is_named(publishing: Job, services: LocalServices) -> None:
    (publishing.dist.parent / "stray").write_text("of somebody")
    with open_project(ProjectVariables.read(services.variables)) as project:
        project.generic_packages.upload(
            package_name="tritonserver-jax-python",
            package_version=__version__,
            file_name="stray",
            path=publishing.dist.parent / "stray",
        )
    code, said = publishing.deploy("packages")
    assert code == 1
    assert "expected only the files of" in said
    assert "got stray as well; delete what does not belong there" in said
    assert len(services.gitlab.uploads) == 1


def test_moving_tags_stay_with_a_newer_version(
    publishing: Job,
    services: LocalServices,
    images: Images,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (image,) = publishing.plan().images
    newer = "99.0.0"
    images.make(image, version=newer, content="newer")
    repository = services.variables["CI_REGISTRY_IMAGE"]
    images.push(services, f"{newer}-triton{DEFAULT_RELEASE}", image.tags[1])
    before = moving_tag(services)
    code, said = publishing.deploy()
    assert code == 0, said
    assert f"{repository}:{DEFAULT_RELEASE}: stays at {newer}, which is newer" in said
    assert moving_tag(services) == before
    assert moving_tag(services, image.tags[0]) not in (None, before)
    # So that is where they belong.
    assert post_deploy.main(["--serve", "nothing"]) == 0, capfd.readouterr()


def test_an_older_version_that_is_not_there_is_no_reason_for_a_newer_one_to_stay(
    publishing: Job, services: LocalServices, images: Images
) -> None:
    (image,) = publishing.plan().images
    images.make(image, version="99.0.0", content="newer")
    images.push(services, f"99.0.0-triton{DEFAULT_RELEASE}", image.tags[1])
    with open_registry(RegistryVariables.read(services.variables)) as registry:
        tags = MovingTags(registry, publishing.plan())
        assert [item.there for item in tags.survey()] == [False]
        with pytest.raises(DeployError, match=rf"{image.tags[0]}: expected it before"):
            tags.publish()


def test_the_image_that_was_found_is_pushed_whatever_takes_its_name(
    publishing: Job, services: LocalServices, images: Images, monkeypatch: pytest.MonkeyPatch
) -> None:
    (image,) = publishing.plan().images
    ours = images.make(image)
    push = real_images.push

    def after_another(*arguments: Any, **options: Any) -> str:
        images.make(image, content="another")
        return push(*arguments, **options)

    monkeypatch.setattr(real_images, "push", after_another)
    code, said = publishing.deploy("images")
    assert code == 0, said
    with open_registry(RegistryVariables.read(services.variables)) as registry:
        there = registry.manifest(f"{services.variables['CI_REGISTRY_IMAGE']}:{image.tags[0]}")
    assert there is not None
    assert there.is_image(ours)
