# SPDX-License-Identifier: Apache-2.0
"""Checkouts for pipelines to run in: what is here, committed or not, as GitLab would have it.

A runner clones a commit. A checkout made here is a clone too, with what is changed here laid over
it, so that a pipeline can be tried before anything is committed. Where there is no git at all, as
in an unpacked sdist, everything is committed once.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from ci.changelog import CHANGELOG
from ci.cut_version import cut
from ci.process import ROOT, CommandError, capture, run
from ci.version import project_version

__all__ = ["commit_all", "make_checkout", "make_release_checkout"]

#: Where the clone says that it is from: gitlab-ci-local takes names from it, and asks nobody.
_ORIGIN: Final = "https://gitlab.example.com/group/tritonserver-jax.git"
#: Outputs, which a runner does not have, where git cannot say what they are.
_OUTPUTS: Final = ("build", "dist", ".git", ".nox", ".venv*", "__pycache__", ".*_cache", ".cache")
_AUTHOR: Final = ("-c", "user.name=pipeline", "-c", "user.email=pipeline@example.com")


def make_checkout(directory: Path, source: Path = ROOT) -> Path:
    """Make a checkout.

    Args:
        directory: Where to; what was there is removed.
        source: A checkout, or an unpacked sdist.

    Returns:
        The directory.

    Raises:
        CommandError: git failed; it says why.
    """
    shutil.rmtree(directory, ignore_errors=True)
    directory.parent.mkdir(parents=True, exist_ok=True)
    if capture(["git", "rev-parse", "--git-dir"], cwd=source) is None:
        shutil.copytree(source, directory, symlinks=True, ignore=shutil.ignore_patterns(*_OUTPUTS))
        run(["git", "init", "--quiet", "--initial-branch=main"], cwd=directory)
        commit_all(directory, "the sdist")
    else:
        run(
            ["git", "clone", "--quiet", "--no-hardlinks", "--no-tags", source, directory],
            cwd=source,
        )
        _lay_over(source, directory)
    _name(directory)
    return directory


def make_release_checkout(directory: Path, source: Path = ROOT) -> Path:
    """Cut the version that is declared, push it, and clone the tag, as a release goes.

    Args:
        directory: Where the clone goes; what else is made lies beside it.
        source: A checkout, or an unpacked sdist.

    Returns:
        The clone of the tag.

    Raises:
        CommandError: git failed; it says why.
        CutError: The version cannot be cut.
    """
    author = make_checkout(directory.with_name(f"{directory.name}-author"), source)
    for key, value in (("user.name", "pipeline"), ("user.email", "pipeline@example.com")):
        run(["git", "config", key, value], cwd=author)
    if capture(["git", "status", "--porcelain"], cwd=author):
        commit_all(author, "What is not committed yet")
    remote = directory.with_name(f"{directory.name}-remote.git")
    shutil.rmtree(remote, ignore_errors=True)
    run(["git", "init", "--quiet", "--bare", "--initial-branch=main", remote], cwd=author)
    run(["git", "checkout", "--quiet", "-B", "main"], cwd=author)
    if capture(["git", "remote", "get-url", "origin"], cwd=author) is not None:
        run(["git", "remote", "remove", "origin"], cwd=author)
    run(["git", "remote", "add", "origin", remote], cwd=author)
    run(["git", "push", "--quiet", "--set-upstream", "origin", "main"], cwd=author)
    tag = f"v{project_version(author)}"
    if f"## [{tag[1:]}]" in (author / CHANGELOG.name).read_text(encoding="utf-8"):
        run(["git", "tag", tag], cwd=author)  # it was cut before
    else:
        # The pipeline of the tag runs every check.
        cut(tag[1:], root=author, checks=())
    run(["git", "push", "--quiet", "--atomic", "origin", "main", tag], cwd=author)
    shutil.rmtree(directory, ignore_errors=True)
    quiet = ["-c", "advice.detachedHead=false"]
    run(["git", *quiet, "clone", "--quiet", "--branch", tag, remote, directory], cwd=author)
    _name(directory)
    return directory


def _name(directory: Path) -> None:
    """Add the remote that gitlab-ci-local takes names from, beside `origin`."""
    run(["git", "remote", "add", "gcl-origin", _ORIGIN], cwd=directory)


def commit_all(directory: Path, subject: str) -> str:
    """Commit everything in a checkout, and return the commit.

    Args:
        directory: The checkout.
        subject: What is said of it.

    Raises:
        CommandError: git failed; it says why.
    """
    run(["git", "add", "--all"], cwd=directory)
    run(["git", *_AUTHOR, "commit", "--quiet", f"--message={subject}"], cwd=directory)
    commit = capture(["git", "rev-parse", "HEAD"], cwd=directory)
    if commit is None:
        raise CommandError(f"{directory}: expected a commit after `git commit`, found none")
    return commit


def _listed(source: Path, *options: str) -> list[str]:
    text = capture(["git", "ls-files", "-z", *options], cwd=source)
    if text is None:
        raise CommandError(f"{source}: git does not list its files")
    return [name for name in text.split("\0") if name]


def _lay_over(source: Path, directory: Path) -> None:
    """Bring what is changed here and not committed, and tell git of files that are new."""
    changed = _listed(source, "--modified", "--others", "--exclude-standard")
    for name in changed:
        if (source / name).exists():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / name, directory / name, follow_symlinks=False)
        else:
            (directory / name).unlink(missing_ok=True)
    if changed:
        # Known to git, and not committed: so they are copied, and HEAD is what it is here.
        run(["git", "add", "--all", "--intent-to-add"], cwd=directory)
