# SPDX-License-Identifier: Apache-2.0
"""The jobs of the pipeline that there is one of for each release, from ``releases.toml``.

``ci/gitlab/releases.yml`` is written here, and committed, so that a reader and GitLab see plain
jobs: each has a name, and needs the one job whose artifact it tests. What such a job does is in
the templates of the other files of ``ci/gitlab``. ``python -m ci.pipeline_plan`` writes the file,
``--check`` says whether it is out of date.

GitLab refuses a pipeline that is too large only when it is made. So its limits are looked at here.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ci.derived import write_or_check
from ci.process import ROOT
from ci.selection import ALL, GATE, RELEASES
from tritonserver_jax.releases import Catalog, Release, load_catalog

__all__ = [
    "BUILD",
    "JOBS_FILE",
    "MOST_JOBS",
    "MOST_MATRIX_JOBS",
    "MOST_NAME",
    "MOST_NEEDS",
    "PipelineLimitError",
    "build_job",
    "check_limits",
    "jobs_file",
    "outdated",
]

JOBS_FILE: Final = ROOT / "ci" / "gitlab" / "releases.yml"

#: GitLab's limits: jobs of one kind, jobs of a pipeline (GitLab.com), needs of a job, its name.
MOST_MATRIX_JOBS: Final = 200
MOST_JOBS: Final = 500
MOST_NEEDS: Final = 50
MOST_NAME: Final = 255

#: The job that makes an artifact; after it comes the release.
BUILD: Final = "build"

_HEAD: Final = """\
# SPDX-License-Identifier: Apache-2.0
# The jobs of each release. Made from releases.toml by `python -m ci.pipeline_plan`; do not edit.
# The templates that they extend are in build.yml and test.yml.
"""


class PipelineLimitError(ValueError):
    """A pipeline is larger than GitLab allows."""


def build_job(release: str) -> str:
    """Return the name of the job that makes a release's artifact."""
    return f"{BUILD}-{release}"


def _rule(release: Release, catalog: Catalog) -> str:
    words = [ALL, release.release.replace(".", r"\.")]
    if release.release in catalog.gate_releases:
        words.insert(1, GATE)
    return rf"${RELEASES} =~ /\b({'|'.join(words)})\b/"


def _lines_of(release: Release, catalog: Catalog) -> list[str]:
    name = release.release
    digest = f"@{release.image_digest}" if release.image_digest else ""
    lines = [
        f".release-{name}:",
        "  variables:",
        f'    RELEASE: "{name}"',
        "  rules:",
        f"    - if: {_rule(release, catalog)}",
        "",
        f"{build_job(name)}:",
        f"  extends: [.build, .release-{name}]",
        "  image:",
        # The digest is a variable of its own, because a mirror may have another.
        f'    name: "$TRITON_IMAGE:{release.image.partition(":")[2]}$TRITON_IMAGE_DIGEST"',
        '    entrypoint: [""]',
    ]
    if digest:
        lines += ["  variables:", f'    TRITON_IMAGE_DIGEST: "{digest}"']
    if release.server is not None:
        default = name == catalog.default_release
        # The longest first: where few jobs run at a time, they begin in this order.
        kinds = ("guides", "integration", "monitoring", "image", "contract", "health")
        for kind in kinds if default else ("integration", "health"):
            # All integration tests run on the default release, and their core on the others.
            everything = default and kind == "integration"
            more = ["  variables:", '    INTEGRATION_MARKS: ""'] if everything else []
            lines += _test_job(kind, release, more)
        if default:
            optional = ["  rules:", f"    - if: {_rule(release, catalog)}"]
            optional += ["      when: manual", "      allow_failure: true"]
            lines += _test_job("gpu", release, optional)
    return [*lines, ""]


def _test_job(kind: str, release: Release, more: Sequence[str] = ()) -> list[str]:
    return [
        "",
        f"{kind}-{release.release}:",
        f"  extends: [.{kind}, .release-{release.release}]",
        f"  needs: [{build_job(release.release)}]",
        *more,
    ]


def jobs_file() -> str:
    """Return ``ci/gitlab/releases.yml``."""
    catalog = load_catalog()
    lines = [_HEAD]
    for release in catalog.releases.values():
        lines += _lines_of(release, catalog)
    # What is deployed is made by these; a job takes the artifacts of all of them by extending it.
    lines += [".every-artifact:", "  dependencies:"]
    lines += [f"    - {build_job(name)}" for name in catalog.releases]
    lines += ["    - package-python", ""]
    return "\n".join(lines)


def outdated(*, write: bool = False) -> list[Path]:
    """Return the file if it is not what it should be; written anew if asked for."""
    text = jobs_file()
    if JOBS_FILE.is_file() and JOBS_FILE.read_text(encoding="utf-8") == text:
        return []
    if write:
        JOBS_FILE.write_text(text, encoding="utf-8")
    return [JOBS_FILE]


def check_limits(jobs: Mapping[str, Mapping[str, Any]]) -> None:
    """Check that GitLab takes a pipeline with these jobs.

    Args:
        jobs: Each by its name, with what it needs.

    Raises:
        PipelineLimitError: It does not; the message names the limit and the job.
    """
    kinds: dict[str, int] = {}
    for name, job in jobs.items():
        if len(name) > MOST_NAME:
            raise PipelineLimitError(
                f"{name[:40]}…: expected a name of at most {MOST_NAME} characters, got {len(name)}"
            )
        if (needs := len(job.get("needs") or [])) > MOST_NEEDS:
            raise PipelineLimitError(
                f"{name}: expected at most {MOST_NEEDS} needs, got {needs}; let it wait for the "
                "stage before it (no `needs`), and take artifacts by `dependencies`"
            )
        kind = name.rpartition("-")[0] if name[-1:].isdigit() else name
        kinds[kind] = kinds.get(kind, 0) + 1
    for kind, count in kinds.items():
        if count > MOST_MATRIX_JOBS:
            raise PipelineLimitError(
                f"{kind}-…: expected at most {MOST_MATRIX_JOBS} jobs of a kind, got {count}; end "
                "the support of old releases in releases.toml"
            )
    if len(jobs) > MOST_JOBS:
        raise PipelineLimitError(
            f"pipeline: expected at most {MOST_JOBS} jobs, got {len(jobs)}; end the support of old "
            "releases in releases.toml"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    return write_or_check(
        arguments,
        program="python -m ci.pipeline_plan",
        description=__doc__,
        outdated=lambda write: outdated(write=write),
        difference="this differs from releases.toml",
    )


if __name__ == "__main__":
    sys.exit(main())
