# SPDX-License-Identifier: Apache-2.0
"""Publishes images: under the tag of their version first, and under moving tags last.

What this machine's engine has of this commit is pushed; any other image is built from the artifact,
as `ci.images` does it. A version's tag never changes. The moving tags are moved when everything
else of the version is published, and by digest, so they are the very images that were looked at.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Final

import docker
from docker.errors import APIError, ImageNotFound
from packaging.version import InvalidVersion, Version

from ci import images
from ci.deploy.errors import DeployError, DifferentBytesError, error_of_status, error_of_text
from ci.deploy.plan import Plan
from ci.deploy.publisher import Item
from ci.deploy.registry import ACCESS, ImageConfiguration, Registry
from ci.deploy.retries import persistently
from ci.image_plan import NAME, ImagePlan

__all__ = ["VERSION_LABEL", "ImagePublisher", "MovingTags", "label_problem"]

VERSION_LABEL: Final = "org.opencontainers.image.version"


def label_problem(
    image: ImagePlan, version: str, commit: str | None, labels: Mapping[str, str]
) -> str | None:
    """Say in which way an image is another one than it should be.

    Args:
        image: What it should be.
        version: The project version.
        commit: What it should be made from; any when not given.
        labels: What it says of itself.
    """
    expected = {
        VERSION_LABEL: version,
        "tritonserver-jax.triton.release": image.release.release,
        "tritonserver-jax.variant": image.variant,
    }
    if commit is not None:
        expected["org.opencontainers.image.revision"] = commit
    for label, value in expected.items():
        if (got := labels.get(label)) != value:
            return f"label {label}: expected {value}, got {got}"
    return None


class ImagePublisher:
    """Publishes each image under the tag of its version."""

    part = "images"

    def __init__(
        self,
        client: docker.DockerClient,
        registry: Registry,
        plan: Plan,
        commit: str,
        *,
        stand_in: bool = False,
    ) -> None:
        """Take what is needed to build and push.

        Args:
            client: Of the engine that has the images, or gets them.
            registry: Where they go.
            plan: Which.
            commit: What they have to be made from.
            stand_in: Whether those that are missing are built on the stand-in of their base.
        """
        self._client = client
        self._registry = registry
        self._plan = plan
        self._commit = commit
        self._stand_in = stand_in
        self._repository = registry.variables.repository

    def survey(self) -> list[Item]:
        """Look at the tags of this version."""
        return [self._look(image) for image in self._plan.images]

    def publish(self) -> None:
        """Build and push what is missing, and read back what is there then."""
        for image in self._plan.images:
            item = self._look(image)
            if item.there:
                print(f"{item.name}: there already", flush=True)
                continue
            identifier = item.digest or self._build(image)
            self._push(image, identifier)
            there = self._registry.manifest(item.name)
            if there is None or not there.is_image(identifier):
                got = "none" if there is None else there.image_id
                raise DeployError(f"{item.name}: expected {identifier} after a push, got {got}")
            print(f"{item.name}: published as {there.digest}", flush=True)

    def _look(self, image: ImagePlan) -> Item:
        name = f"{self._repository}:{image.tags[0]}"
        there = self._registry.manifest(name)
        ours = self._of_engine(image)
        if there is None:
            return Item(name, None if ours is None else ours[0], there=False)
        described = self._registry.configuration(name)
        if described is None:
            raise DeployError(f"{name}: was removed while this ran; run it again")
        if ours is None:
            # Of the same commit it is the image that would be built, which is not done again.
            problem = label_problem(image, self._plan.version, self._commit, described.labels)
            if problem is not None:
                ours_said = f"an image of the commit {self._commit}"
                raise DifferentBytesError(name, f"{there.image_id} ({problem})", ours_said)
            return Item(name, there.image_id, there=True)
        identifier, configuration = ours
        # Two builds of a commit have the same layers, and other times in their history.
        if not there.is_image(identifier) and described != configuration:
            raise DifferentBytesError(name, there.image_id, identifier)
        return Item(name, identifier, there=True)

    def _of_engine(self, image: ImagePlan) -> tuple[str, ImageConfiguration] | None:
        """Return the id of the engine's image, and what it says of itself.

        One of another commit, as an engine has that builds often, is none.
        """
        name = f"{NAME}:{image.tags[0]}"
        try:
            found = self._client.images.get(name)
        except ImageNotFound:
            return None
        labels = dict(found.labels)
        problem = label_problem(image, self._plan.version, self._commit, labels)
        if problem is not None:
            print(f"{name}: the engine has another one: {problem}", flush=True)
            return None
        layers = tuple(found.attrs["RootFS"]["Layers"])
        return str(found.id), ImageConfiguration(labels, layers)

    def _build(self, image: ImagePlan) -> str:
        with images.prepared(
            self._client, image.release, image.variant, stand_in=self._stand_in
        ) as prepared:
            # Elsewhere than on the stand-in the plan has the base that was asked for.
            name = images.build(prepared if self._stand_in else image)
        return str(self._client.images.get(name).id)

    def _push(self, image: ImagePlan, identifier: str) -> None:
        """Push by the id: another pipeline on the same engine may have taken the name by now."""
        tag = image.tags[0]
        where = f"{self._repository}:{tag}"

        def once() -> None:
            try:
                images.push(
                    self._client,
                    identifier,
                    self._repository,
                    [tag],
                    password=self._registry.password,
                )
            except images.ImageError as error:
                raise error_of_text(where, str(error), ACCESS) from error
            except APIError as error:
                said = str(error.explanation)
                raise error_of_status(where, error.status_code, said, ACCESS) from error

        try:
            persistently(once)
        finally:
            with contextlib.suppress(ImageNotFound):  # the engine's own names are as before
                self._client.images.remove(where, noprune=True)


class MovingTags:
    """Moves the moving tags to the images of this version; they have to be published before."""

    part = "release"

    def __init__(self, registry: Registry, plan: Plan) -> None:
        """Take what is needed to move them.

        Args:
            registry: Where they are.
            plan: Which.
        """
        self._registry = registry
        self._plan = plan

    def survey(self) -> list[Item]:
        """Look at the moving tags; one that a newer version has is where it should be."""
        return [self._look(image)[0] for image in self._plan.images]

    def publish(self) -> None:
        """Move those that are elsewhere, but for those that a newer version has."""
        repository = self._registry.variables.repository
        for image in self._plan.images:
            item, newer = self._look(image)
            if newer is not None:
                print(f"{item.name}: stays at {newer}, which is newer", flush=True)
                continue
            if item.there:
                print(f"{item.name}: there already", flush=True)
                continue
            if item.digest is None:
                raise DeployError(
                    f"{repository}:{image.tags[0]}: expected it before {item.name} is moved, found "
                    "none; run ./ci/nox -s deploy -- images"
                )
            self._registry.copy(f"{repository}@{item.digest}", item.name)
            print(f"{item.name}: is {item.digest} now", flush=True)

    def _look(self, image: ImagePlan) -> tuple[Item, str | None]:
        """Look at a moving tag; with it comes the newer version that has it, if one does."""
        repository = self._registry.variables.repository
        fixed, moving = (self._registry.manifest(f"{repository}:{tag}") for tag in image.tags)
        digest = None if fixed is None else fixed.digest
        name = f"{repository}:{image.tags[1]}"
        ours = moving is not None and moving.digest == digest
        newer = None if ours or digest is None else self._newer(name)
        return Item(name, digest, there=ours or newer is not None), newer

    def _newer(self, name: str) -> str | None:
        """Return the version of the image under a name, if it is newer than ours."""
        configuration = self._registry.configuration(name)
        found = None if configuration is None else configuration.labels.get(VERSION_LABEL)
        try:
            newer = found is not None and Version(found) > Version(self._plan.version)
        except InvalidVersion:
            return None
        return found if newer else None
