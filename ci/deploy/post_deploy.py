# SPDX-License-Identifier: Apache-2.0
"""Tries what was published, as somebody would who has nothing else.

Everything of the version is downloaded from where it was published into an empty folder; the names
are compared with what was declared, and permanent links are followed; the artifacts are verified,
by this checkout and by the command of the published wheel; and the example `add_sub` is served and
asked: from an image, pulled by its digest, and from a tarball on a stock server.
``--serve nothing`` leaves the last part out.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from gitlab.v4.objects import Project

from ci import images
from ci.chart import CHART_ERRORS, pull_chart
from ci.deploy.charts import CHART_FOLDER
from ci.deploy.distributions import IndexPublisher, download_distribution
from ci.deploy.errors import DeployError
from ci.deploy.gitlab_release import ReleasePublisher, download_asset
from ci.deploy.images import MovingTags, label_problem
from ci.deploy.packages import download_package
from ci.deploy.plan import ArtifactFolder, Plan, plan_of
from ci.deploy.project import open_project
from ci.deploy.publisher import Missing, Publisher, job_of, missing, said_of
from ci.deploy.registry import Registry, open_registry
from ci.deploy.trial import ask_add_sub, model_repository, try_image
from ci.deploy.variables import (
    PUBLIC_KEY_FILE,
    IndexVariables,
    ProjectVariables,
    RegistryVariables,
)
from ci.docker_engine import docker_engine
from ci.image_plan import ImagePlan
from ci.installation import InstallationError, install_artifact
from ci.process import CommandError, fail, run
from ci.selection import SelectionError
from tritonserver_jax.artifacts import VerificationError, layout, verify_directory
from tritonserver_jax.releases import DEFAULT_RELEASE
from tritonserver_jax.server import ServerError, TritonServer, obtain_server

__all__ = ["fetch_and_verify", "serve_published"]

#: What can be served from; ``nothing`` leaves that part out.
SERVE: Final = ("image", "tarball", "nothing")
READY_SECONDS: Final = 120


def fetch_and_verify(plan: Plan, variables: Mapping[str, str], scratch: Path) -> None:
    """Download everything, and compare and verify it.

    Args:
        plan: What was declared; its folders are downloaded to where they are in it.
        variables: Where it was published.
        scratch: A folder to work in.

    Raises:
        DeployError: Something is missing, or is not what was declared.
        VerificationError: Something is damaged, or not signed by the key.
    """
    project_variables = ProjectVariables.read(variables)
    index = IndexVariables.read(variables)
    key = variables.get(PUBLIC_KEY_FILE)
    with (
        open_project(project_variables) as project,
        open_registry(RegistryVariables.read(variables)) as registry,
    ):
        for folder in plan.folders:
            download_package(project, folder)
            report = verify_directory(
                folder.path, release=folder.release, public_key=Path(key) if key else None
            )
            said = "signed by the key" if report.signed else "no signature was checked"
            print(f"{folder.package} {plan.version}: verified, {said}", flush=True)
        links = plan.links(project_variables, index.simple_url)
        publishers: list[Publisher] = [
            IndexPublisher(index, plan),
            ReleasePublisher(project, plan, links, changes="", digests=dict),
            MovingTags(registry, plan),
        ]
        if absent := missing(publishers):
            raise _too_early(plan, absent)
        for folder in plan.folders:
            _check_permanent_link(project, folder, plan)
        for image in plan.images:
            _check_image(registry, image, plan)
        if plan.chart is not None:
            _fetch_chart(registry, plan, scratch)
    _verify_as_user(plan, index, scratch)


def _too_early(plan: Plan, absent: Sequence[Missing]) -> DeployError:
    """Say what is missing, and which job publishes it."""
    first = job_of(absent[0].part)
    return DeployError(
        f"tritonserver-jax {plan.version}: expected all of it to be published, {len(absent)} are "
        f"missing: {said_of(absent)}. Has the job {first} ended well? Wait for it, or retry it and "
        "those after it, and then this one; by hand: ./ci/nox -s deploy"
    )


def _check_permanent_link(project: Project, folder: ArtifactFolder, plan: Plan) -> None:
    """See whether the link that users are told of leads to the file that was downloaded."""
    path = f"/{folder.name}/{layout.CHECKSUMS}"
    if download_asset(project, plan.tag, path) != (folder.path / layout.CHECKSUMS).read_bytes():
        raise DeployError(
            f"release {plan.tag}: expected the file of the package {folder.package} under the "
            f"permanent link {path}, got another one; correct the address of that link in the "
            "release, and run this again"
        )
    print(f"release {plan.tag}: {path} leads to the file", flush=True)


def _check_image(registry: Registry, image: ImagePlan, plan: Plan) -> None:
    name = f"{registry.variables.repository}:{image.tags[0]}"
    manifest, configuration = registry.manifest(name), registry.configuration(name)
    if manifest is None or configuration is None:
        raise _too_early(plan, [Missing(name, "images")])
    problem = label_problem(image, plan.version, None, configuration.labels)
    if problem is not None:
        raise DeployError(f"{name}: {problem}")
    print(f"{name}: is {manifest.digest}", flush=True)


def _fetch_chart(registry: Registry, plan: Plan, scratch: Path) -> None:
    password = registry.password
    path = pull_chart(
        f"{registry.variables.repository}/{CHART_FOLDER}",
        scratch / "helm",
        version=plan.version,
        username=password["username"],
        password=password["password"],
        plain_http=registry.is_local,
    )
    print(f"{path.name}: pulled", flush=True)


def _verify_as_user(plan: Plan, index: IndexVariables, scratch: Path) -> None:
    """Verify the folders again, by the command in the wheel of the package index."""
    downloads, installed = scratch / "index", scratch / "installed"
    downloads.mkdir()
    wheel = download_distribution(index, plan.distributions[0].name, downloads)
    install = ["uv", "pip", "install", "--quiet", "--no-deps", f"--python={sys.executable}"]
    run([*install, f"--target={installed}", wheel])
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    for folder in plan.folders:
        command: list[str | Path] = [sys.executable, "-P", "-m", "tritonserver_jax.cli"]
        command += ["verify", folder.path]
        if key := environment.get(PUBLIC_KEY_FILE):
            command += ["--key", key]
        run(command, cwd=scratch, env=environment)


def serve_published(plan: Plan, variables: Mapping[str, str], what: str) -> None:
    """Serve the example from something published, and ask it.

    Args:
        plan: What was declared; its folders have been downloaded.
        variables: Where it was published.
        what: Of `SERVE`.

    Raises:
        DeployError: It does not serve.
        CommandError: An answer is wrong, or there is none.
    """
    release = _served_release(plan)
    if what == "image":
        image = next(one for one in plan.images if one.release.release == release)
        with (
            open_registry(RegistryVariables.read(variables)) as registry,
            docker_engine() as client,
        ):
            repository = registry.variables.repository
            manifest = registry.manifest(f"{repository}:{image.tags[0]}")
            if manifest is None:
                raise DeployError(f"{repository}:{image.tags[0]}: was removed while this ran")
            name = images.pull(client, repository, manifest.digest, password=registry.password)
            try_image(client, name)
        print(f"{name}: served add_sub, and its answers are right", flush=True)
    elif what == "tarball":
        folder = next(one for one in plan.folders if one.release == release)
        (tarball,) = folder.artifacts
        _try_tarball(folder.path / tarball, plan, release)
        print(f"{tarball}: served add_sub, and its answers are right", flush=True)


def _served_release(plan: Plan) -> str:
    """Choose the release to try: the default one, if it was published."""
    names = [image.release.release for image in plan.images]
    return DEFAULT_RELEASE if DEFAULT_RELEASE in names else names[-1]


def _try_tarball(tarball: Path, plan: Plan, name: str) -> None:
    release = next(one.release for one in plan.images if one.release.release == name)
    if release.server is None:
        print(f"{tarball.name}: there is no server of {name} to try it on but in its image")
        return
    distribution = obtain_server(release)
    with (
        tempfile.TemporaryDirectory(prefix="tritonserver-jax-") as scratch,
        model_repository() as repository,
    ):
        installed = install_artifact(tarball, Path(scratch, "backends"))
        server = TritonServer(distribution, [repository], backend_directory=installed.parent)
        with server:
            server.wait_ready(READY_SECONDS)
            ask_add_sub(server.http_url, server.grpc_url)


def main(arguments: Sequence[str] | None = None) -> int:
    """Try what was published."""
    parser = argparse.ArgumentParser(
        prog="./ci/nox -s post-deploy --",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--serve",
        action="append",
        choices=SERVE,
        help="from what to serve a model; default: image and tarball",
    )
    options = parser.parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory(prefix="tritonserver-jax-") as folder:
            scratch = Path(folder)
            plan = plan_of(os.environ, scratch / "published")
            fetch_and_verify(plan, os.environ, scratch)
            for what in options.serve or ("image", "tarball"):
                serve_published(plan, os.environ, what)
    except (
        *images.IMAGE_ERRORS,
        *CHART_ERRORS,
        CommandError,
        DeployError,
        InstallationError,
        OSError,
        SelectionError,
        ServerError,
        VerificationError,
    ) as error:
        return fail(error)
    print(f"post-deploy: tritonserver-jax {plan.version} is what was declared, and serves")
    return 0


if __name__ == "__main__":
    sys.exit(main())
