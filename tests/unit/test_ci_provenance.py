# SPDX-License-Identifier: Apache-2.0
"""The provenance says what is known, and nothing that is secret."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from ci.locks import LOCKS
from ci.process import ROOT
from ci.provenance import BUILD_TYPE, LOCAL_BUILDER, make_statement
from tritonserver_jax import __version__

COMMIT = "0123456789abcdef0123456789abcdef01234567"
PIPELINE = {
    "CI_PROJECT_URL": "https://gitlab.example.com/group/project",
    "CI_RUNNER_ID": "12",
    "CI_JOB_URL": "https://gitlab.example.com/group/project/-/jobs/34",
    "CI_JOB_STARTED_AT": "2026-01-02T03:04:05Z",
    "CI_COMMIT_REF_NAME": "v1.2.3",
    "CI_JOB_TOKEN": "glcbt-secret",
    "CI_REPOSITORY_URL": "https://gitlab-ci-token:glcbt-secret@gitlab.example.com/group/project.git",
}


def statement(
    environment: Mapping[str, str], commit: str | None = COMMIT, release: str | None = "24.10"
) -> dict[str, Any]:
    content = make_statement(
        {"b.tar.gz": "b" * 64, "a.tar.gz": "a" * 64},
        release=release,
        commit=commit,
        epoch=1_700_000_000,
        environment=environment,
    )
    values: dict[str, Any] = json.loads(content)
    return values


def test_it_has_the_form_of_the_field() -> None:
    values = statement({})
    assert values["_type"] == "https://in-toto.io/Statement/v1"
    assert values["predicateType"] == "https://slsa.dev/provenance/v1"
    assert values["subject"] == [
        {"name": "a.tar.gz", "digest": {"sha256": "a" * 64}},
        {"name": "b.tar.gz", "digest": {"sha256": "b" * 64}},
    ]
    definition = values["predicate"]["buildDefinition"]
    assert definition["buildType"] == BUILD_TYPE
    assert definition["externalParameters"] == {"project_version": __version__, "release": "24.10"}
    assert definition["internalParameters"] == {"SOURCE_DATE_EPOCH": 1_700_000_000}
    assert values["predicate"]["runDetails"] == {"builder": {"id": LOCAL_BUILDER}}
    python = statement({}, release=None)["predicate"]["buildDefinition"]
    assert python["externalParameters"] == {"project_version": __version__}


def test_every_input_has_its_digest() -> None:
    inputs = statement({})["predicate"]["buildDefinition"]["resolvedDependencies"]
    digests = {one["name"]: one["digest"] for one in inputs}
    assert digests.pop("source") == {"gitCommit": COMMIT}
    locks = {path.relative_to(ROOT).as_posix() for path in LOCKS.glob("*.txt")}
    assert set(digests) == {"pyproject.toml", "releases.toml", "uv.lock", *locks}
    for name, digest in digests.items():
        assert digest == {"sha256": hashlib.sha256((ROOT / name).read_bytes()).hexdigest()}


def test_a_checkout_with_changes_is_said() -> None:
    def source(commit: str | None) -> list[dict[str, Any]]:
        inputs = statement({}, commit)["predicate"]["buildDefinition"]["resolvedDependencies"]
        return [one for one in inputs if one["name"] == "source"]

    assert source(COMMIT) == [{"name": "source", "digest": {"gitCommit": COMMIT}}]
    (changed,) = source(f"{COMMIT}-modified")
    assert changed["digest"] == {"gitCommit": COMMIT}
    assert changed["annotations"] == {"modified": True}
    assert source(None) == []


def test_a_pipeline_is_named_and_no_secret_is() -> None:
    values = statement(PIPELINE)
    assert values["predicate"]["runDetails"] == {
        "builder": {"id": "https://gitlab.example.com/group/project/-/runners/12"},
        "metadata": {
            "invocationId": "https://gitlab.example.com/group/project/-/jobs/34",
            "startedOn": "2026-01-02T03:04:05Z",
        },
    }
    source = values["predicate"]["buildDefinition"]["resolvedDependencies"][0]
    assert source["uri"] == "git+https://gitlab.example.com/group/project@v1.2.3"
    text = json.dumps(values)
    assert "secret" not in text
    assert "token" not in text
    assert str(ROOT) not in text


def test_the_same_facts_give_the_same_bytes() -> None:
    assert statement(PIPELINE) == statement(dict(reversed(PIPELINE.items())))
    odd = {**PIPELINE, "CI_JOB_STARTED_AT": "yesterday"}
    assert "startedOn" not in statement(odd)["predicate"]["runDetails"]["metadata"]
