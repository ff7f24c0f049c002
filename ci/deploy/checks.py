# SPDX-License-Identifier: Apache-2.0
"""What is checked before anything is published: all of it here, without a service.

Every problem is said, not only the first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

from ci.changelog import CHANGELOG, UNRELEASED, ChangelogError, section
from ci.deploy.errors import DeployError
from ci.deploy.plan import ArtifactFolder, Plan
from ci.deploy.variables import PUBLIC_KEY_FILE
from ci.provenance import MODIFIED
from ci.selection import RELEASES
from tritonserver_jax.artifacts import Report, VerificationError, layout, verify_directory
from tritonserver_jax.artifacts.archives import read_tar
from tritonserver_jax.artifacts.checksums import sha256_of

__all__ = ["check_everything"]


def check_everything(
    plan: Plan,
    *,
    tag: str | None,
    commit: str | None,
    public_key: Path | None,
    unsigned: bool = False,
    rehearsal: bool = False,
    changelog: Path = CHANGELOG,
) -> list[str]:
    """Check that a version may be published.

    Args:
        plan: What it consists of.
        tag: The tag of the pipeline.
        commit: Of the checkout, as `ci.provenance.source_commit` says it.
        public_key: What the artifacts have to be signed with; any signature when not given.
        unsigned: Whether artifacts without a signature will do.
        rehearsal: Whether it is not going to be published: then there need be no tag, no
            signature, and no section of the version in the changelog.
        changelog: The changelog.

    Returns:
        What was found, for people.

    Raises:
        DeployError: It may not, for the reasons in the message.
    """
    problems: list[str] = []
    said: list[str] = []

    def look(check: Callable[[], str], folder: ArtifactFolder | None = None) -> None:
        try:
            said.append(check())
        except VerificationError as error:
            where = f"{folder.name}: " if folder else ""
            problems.extend(f"{where}{line}" for line in str(error).splitlines())
            if folder:  # what a downloader would do is no help to whoever publishes
                problems.append(
                    f"{where}these are not as they were made: ./ci/nox -s package-{folder.name}, "
                    f"and sign them with the key that belongs to the one in {PUBLIC_KEY_FILE}"
                )
        except (ChangelogError, DeployError, OSError) as error:
            problems.extend(str(error).splitlines())

    if tag is not None or not rehearsal:
        look(lambda: _check_tag(plan, tag))
    if not rehearsal:
        look(lambda: _check_commit(commit))
    if commit is not None and commit.endswith(MODIFIED):
        # In a rehearsal, whoever is at work has artifacts of a moment ago. Else it has been said.
        commit = None
    look(lambda: _check_changelog(plan, changelog, rehearsal=rehearsal and tag is None))
    for folder in plan.folders:
        check = functools.partial(
            _check_folder, plan, folder, commit, public_key, unsigned=unsigned or rehearsal
        )
        look(check, folder)
    if not problems:
        look(lambda: _check_wheels(plan))
    if problems:
        listed = "\n".join(f"  - {problem}" for problem in problems)
        raise DeployError(f"nothing was published, because of:\n{listed}")
    return said


def _check_tag(plan: Plan, tag: str | None) -> str:
    if tag != plan.tag:
        raise DeployError(
            f"CI_COMMIT_TAG: expected {plan.tag}, because the project version is {plan.version}, "
            f"got {tag or 'none'}; a version is published from its own tag, which "
            "./ci/nox -s cut-version makes"
        )
    return f"tag {tag}: is the project version"


def _check_commit(commit: str | None) -> str:
    if commit is None or commit.endswith(MODIFIED):
        got = "no checkout of git" if commit is None else "one with changes"
        raise DeployError(
            f"source: expected a checkout without changes, got {got}; git status shows them"
        )
    return f"source: commit {commit}"


def _check_changelog(plan: Plan, changelog: Path, *, rehearsal: bool) -> str:
    try:
        section(plan.version, changelog)
    except ChangelogError:
        if not rehearsal:
            raise
        section(UNRELEASED, changelog)
        return f"changelog: says what comes after {plan.version}, or will be in it"
    return f"changelog: has a section {plan.version}"


def _check_folder(
    plan: Plan,
    folder: ArtifactFolder,
    commit: str | None,
    public_key: Path | None,
    *,
    unsigned: bool,
) -> str:
    if not folder.path.is_dir():
        raise DeployError(
            f"{folder.path}: expected a folder of artifacts, found none; run ./ci/nox -s "
            f"package-{folder.name}, or name in {RELEASES} the releases that there are"
        )
    absent = [name for name in folder.required if not (folder.path / name).is_file()]
    if absent:
        raise DeployError(
            f"{folder.path}: expected {', '.join(absent)}, found none; "
            f"run ./ci/nox -s package-{folder.name}"
        )
    if not folder.signatures and not unsigned:
        raise DeployError(
            f"{folder.path}: expected a signature, found none; run ./ci/nox -s sign -- "
            f"{folder.path}, or publish without any: --unsigned"
        )
    key = public_key if folder.signatures else None
    report = verify_directory(folder.path, release=folder.release, public_key=key)
    _check_report(plan, folder, report, commit)
    if key is not None:
        return f"{folder.name}: verified, and signed by the key in {PUBLIC_KEY_FILE}"
    return f"{folder.name}: verified; " + (
        f"no key in {PUBLIC_KEY_FILE} to check its signature with"
        if folder.signatures
        else "it is not signed"
    )


def _check_report(plan: Plan, folder: ArtifactFolder, report: Report, commit: str | None) -> None:
    if report.project_version != plan.version:
        raise DeployError(
            f"{folder.path}: expected artifacts of {plan.version}, got {report.project_version}; "
            f"run ./ci/nox -s package-{folder.name}"
        )
    # Only a tarball says it; that the wheel is the one in it is looked at by itself.
    if None not in (report.source_commit, commit) and report.source_commit != commit:
        raise DeployError(
            f"{folder.path}: expected artifacts of the commit {commit}, got those of "
            f"{report.source_commit}; run ./ci/nox -s package-{folder.name}"
        )


def _check_wheels(plan: Plan) -> str:
    wheel = plan.distributions[0]
    expected = sha256_of(wheel)
    for folder in plan.folders:
        if folder.release is None:
            continue
        tarball = folder.path / layout.tarball_name(plan.version, folder.release)
        member = read_tar(tarball).get(f"wheel/{wheel.name}")
        got = "none" if member is None else member.sha256
        if got != expected:
            raise DeployError(
                f"{tarball}: expected the wheel in it to be {wheel} (SHA-256 {expected}), got "
                f"{got}; build both from the same commit: ./ci/nox -s package-python "
                f"package-{folder.release}"
            )
    return f"{wheel.name}: is the one in every tarball"
