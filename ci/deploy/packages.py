# SPDX-License-Identifier: Apache-2.0
"""Publishes the folders of artifacts to GitLab's package registry, each as a package of its own.

A package has the files of the folder under their names, so whoever downloads all of it can verify
it. `SHA256SUMS` and the signatures come last: a package that is published in part verifies as one
that is not whole.
"""

from __future__ import annotations

from pathlib import Path

from gitlab.exceptions import GitlabError
from gitlab.v4.objects import Project

from ci.deploy.errors import DeployError, DifferentBytesError
from ci.deploy.plan import ArtifactFolder, PackageFile, Plan
from ci.deploy.project import ask
from ci.deploy.publisher import Item, job_of, some_of
from tritonserver_jax.artifacts.checksums import sha256_of

__all__ = ["PackagePublisher", "download_package", "published_files"]

_SERVICE = "package registry"


def published_files(project: Project, package: str, version: str) -> dict[str, str]:
    """Return the SHA-256 of each file of a package; none where there is no such package.

    Raises:
        DeployError: GitLab does not say, or has two files of the same name.
    """

    def look() -> dict[str, str]:
        found: dict[str, str] = {}
        # The name is looked for as a part of names.
        for one in project.packages.list(
            package_name=package, package_type="generic", get_all=True
        ):
            if (one.name, one.version) != (package, version):
                continue
            for file in one.package_files.list(get_all=True):
                name, digest = str(file.file_name), str(file.file_sha256)
                if found.setdefault(name, digest) != digest:
                    raise DeployError(
                        f"{package} {version}: expected one file {name} in the package registry, "
                        f"got two with the SHA-256 {found[name]} and {digest}; somebody uploaded "
                        "the second by hand: delete the wrong one"
                    )
        return found

    return ask(f"{_SERVICE}: {package} {version}", look)


def download_package(project: Project, folder: ArtifactFolder) -> None:
    """Download every file of a package to where its folder is.

    Raises:
        DeployError: There is no such package, or a part of it, or GitLab does not give it.
    """
    names = published_files(project, folder.package, folder.version)
    if absent := [name for name in folder.required if name not in names]:
        found = f"{len(absent)} of them are missing: {some_of(absent)}" if names else "found none"
        raise DeployError(
            f"{folder.package} {folder.version}: expected {len(folder.required)} files in the "
            f"package registry, {found}. Has the job {job_of('packages')} ended well? Wait for it, "
            "or retry it, and then this one; by hand: ./ci/nox -s deploy -- packages"
        )
    folder.path.mkdir(parents=True)
    for name in sorted(names):
        path = folder.path / Path(name).name

        def fetch(name: str = name, path: Path = path) -> None:
            with path.open("wb") as file:
                project.generic_packages.download(
                    folder.package, folder.version, name, streamed=True, action=file.write
                )

        ask(f"{_SERVICE}: {folder.package}/{name}", fetch)


class PackagePublisher:
    """Publishes each folder of artifacts as a package."""

    part = "packages"

    def __init__(self, project: Project, plan: Plan) -> None:
        """Take what is needed to upload.

        Args:
            project: Whose package registry it is.
            plan: What is published.
        """
        self._project = project
        self._plan = plan

    def survey(self) -> list[Item]:
        """Look at the packages of this version."""
        return [item for folder in self._plan.folders for _, item in self._look(folder)]

    def publish(self) -> None:
        """Upload what is missing, and read back what is there then."""
        for folder in self._plan.folders:
            waiting = [file for file, item in self._look(folder) if not item.there]
            for file in waiting:
                self._upload(file)
            left = [item.name for _, item in self._look(folder) if not item.there]
            if left:
                raise DeployError(
                    f"{_SERVICE}: expected {len(folder.files)} files after the upload, "
                    f"{len(left)} are missing: {some_of(left)}; run it again"
                )
            print(
                f"{folder.package} {folder.version}: {len(waiting)} files uploaded, "
                f"{len(folder.files) - len(waiting)} there already",
                flush=True,
            )

    def _look(self, folder: ArtifactFolder) -> list[tuple[PackageFile, Item]]:
        published = published_files(self._project, folder.package, folder.version)
        found = []
        for file in folder.files:
            ours, theirs = sha256_of(file.path), published.pop(file.name, None)
            name = f"{file.package}/{folder.version}/{file.name}"
            if theirs not in (None, ours):
                raise DifferentBytesError(name, f"SHA-256 {theirs}", f"SHA-256 {ours}")
            found.append((file, Item(name, ours, there=theirs is not None)))
        if published:
            raise DeployError(
                f"{folder.package} {folder.version}: expected only the files of {folder.path} in "
                f"the package registry, got {some_of(sorted(published))} as well; delete what "
                "does not belong there"
            )
        return found

    def _upload(self, file: PackageFile) -> None:
        version = self._plan.version
        name = f"{file.package}/{version}/{file.name}"
        expected = sha256_of(file.path)

        def send() -> None:
            # An answer may have been lost, and the file be there.
            if published_files(self._project, file.package, version).get(file.name) == expected:
                return
            try:
                self._project.generic_packages.upload(
                    package_name=file.package,
                    package_version=version,
                    file_name=file.name,
                    path=file.path,
                )
            except GitlabError as error:
                there = published_files(self._project, file.package, version).get(file.name)
                if there == expected:
                    return
                if there is not None:
                    raise DifferentBytesError(
                        name, f"SHA-256 {there}", f"SHA-256 {expected}"
                    ) from error
                raise

        ask(f"{_SERVICE}: {name}", send)
