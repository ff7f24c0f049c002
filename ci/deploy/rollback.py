# SPDX-License-Identifier: Apache-2.0
"""Moves the moving tags of images back to an earlier version.

``./ci/nox -s rollback -- 0.1.0`` makes ``24.10`` what ``0.1.0-triton24.10`` is, for every release
and variant that has that version; ``-- sha256:… --release 24.10`` names an image by its digest.
Only what a version's tag has is taken. No version's tag is changed, so the same command with the
newer version undoes it.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ci.deploy.errors import DeployError
from ci.deploy.images import VERSION_LABEL
from ci.deploy.registry import Registry, open_registry
from ci.deploy.variables import RegistryVariables
from ci.process import fail
from ci.selection import SelectionError, selected_releases
from ci.toolchain import ToolchainError
from tritonserver_jax.releases import load_releases

__all__ = ["Move", "find_moves", "rollback"]

_VERSION_TAG: Final = re.compile(
    r"(?P<version>[0-9][0-9a-z.]*)-triton(?P<release>\d\d\.\d\d)(?P<suffix>-cuda\d+)?"
)


@dataclass(frozen=True, slots=True)
class Move:
    """A moving tag, and where it goes.

    Attributes:
        tag: As in ``24.10-cuda12``.
        before: The digest that it has now; None where there is no such tag.
        after: The digest that it gets.
        version: The project version of that.
    """

    tag: str
    before: str | None
    after: str
    version: str


def find_moves(registry: Registry, target: str, releases: Sequence[str]) -> list[Move]:
    """Find what would be moved.

    Args:
        registry: Where the images are.
        target: A project version, or the digest of an image.
        releases: The Triton releases whose tags may be moved.

    Raises:
        DeployError: No version's tag of these releases has it.
    """
    repository = registry.variables.repository
    moves = []
    known: dict[str, str] = {}
    for tag in registry.tags(repository):
        match = _VERSION_TAG.fullmatch(tag)
        if match is None or match["release"] not in releases:
            continue
        if not target.startswith("sha256:") and match["version"] != target:
            known[match["version"]] = tag
            continue
        manifest = registry.manifest(f"{repository}:{tag}")
        if manifest is None:
            continue
        known[manifest.digest] = tag
        if target not in (manifest.digest, match["version"]):
            continue
        moving = f"{match['release']}{match['suffix'] or ''}"
        now = registry.manifest(f"{repository}:{moving}")
        before = None if now is None else now.digest
        moves.append(Move(moving, before, manifest.digest, match["version"]))
    if not moves:
        listed = ", ".join(f"{one} ({tag})" for one, tag in sorted(known.items())) or "none"
        raise DeployError(
            f"{repository}: expected {target} under the tag of a version, for release "
            f"{', '.join(releases)}; there is {listed}. Nothing was moved"
        )
    return moves


def rollback(registry: Registry, moves: Sequence[Move]) -> None:
    """Move the tags.

    Args:
        registry: Where they are.
        moves: What `find_moves` found.

    Raises:
        DeployError: The registry refused one; those before it are moved, and a second run goes on.
    """
    repository = registry.variables.repository
    for move in moves:
        name = f"{repository}:{move.tag}"
        if move.before == move.after:
            print(f"{name}: is {move.version} already, {move.after}", flush=True)
            continue
        was = "nothing"
        if move.before is not None:
            before = registry.configuration(f"{repository}@{move.before}")
            version = None if before is None else before.labels.get(VERSION_LABEL)
            was = f"{version or 'unknown'}, {move.before}"
        registry.copy(f"{repository}@{move.after}", name)
        print(f"{name}: is {move.version} now, {move.after}; was {was}", flush=True)


def _releases(named: Sequence[str], variables: Mapping[str, str]) -> list[str]:
    known = load_releases()
    if unknown := [name for name in named if name not in known]:
        raise DeployError(
            f"--release: expected a release of releases.toml, got {', '.join(unknown)}"
        )
    return list(named) or [one.release for one in selected_releases(variables)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Move tags back, or show what would be moved."""
    parser = argparse.ArgumentParser(
        prog="./ci/nox -s rollback --",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("target", help="a project version, or the digest of an image of one")
    parser.add_argument(
        "--release", action="append", default=[], help="default: those of TRITON_RELEASES"
    )
    parser.add_argument("--dry-run", action="store_true", help="show it, and move nothing")
    options = parser.parse_args(arguments)
    try:
        releases = _releases(options.release, os.environ)
        with open_registry(RegistryVariables.read(os.environ)) as registry:
            moves = find_moves(registry, options.target, releases)
            if options.dry_run:
                for move in moves:
                    print(f"{move.tag}: {move.before or 'nothing'} -> {move.after}")
                print("dry run: nothing was moved")
                return 0
            rollback(registry, moves)
    except (DeployError, SelectionError, ToolchainError) as error:
        return fail(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
