# SPDX-License-Identifier: Apache-2.0
"""The provenance of artifacts: an in-toto statement with a predicate of SLSA.

It says of which bytes it speaks (the subjects), what they were made from (the source's commit, and
the files that decide what goes in, with digests), and who made them (the builder). It is data for a
program as well as for a person; ``docs/verify.md`` says what each field means.

Nothing in it comes from the clock. Times and the job are named where a pipeline gives them, and a
build by hand says no more than it knows.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Final

from ci.locks import LOCKS
from ci.process import ROOT, capture
from tritonserver_jax import __version__
from tritonserver_jax.artifacts.checksums import sha256_of
from tritonserver_jax.artifacts.descriptions import PREDICATE, STATEMENT

__all__ = ["BUILD_TYPE", "LOCAL_BUILDER", "MODIFIED", "make_statement", "source_commit"]

#: What the parameters of the build mean: docs/verify.md says it for people.
BUILD_TYPE: Final = "urn:tritonserver-jax:build:1"
#: The builder where there is no pipeline: somebody's machine.
LOCAL_BUILDER: Final = "urn:tritonserver-jax:builder:local"

#: What decides what goes into an artifact, beside the source's commit, which has all of them.
INPUTS: Final = ("pyproject.toml", "releases.toml", "uv.lock")


#: How a commit is marked when the checkout has other changes.
MODIFIED: Final = "-modified"


def source_commit() -> str | None:
    """Return the commit that is built, marked when the checkout has other changes."""
    commit = capture(["git", "rev-parse", "HEAD"], cwd=ROOT)
    if commit is None:
        return None
    changes = capture(["git", "status", "--porcelain", "--untracked-files=no"], cwd=ROOT)
    return f"{commit}{MODIFIED}" if changes else commit


def make_statement(
    subjects: Mapping[str, str],
    *,
    release: str | None,
    commit: str | None,
    epoch: int,
    environment: Mapping[str, str] | None = None,
) -> bytes:
    """Make the statement about some artifacts.

    Args:
        subjects: The SHA-256 of each file.
        release: The Triton release that they are for; None of a wheel and an sdist.
        commit: What `source_commit` says.
        epoch: The time of every file in them, in seconds since 1970.
        environment: Where the pipeline's variables are; this process's environment when not given.
    """
    variables = os.environ if environment is None else environment
    parameters: dict[str, str] = {"project_version": __version__}
    if release is not None:
        parameters["release"] = release
    locks = sorted(path.relative_to(ROOT).as_posix() for path in LOCKS.glob("*.txt"))
    dependencies = [*_source(commit, variables)]
    for name in [*INPUTS, *locks]:
        digest = sha256_of(ROOT / name)
        dependencies.append({"name": name, "digest": {"sha256": digest}})
    statement = {
        "_type": STATEMENT,
        "subject": [
            {"name": name, "digest": {"sha256": digest}}
            for name, digest in sorted(subjects.items())
        ],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": parameters,
                "internalParameters": {"SOURCE_DATE_EPOCH": epoch},
                "resolvedDependencies": dependencies,
            },
            "runDetails": _run(variables),
        },
    }
    return (json.dumps(statement, indent=2) + "\n").encode()


def _source(commit: str | None, variables: Mapping[str, str]) -> list[dict[str, object]]:
    """The source: which commit of which repository."""
    if commit is None:  # an unpacked sdist: the files below have to do
        return []
    plain = commit.removesuffix(MODIFIED)
    source: dict[str, object] = {"name": "source"}
    # Not CI_REPOSITORY_URL, nor git's own URL: both may hold a token or a path of the machine.
    if project := variables.get("CI_PROJECT_URL"):
        source["uri"] = f"git+{project}@{variables.get('CI_COMMIT_REF_NAME') or plain}"
    source["digest"] = {"gitCommit": plain}
    if plain != commit:
        source["annotations"] = {"modified": True}
    return [source]


def _run(variables: Mapping[str, str]) -> dict[str, object]:
    """Who built it: a runner of GitLab, or a machine of somebody."""
    project, runner = variables.get("CI_PROJECT_URL"), variables.get("CI_RUNNER_ID")
    if not (project and runner):
        return {"builder": {"id": LOCAL_BUILDER}}
    metadata = {}
    if job := variables.get("CI_JOB_URL"):
        metadata["invocationId"] = job
    if re.fullmatch(r"\d{4}-\d\d-\d\dT\S+", started := variables.get("CI_JOB_STARTED_AT", "")):
        metadata["startedOn"] = started
    # The form of GitLab's own attestations.
    run: dict[str, object] = {"builder": {"id": f"{project}/-/runners/{runner}"}}
    if metadata:
        run["metadata"] = metadata
    return run
