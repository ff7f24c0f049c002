# SPDX-License-Identifier: Apache-2.0
"""Publishes a version, all of it or a part, and what a run before it left over.

``./ci/nox -s deploy`` publishes in an order in which nothing is announced that is not there:

1. ``images``: the images under the tags of their version, and the Helm chart;
2. ``packages``: the folders of artifacts, to GitLab's package registry;
3. ``wheel``: the wheel and the sdist, to the package index;
4. ``release``: the GitLab release, once all of the above is there, and then the moving tags.

Everything is verified before anything is published. What is there already is left alone, other
bytes under a name of ours are refused, so it may be run again whenever it failed. ``--dry-run``
verifies and shows the plan. ``TRITON_RELEASES`` and ``TRITON_VARIANTS`` say which images there are
(see `ci.selection`), and docs/releasing.md which variables say where to publish.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from ci.artifacts import DIST
from ci.changelog import CHANGELOG, ChangelogError, section
from ci.chart import CHART_ERRORS
from ci.deploy.charts import ChartPublisher
from ci.deploy.checks import check_everything
from ci.deploy.distributions import IndexPublisher
from ci.deploy.errors import DeployError
from ci.deploy.gitlab_release import ReleasePublisher
from ci.deploy.images import ImagePublisher, MovingTags
from ci.deploy.packages import PackagePublisher
from ci.deploy.plan import Plan, plan_of
from ci.deploy.project import open_project
from ci.deploy.publisher import Missing, Publisher, job_of, missing, said_of
from ci.deploy.registry import Registry, open_registry
from ci.deploy.variables import (
    PUBLIC_KEY_FILE,
    IndexVariables,
    ProjectVariables,
    RegistryVariables,
)
from ci.docker_engine import docker_engine
from ci.images import IMAGE_ERRORS
from ci.process import fail
from ci.provenance import source_commit
from ci.selection import SelectionError, on_stand_in

__all__ = ["DEPLOY_ERRORS", "PARTS", "deploy"]

#: What is published, in this order.
PARTS: Final = ("images", "packages", "wheel", "release")

#: What may go wrong here, for those who report it in one line.
DEPLOY_ERRORS: Final = (
    *IMAGE_ERRORS,
    *CHART_ERRORS,
    ChangelogError,
    DeployError,
    SelectionError,
)


class _Deployment:
    """Opens the services that some parts need, and no other."""

    def __init__(
        self,
        plan: Plan,
        variables: Mapping[str, str],
        stack: contextlib.ExitStack,
        *,
        dist: Path,
        changes: str,
    ) -> None:
        self._plan = plan
        self._variables = variables
        self._stack = stack
        self._dist = dist
        self._changes = changes
        self._registry: Registry | None = None

    def registry(self) -> Registry:
        if self._registry is None:
            opened = open_registry(RegistryVariables.read(self._variables))
            self._registry = self._stack.enter_context(opened)
        return self._registry

    def publishers(self, part: str) -> list[Publisher]:
        makers: dict[str, Callable[[], list[Publisher]]] = {
            "images": self._images,
            "packages": self._packages,
            "wheel": self._wheel,
            "release": self._release,
        }
        return makers[part]()

    def _images(self) -> list[Publisher]:
        registry = self.registry()
        client = self._stack.enter_context(docker_engine())
        commit = source_commit() or ""
        stand_in = on_stand_in(self._variables)
        images = ImagePublisher(client, registry, self._plan, commit, stand_in=stand_in)
        if self._plan.chart is None:
            return [images]
        return [images, ChartPublisher(registry, self._plan, self._dist / "helm")]

    def _packages(self) -> list[Publisher]:
        project = self._stack.enter_context(open_project(ProjectVariables.read(self._variables)))
        return [PackagePublisher(project, self._plan)]

    def _wheel(self) -> list[Publisher]:
        return [IndexPublisher(IndexVariables.read(self._variables), self._plan)]

    def _release(self) -> list[Publisher]:
        variables = ProjectVariables.read(self._variables)
        project = self._stack.enter_context(open_project(variables))
        index = IndexVariables.read(self._variables)
        release = ReleasePublisher(
            project,
            self._plan,
            self._plan.links(variables, index.simple_url),
            changes=self._changes,
            digests=self._digests,
        )
        return [release, MovingTags(self.registry(), self._plan)]

    def _digests(self) -> dict[str, str]:
        registry = self.registry()
        found = {}
        for image in self._plan.images:
            name = f"{registry.variables.repository}:{image.tags[0]}"
            manifest = registry.manifest(name)
            if manifest is None:
                raise DeployError(
                    f"{name}: expected it before the release, found none; "
                    "run ./ci/nox -s deploy -- images"
                )
            found[name] = manifest.digest
        return found

    def unpublished(self) -> list[Missing]:
        """Return what has to be there before the release, and is not."""
        packages, index = self._packages(), self._wheel()
        absent = missing([*packages, *index])
        registry = self.registry()
        names = [f"{registry.variables.repository}:{one.tags[0]}" for one in self._plan.images]
        if (chart := self._plan.chart_name(registry.variables.repository)) is not None:
            names.append(chart)
        images = [Missing(name, "images") for name in names if registry.manifest(name) is None]
        return [*images, *absent]


def deploy(
    plan: Plan, parts: Sequence[str], variables: Mapping[str, str], *, dist: Path, changes: str
) -> None:
    """Publish some parts; everything has been verified.

    Args:
        plan: What the version consists of.
        parts: Which of `PARTS`.
        variables: Where to publish.
        dist: Where the folders of artifacts are.
        changes: What the changelog says of the version.

    Raises:
        DeployError: Something could not be published; what is published stays.
    """
    with contextlib.ExitStack() as stack:
        deployment = _Deployment(plan, variables, stack, dist=dist, changes=changes)
        publishers = [one for part in parts for one in deployment.publishers(part)]
        for publisher in publishers:  # a look at all of them, before anything is changed
            items = publisher.survey()
            there = sum(item.there for item in items)
            print(f"part {publisher.part}: {there} of {len(items)} are published", flush=True)
        for part in parts:
            if part == "release" and (absent := deployment.unpublished()):
                raise DeployError(
                    f"release {plan.tag}: expected everything else to be published before it, "
                    f"{len(absent)} are missing: {said_of(absent)}. Run the job "
                    f"{job_of(absent[0].part)} and those after it first; by hand: "
                    f"./ci/nox -s deploy -- {absent[0].part}"
                )
            for publisher in publishers:
                if publisher.part == part:
                    publisher.publish()


def _show(plan: Plan) -> None:
    print(f"tritonserver-jax {plan.version} consists of:")
    for image in plan.images:
        print(f"  image    {image.tags[0]}, and then {image.tags[1]}")
    if plan.chart is not None:
        print(f"  chart    {plan.chart} {plan.version}")
    for file in plan.files:
        print(f"  package  {file.package}/{plan.version}/{file.name}")
    for path in plan.distributions:
        print(f"  index    {path.name}")
    print(f"  release  {plan.tag}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Verify everything, and publish what is asked for."""
    parser = argparse.ArgumentParser(
        prog="./ci/nox -s deploy --",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("part", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; default: all")
    parser.add_argument("--dry-run", action="store_true", help="verify, and publish nothing")
    parser.add_argument("--unsigned", action="store_true", help="publish without a signature")
    parser.add_argument("--dist", type=Path, default=DIST, help="default: %(default)s")
    parser.add_argument("--changelog", type=Path, default=CHANGELOG, help="default: %(default)s")
    options = parser.parse_args(arguments)
    if unknown := [part for part in options.part if part not in PARTS]:
        parser.error(f"part: expected {', '.join(PARTS)}, got {', '.join(unknown)}")
    variables = os.environ
    key = variables.get(PUBLIC_KEY_FILE)
    try:
        plan = plan_of(variables, options.dist)
        said = check_everything(
            plan,
            tag=variables.get("CI_COMMIT_TAG") or None,
            commit=source_commit(),
            public_key=Path(key) if key else None,
            unsigned=options.unsigned,
            rehearsal=options.dry_run,
            changelog=options.changelog,
        )
        print("\n".join(said))
        _show(plan)
        if options.dry_run:
            print("dry run: nothing was published")
            return 0
        parts = [part for part in PARTS if part in (options.part or PARTS)]
        changes = section(plan.version, options.changelog)
        deploy(plan, parts, variables, dist=options.dist, changes=changes)
    except DEPLOY_ERRORS as error:
        return fail(error)
    print(f"deployed: {', '.join(parts)} of tritonserver-jax {plan.version}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
