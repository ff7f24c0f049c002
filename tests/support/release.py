# SPDX-License-Identifier: Apache-2.0
"""A version of small parts, and a job of the pipeline that publishes it."""

from __future__ import annotations

import io
import os
import tarfile
from dataclasses import dataclass
from pathlib import Path

import docker
import pytest

from ci import images as real_images
from ci.build import build_sdist, build_wheel
from ci.deploy import __main__ as command
from ci.deploy.images import VERSION_LABEL
from ci.deploy.plan import Plan, plan_of
from ci.deploy.published import PublishedNames
from ci.deploy.variables import IndexVariables, ProjectVariables
from ci.image_plan import ImagePlan
from ci.local_services import LocalServices
from ci.package import package
from ci.python_artifacts import package_python
from ci.sign import sign_folder
from tests.support.artifacts import compile_library
from tritonserver_jax import __version__
from tritonserver_jax.releases import DEFAULT_RELEASE, find_release

EPOCH = 1_700_000_000
#: What everything is made from, whatever the checkout is.
COMMIT = "0123456789abcdef0123456789abcdef01234567"
CHANGELOG = f"""\
# Changelog

## [Unreleased]

## [{__version__}] - 2026-01-31

### Added

- What the notes of the release say.
"""


class Factory:
    """Makes folders of artifacts out of small parts."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        names = ("libtriton_jax.so", "libtriton_jax_python.so")
        self.libraries = [compile_library(scratch / name) for name in names]
        self.wheel = build_wheel(scratch / "wheel")
        self.sdist = build_sdist(scratch / "sdist")

    def make(self, dist: Path, *, epoch: int = EPOCH) -> Path:
        """Make those of one release; another time makes other bytes."""
        with pytest.MonkeyPatch.context() as patch:
            for module in ("ci.package", "ci.python_artifacts"):
                patch.setattr(f"{module}.source_commit", lambda: COMMIT)
            package(
                find_release(DEFAULT_RELEASE),
                libraries=self.libraries,
                wheel=self.wheel,
                output=dist / DEFAULT_RELEASE,
                source_date_epoch=epoch,
            )
            package_python(self.wheel, self.sdist, output=dist / "python", source_date_epoch=epoch)
        return dist


class Images:
    """Makes tiny images in the engine, under a name that no real one has."""

    def __init__(self, client: docker.DockerClient, name: str) -> None:
        self.client = client
        self.name = name

    def make(
        self,
        image: ImagePlan,
        *,
        version: str = __version__,
        commit: str = COMMIT,
        content: str = "one",
    ) -> str:
        """Make one with the labels of an image of ours, and return its id."""
        labels = {
            VERSION_LABEL: version,
            "org.opencontainers.image.revision": commit,
            "tritonserver-jax.triton.release": image.release.release,
            "tritonserver-jax.variant": image.variant,
        }
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            entry = tarfile.TarInfo("content")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content.encode()))
        tag = f"{version}-triton{image.release.release}"
        self.client.api.import_image_from_data(
            buffer.getvalue(),
            repository=self.name,
            tag=tag,
            changes=[f'LABEL "{label}"="{value}"' for label, value in labels.items()],
        )
        return str(self.client.images.get(f"{self.name}:{tag}").id)

    def push(self, services: LocalServices, tag: str, *others: str) -> str:
        """Push one under its tag, and under others; its digest."""
        return real_images.push(
            self.client,
            f"{self.name}:{tag}",
            services.variables["CI_REGISTRY_IMAGE"],
            [tag, *others],
            password=services.registry_password,
        )

    def remove(self) -> None:
        """Remove them all."""
        for image in self.client.images.list(name=self.name):
            self.client.images.remove(str(image.id), force=True)


@dataclass
class Job:
    """A job of the pipeline of a tag."""

    dist: Path
    changelog: Path
    monkeypatch: pytest.MonkeyPatch
    capture: pytest.CaptureFixture[str]

    def set(self, name: str, value: str) -> None:
        """Set a variable of it."""
        self.monkeypatch.setenv(name, value)

    def deploy(self, *words: str) -> tuple[int, str]:
        """Run the session `deploy`; its exit status, and all that it printed."""
        options = ["--dist", str(self.dist), "--changelog", str(self.changelog)]
        self.capture.readouterr()
        code = command.main([*words, *options])
        said = self.capture.readouterr()
        return code, said.out + said.err

    def plan(self) -> Plan:
        """What it publishes."""
        return plan_of(os.environ, self.dist)


def sign(dist: Path, services: LocalServices) -> None:
    """Sign folders of artifacts by the key of the services."""
    for folder in sorted(dist.iterdir()):
        if folder.name != "helm":
            sign_folder(folder, services.variables)


def declared(job: Job, services: LocalServices) -> PublishedNames:
    """The names of all that a job has to publish."""
    variables = services.variables
    return job.plan().names(
        variables["CI_REGISTRY_IMAGE"],
        ProjectVariables.read(variables),
        IndexVariables.read(variables).simple_url,
    )


def assert_no_secret(said: str, services: LocalServices) -> None:
    """What a job prints is read by many."""
    for secret in services.secrets:
        assert secret not in said


def moving_tag(services: LocalServices, tag: str = DEFAULT_RELEASE) -> str | None:
    """The digest that a tag of the images has in the registry."""
    return services.image_digests().get(f"{services.variables['CI_REGISTRY_IMAGE']}:{tag}")
