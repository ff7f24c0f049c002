# SPDX-License-Identifier: Apache-2.0
"""Forms of the pipeline run at the same time, and each says what failed in it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from ci.gitlab_ci_local import LocalRunner
from ci.pipeline import FORMS, MERGE_REQUEST, TAG, Form, PipelineError, run_forms


def test_both_run_at_once_the_tag_with_one_job_at_a_time() -> None:
    together = threading.Barrier(len(FORMS), timeout=30)

    def run(form: Form, concurrency: int) -> LocalRunner:
        together.wait()
        return LocalRunner(Path("program"), Path(form.name), {}, concurrency=concurrency)

    runners = run_forms(FORMS, run)
    assert {name: str(runner.checkout) for name, runner in runners.items()} == {
        form.name: form.name for form in FORMS
    }
    assert runners[TAG.name].concurrency == 1
    most = runners[MERGE_REQUEST.name].concurrency
    assert most > 1
    alone = run_forms([TAG], lambda _, jobs: LocalRunner(Path(), Path(), {}, concurrency=jobs))
    assert alone[TAG.name].concurrency == most


def test_what_failed_in_each_is_said() -> None:
    def run(form: Form, _: int) -> LocalRunner:
        raise PipelineError(f"{form.name}: failed: lint")

    with pytest.raises(PipelineError, match=r"^merge-request: failed: lint; tag: failed: lint$"):
        run_forms(FORMS, run)
