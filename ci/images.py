# SPDX-License-Identifier: Apache-2.0
"""Builds the images, and says of each what is in it and how large it is.

``python -m ci.images build 24.10`` takes the artifact in ``dist/24.10``, which the tests used, and
makes the image from it: on the release's own image, or with ``--stand-in`` on the one that
`ci.base_image` makes. Docker's BuildKit builds, or buildah. ``python -m ci.images --help`` shows
the other commands.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import docker
from docker.errors import DockerException, ImageNotFound

from ci import base_image, toolchain
from ci.artifacts import DIST
from ci.base_image import BASE_IMAGE_ERRORS, make_base_image, stand_in_name
from ci.build import BuildError, source_date_epoch
from ci.docker_engine import EngineError, buildkit_client, docker_engine
from ci.image_plan import CPU, DOCKERFILE, NAME, ImagePlan, PlanError, plan_image
from ci.image_sizes import Size, record_size
from ci.process import ROOT, fail, run
from ci.provenance import source_commit
from ci.sbom import normalise_sbom
from ci.toolchain import Requirement
from tritonserver_jax import __version__
from tritonserver_jax.artifacts import layout
from tritonserver_jax.releases import DEFAULT_RELEASE, Release, find_release

__all__ = [
    "IMAGE_ERRORS",
    "MOST_ADDED_BYTES",
    "ImageError",
    "build",
    "build_artifacts",
    "load_stand_in",
    "pull",
    "push",
    "size",
    "write_sbom",
]

#: What a `cpu` image may add to its base.
MOST_ADDED_BYTES: Final = 700_000_000
CERTIFICATES: Final = Path("/etc/ssl/certs/ca-certificates.crt")


class ImageError(RuntimeError):
    """An image could not be built, or is not what it should be."""


#: What may go wrong here, for those who report it in one line.
IMAGE_ERRORS: Final = (
    *BASE_IMAGE_ERRORS,
    BuildError,
    DockerException,
    EngineError,
    ImageError,
    PlanError,
)


def load_stand_in(client: docker.DockerClient, release: Release) -> str:
    """Make the stand-in of a release's image, load it into the engine, and return its name."""
    path = make_base_image(release)
    name = stand_in_name(release)
    identifier = base_image.image_id(path)
    with contextlib.suppress(ImageNotFound):
        if client.images.get(name).id == identifier:
            return name
    with path.open("rb") as file:
        client.images.load(file)
    return name


def on_stand_in(plan: ImagePlan, digest: str) -> ImagePlan:
    """Return a plan for the stand-in of its base, whose own Python is new enough."""
    return plan.on(stand_in_name(plan.release), python=base_image.PYTHON, digest=digest)


def certificates() -> Path | None:
    """Return the certificate authorities for a build: ``$SSL_CERT_FILE``, or the system's."""
    path = Path(os.environ.get("SSL_CERT_FILE") or CERTIFICATES)
    return path if path.is_file() else None


def _secrets() -> list[str]:
    found = {"ca": certificates()}
    if settings := os.environ.get("UV_CONFIG_FILE"):
        found["uv"] = Path(settings)
    return [f"--secret=id={name},src={path}" for name, path in found.items() if path is not None]


def _arguments(plan: ImagePlan) -> list[str]:
    commit, epoch = source_commit() or "", source_date_epoch()
    given = {**plan.arguments(), **plan.source_arguments(commit, epoch)}
    return [f"--build-arg={key}={value}" for key, value in given.items()]


def build(
    plan: ImagePlan,
    *,
    builder: str = "buildkit",
    target: str = "runtime",
    tags: Sequence[str] | None = None,
    cache: bool = True,
) -> str:
    """Build one image from the artifact in ``dist/<release>``.

    Args:
        plan: The image.
        builder: ``buildkit`` or ``buildah``.
        target: The stage of the Dockerfile.
        tags: Its names; by default those of the plan.
        cache: Whether what was built before may be used.

    Returns:
        Its first name.

    Raises:
        ImageError: There is no artifact.
        CommandError: The builder failed; its output says why.
    """
    names = [f"{NAME}:{tag}" for tag in plan.tags] if tags is None else list(tags)
    tarball = DIST / plan.release.release / layout.tarball_name(__version__, plan.release.release)
    if target == "runtime" and not tarball.is_file():
        raise ImageError(
            f"{tarball}: expected the artifact that the image is made from, found none; "
            f"run ./ci/nox -s package-{plan.release.release}"
        )
    command = [
        *_builder(builder),
        f"--file={DOCKERFILE.relative_to(ROOT)}",
        f"--target={target}",
        *_secrets(),
        *_arguments(plan),
        *(f"--tag={name}" for name in names),
    ]
    if not cache:
        command.append("--no-cache")
    _run_builder(builder, [*command, "."])
    return names[0]


def build_artifacts(plan: ImagePlan, output: Path) -> None:
    """Compile in the release's own image, against its headers, and leave the artifacts.

    Args:
        plan: The image whose base is compiled in.
        output: Where they go, in a folder per release.
    """
    command = [
        *_builder("buildkit"),
        f"--file={DOCKERFILE.relative_to(ROOT)}",
        "--target=artifacts",
        *_secrets(),
        *_arguments(plan),
        f"--output=type=local,dest={output}",
    ]
    _run_builder("buildkit", [*command, "."])


def build_tools(builder: str) -> None:
    """Make sure that a builder is there.

    Raises:
        ToolchainError: It is not, and cannot be installed from here.
    """
    if builder == "buildah":
        needed = Requirement("buildah", "any", "buildah", lambda: shutil.which("buildah"))
        toolchain.ensure([needed])


def _builder(name: str) -> list[str]:
    build_tools(name)
    if name == "buildah":
        # Everything is laid in one time, which makes the layers the same in every build.
        stamp = f"--timestamp={source_date_epoch()}"
        return ["buildah", "bud", "--isolation=chroot", "--format=docker", "--layers=false", stamp]
    return [*buildkit_client(), "--progress=plain"]


def _run_builder(name: str, command: Sequence[str]) -> None:
    environment = {**os.environ, "BUILDKIT_PROGRESS": "plain"}
    if name == "buildkit":
        environment["DOCKER_BUILDKIT"] = "1"
    run(command, env=environment)


def size(client: docker.DockerClient, image: str, base: str) -> Size:
    """Measure an image beside its base."""
    sizes = [int(client.images.get(name).attrs["Size"]) for name in (image, base)]
    return Size(*sizes)


def write_sbom(image: str, output: Path) -> None:
    """Write what is in an image, in CycloneDX; the same image gives the same bytes.

    Args:
        image: An image of the engine.
        output: The file.

    Raises:
        CommandError: syft failed; it says why.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "SYFT_CHECK_FOR_APP_UPDATE": "false"}
    with tempfile.TemporaryDirectory(dir=output.parent) as scratch:
        fresh = Path(scratch, "sbom.json")
        run(
            ["syft", "scan", f"docker:{image}", "-q", "-o", f"cyclonedx-json={fresh}"],
            env=environment,
        )
        normalise_sbom(fresh, epoch=source_date_epoch())
        fresh.replace(output)


def push(
    client: docker.DockerClient,
    image: str,
    repository: str,
    tags: Sequence[str],
    *,
    password: Mapping[str, str] | None = None,
) -> str:
    """Push an image under some tags, and return its digest there.

    Args:
        client: Of the engine that has it.
        image: Its name there, or its id.
        repository: Where to, without a tag.
        tags: The tags, the moving ones last.
        password: ``username`` and ``password``; by default what `docker login` has left.

    Raises:
        ImageError: The registry refused it; the message is the registry's.
    """
    auth = None if password is None else dict(password)
    digests = set()
    for tag in tags:
        client.images.get(image).tag(repository, tag)
        for line in client.api.push(repository, tag, stream=True, decode=True, auth_config=auth):
            if "error" in line:
                raise ImageError(f"{repository}:{tag}: {line['error']}")
            if digest := line.get("aux", {}).get("Digest"):
                digests.add(digest)
    if len(digests) != 1:
        raise ImageError(f"{repository}: expected one digest for all tags, got {sorted(digests)}")
    return str(digests.pop())


def pull(
    client: docker.DockerClient,
    repository: str,
    digest: str,
    *,
    password: Mapping[str, str] | None = None,
) -> str:
    """Pull an image by its digest, and return the name it has then."""
    name = f"{repository}@{digest}"
    auth = None if password is None else dict(password)
    client.images.pull(repository, tag=digest, auth_config=auth)
    return name


@contextlib.contextmanager
def prepared(
    client: docker.DockerClient, release: Release, variant: str, *, stand_in: bool
) -> Iterator[ImagePlan]:
    """Give the plan of an image whose base the engine has, or can pull."""
    plan = plan_image(release, variant)
    if stand_in:
        name = load_stand_in(client, release)
        plan = on_stand_in(plan, str(client.images.get(name).id))
    yield plan


def check_size(plan: ImagePlan, measured: Size) -> None:
    """Refuse a `cpu` image that adds too much.

    Raises:
        ImageError: It does.
    """
    if plan.variant == CPU and measured.added > MOST_ADDED_BYTES:
        raise ImageError(
            f"{plan.tags[0]}: expected at most {MOST_ADDED_BYTES / 1e6:.0f} MB beside its base, "
            f"got {measured.added / 1e6:.0f} MB; see what is large in its env: "
            "du -sm /opt/tritonserver/backends/jax/env/lib/python3*/site-packages/*"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m ci.images", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    builds = {
        "build": "build the image of dist/<release>, and show its size",
        "environment": "build the image in which engineers work",
        "artifacts": "compile in the release's image, into --output",
    }
    for name, text in builds.items():
        command = commands.add_parser(name, help=text)
        command.add_argument("release", nargs="?", default=DEFAULT_RELEASE)
        command.add_argument("--variant", default=CPU)
        command.add_argument("--stand-in", action="store_true", help="on ci.base_image's image")
        if name == "build":
            command.add_argument("--builder", choices=["buildkit", "buildah"], default="buildkit")
            command.add_argument("--no-cache", action="store_true")
            command.add_argument("--record", action="store_true", help="keep the size for the docs")
            command.add_argument("--sbom", type=Path, help="also write what is in it, CycloneDX")
            command.add_argument(
                "--layers", type=Path, help="also write their digests, a line each"
            )
        if name == "artifacts":
            command.add_argument("--output", type=Path, default=DIST)
    command = commands.add_parser("push", help="push an image of the engine")
    command.add_argument("release", nargs="?", default=DEFAULT_RELEASE)
    command.add_argument("--variant", default=CPU)
    command.add_argument("--repository", required=True)
    options = parser.parse_args(arguments)
    try:
        with docker_engine() as client:
            _command(client, options)
    except IMAGE_ERRORS as error:
        return fail(error)
    return 0


def _command(client: docker.DockerClient, options: argparse.Namespace) -> None:
    release = find_release(options.release)
    if options.command == "push":
        plan = plan_image(release, options.variant)
        digest = push(client, f"{NAME}:{plan.tags[0]}", options.repository, plan.tags)
        print(f"{options.repository}@{digest}")
        return
    with prepared(client, release, options.variant, stand_in=options.stand_in) as plan:
        if options.command == "environment":
            tag = f"{NAME}:{plan.environment_tag}"
            print(build(plan, target="build-environment", tags=[tag]))
        elif options.command == "artifacts":
            build_artifacts(plan, options.output)
        else:
            name = build(plan, builder=options.builder, cache=not options.no_cache)
            if options.builder == "buildah":
                print(f"{name}, in buildah's own storage")
                return
            measured = size(client, name, plan.base_image)
            print(f"{name}: {measured.image / 1e6:.0f} MB, {measured.added / 1e6:.0f} of them ours")
            check_size(plan, measured)
            if options.record:
                record_size(plan.tags[1], plan.base_image, measured)
            if options.sbom:
                write_sbom(name, options.sbom)
            if options.layers:
                layers: list[str] = client.images.get(name).attrs["RootFS"]["Layers"]
                options.layers.write_text("".join(f"{one}\n" for one in layers), encoding="ascii")


if __name__ == "__main__":
    sys.exit(main())
