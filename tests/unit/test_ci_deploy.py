# SPDX-License-Identifier: Apache-2.0
"""What a version consists of, where it goes, and what is tried again: without any service."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tenacity

from ci.deploy.errors import (
    AccessError,
    DeployError,
    PassingError,
    error_of_status,
    error_of_text,
)
from ci.deploy.images import label_problem
from ci.deploy.plan import ArtifactFolder, declare, plan_of
from ci.deploy.published import PublishedNames
from ci.deploy.registry import Registry
from ci.deploy.retries import ATTEMPTS, persistently
from ci.deploy.variables import IndexVariables, ProjectVariables, RegistryVariables
from ci.image_plan import plan_image
from tritonserver_jax import __version__
from tritonserver_jax.artifacts import layout
from tritonserver_jax.releases import find_release, load_releases

PROJECT = {
    "CI_API_V4_URL": "https://gitlab.example.com/api/v4",
    "CI_PROJECT_ID": "42",
    "CI_PROJECT_URL": "https://gitlab.example.com/group/project",
    "CI_JOB_TOKEN": "the-token",
}
REGISTRY = {
    "CI_REGISTRY": "registry.example.com",
    "CI_REGISTRY_IMAGE": "registry.example.com/Group/project",
    "CI_REGISTRY_USER": "somebody",
    "CI_REGISTRY_PASSWORD": "the-password",
}


# -- what is tried again -------------------------------------------------------------------------


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ci.deploy.retries.WAIT", tenacity.wait_none())


class Failing:
    """Fails so often, and then does not."""

    def __init__(self, *errors: DeployError) -> None:
        self.errors = list(errors)
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


@pytest.mark.usefixtures("no_waiting")
def test_what_may_pass_is_tried_again_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    action = Failing(PassingError("busy"), PassingError("busy still"))
    assert persistently(action) == "done"
    assert action.calls == 3
    said = capsys.readouterr().out.splitlines()
    assert said == [
        f"busy; attempt 2 of {ATTEMPTS} follows",
        f"busy still; attempt 3 of {ATTEMPTS} follows",
    ]


@pytest.mark.usefixtures("no_waiting")
def test_it_is_given_up_in_the_end_with_what_to_do() -> None:
    action = Failing(*[PassingError("busy")] * 50)
    with pytest.raises(DeployError, match=rf"busy; so it was {ATTEMPTS} times.*run the job again"):
        persistently(action)
    assert action.calls == ATTEMPTS


@pytest.mark.usefixtures("no_waiting")
def test_a_refusal_is_not_tried_again() -> None:
    action = Failing(AccessError("registry", "401", "PASSWORD"))
    with pytest.raises(AccessError, match="look at PASSWORD"):
        persistently(action)
    assert action.calls == 1


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, AccessError),
        (403, AccessError),
        (408, PassingError),
        (429, PassingError),
        (500, PassingError),
        (503, PassingError),
        (None, PassingError),
    ],
)
def test_a_status_says_whether_it_may_pass(status: int | None, kind: type[DeployError]) -> None:
    assert type(error_of_status("index", status, "said", "PASSWORD")) is kind


def test_another_status_is_final() -> None:
    error = error_of_status("index", 422, "name is invalid", "PASSWORD")
    assert type(error) is DeployError
    assert str(error) == "index: it answered 422: name is invalid"


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("unauthorized: authentication required", AccessError),
        ("denied: requested access to the resource is denied", AccessError),
        ("received unexpected HTTP status: 500 Internal Server Error", PassingError),
        ("dial tcp 127.0.0.1:5000: connect: connection refused", PassingError),
        ("", PassingError),
    ],
)
def test_a_programs_words_say_whether_it_may_pass(said: str, kind: type[DeployError]) -> None:
    assert type(error_of_text("registry", said, "PASSWORD")) is kind


# -- where it goes -------------------------------------------------------------------------------


def test_passwords_are_not_shown() -> None:
    shown = f"{ProjectVariables.read(PROJECT)!r} {RegistryVariables.read(REGISTRY)!r}"
    assert "the-token" not in shown
    assert "the-password" not in shown


@pytest.mark.parametrize("value", [None, "", " "])
def test_a_variable_that_is_missing_or_empty_is_named(value: str | None) -> None:
    given = {name: one for name, one in PROJECT.items() if name != "CI_JOB_TOKEN"}
    if value is not None:
        given["CI_JOB_TOKEN"] = value
    with pytest.raises(DeployError, match=r"^CI_JOB_TOKEN: expected a value, got none; docs/rel"):
        ProjectVariables.read(given)


def test_a_wrong_value_is_not_shown() -> None:
    with pytest.raises(DeployError, match=r"^CI_API_V4_URL: ") as caught:
        ProjectVariables.read(PROJECT | {"CI_API_V4_URL": "https://user:secret@example.com"})
    assert "secret" not in str(caught.value)


def test_a_registry_is_named_without_a_scheme() -> None:
    assert RegistryVariables.read(REGISTRY).repository == "registry.example.com/group/project"
    with pytest.raises(DeployError, match=r"CI_REGISTRY: .*without https://"):
        RegistryVariables.read(REGISTRY | {"CI_REGISTRY": "https://registry.example.com"})


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1:5000", True),
        ("localhost:5000", True),
        ("localhost", True),
        ("[::1]:5000", True),
        ("registry.example.com", False),
        ("registry.example.com:5000", False),
        ("10.0.0.1:5000", False),
    ],
)
def test_only_a_registry_of_this_machine_may_do_without_tls(
    host: str, local: bool, tmp_path: Path
) -> None:
    variables = RegistryVariables.read(REGISTRY | {"CI_REGISTRY": host})
    assert Registry(variables, tmp_path).is_local is local


def test_the_index_is_the_projects_own_unless_another_is_named() -> None:
    own = IndexVariables.read(PROJECT)
    base = "https://gitlab.example.com/api/v4/projects/42/packages/pypi"
    assert (own.upload_url, own.simple_url) == (base, f"{base}/simple/")
    assert (own.user, own.password.get_secret_value()) == ("gitlab-ci-token", "the-token")
    given = {"TWINE_USERNAME": "__token__", "TWINE_PASSWORD": "p"}
    pypi = IndexVariables.read({**given, "TWINE_REPOSITORY_URL": "https://upload.pypi.org/legacy/"})
    assert pypi.simple_url == "https://pypi.org/simple/"
    named = IndexVariables.read(
        {
            **given,
            "TWINE_REPOSITORY_URL": "https://example.com/upload",
            "TRITONSERVER_JAX_INDEX_URL": "https://example.com/index/",
        }
    )
    assert named.simple_url == "https://example.com/index/"


# -- what it consists of -------------------------------------------------------------------------


def test_all_releases_are_declared_with_names_that_gitlab_takes(tmp_path: Path) -> None:
    plan = plan_of({}, tmp_path)
    assert [folder.name for folder in plan.folders] == [*load_releases(), "python"]
    links = plan.links(ProjectVariables.read(PROJECT), "https://example.com/simple/")
    assert len({link.name for link in links}) == len(links)
    assert len({link.url for link in links}) == len(links)
    for link in links:
        if link.path is not None:
            assert re.fullmatch(r"/([\-.\w]+/?)*[0-9a-zA-Z]+", link.path)
    for file in plan.files:
        assert re.fullmatch(r"[A-Za-z0-9._-]+", file.package)
        assert re.fullmatch(r"[A-Za-z0-9._+-]+", file.name)
    names = plan.names(
        "registry.example.com/p", ProjectVariables.read(PROJECT), "https://example.com/simple/"
    )
    assert f"registry.example.com/p:{__version__}-triton24.10-cuda12" in names.images
    assert "registry.example.com/p:24.10" in names.images
    assert f"registry.example.com/p/charts/tritonserver-jax:{__version__}" in names.images
    assert names.distributions == {layout.wheel_name(__version__), layout.sdist_name(__version__)}
    assert f"v{__version__}: 24.10/SHA256SUMS" in names.links


def test_signatures_are_declared_where_there_are_any_and_come_last(tmp_path: Path) -> None:
    folder = ArtifactFolder(tmp_path, "24.10", "1.2.3")
    assert [file.name for file in folder.files][-1] == layout.CHECKSUMS
    (tmp_path / layout.SIGNATURE).touch()
    (tmp_path / "something").touch()
    assert [file.name for file in folder.files][-2:] == [layout.CHECKSUMS, layout.SIGNATURE]
    assert folder.package == "tritonserver-jax-triton24.10"


def test_differences_are_said_both_ways(tmp_path: Path) -> None:
    def names(*releases: str) -> PublishedNames:
        images = [plan_image(find_release(name)) for name in releases]
        project = ProjectVariables.read(PROJECT)
        return declare(tmp_path, images).names("r/p", project, "https://example.com/simple/")

    both, one = names("23.10", "24.10"), names("24.10")
    found = both.differences(one)
    assert "images: r/p:23.10 is missing" in found
    found = one.differences(both)
    assert "images: r/p:23.10 is not declared" in found
    assert both.differences(both) == []


def test_an_image_says_which_one_it_is() -> None:
    image = plan_image(find_release("24.10"), "cuda12")
    labels = image.labels("c" * 40, 1_700_000_000)
    assert label_problem(image, __version__, "c" * 40, labels) is None
    assert label_problem(image, __version__, None, labels) is None
    assert label_problem(image, "9.9.9", None, labels) == (
        f"label org.opencontainers.image.version: expected 9.9.9, got {__version__}"
    )
    other = plan_image(find_release("24.10"))
    assert "tritonserver-jax.variant: expected cpu, got cuda12" in str(
        label_problem(other, __version__, None, labels)
    )
    assert "expected " + "d" * 40 in str(label_problem(image, __version__, "d" * 40, labels))
