# SPDX-License-Identifier: Apache-2.0
"""Everything that the pipeline names is there, and is what GitLab takes."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ci import lint, pipeline_plan, selection
from ci.deploy.__main__ import PARTS
from ci.deploy.publisher import job_of
from ci.deploy.variables import variable_descriptions
from ci.pipeline_plan import (
    MOST_JOBS,
    MOST_MATRIX_JOBS,
    MOST_NAME,
    MOST_NEEDS,
    PipelineLimitError,
    build_job,
    check_limits,
)
from ci.process import ROOT
from ci.sign import KEY, KEY_FILE, PASSWORD, TOKEN
from tests.support.gitlab import PIPELINE, Pipeline, names_in, strings_of
from tritonserver_jax.releases import load_catalog

CATALOG = load_catalog()
#: GitLab has these stages without their being declared.
BUILT_IN_STAGES = {".pre", ".post"}
SYSTEM_FAILURES = {
    "api_failure",
    "runner_system_failure",
    "scheduler_failure",
    "stuck_or_timeout_failure",
}
#: GitLab's own variables that the pipeline uses, each of which it documents.
PREDEFINED = {
    "CI_COMMIT_BRANCH",
    "CI_COMMIT_REF_PROTECTED",
    "CI_COMMIT_TAG",
    "CI_DEFAULT_BRANCH",
    "CI_OPEN_MERGE_REQUESTS",
    "CI_PIPELINE_SOURCE",
    "CI_PROJECT_DIR",
}


@pytest.fixture(scope="module")
def sessions() -> set[str]:
    """The sessions of nox."""
    command = [sys.executable, "-m", "nox", "--list"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return set(re.findall(r"^[*-] (\S+)", done.stdout, re.MULTILINE))


def calls(pipeline: Pipeline, job: str) -> list[list[str]]:
    """The words of each line of a job's script."""
    return [shlex.split(pipeline.expanded(job, line)) for line in pipeline.script(job)]


def test_a_job_calls_sessions_and_nothing_else_and_each_is_there(
    pipeline: Pipeline, sessions: set[str]
) -> None:
    called = set()
    for job in pipeline.jobs:
        assert "before_script" not in pipeline.jobs[job]
        assert "after_script" not in pipeline.jobs[job]
        for words in calls(pipeline, job):
            assert words[:2] == ["./ci/nox", "-s"], f"{job}: {words}"
            assert words[2] in sessions, f"{job}: there is no session {words[2]}"
            assert words[3:4] in ([], ["--"]), f"{job}: {words}"
            called.add(words[2])
    # The other way round: what is tried for each release is tried in the pipeline.
    for session in sessions:
        if session.startswith(("package-", "health-", "integration-")):
            assert session in called, f"no job calls {session}"


def test_paths_and_options_that_jobs_name_are_there(pipeline: Pipeline) -> None:
    names = {check.name for check in lint.checks()}
    for job in pipeline.jobs:
        for words in calls(pipeline, job):
            for word, after in zip(words, [*words[1:], ""], strict=True):
                if word == "--only":
                    assert after in names, f"{job}: lint has no check {after}"
                if word.startswith("tests/"):
                    assert (ROOT / word).is_dir(), f"{job}: {word}"


def test_stages_and_needs_are_declared(pipeline: Pipeline) -> None:
    stages = [*pipeline.settings["stages"]]
    assert stages == ["build", "test", "deploy"]
    order = {name: number for number, name in enumerate([".pre", *stages, ".post"])}
    for name, job in pipeline.jobs.items():
        assert job["stage"] in order, f"{name}: stage {job['stage']}"
        for need in job.get("needs") or []:
            needed = need if isinstance(need, str) else need["job"]
            assert needed in pipeline.jobs, f"{name} needs {needed}, which there is not"
            assert order[pipeline.jobs[needed]["stage"]] <= order[job["stage"]]
        for needed in job.get("dependencies") or []:
            assert needed in pipeline.jobs, f"{name} takes artifacts of {needed}"
            assert order[pipeline.jobs[needed]["stage"]] < order[job["stage"]]
            assert pipeline.jobs[needed]["artifacts"]["paths"]


def test_a_job_that_needs_another_is_not_there_without_it(pipeline: Pipeline) -> None:
    for name, job in pipeline.jobs.items():
        for need in job.get("needs") or []:
            if isinstance(need, dict) and need.get("optional"):
                continue
            needed = pipeline.jobs[need if isinstance(need, str) else need["job"]]
            conditions = [[rule["if"] for rule in one.get("rules", [])] for one in (job, needed)]
            assert conditions[1] in ([], conditions[0]), f"{name} may need what is not there"


def test_every_variable_is_declared_or_is_gitlabs_own(pipeline: Pipeline) -> None:
    declared = set(pipeline.variables)
    for name, job in pipeline.jobs.items():
        own = {*job.get("variables", {}), *job.get("id_tokens", {})}
        for text in strings_of(job):
            # A pattern is no place for variables.
            used = names_in(re.sub(r"=~ /[^/]*/", "", text))
            assert used <= declared | own | PREDEFINED, f"{name}: {used}"
    for rule in pipeline.settings["workflow"]["rules"]:
        assert names_in(re.sub(r"=~ /[^/]*/", "", rule["if"])) <= PREDEFINED
        assert set(rule.get("variables", {})) <= declared


def test_every_declared_variable_is_used_and_described(pipeline: Pipeline) -> None:
    texts = strings_of(pipeline.jobs) + list(pipeline.variables.values())
    used = set().union(*map(names_in, texts))
    # These are read by sessions, not by the YAML.
    used |= {selection.VARIANTS, "UV_CACHE_DIR", "TRITONSERVER_JAX_CACHE"}
    for name, one in pipeline.settings["variables"].items():
        assert name in used, f"{name} is used nowhere"
        if isinstance(one, dict):
            assert one["description"]
    assert pipeline.variables[selection.IMAGE] == selection.official_image()


def test_images_are_pinned_by_variables(pipeline: Pipeline) -> None:
    for name, job in pipeline.jobs.items():
        image = job["image"]
        written = image if isinstance(image, str) else image["name"]
        expanded = pipeline.expanded(name, written)
        assert re.fullmatch(r"[\w./-]+:[\w.-]*\d+\.\d+[\w.-]*(@sha256:[0-9a-f]{64})?", expanded), (
            f"{name}: {expanded}"
        )
        release = job.get("variables", {}).get("RELEASE")
        if name == build_job(str(release)):
            official = CATALOG.releases[release]
            assert expanded == official.image + (
                f"@{official.image_digest}" if official.image_digest else ""
            )


def test_only_system_failures_are_tried_again_and_nothing_runs_for_ever(
    pipeline: Pipeline,
) -> None:
    for name, job in pipeline.jobs.items():
        assert set(job["retry"]["when"]) <= SYSTEM_FAILURES, name
        assert job["timeout"]


def test_what_publishes_is_alone_whole_and_protected(pipeline: Pipeline) -> None:
    for name, job in pipeline.jobs.items():
        publishes = job.get("resource_group") == "release"
        words = [word for line in calls(pipeline, name) for word in line]
        dry = "--dry-run" in words
        if {"deploy", "post-deploy", "rollback", "sign"} & set(words) and not dry:
            assert publishes, f"{name}: no resource_group"
        if not publishes:
            continue
        assert job["interruptible"] is False
        for rule in job["rules"]:
            protected = '$CI_COMMIT_REF_PROTECTED == "true"' in rule["if"]
            by_hand = rule.get("when") == "manual" and "$CI_DEFAULT_BRANCH" in rule["if"]
            assert protected or by_hand, f"{name}: {rule}"


def test_one_job_may_say_who_it_is_and_only_to_sigstore(pipeline: Pipeline) -> None:
    tokens = {name: job["id_tokens"] for name, job in pipeline.jobs.items() if "id_tokens" in job}
    assert tokens == {"sign-by-identity": {TOKEN: {"aud": "sigstore"}}}


def test_builds_hand_on_one_folder_and_tests_take_that_of_their_release(
    pipeline: Pipeline,
) -> None:
    for name, release in CATALOG.releases.items():
        build = pipeline.jobs[build_job(name)]
        assert [
            pipeline.expanded(build_job(name), path) for path in build["artifacts"]["paths"]
        ] == [f"dist/{name}/"]
        assert build["variables"]["TRITON_SDK_DIR"] == "/opt/tritonserver"
        for kind in ("health", "integration"):
            job = f"{kind}-{name}"
            assert (job in pipeline.jobs) == (release.server is not None)
            if release.server is not None:
                assert pipeline.jobs[job]["needs"] == [build_job(name)]
                (words,) = calls(pipeline, job)
                assert words[words.index("--backend") + 1] == f"dist/{name}"
    for name in ("dry-run", "sign", "sign-by-identity"):
        assert pipeline.jobs[name]["dependencies"] == [
            *map(build_job, CATALOG.releases),
            "package-python",
        ]


def test_what_is_published_is_ordered_and_is_what_was_signed(pipeline: Pipeline) -> None:
    order = ["deploy-images", "deploy-packages", "deploy-wheel", "deploy-release", "post-deploy"]
    for before, name in zip(["", *order], order, strict=False):
        needs = pipeline.jobs[name]["needs"]
        assert needs[:2] == [
            {"job": "sign", "optional": True},
            {"job": "sign-by-identity", "optional": True},
        ]
        assert needs[2:] == ([{"job": before, "artifacts": False}] if before else [])


def test_the_job_that_messages_name_publishes_that_part(pipeline: Pipeline) -> None:
    for part in PARTS:
        assert calls(pipeline, job_of(part)) == [["./ci/nox", "-s", "deploy", "--", part]]


def test_reports_and_caches(pipeline: Pipeline) -> None:
    kinds = {
        kind
        for job in pipeline.jobs.values()
        for kind in job.get("artifacts", {}).get("reports", {})
    }
    assert kinds == {"codequality", "coverage_report", "cyclonedx", "junit"}
    for name, job in pipeline.jobs.items():
        reports = job.get("artifacts", {}).get("reports", {})
        for text in strings_of(reports):
            if text == "cobertura":
                continue
            paths = job["artifacts"]["paths"]
            assert any(
                text.startswith(path.split("$")[0].rstrip("/").split("/")[0]) for path in paths
            ), f"{name}: {text} is no artifact"
        for cache in job["cache"]:
            assert cache["key"]["files"]
            for file in cache["key"]["files"]:
                assert (ROOT / file).is_file()
            for path in cache["paths"]:
                assert f"$CI_PROJECT_DIR/{path}" in pipeline.variables.values()


def test_the_jobs_of_the_releases_are_what_the_release_data_says() -> None:
    assert pipeline_plan.outdated() == []


def test_the_pipeline_is_within_gitlabs_limits(pipeline: Pipeline) -> None:
    check_limits(pipeline.jobs)
    assert len(pipeline.settings["include"]) <= 150


@pytest.mark.parametrize(
    ("jobs", "words"),
    [
        ({"n" * (MOST_NAME + 1): {}}, "expected a name of at most 255 characters, got 256"),
        ({"one": {"needs": ["x"] * (MOST_NEEDS + 1)}}, "one: expected at most 50 needs, got 51"),
        ({f"build-{n}": {} for n in range(MOST_MATRIX_JOBS + 1)}, r"build-…: .* 200 jobs"),
        ({f"a{n}x": {} for n in range(MOST_JOBS + 1)}, "at most 500 jobs, got 501"),
    ],
)
def test_a_pipeline_beyond_a_limit_is_refused(jobs: dict[str, Any], words: str) -> None:
    with pytest.raises(PipelineLimitError, match=words):
        check_limits(jobs)


def test_gitlabs_schema_takes_every_file() -> None:
    files = [PIPELINE, *sorted((ROOT / "ci" / "gitlab").glob("*.yml"))]
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.gitlab-ci"]
    command += ["--data-transform", "gitlab-ci", *map(str, files)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_schema_would_find_a_mistake(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yml"
    wrong.write_text("job:\n  script: [./ci/nox]\n  retry: {max: 9}\n")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.gitlab-ci"]
    done = subprocess.run([*command, str(wrong)], capture_output=True, text=True, check=False)
    assert done.returncode == 1


def test_scripts_pass_shellcheck(pipeline: Pipeline, tmp_path: Path) -> None:
    for name in pipeline.jobs:
        script = tmp_path / f"{name}.sh"
        declared = {**pipeline.variables, **pipeline.jobs[name].get("variables", {})}
        # What GitLab sets is no typing error.
        given = [f"export {variable}=" for variable in {*declared, *PREDEFINED}]
        script.write_text("\n".join(["#!/bin/sh", "set -eu", *given, *pipeline.script(name), ""]))
    scripts = sorted(tmp_path.glob("*.sh"))
    # One and the same for a hundred jobs.
    unique = {path.read_text(): path for path in scripts}
    done = subprocess.run(
        ["shellcheck", *map(str, unique.values())], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_files_of_the_pipeline_hold_nothing_but_their_concern(pipeline: Pipeline) -> None:
    assert set(yaml.safe_load(PIPELINE.read_text())) == {
        "workflow",
        "stages",
        "include",
        "variables",
        "default",
    }
    for include in pipeline.settings["include"]:
        for rule in include.get("rules", ()):
            # GitLab knows no others here: a branch would be empty, and the rule never true.
            assert names_in(rule["if"]) <= {"CI_PIPELINE_SOURCE", "ROLLBACK_TO"}
    included = {one["local"] for one in pipeline.settings["include"]}
    assert included == {f"ci/gitlab/{path.name}" for path in (ROOT / "ci/gitlab").glob("*.yml")}


def test_the_documentation_names_every_variable_runner_and_stage(pipeline: Pipeline) -> None:
    text = (ROOT / "docs" / "pipeline.md").read_text(encoding="utf-8")
    names = {name for name, one in pipeline.settings["variables"].items() if isinstance(one, dict)}
    names |= {KEY_FILE, KEY, PASSWORD, TOKEN}
    names |= {name for name, _ in variable_descriptions() if not name.startswith("CI_")}
    for name in names:
        assert f"`{name}`" in text, f"docs/pipeline.md does not say what {name} is"
    # And the other way round.
    known = names | PREDEFINED | {name for name, _ in variable_descriptions()}
    for name in re.findall(r"`([A-Z][A-Z0-9]+_[A-Z0-9_]+)`", text):
        assert name in known, f"docs/pipeline.md names {name}, which nothing reads"
    for job in pipeline.jobs:
        kind = re.sub(r"-\d\d\.\d\d$", "-<release>", job)
        assert f"`{kind}`" in text, f"docs/pipeline.md does not say what {kind} does"
