# SPDX-License-Identifier: Apache-2.0
"""Jobs of the pipeline, run for real: they pass, and each fault stops the job that it should.

This is the small form of `./ci/nox -s pipeline`. The artifact under test is taken for what the
build job handed on; everything else runs as on a runner, but for the environments of the sessions,
which are those of this checkout.
"""

from __future__ import annotations

import dataclasses
import re
import shutil
from pathlib import Path

import pytest

from ci.gitlab_ci_local import JobResult, LocalRunner, PipelineRun
from ci.pipeline import MERGE_REQUEST, TAG, job_variables
from ci.pipeline_checkout import make_checkout
from ci.pipeline_plan import build_job
from ci.process import ROOT, run
from tritonserver_jax.releases import DEFAULT_RELEASE

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

HEALTH = f"health-{DEFAULT_RELEASE}"
CONTRACT = f"contract-{DEFAULT_RELEASE}"


@pytest.fixture(scope="module")
def runner(
    program: Path, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> LocalRunner:
    """A merge request's pipeline, whose build job has handed on the artifact under test."""
    checkout = make_checkout(tmp_path_factory.mktemp("pipeline") / "checkout")
    variables = {
        **job_variables([DEFAULT_RELEASE], None),
        **MERGE_REQUEST.variables,
        "NOX_ENVDIR": str(ROOT / ".nox"),
    }
    runner = LocalRunner(program, checkout, variables, unset=MERGE_REQUEST.unset)
    dist: Path = pytestconfig.getoption("--backend-dist")
    handed_on = runner.artifacts(build_job(DEFAULT_RELEASE)) / "dist" / DEFAULT_RELEASE
    shutil.copytree(dist / DEFAULT_RELEASE, handed_on)
    return runner


@pytest.fixture(scope="module")
def well(runner: LocalRunner) -> PipelineRun:
    """The jobs of an artifact, and what is looked at before."""
    return runner.run(["generated", "package-python", HEALTH, CONTRACT, "dry-run"])


def changed(runner: LocalRunner, name: str, old: str, new: str) -> Path:
    """Change a file of the checkout, and return it."""
    path = runner.checkout / name
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path


def the_only(outcome: PipelineRun) -> JobResult:
    """The one job that ran."""
    (job,) = outcome.jobs.values()
    return job


def test_an_artifact_goes_through_the_pipeline(runner: LocalRunner, well: PipelineRun) -> None:
    assert {job.name: job.state for job in well.jobs.values()} == dict.fromkeys(
        ["generated", "package-python", HEALTH, CONTRACT, "dry-run"], "PASS"
    )
    assert "cmake" not in well.jobs[HEALTH].log, "the artifact was built again"
    assert f"the artifact of {DEFAULT_RELEASE} is well" in well.jobs[HEALTH].log
    assert "dry run: nothing was published" in well.jobs["dry-run"].log


def test_jobs_hand_on_what_they_say_and_no_more(runner: LocalRunner, well: PipelineRun) -> None:
    folder = runner.artifacts("package-python")
    assert [path.name for path in folder.iterdir()] == ["dist"]
    assert [path.name for path in (folder / "dist").iterdir()] == ["python"]
    assert (runner.artifacts(CONTRACT) / "build" / "matrix" / "contract.xml").is_file()
    assert not runner.artifacts(HEALTH).exists()


def test_what_is_written_twice_and_differs_stops_the_first_job(runner: LocalRunner) -> None:
    # Two faults in one run: lint goes on after the first.
    path = changed(runner, "ci/gitlab/releases.yml", 'RELEASE: "24.10"', 'RELEASE: "24.11"')
    tag = {**TAG.variables, "CI_COMMIT_TAG": "v9.9.9"}
    try:
        wrong = dataclasses.replace(runner, variables={**runner.variables, **tag})
        job = the_only(wrong.run(["generated"]))
    finally:
        shutil.copy2(ROOT / "ci" / "gitlab" / "releases.yml", path)
    assert job.failed
    assert "ci/gitlab/releases.yml: out of date" in job.log
    assert "write them with python -m ci.pipeline_plan" in job.log
    assert "the tag v9.9.9 is not the project version: expected v" in job.log
    assert re.search(r"^lint: 2 of \d+ failed: version, pipeline$", job.log, re.MULTILINE)


def test_a_broken_test_stops_its_job(runner: LocalRunner) -> None:
    broken = runner.checkout / "tests" / "artifacts" / "test_broken.py"
    broken.write_text("def test_that_is_broken() -> None:\n    assert 1 + 1 == 3\n")
    # A job gets the files that git knows.
    run(["git", "add", "--intent-to-add", broken], cwd=runner.checkout)
    # The others are not even read: they are tested by themselves.
    only = {"PYTEST_ADDOPTS": "--ignore-glob=*/test_[!b]*.py -k test_that_is_broken"}
    try:
        job = the_only(
            dataclasses.replace(runner, variables={**runner.variables, **only}).run(["packaging"])
        )
    finally:
        run(["git", "rm", "--quiet", "--cached", broken], cwd=runner.checkout)
        broken.unlink()
    assert job.failed
    assert (
        "FAILED tests/artifacts/test_broken.py::test_that_is_broken - assert (1 + 1) == 3"
        in job.log
    )
    report = runner.artifacts("packaging") / "build" / "reports" / "packaging.xml"
    assert 'failures="1"' in report.read_text(encoding="utf-8")


def test_a_failing_health_check_stops_its_job(runner: LocalRunner, well: PipelineRun) -> None:
    model = "examples/add_sub/1/model.py"
    path = changed(runner, model, "def predict(", "def predict_no_more(")
    try:
        job = the_only(runner.run([HEALTH]))
        assert job.failed
        assert "predict" in job.log
    finally:
        shutil.copy2(ROOT / model, path)
