# SPDX-License-Identifier: Apache-2.0
"""What a version consists of: every image and tag, every file, and every link of its release.

It follows from the images that are made, from the project version, and from `layout`, which names
the files of a folder of artifacts. Nothing is read from a folder but which of the signatures it
has. What is published has to be exactly this: `ci.deploy` publishes it, and
`ci.deploy.post_deploy` compares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ci.chart import NAME as CHART_NAME
from ci.deploy.published import PublishedNames
from ci.deploy.variables import ProjectVariables
from ci.image_plan import ImagePlan
from ci.selection import selected_plans
from tritonserver_jax import __version__
from tritonserver_jax.artifacts import layout

__all__ = [
    "PACKAGE",
    "PYTHON",
    "ArtifactFolder",
    "Link",
    "PackageFile",
    "Plan",
    "declare",
    "plan_of",
]

#: How the packages of the package registry begin; a release, or `PYTHON`, follows.
PACKAGE: Final = "tritonserver-jax"
#: The folder of the wheel and the sdist.
PYTHON: Final = "python"


@dataclass(frozen=True, slots=True)
class PackageFile:
    """A file of the package registry.

    Attributes:
        package: The package that it is in.
        path: Where it lies here.
    """

    package: str
    path: Path

    @property
    def name(self) -> str:
        """Its file name, here and there."""
        return self.path.name


@dataclass(frozen=True, slots=True)
class ArtifactFolder:
    """A folder of artifacts, which becomes one package of the package registry.

    Attributes:
        path: As in ``dist/24.10``.
        release: The Triton release; None for the wheel and the sdist.
        version: The project version.
    """

    path: Path
    release: str | None
    version: str

    @property
    def name(self) -> str:
        """What it is called beside the others: ``24.10`` or ``python``."""
        return self.release or PYTHON

    @property
    def package(self) -> str:
        """The package's name."""
        return f"{PACKAGE}-triton{self.release}" if self.release else f"{PACKAGE}-{PYTHON}"

    @property
    def artifacts(self) -> tuple[str, ...]:
        """The file names of what is released in it."""
        if self.release is None:
            return (layout.wheel_name(self.version), layout.sdist_name(self.version))
        return (layout.tarball_name(self.version, self.release),)

    @property
    def required(self) -> tuple[str, ...]:
        """The names of its files, but for signatures; those that others speak of come first."""
        sboms = [name + layout.SBOM_SUFFIX for name in self.artifacts]
        return (*self.artifacts, *sboms, layout.PROVENANCE, layout.LISTING, layout.CHECKSUMS)

    @property
    def signatures(self) -> tuple[str, ...]:
        """The names of the signatures that it has."""
        return tuple(name for name in layout.SIGNATURES if (self.path / name).is_file())

    @property
    def files(self) -> list[PackageFile]:
        """Its files, in the order in which they are published."""
        names = (*self.required, *self.signatures)
        return [PackageFile(self.package, self.path / name) for name in names]


@dataclass(frozen=True, slots=True)
class Link:
    """A link of the GitLab release.

    Attributes:
        name: What people see, and the only one of this name.
        url: Where it leads.
        kind: GitLab's ``link_type``.
        path: The end of a URL that stays the same wherever the file is kept; None for none.
    """

    name: str
    url: str
    kind: str
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What one version consists of.

    Attributes:
        version: The project version.
        images: The images.
        folders: The folders of artifacts: that of Python last, the others as in releases.toml.
        chart: The name of the Helm chart; None while the project has none.
    """

    version: str
    images: tuple[ImagePlan, ...]
    folders: tuple[ArtifactFolder, ...]
    chart: str | None

    @property
    def tag(self) -> str:
        """The tag of the source."""
        return f"v{self.version}"

    @property
    def files(self) -> list[PackageFile]:
        """Every file of the package registry."""
        return [file for folder in self.folders for file in folder.files]

    @property
    def distributions(self) -> list[Path]:
        """The files of the package index: they are in the package registry as well."""
        python = next(folder for folder in self.folders if folder.release is None)
        return [python.path / name for name in python.artifacts]

    def chart_name(self, repository: str) -> str | None:
        """Return where the chart is, beside the repository of the images."""
        return None if self.chart is None else f"{repository}/charts/{self.chart}:{self.version}"

    def links(self, project: ProjectVariables, simple_url: str) -> list[Link]:
        """Return the links of the release.

        Args:
            project: The project.
            simple_url: Where the package index is read.
        """
        found = [
            Link(
                name=f"{folder.name}/{file.name}",
                url=project.package_url(file.package, self.version, file.name),
                kind="package",
                path=f"/{folder.name}/{file.name}",
            )
            for folder in self.folders
            for file in folder.files
        ]
        # GitLab has no page for a single tag, and wants the URL of each link to be its own.
        page = f"{project.project_url}/container_registry"
        for image in self.images:
            found += [Link(f"image {tag}", f"{page}#{tag}", "image") for tag in image.tags]
        if self.chart is not None:
            found.append(Link(f"chart {self.version}", f"{page}#chart-{self.version}", "other"))
        index = f"{simple_url.rstrip('/')}/{PACKAGE}/"
        return [*found, Link("Python package index", index, "other")]

    def names(self, repository: str, project: ProjectVariables, simple_url: str) -> PublishedNames:
        """Return the names of all that is published.

        Args:
            repository: Of the images in the container registry.
            project: The project.
            simple_url: Where the package index is read.
        """
        images = {f"{repository}:{tag}" for image in self.images for tag in image.tags}
        if (chart := self.chart_name(repository)) is not None:
            images.add(chart)
        return PublishedNames(
            images=frozenset(images),
            packages=frozenset(f"{one.package}/{self.version}/{one.name}" for one in self.files),
            distributions=frozenset(path.name for path in self.distributions),
            links=frozenset(f"{self.tag}: {link.name}" for link in self.links(project, simple_url)),
        )


def declare(dist: Path, images: Sequence[ImagePlan], *, chart: str | None = None) -> Plan:
    """Declare what this version consists of.

    Args:
        dist: Where the folders of artifacts are, or will be.
        images: The images; each release of one has a folder of artifacts.
        chart: The name of the Helm chart, if there is one.
    """
    releases = dict.fromkeys(image.release.release for image in images)
    folders = [ArtifactFolder(dist / name, name, __version__) for name in releases]
    folders.append(ArtifactFolder(dist / PYTHON, None, __version__))
    return Plan(__version__, tuple(images), tuple(folders), chart)


def plan_of(variables: Mapping[str, str], dist: Path) -> Plan:
    """Declare what this version consists of, as the variables of a pipeline say.

    Args:
        variables: Those of `ci.selection`.
        dist: Where the folders of artifacts are, or will be.

    Raises:
        SelectionError: They name something that there is not.
    """
    return declare(dist, selected_plans(variables), chart=CHART_NAME)
