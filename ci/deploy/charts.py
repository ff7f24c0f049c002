# SPDX-License-Identifier: Apache-2.0
"""Publishes the Helm chart to the container registry, beside the images."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ci.chart import NAME, ChartError, package_chart, push_chart
from ci.deploy.errors import DeployError, DifferentBytesError, error_of_text
from ci.deploy.plan import Plan
from ci.deploy.publisher import Item
from ci.deploy.registry import ACCESS, Registry
from ci.deploy.retries import persistently
from ci.process import CommandError
from tritonserver_jax.artifacts.checksums import sha256_of

__all__ = ["CHART_FOLDER", "ChartPublisher"]

#: Below the repository of the images: where charts are, each under its name.
CHART_FOLDER: Final = "charts"


class ChartPublisher:
    """Publishes the chart under the project version."""

    part = "images"

    def __init__(self, registry: Registry, plan: Plan, directory: Path) -> None:
        """Take what is needed to push it.

        Args:
            registry: Where it goes.
            plan: The version.
            directory: Where the packaged chart is put.
        """
        self._registry = registry
        self._where = f"{registry.variables.repository}/{CHART_FOLDER}"
        self._name = f"{self._where}/{NAME}:{plan.version}"
        self._directory = directory

    def survey(self) -> list[Item]:
        """Package it, and look at the registry."""
        return [self._look(package_chart(self._directory))]

    def publish(self) -> None:
        """Push it unless it is there, and read back what is there then."""
        path = package_chart(self._directory)
        if self._look(path).there:
            print(f"{self._name}: there already", flush=True)
            return

        def push() -> str:
            password = self._registry.password
            try:
                return push_chart(
                    path,
                    self._where,
                    username=password["username"],
                    password=password["password"],
                    plain_http=self._registry.is_local,
                )
            except ChartError as error:
                raise DeployError(str(error)) from error
            except CommandError as error:
                raise error_of_text(self._name, str(error), ACCESS) from error

        reference = persistently(push)
        if not self._look(path).there:
            raise DeployError(f"{self._name}: expected it after a push, found none; run it again")
        print(f"{self._name}: published as {reference.rpartition('@')[2]}", flush=True)

    def _look(self, path: Path) -> Item:
        ours = sha256_of(path)
        there = self._registry.manifest(self._name)
        if there is not None and f"sha256:{ours}" not in there.layers:
            theirs = " ".join(there.layers).replace("sha256:", "SHA-256 ")
            raise DifferentBytesError(self._name, theirs, f"SHA-256 {ours}")
        return Item(self._name, ours, there=there is not None)
