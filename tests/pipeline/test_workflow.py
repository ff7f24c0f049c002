# SPDX-License-Identifier: Apache-2.0
"""Which events have a pipeline, and which jobs it has: never two pipelines for one push."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ci.gitlab_ci_local import LocalRunner
from ci.pipeline import MERGE_REQUEST, TAG
from ci.pipeline_checkout import commit_all
from ci.pipeline_plan import build_job
from ci.process import ROOT, run
from tests.support.gitlab import Pipeline
from tritonserver_jax.releases import load_catalog

CATALOG = load_catalog()

MAIN = {"CI_COMMIT_BRANCH": "main", "CI_DEFAULT_BRANCH": "main", "CI_PIPELINE_SOURCE": "push"}
CHANGE = {"CI_COMMIT_BRANCH": "change", "CI_DEFAULT_BRANCH": "main", "CI_PIPELINE_SOURCE": "push"}
REQUEST = {**MERGE_REQUEST.variables, "CI_DEFAULT_BRANCH": "main"}
RELEASE = {**TAG.variables, "CI_DEFAULT_BRANCH": "main"}
OPEN = {"CI_OPEN_MERGE_REQUESTS": "group/tritonserver-jax!1"}

#: What happened, and whether there is a pipeline for it.
EVENTS: dict[str, tuple[Mapping[str, str], bool]] = {
    "a push to the default branch": (MAIN, True),
    "a push to another branch": (CHANGE, False),
    "a push to a branch with a merge request": ({**CHANGE, **OPEN}, False),
    "that merge request": (REQUEST, True),
    "a push to the default branch, which is to be merged elsewhere": ({**MAIN, **OPEN}, False),
    "a schedule": ({**MAIN, "CI_PIPELINE_SOURCE": "schedule"}, True),
    "a schedule of another branch": ({**CHANGE, "CI_PIPELINE_SOURCE": "schedule"}, True),
    "somebody's click": ({**MAIN, "CI_PIPELINE_SOURCE": "web"}, True),
    "a protected tag": (RELEASE, True),
    "a tag that anybody may push": ({**RELEASE, "CI_COMMIT_REF_PROTECTED": "false"}, False),
    "a tag of another kind": ({**RELEASE, "CI_COMMIT_TAG": "nightly"}, False),
}


def runner(program: Path, checkout: Path, variables: Mapping[str, str]) -> LocalRunner:
    """Lists the jobs of a pipeline with these variables, and with no branch but theirs."""
    unset = [] if "CI_COMMIT_BRANCH" in variables else ["CI_COMMIT_BRANCH"]
    return LocalRunner(program, checkout, variables, unset=unset)


@pytest.fixture
def asked(program: Path, pipeline: Pipeline, tmp_path: Path) -> Callable[[Mapping[str, str]], bool]:
    """Says whether an event has a pipeline, by a job that has the rules of `workflow`."""
    run(["git", "init", "--quiet", tmp_path], cwd=tmp_path)
    rules = [
        {key: value for key, value in rule.items() if key != "variables"}
        for rule in pipeline.settings["workflow"]["rules"]
    ]
    probe = {"probe": {"script": ["true"], "rules": rules}}
    (tmp_path / ".gitlab-ci.yml").write_text(json.dumps(probe))
    return lambda variables: bool(runner(program, tmp_path, variables).automatic_jobs())


def test_every_event_has_one_pipeline_or_none(
    asked: Callable[[Mapping[str, str]], bool],
) -> None:
    found = {event: asked(variables) for event, (variables, _) in EVENTS.items()}
    assert found == {event: expected for event, (_, expected) in EVENTS.items()}


@pytest.fixture(scope="module")
def jobs_of(
    program: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Mapping[str, str]], dict[str, Any]]:
    """The jobs of the pipeline of an event, and when each of them runs."""
    checkout = tmp_path_factory.mktemp("checkout")
    run(["git", "init", "--quiet", checkout], cwd=checkout)
    shutil.copy2(ROOT / ".gitlab-ci.yml", checkout)
    shutil.copytree(ROOT / "ci" / "gitlab", checkout / "ci" / "gitlab")
    commit_all(checkout, "the pipeline")  # files that git does not know cannot be included

    def jobs(variables: Mapping[str, str]) -> dict[str, Any]:
        listed = runner(program, checkout, variables).list_jobs()
        return {job["name"]: job["when"] for job in listed if job["when"] != "never"}

    return jobs


def releases_built(jobs: Mapping[str, str]) -> list[str]:
    """The releases that have a build job."""
    return [name for name in CATALOG.releases if build_job(name) in jobs]


def test_a_merge_request_builds_the_gate_and_publishes_nothing(
    jobs_of: Callable[[Mapping[str, str]], dict[str, str]],
) -> None:
    jobs = jobs_of(REQUEST)
    assert releases_built(jobs) == [*CATALOG.gate_releases]
    assert {"generated", "lint", "unit", "core", "native", "packaging", "dry-run"} <= set(jobs)
    for name in CATALOG.gate_releases:
        assert {f"health-{name}", f"integration-{name}"} <= set(jobs)
    assert not {"sign", "deploy-images", "post-deploy", "bench", "rollback"} & set(jobs)
    assert {name for name, when in jobs.items() if when == "manual"} == {
        f"gpu-{CATALOG.default_release}"
    }


def test_a_tag_builds_everything_and_publishes_it(
    jobs_of: Callable[[Mapping[str, str]], dict[str, str]],
) -> None:
    jobs = jobs_of(RELEASE)
    assert releases_built(jobs) == [*CATALOG.releases]
    published = {"deploy-images", "deploy-packages", "deploy-wheel", "deploy-release"}
    assert {"sign", *published, "post-deploy", "dry-run"} <= set(jobs)
    assert "sign-by-identity" not in jobs
    by_identity = jobs_of({**RELEASE, "SIGN_BY": "identity"})
    assert set(by_identity) - set(jobs) == {"sign-by-identity"}
    assert set(jobs) - set(by_identity) == {"sign"}


def test_a_schedule_measures_and_looks_longer(
    jobs_of: Callable[[Mapping[str, str]], dict[str, str]],
) -> None:
    scheduled = {"bench", "fuzz", "reproduce", "sanitize"}
    jobs = jobs_of({**MAIN, "CI_PIPELINE_SOURCE": "schedule"})
    assert {name: jobs[name] for name in scheduled} == dict.fromkeys(scheduled, "on_success")
    assert not scheduled & set(jobs_of(MAIN))
    by_hand = jobs_of({**MAIN, "CI_PIPELINE_SOURCE": "web"})
    assert {by_hand[name] for name in scheduled} == {"manual"}


def prefilled(pipeline: Pipeline) -> dict[str, str]:
    """What the page that starts a pipeline sends, where nothing is typed into it."""
    declared: dict[str, Any] = pipeline.settings["variables"]
    described = {name for name, one in declared.items() if isinstance(one, Mapping)}
    return {name: value for name, value in pipeline.variables.items() if name in described}


def test_a_rollback_is_asked_for_by_hand_and_is_all_that_its_pipeline_does(
    jobs_of: Callable[[Mapping[str, str]], dict[str, str]], pipeline: Pipeline
) -> None:
    web = {**MAIN, "CI_PIPELINE_SOURCE": "web"}
    form = prefilled(pipeline)
    assert form["ROLLBACK_TO"] == ""
    everything = jobs_of(web)
    assert "rollback" not in everything
    assert jobs_of({**web, **form}) == everything
    asked = {"ROLLBACK_TO": "0.1.0"}
    for start in ({**web, **asked}, {**web, **form, **asked}):
        assert jobs_of(start) == {"rollback": "manual"}
    # Of another branch there is none.
    assert jobs_of({**web, **form, **asked, "CI_COMMIT_BRANCH": "change"}) == {}
    # It does not come with anything but a click, nor keeps anything from running then.
    for event in (MAIN, {**MAIN, "CI_PIPELINE_SOURCE": "schedule"}, REQUEST, RELEASE):
        assert jobs_of({**event, **asked}) == jobs_of(event)
        assert "rollback" not in jobs_of(event)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("24.10", ["24.10"]),
        ("23.10, 24.10", ["23.10", "24.10"]),
        ("gate 25.01", [*CATALOG.gate_releases, "25.01"]),
        ("gate", [*CATALOG.gate_releases]),
    ],
)
def test_the_releases_can_be_chosen(
    jobs_of: Callable[[Mapping[str, str]], dict[str, str]], wanted: str, expected: list[str]
) -> None:
    assert releases_built(jobs_of({**MAIN, "TRITON_RELEASES": wanted})) == expected
