# SPDX-License-Identifier: Apache-2.0
"""What the images of every release are: names, tags, arguments and labels, from ``releases.toml``.

Nothing is built here. `ci.images` builds what a plan says, and the files that others read are
written from plans: ``docker-bake.hcl`` for `docker buildx bake`, ``python-downloads.json`` for uv,
and ``.devcontainer/devcontainer.json`` for engineers. ``python -m ci.image_plan`` writes them,
``--check`` says which are out of date.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ci.derived import outdated_files, write_or_check
from ci.locks import ACCELERATORS, accelerator_lock_path
from ci.process import ROOT
from tritonserver_jax import __version__
from tritonserver_jax.artifacts import layout
from tritonserver_jax.releases import DEFAULT_RELEASE, Release, find_release, load_releases

__all__ = [
    "CPU",
    "DOCKERFILE",
    "NAME",
    "ImagePlan",
    "PlanError",
    "outdated",
    "plan_image",
    "variants",
]

#: The name of the images; before it comes a registry, after it a tag.
NAME: Final = "tritonserver-jax"
CPU: Final = "cpu"
SOURCE_URL: Final = "https://gitlab.com/tritonserver-jax/tritonserver-jax"

DOCKER: Final = ROOT / "packaging" / "docker"
DOCKERFILE: Final = DOCKER / "Dockerfile"
BAKE: Final = DOCKER / "docker-bake.hcl"
DOWNLOADS: Final = DOCKER / "python-downloads.json"
DEVCONTAINER: Final = ROOT / ".devcontainer" / "devcontainer.json"

_PYTHONS_FOLDER: Final = "/opt/tritonserver/backends/jax/python"


class PlanError(ValueError):
    """An image was asked for that there is not."""


@dataclass(frozen=True, slots=True)
class ImagePlan:
    """One image.

    Attributes:
        release: The Triton release.
        variant: ``cpu``, or what JAX calls the CUDA that it is for: ``cuda12``, ``cuda13``.
        base_image: What it is made from, as a builder is told.
        python_source: ``base`` or ``standalone``; see ``releases.toml``.
        python_version: ``3.12.14`` of a standalone one, ``3.12`` of the base's.
        base_digest: The digest of the base, where it is known.
    """

    release: Release
    variant: str
    base_image: str
    python_source: str
    python_version: str
    base_digest: str = ""

    @property
    def python_minor(self) -> str:
        """The minor version of the backend's Python, as in ``3.12``."""
        return ".".join(self.python_version.split(".")[:2])

    @property
    def python(self) -> str:
        """The backend's Python in the image."""
        if self.python_source == "base":
            return f"/usr/bin/python{self.python_minor}"
        folder = f"{_PYTHONS_FOLDER}/cpython-{self.python_version}-linux-x86_64-gnu"
        return f"{folder}/bin/python{self.python_minor}"

    @property
    def requirements(self) -> str:
        """The lock of what the variant adds to the environment; empty when nothing."""
        if self.variant == CPU:
            return ""
        return accelerator_lock_path(self.variant, self.python_minor).name

    @property
    def target(self) -> str:
        """What docker-bake.hcl calls it."""
        return f"{self.variant}-{self.release.release.replace('.', '-')}"

    @property
    def tags(self) -> tuple[str, str]:
        """Its tag for good, and the one that moves on to the next project version."""
        suffix = "" if self.variant == CPU else f"-{self.variant}"
        release = self.release.release
        return (f"{__version__}-triton{release}{suffix}", f"{release}{suffix}")

    @property
    def environment_tag(self) -> str:
        """The tag of the image that engineers build in."""
        return f"{__version__}-triton{self.release.release}-build"

    def on(self, base_image: str, *, python: str | None = None, digest: str = "") -> ImagePlan:
        """Return the plan for another base.

        Args:
            base_image: Its name.
            python: The minor version of the base's own Python, when that is to be used.
            digest: Its digest.
        """
        changed = replace(self, base_image=base_image, base_digest=digest)
        if python is None:
            return changed
        return replace(changed, python_source="base", python_version=python)

    def arguments(self) -> dict[str, str]:
        """What the Dockerfile is given that does not depend on the source."""
        return {
            "BASE_DIGEST": self.base_digest,
            "BASE_IMAGE": self.base_image,
            "BASE_NAME": self.base_image.partition("@")[0],
            "PROJECT_VERSION": __version__,
            "PYTHON": self.python,
            "PYTHON_SOURCE": self.python_source,
            "PYTHON_VERSION": self.python_version,
            "REQUIREMENTS": self.requirements,
            "SERVER_VERSION": self.release.server_version,
            "SOURCE_URL": SOURCE_URL,
            "TARBALL": layout.tarball_name(__version__, self.release.release),
            "TRITON_RELEASE": self.release.release,
            "VARIANT": self.variant,
        }

    def source_arguments(self, commit: str, epoch: int) -> dict[str, str]:
        """What it is given that depends on the source."""
        created = datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {
            "CREATED": created,
            "SOURCE_COMMIT": commit,
            "SOURCE_DATE_EPOCH": str(epoch),
        }

    def labels(self, commit: str, epoch: int) -> dict[str, str]:
        """What the image has to say of itself, whatever built it."""
        values = {**self.arguments(), **self.source_arguments(commit, epoch)}
        text = DOCKERFILE.read_text(encoding="utf-8")
        block = text[text.index("\nLABEL ") :].split("\n\n", 1)[0]
        pairs = re.findall(r'([a-z.-]+)="([^"]*)"', block)
        return {
            key: re.sub(r"\$\{(\w+)\}", lambda match: values[match[1]], value)
            for key, value in pairs
        }


def variants(release: Release) -> tuple[str, ...]:
    """Return the variants of a release: a GPU's where it is known which CUDA it has."""
    accelerator = f"cuda{(release.cuda or '').split('.')[0]}"
    return (CPU, accelerator) if accelerator in ACCELERATORS else (CPU,)


def plan_image(release: Release, variant: str = CPU) -> ImagePlan:
    """Return the plan of one image, on the release's own image.

    Raises:
        PlanError: The release has no such variant.
    """
    known = variants(release)
    if variant not in known:
        cuda = f"its CUDA is {release.cuda}" if release.cuda else "its CUDA is not known"
        raise PlanError(
            f"variant: expected {' or '.join(known)} for release {release.release} ({cuda}), "
            f"got {variant!r}"
        )
    python = release.image_python
    version = python.version
    if python.source == "base":
        version = ".".join(version.split(".")[:2])
    image = release.image
    if release.image_digest:
        image = f"{image}@{release.image_digest}"
    return ImagePlan(
        release=release,
        variant=variant,
        base_image=image,
        python_source=python.source,
        python_version=version,
        base_digest=release.image_digest or "",
    )


def every_plan() -> list[ImagePlan]:
    """Return the plans of all images, those of the newest release last."""
    return [
        plan_image(release, variant)
        for release in load_releases().values()
        for variant in variants(release)
    ]


_BAKE_HEAD: Final = """\
# SPDX-License-Identifier: Apache-2.0
# The images of every release, for docker buildx bake. Made from releases.toml by
# `python -m ci.image_plan`; do not edit.
#
#   docker buildx bake --file packaging/docker/docker-bake.hcl artifacts-24-10   # to dist/24.10
#   docker buildx bake --file packaging/docker/docker-bake.hcl cpu-24-10
#
# `python -m ci.images build 24.10` builds the same.

variable "REGISTRY" {
  default = ""
}

variable "SOURCE_COMMIT" {
  default = ""
}

variable "SOURCE_DATE_EPOCH" {
  default = "1704067200"
}

variable "CREATED" {
  default = "2024-01-01T00:00:00Z"
}

target "_all" {
  context    = "."
  dockerfile = "packaging/docker/Dockerfile"
  platforms  = ["linux/amd64"]
  args = {
    CREATED           = CREATED
    SOURCE_COMMIT     = SOURCE_COMMIT
    SOURCE_DATE_EPOCH = SOURCE_DATE_EPOCH
  }
}
"""


def bake_file() -> str:
    """Return docker-bake.hcl."""
    plans = every_plan()
    parts = [_BAKE_HEAD]
    groups: dict[str, list[str]] = {"default": [plan_image(find_release(DEFAULT_RELEASE)).target]}
    for plan in plans:
        groups.setdefault(plan.variant, []).append(plan.target)
    for name, targets in groups.items():
        listed = "".join(f'    "{target}",\n' for target in targets)
        parts.append(f'group "{name}" {{\n  targets = [\n{listed}  ]\n}}\n')
    for plan in plans:
        parts.append(_bake_target(plan.target, plan, "runtime", plan.tags))
        if plan.variant == CPU:
            name = plan.release.release.replace(".", "-")
            parts.append(
                _bake_target(f"build-{name}", plan, "build-environment", (plan.environment_tag,))
            )
            parts.append(_bake_target(f"artifacts-{name}", plan, "artifacts", ()))
    return "\n".join(parts)


def _bake_target(name: str, plan: ImagePlan, stage: str, tags: Sequence[str]) -> str:
    arguments = plan.arguments()
    width = max(map(len, arguments))
    lines = [
        f'target "{name}" {{',
        '  inherits = ["_all"]',
        f'  target   = "{stage}"',
        "  args = {",
    ]
    lines += [f"    {key:{width}} = {json.dumps(value)}" for key, value in arguments.items()]
    lines.append("  }")
    if tags:
        listed = ", ".join(f'"${{REGISTRY}}{NAME}:{tag}"' for tag in tags)
        lines.append(f"  tags = [{listed}]")
    else:
        lines.append('  output = ["type=local,dest=dist"]')
    return "\n".join([*lines, "}", ""])


def downloads_file() -> str:
    """Return what uv is told of the Pythons that it may download."""
    pythons = {release.image_python for release in load_releases().values()}
    entries = {}
    for python in sorted(pythons, key=lambda one: one.version):
        if python.url is None:
            continue
        major, minor, patch = map(int, python.version.split("."))
        entries[f"cpython-{python.version}-linux-x86_64-gnu"] = {
            "name": "cpython",
            "arch": {"family": "x86_64", "variant": None},
            "os": "linux",
            "libc": "gnu",
            "major": major,
            "minor": minor,
            "patch": patch,
            "prerelease": "",
            "url": python.url,
            "sha256": python.sha256,
            "variant": None,
            "build": None,
        }
    return json.dumps(entries, indent=2) + "\n"


def devcontainer_file() -> str:
    """Return the description of the container in which engineers work."""
    plan = plan_image(find_release(DEFAULT_RELEASE))
    arguments = plan.arguments()
    needed = ("BASE_IMAGE", "PYTHON", "PYTHON_SOURCE", "PYTHON_VERSION")
    content = {
        "name": f"{NAME} on Triton {plan.release.release}",
        "build": {
            "context": "..",
            "dockerfile": "../packaging/docker/Dockerfile",
            "target": "build-environment",
            "args": {key: arguments[key] for key in needed},
        },
        "overrideCommand": True,
        "remoteUser": "triton-server",
        "updateRemoteUserUID": True,
        "postCreateCommand": ["./ci/nox", "-s", "hooks"],
        "customizations": {
            "vscode": {
                "extensions": [
                    "charliermarsh.ruff",
                    "ms-python.mypy-type-checker",
                    "ms-python.python",
                    "llvm-vs-code-extensions.vscode-clangd",
                ]
            }
        },
    }
    head = "// Made from releases.toml by `python -m ci.image_plan`; do not edit.\n"
    return head + json.dumps(content, indent=2) + "\n"


FILES: Final[Mapping[Path, Callable[[], str]]] = {
    BAKE: bake_file,
    DOWNLOADS: downloads_file,
    DEVCONTAINER: devcontainer_file,
}


def outdated(*, write: bool = False) -> list[Path]:
    """Return the files that are not what they should be; written anew if asked for."""
    return outdated_files(FILES, write=write)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    return write_or_check(
        arguments,
        program="python -m ci.image_plan",
        description=__doc__,
        outdated=lambda write: outdated(write=write),
        difference="these differ from releases.toml",
    )


if __name__ == "__main__":
    sys.exit(main())
