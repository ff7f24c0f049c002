# SPDX-License-Identifier: Apache-2.0
"""Runs the pipeline for real on this machine: as for a merge request, and as for a version's tag.

Each form runs the jobs of ``.gitlab-ci.yml`` in a clone, by gitlab-ci-local; both at the same time,
as pipelines do. Builds run in containers of a stand-in of the release's image; everything is
published to services on this machine (`ci.local_services`), pulled from there again, and compared
with what was declared. ``python -m ci.pipeline`` runs both forms; ``docs/pipeline.md`` says what
cannot be run so.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Final

import docker
from docker.errors import DockerException

from ci import images, selection
from ci.build import BUILD_DIRECTORY
from ci.changelog import ChangelogError
from ci.cut_version import CutError
from ci.deploy.errors import DeployError
from ci.deploy.plan import plan_of
from ci.deploy.variables import IndexVariables, ProjectVariables
from ci.docker_engine import docker_engine
from ci.gitlab_ci_local import (
    STATE,
    Containers,
    LocalRunner,
    RunnerError,
    install_runner,
)
from ci.image_plan import CPU
from ci.local_services import LocalServices, ServicesError, local_services
from ci.pipeline_checkout import make_checkout, make_release_checkout
from ci.process import CommandError, fail
from ci.selection import SelectionError
from ci.version import VersionError
from tritonserver_jax import __version__
from tritonserver_jax.artifacts.checksums import sha256_of
from tritonserver_jax.releases import DEFAULT_RELEASE, find_release
from tritonserver_jax.server.distribution import default_cache_directory

__all__ = ["FORMS", "MERGE_REQUEST", "TAG", "Form", "PipelineError", "job_variables", "run_forms"]

#: Where the clones, the logs and the services' data are.
SCRATCH: Final = BUILD_DIRECTORY / "pipeline"


class PipelineError(RuntimeError):
    """A pipeline did not do what it should have done."""


@dataclass(frozen=True, slots=True)
class Form:
    """A kind of pipeline.

    Attributes:
        name: What it is for.
        variables: GitLab's, by which it is known.
        unset: GitLab's that it does not have.
        left_out: Jobs that the other form runs on the same source.
    """

    name: str
    variables: Mapping[str, str]
    unset: tuple[str, ...] = ()
    left_out: frozenset[str] = frozenset()

    @property
    def protected(self) -> bool:
        """Whether its jobs get protected variables: where to publish, and how to sign."""
        return self.variables["CI_COMMIT_REF_PROTECTED"] == "true"


MERGE_REQUEST: Final = Form(
    "merge-request",
    {
        "CI_PIPELINE_SOURCE": "merge_request_event",
        "CI_COMMIT_REF_NAME": "change",
        "CI_COMMIT_REF_PROTECTED": "false",
        "CI_MERGE_REQUEST_IID": "1",
        "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "change",
    },
    unset=("CI_COMMIT_BRANCH",),
)
TAG: Final = Form(
    "tag",
    {
        "CI_PIPELINE_SOURCE": "push",
        "CI_COMMIT_REF_NAME": f"v{__version__}",
        "CI_COMMIT_REF_PROTECTED": "true",
        "CI_COMMIT_TAG": f"v{__version__}",
    },
    unset=("CI_COMMIT_BRANCH",),
    left_out=frozenset(
        {
            *("chart", "core", "definition", "lint", "native", "packaging", "publishing", "unit"),
            *(f"{kind}-{DEFAULT_RELEASE}" for kind in ("guides", "integration", "monitoring")),
        }
    ),
)
FORMS: Final = (MERGE_REQUEST, TAG)

#: What of this machine a job in a container has to know to reach the network.
_NETWORK: Final = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "PIP_INDEX_URL", "UV_DEFAULT_INDEX")
_CERTIFICATES: Final = "/etc/ssl/certs/ca-certificates.crt"


def job_variables(releases: Sequence[str], services: LocalServices | None) -> dict[str, str]:
    """Return the variables of the project, as somebody sets them who runs it on one machine.

    Args:
        releases: What to make.
        services: Where to publish; None for what publishes nothing.
    """
    found = {
        selection.RELEASES: " ".join(releases),
        selection.VARIANTS: CPU,
        selection.IMAGE: selection.STAND_IN,
        "TRITON_IMAGE_DIGEST": "",
        "INTEGRATION_MARKS": "core and not slow",
        # The caches of this machine, in place of those that a runner brings.
        "TRITONSERVER_JAX_CACHE": str(default_cache_directory()),
        "UV_CACHE_DIR": os.environ.get("UV_CACHE_DIR") or str(Path.home() / ".cache" / "uv"),
    }
    found |= {name: value for name in _NETWORK if (value := os.environ.get(name))}
    if services is not None:
        found |= services.variables
    return found


def helper_image(client: docker.DockerClient) -> str:
    """Make the image that copies artifacts out of containers: the stand-in, with rsync."""
    base = images.load_stand_in(client, find_release(DEFAULT_RELEASE))
    name = f"{selection.STAND_IN}:pipeline-helper"
    steps = (
        f"FROM {base}",
        "RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends rsync",
    )
    client.images.build(fileobj=io.BytesIO("\n".join(steps).encode()), tag=name, rm=True)
    return name


def containers(client: docker.DockerClient, releases: Sequence[str]) -> Containers:
    """Prepare what jobs run in that have an image of their own."""
    for name in releases:
        images.load_stand_in(client, find_release(name))
    # What root writes there is not for the cache of whoever runs this.
    cache = SCRATCH / "uv"
    cache.mkdir(parents=True, exist_ok=True)
    volumes = [f"{cache}:{job_variables(releases, None)['UV_CACHE_DIR']}"]
    if (certificates := images.certificates()) is not None:
        volumes.append(f"{certificates}:{_CERTIFICATES}:ro")
    return Containers(helper_image(client), volumes)


@contextlib.contextmanager
def prepared(releases: Sequence[str]) -> Iterator[tuple[Containers, LocalServices]]:
    """Give an engine with the images that jobs run in, and the services, for a while."""
    shutil.rmtree(SCRATCH / "services", ignore_errors=True)
    with docker_engine() as client, local_services(SCRATCH / "services") as services:
        yield containers(client, releases), services


def run_form(
    form: Form,
    concurrency: int,
    *,
    releases: Sequence[str],
    container: Containers,
    services: LocalServices,
    program: Path,
    everything: bool = False,
) -> LocalRunner:
    """Run one form of the pipeline.

    Args:
        form: Which.
        concurrency: How many jobs to run at a time.
        releases: What to make.
        container: What jobs with an image run in.
        services: Where to publish.
        program: gitlab-ci-local.
        everything: Whether to run what the other form runs, too.

    Returns:
        What ran it, with what its jobs handed on.

    Raises:
        PipelineError: A job failed.
    """
    make = make_release_checkout if form.protected else make_checkout
    checkout = make(SCRATCH / form.name)
    runner = LocalRunner(
        program,
        checkout,
        {**job_variables(releases, services if form.protected else None), **form.variables},
        unset=form.unset,
        containers=container,
        concurrency=concurrency,
        label=f"{form.name}: ",
    )
    jobs = runner.automatic_jobs()
    if not everything:
        jobs = [name for name in jobs if name not in form.left_out]
    outcome = runner.run(jobs)
    (SCRATCH / f"{form.name}.log").write_text(outcome.output, encoding="utf-8")
    print(f"\n{form.name}:\n{outcome.table()}\n", flush=True)
    if outcome.failed:
        raise PipelineError(
            f"{form.name}: failed: {', '.join(outcome.failed)}; what they said is above, and in "
            f"{SCRATCH / form.name}"
        )
    if missing := set(jobs) - set(outcome.jobs):
        raise PipelineError(f"{form.name}: never ran: {', '.join(sorted(missing))}")
    for secret in services.secrets:
        if secret in outcome.output:
            raise PipelineError(f"{form.name}: a password is in the log of a job")
    return runner


def run_forms(
    forms: Sequence[Form], run: Callable[[Form, int], LocalRunner]
) -> dict[str, LocalRunner]:
    """Run forms of the pipeline at the same time, each to its end.

    Args:
        forms: Which.
        run: Runs one, so many jobs at a time.

    Returns:
        What ran each of them, by its name.

    Raises:
        PipelineError: A job failed.
    """
    # One more than there are processors: jobs also wait, for servers and for what they fetch. The
    # jobs of a tag wait for one another most of the time, so that beside others one is enough.
    most = len(os.sched_getaffinity(0)) + 1
    with ThreadPoolExecutor(len(forms)) as pool:
        runs = {
            form.name: pool.submit(run, form, 1 if form.protected and len(forms) > 1 else most)
            for form in forms
        }
    failures = [one.exception() for one in runs.values()]
    said = [str(failure) for failure in failures if isinstance(failure, PipelineError)]
    if len(said) > 1:
        raise PipelineError("; ".join(said))
    return {name: one.result() for name, one in runs.items()}


def check_published(runner: LocalRunner, services: LocalServices) -> int:
    """Compare what was published with what was declared, and with what the builds handed on.

    Returns:
        How many names there are.

    Raises:
        PipelineError: They differ.
    """
    plan = plan_of(runner.variables, runner.artifacts("sign") / "dist")
    project = ProjectVariables.read(services.variables)
    index = IndexVariables.read(services.variables).simple_url
    declared = plan.names(services.variables["CI_REGISTRY_IMAGE"], project, index)
    if differences := declared.differences(services.published()):
        raise PipelineError("published: " + "; ".join(differences))
    built = {sha256_of(path) for path in runner.checkout.glob(f"{STATE}/artifacts/*/dist/*/*")}
    for name, digest in services.package_files().items():
        if digest not in built:
            raise PipelineError(f"{name}: is no file that a job handed on")
    return sum(len(getattr(declared, one.name)) for one in fields(declared))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the forms; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m ci.pipeline", description=__doc__)
    parser.add_argument("--release", action="append", help=f"default: {DEFAULT_RELEASE}")
    parser.add_argument("--form", action="append", choices=[form.name for form in FORMS])
    parser.add_argument(
        "--everything", action="store_true", help="run in each form also what the other one runs"
    )
    options = parser.parse_args(arguments)
    releases = options.release or [DEFAULT_RELEASE]
    forms = [form for form in FORMS if not options.form or form.name in options.form]
    begin = time.monotonic()
    try:
        program = install_runner()
        with prepared(releases) as (container, services):
            run = partial(
                run_form,
                releases=releases,
                container=container,
                services=services,
                program=program,
                everything=options.everything,
            )
            runners = run_forms(forms, run)
            if TAG.name in runners:
                count = check_published(runners[TAG.name], services)
                print(f"published: {count} names, as declared", flush=True)
    except (
        *images.IMAGE_ERRORS,
        ChangelogError,
        CommandError,
        CutError,
        DeployError,
        DockerException,
        PipelineError,
        RunnerError,
        SelectionError,
        ServicesError,
        VersionError,
    ) as error:
        return fail(error)
    minutes, seconds = divmod(int(time.monotonic() - begin), 60)
    print(
        f"pipeline: {', '.join(form.name for form in forms)}: all well in {minutes}:{seconds:02d}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
