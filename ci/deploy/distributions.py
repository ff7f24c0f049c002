# SPDX-License-Identifier: Apache-2.0
"""Publishes the wheel and the sdist to a package index, by twine.

``twine upload --skip-existing`` works on few indexes, and compares nothing. So the index is read
first: what has the same SHA-256 is left alone.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import requests
from pypi_simple import DistributionPackage, NoSuchProjectError, PyPISimple
from twine.commands.upload import upload
from twine.exceptions import TwineException
from twine.settings import Settings

from ci.deploy.errors import DeployError, DifferentBytesError, PassingError, error_of_status
from ci.deploy.plan import PACKAGE, Plan
from ci.deploy.publisher import Item
from ci.deploy.retries import persistently
from ci.deploy.variables import IndexVariables
from tritonserver_jax.artifacts.checksums import sha256_of

__all__ = ["IndexPublisher", "download_distribution"]

_ACCESS: Final = "TWINE_USERNAME and TWINE_PASSWORD"
_TIMEOUT_SECONDS: Final = 60.0

Result = TypeVar("Result")


def _ask(what: str, action: Callable[[], Result]) -> Result:
    """Ask the index something, and again while it fails with what may pass."""

    def once() -> Result:
        try:
            return action()
        except requests.HTTPError as error:
            response = error.response
            status, said = (None, str(error)) if response is None else _answer(response)
            raise error_of_status(what, status, said, _ACCESS) from error
        except requests.RequestException as error:
            raise PassingError(f"{what}: {error}") from error
        except TwineException as error:
            raise DeployError(f"{what}: {error}") from error

    return persistently(once)


def _answer(response: requests.Response) -> tuple[int, str]:
    return response.status_code, response.reason or "no reason was given"


class _Index:
    """A package index, read."""

    def __init__(self, variables: IndexVariables) -> None:
        self.variables = variables

    def _client(self) -> PyPISimple:
        password = self.variables.password.get_secret_value()
        return PyPISimple(self.variables.simple_url, auth=(self.variables.user, password))

    def packages(self) -> dict[str, DistributionPackage]:
        """Return what the index has of this project, by file name."""

        def look() -> dict[str, DistributionPackage]:
            with self._client() as client, contextlib.suppress(NoSuchProjectError):
                page = client.get_project_page(PACKAGE, timeout=_TIMEOUT_SECONDS)
                return {one.filename: one for one in page.packages}
            return {}

        return _ask(f"package index {self.variables.simple_url}", look)

    def download(self, package: DistributionPackage, path: Path) -> None:
        """Download a file."""

        def fetch() -> None:
            with self._client() as client:
                client.download_package(package, path, timeout=_TIMEOUT_SECONDS)

        _ask(f"package index: {package.filename}", fetch)

    def digest(self, package: DistributionPackage) -> str:
        """Return the SHA-256 of a file; it is downloaded where the index has another hash."""
        digest = (package.digests or {}).get("sha256")
        if digest is not None:
            return digest
        with tempfile.TemporaryDirectory(prefix="tritonserver-jax-") as scratch:
            path = Path(scratch, package.filename)
            self.download(package, path)
            return sha256_of(path)


def download_distribution(variables: IndexVariables, name: str, folder: Path) -> Path:
    """Download a file of the index.

    Args:
        variables: Where the index is, and who asks.
        name: The file's name.
        folder: Where to put it.

    Raises:
        DeployError: It is not there, or the index does not give it.
    """
    index = _Index(variables)
    package = index.packages().get(name)
    if package is None:
        raise DeployError(
            f"package index {variables.simple_url}: expected {name}, found none; "
            "run ./ci/nox -s deploy -- wheel"
        )
    index.download(package, folder / name)
    return folder / name


class IndexPublisher:
    """Publishes the wheel and the sdist."""

    part = "wheel"

    def __init__(self, variables: IndexVariables, plan: Plan) -> None:
        """Take what is needed to upload.

        Args:
            variables: Where to, and who.
            plan: What.
        """
        self._index = _Index(variables)
        self._plan = plan

    def survey(self) -> list[Item]:
        """Look at the files of this version."""
        there = self._index.packages()
        return [self._look(path, there.get(path.name)) for path in self._plan.distributions]

    def publish(self) -> None:
        """Upload what is missing, and read back what is there then."""
        for path in self._plan.distributions:
            item = self._look(path, self._index.packages().get(path.name))
            if item.there:
                print(f"{path.name}: there already", flush=True)
                continue
            self._upload(path)
            if not self._look(path, self._index.packages().get(path.name)).there:
                raise DeployError(
                    f"package index {self._index.variables.simple_url}: expected {path.name} after "
                    "it was uploaded, found none; is TRITONSERVER_JAX_INDEX_URL where this index "
                    "is read?"
                )
            print(f"{path.name}: uploaded", flush=True)

    def _look(self, path: Path, published: DistributionPackage | None) -> Item:
        ours = sha256_of(path)
        if published is None:
            return Item(path.name, ours, there=False)
        theirs = self._index.digest(published)
        if theirs != ours:
            raise DifferentBytesError(path.name, f"SHA-256 {theirs}", f"SHA-256 {ours}")
        return Item(path.name, ours, there=True)

    def _upload(self, path: Path) -> None:
        variables = self._index.variables

        def send() -> None:
            # An answer may have been lost, and the file be there.
            if self._look(path, self._index.packages().get(path.name)).there:
                return
            settings = Settings(
                repository_url=variables.upload_url,
                username=variables.user,
                password=variables.password.get_secret_value(),
                non_interactive=True,
                disable_progress_bar=True,
            )
            upload(settings, [str(path)])

        _ask(f"package index {variables.upload_url}: {path.name}", send)
