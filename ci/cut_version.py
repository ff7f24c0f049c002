# SPDX-License-Identifier: Apache-2.0
"""Cuts a version: ``./ci/nox -s cut-version -- 0.2.0``.

It changes ``__version__``, dates the changelog's section, writes anew what derives from the version
(docker-bake.hcl, the Helm chart), runs the checks, commits, and tags the commit ``v0.2.0``. To push
both is left to a person; the command is shown. Whatever is not as it should be is refused before
anything is changed, and a check that fails leaves the files as they were. ``--dry-run`` looks, and
shows what would be changed; ``--dry-run --checks`` runs the checks as well, which take minutes.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

from packaging.version import InvalidVersion, Version

from ci.changelog import CHANGELOG, UNRELEASED, ChangelogError, date_section, section
from ci.process import ROOT, CommandError, capture, fail, run
from ci.version import DECLARATION, VersionError, project_version

__all__ = ["CHECKS", "DERIVED", "CutError", "check_cut", "cut"]

#: What writes files that have the version in them; each is a program of its own, because this one
#: has read the version already.
DERIVED: Final = (
    ("-m", "ci.lint", "--fix", "--agreement"),
    ("-m", "ci.chart", "manifests"),
)
#: What has to pass on the commit that is tagged. The pipeline of the tag runs everything.
CHECKS: Final = (
    ("-m", "ci.lint"),
    ("-m", "pytest", "--quiet", "--numprocesses=auto", "-m", "not slow", "tests/unit"),
)
#: Versions as Semantic Versioning and Python both write them.
_VERSION: Final = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)((a|b|rc)[1-9]\d*)?")


class CutError(RuntimeError):
    """The version cannot be cut; nothing was changed."""


def check_cut(version: str, root: Path = ROOT, *, fetch: bool = True) -> None:
    """Look whether a version can be cut.

    Args:
        version: As in ``0.2.0``.
        root: The checkout.
        fetch: Whether to ask the remote first what it has.

    Raises:
        CutError: It cannot, and the message says why.
        ChangelogError: The changelog has nothing to release.
        VersionError: The version is not declared as it should be.
    """
    if not _VERSION.fullmatch(version):
        raise CutError(f"version: expected one as in 0.2.0 or 0.2.0rc1, got {version!r}")
    if changes := _git(root, "status", "--porcelain"):
        raise CutError(
            f"checkout: expected no changes, got {', '.join(_paths(changes))}; commit them, or put "
            "them aside: git stash --include-untracked"
        )
    branch = _git(root, "symbolic-ref", "--quiet", "--short", "HEAD", absent="")
    if not branch:
        raise CutError("checkout: expected a branch, got a commit without one; git switch main")
    upstream = _git(root, "rev-parse", "--abbrev-ref", "@{upstream}", absent="")
    if not upstream:
        raise CutError(
            f"branch {branch}: expected one that follows a remote's, got none; "
            f"git push --set-upstream origin {branch}"
        )
    if fetch:
        remote = upstream.partition("/")[0]
        run(["git", "fetch", "--quiet", "--tags", remote], cwd=root)
    behind = int(_git(root, "rev-list", "--count", "HEAD..@{upstream}"))
    if behind:
        raise CutError(
            f"branch {branch}: expected all of {upstream}, it is {behind} commits behind; git pull"
        )
    _check_greater(version, root)
    section(UNRELEASED, root / CHANGELOG.relative_to(ROOT))


def _check_greater(version: str, root: Path) -> None:
    declared = project_version(root)
    released = []
    for tag in _git(root, "tag", "--list", "v*").splitlines():
        try:
            released.append(Version(tag.removeprefix("v")))
        except InvalidVersion:
            continue
    newest = max(released, default=None)
    if newest is not None and Version(version) <= newest:
        raise CutError(f"version: expected one after {newest}, which has a tag, got {version}")
    if Version(version) < Version(declared):
        raise CutError(
            f"version: expected {declared}, which is declared in {DECLARATION}, or one after it, "
            f"got {version}"
        )


def cut(
    version: str,
    *,
    root: Path = ROOT,
    day: date | None = None,
    derived: Sequence[Sequence[str]] = DERIVED,
    checks: Sequence[Sequence[str]] = CHECKS,
    dry_run: bool = False,
) -> None:
    """Cut a version.

    Args:
        version: As in ``0.2.0``.
        root: The checkout.
        day: Of the release; today when not given.
        derived: What writes files anew: arguments of Python.
        checks: What has to pass: arguments of Python. A rehearsal can do without.
        dry_run: Whether to undo everything and to say what it was.

    Raises:
        CutError: It cannot be cut, or a check failed; the checkout is as before.
    """
    check_cut(version, root)
    date_of = day or datetime.now(UTC).date()
    try:
        _declare(version, root)
        date_section(version, date_of, root / CHANGELOG.relative_to(ROOT))
        for command in derived:
            run([sys.executable, *command], cwd=root)
        print(_git(root, "--no-pager", "diff", "--stat"), flush=True)
        for command in checks:
            run([sys.executable, *command], cwd=root)
        if dry_run:
            print(_git(root, "--no-pager", "diff", "--", DECLARATION, CHANGELOG.name), flush=True)
            _undo(root)
            passed = "the checks pass" if checks else "no check was run, --checks runs them too"
            print(
                f"dry run: {version} can be cut, as far as this shows: {passed}. Without --dry-run "
                f"the above is committed as 'Release {version}' once the checks pass, and tagged "
                f"v{version}; nothing was changed now"
            )
            return
        run(["git", "add", "--all"], cwd=root)
        run(["git", "commit", "--quiet", f"--message=Release {version}"], cwd=root)
    except (CommandError, ChangelogError, VersionError) as error:
        _undo(root)
        raise CutError(f"{error}; the checkout is as it was, and {version} is not cut") from error
    except BaseException:
        _undo(root)
        raise
    message = f"tritonserver-jax {version}"
    run(["git", "tag", "--annotate", f"--message={message}", f"v{version}"], cwd=root)
    branch = _git(root, "symbolic-ref", "--quiet", "--short", "HEAD")
    remote = _git(root, "rev-parse", "--abbrev-ref", "@{upstream}").partition("/")[0]
    print(
        f"v{version} is cut. Look at it (git show), then publish it:\n"
        f"    git push --atomic {remote} {branch} v{version}\n"
        f"or take it back: git tag --delete v{version} && git reset --hard HEAD~1"
    )


def _declare(version: str, root: Path) -> None:
    path = root / DECLARATION
    text = path.read_text(encoding="utf-8")
    changed, count = re.subn(
        r'^__version__ = "[^"]*"$', f'__version__ = "{version}"', text, flags=re.MULTILINE
    )
    if count != 1:
        raise VersionError(f'{path}: expected one line __version__ = "…", got {count}')
    path.write_text(changed, encoding="utf-8")


def _undo(root: Path) -> None:
    """Take back every change: there was none when this began."""
    run(["git", "reset", "--quiet", "--hard", "HEAD"], cwd=root)
    run(["git", "clean", "--quiet", "--force", "-d"], cwd=root)


def _paths(changes: str) -> list[str]:
    return [line.strip().partition(" ")[2].strip() for line in changes.splitlines()]


def _git(root: Path, *arguments: str | Path, absent: str | None = None) -> str:
    """Return what git says.

    Args:
        root: The checkout.
        arguments: Of git.
        absent: What to return where git fails, because there is no such thing.
    """
    said = capture(["git", *arguments], cwd=root)
    if said is None and absent is None:
        raise CutError(f"git {' '.join(map(str, arguments))} failed in {root}; is it a checkout?")
    return absent or "" if said is None else said


def main(arguments: Sequence[str] | None = None) -> int:
    """Cut a version, or say why not."""
    parser = argparse.ArgumentParser(
        prog="./ci/nox -s cut-version --",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("version", help="as in 0.2.0, or 0.2.0rc1")
    parser.add_argument("--date", type=date.fromisoformat, help="default: today, in UTC")
    parser.add_argument("--dry-run", action="store_true", help="look, and change nothing")
    parser.add_argument("--checks", action="store_true", help="run the checks in a dry run as well")
    options = parser.parse_args(arguments)
    if options.checks and not options.dry_run:
        parser.error("--checks: expected with --dry-run; a cut runs them always, leave it out")
    checks = CHECKS if options.checks or not options.dry_run else ()
    try:
        cut(options.version, day=options.date, checks=checks, dry_run=options.dry_run)
    except (ChangelogError, CommandError, CutError, VersionError) as error:
        return fail(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
