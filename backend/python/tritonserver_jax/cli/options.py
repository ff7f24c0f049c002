# SPDX-License-Identifier: Apache-2.0
"""Options that several commands have, so that they are the same everywhere."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import typer

from tritonserver_jax.cli.command import UsageError, next_step_of
from tritonserver_jax.variables import ARTIFACT

__all__ = [
    "Artifact",
    "ArtifactOption",
    "BackendsOption",
    "InputsOption",
    "ModelOption",
    "ModelsOption",
    "ProtocolOption",
    "PublicKey",
    "PythonOption",
    "ReleaseOption",
    "Repository",
    "RowsOption",
    "ServedReleaseOption",
    "ServerOption",
    "ShapesOption",
    "check_backends",
    "check_name",
    "check_protocol",
    "check_python",
    "check_release",
    "check_repository",
    "check_sources",
    "named_model",
    "refuse_model",
    "shapes_of",
]

_ARTIFACT_HELP: Final = (
    "The artifact: a tritonserver-jax-*.tar.gz, a folder that holds one, or a URL that ends in "
    f"#sha256= and its hash. Default: ${ARTIFACT}, else what is in ./dist."
)

#: An artifact as an argument.
Artifact: Final[Any] = typer.Argument(metavar="ARTIFACT", help=_ARTIFACT_HELP, show_default=False)

#: An artifact as an option.
ArtifactOption: Final[Any] = typer.Option(
    "--artifact", metavar="ARTIFACT", help=_ARTIFACT_HELP, show_default=False
)

#: A model repository as an argument.
Repository: Final[Any] = typer.Argument(
    metavar="REPOSITORY", help="The folder that holds the models.", show_default=False
)


def _models(context: typer.Context, incomplete: str) -> list[str]:
    """Return what the shell can complete a model to."""
    # An option without its value, as it is now, keeps arguments from being told apart.
    repository = context.params.get("repository") or next(iter(context.args), None)
    if not repository or not Path(repository).is_dir():
        return []
    from tritonserver_jax.checking.repository import find_models

    return [name for name in find_models(Path(repository)) if name.startswith(incomplete)]


#: Models of a repository.
ModelsOption: Final[Any] = typer.Option(
    "--model",
    help="A model to look at; once for each. Default: all.",
    metavar="NAME",
    show_default=False,
    autocompletion=_models,
)

#: A model of a repository.
ModelOption: Final[Any] = typer.Option(
    "--model",
    help="The model. Default: the only one.",
    metavar="NAME",
    show_default=False,
    autocompletion=_models,
)

#: The inputs of a model that is made.
InputsOption: Final[Any] = typer.Option(
    "--input",
    help="An input, without the batch dimension, such as IMAGE:FP32[8,8,1]; -1 for a dimension "
    "that varies; once for each, in their order.",
    metavar="NAME:TYPE[DIMS]",
    show_default=False,
)

# Of the commands that send requests.
ProtocolOption: Final[Any] = typer.Option(
    help="By which they come: grpc, http, or shm for shared memory.", metavar="NAME"
)
RowsOption: Final[Any] = typer.Option(help="Rows of each request.", min=1)
ShapesOption: Final[Any] = typer.Option(
    "--shape",
    help="The shape to send of an input with dims that vary; once for each.",
    metavar="INPUT:DIMS",
)

# Of the commands that serve: which backend, on which server, with which Python.
BackendsOption: Final[Any] = typer.Option(
    help="A backend directory in which the backend is installed, in place of an artifact.",
    metavar="DIR",
)
ServerOption: Final[Any] = typer.Option(
    help="The folder of an installed server, as /opt/tritonserver. Default: one of the release "
    "is downloaded once.",
    metavar="DIR",
)
PythonOption: Final[Any] = typer.Option(
    help="The Python of the backend's environment; default: the first suitable one.",
    metavar="PATH",
)

#: The key that has to have signed something.
PublicKey: Final[Any] = typer.Option(
    help="A PEM file with the public key that has to have signed it.",
    metavar="FILE",
    exists=True,
    dir_okay=False,
)


def _releases(incomplete: str) -> list[str]:
    """Return what the shell can complete a release to."""
    from tritonserver_jax.releases import load_releases

    return [name for name in load_releases() if name.startswith(incomplete)]


def ReleaseOption(text: str) -> Any:  # noqa: N802  what an option is declared with
    """Return the option ``--release``.

    Args:
        text: What it is for.
    """
    return typer.Option("--release", help=text, metavar="RELEASE", autocompletion=_releases)


ServedReleaseOption: Final[Any] = ReleaseOption(
    "The release of the server. Default: that of the backend or artifact."
)


def check_repository(repository: Path) -> None:
    """Refuse a model repository that is not there.

    Raises:
        UsageError: It is no folder.
    """
    if not repository.is_dir():
        raise UsageError(
            f"{repository}: expected a folder that holds models, found none",
            "name the folder in which the folders of the models are",
        )


def refuse_model(folder: Path, verb: str) -> None:
    """Refuse a model where the folder that holds models is meant.

    Args:
        folder: That was named.
        verb: What is to be done with it.

    Raises:
        UsageError: Says which folder is meant.
    """
    from tritonserver_jax.checking.repository import is_model

    if is_model(folder):
        raise UsageError(
            f"{folder}: expected a folder that holds models, got a model",
            f"{verb} the folder that it is in: {folder.resolve().parent}",
        )


def named_model(repository: Path, name: str | None) -> str:
    """Return the model that was named, or the only one.

    Raises:
        UsageError: It is not there, or none was named of several.
    """
    if name is None:
        models = sorted(path.parent.name for path in repository.glob("*/config.pbtxt"))
        if len(models) != 1:
            found = ", ".join(models) or "none"
            raise UsageError(f"{repository}: which model? found {found}", "name it with --model")
        return models[0]
    if not (repository / name).is_dir():
        there = ", ".join(sorted(one.name for one in repository.iterdir() if one.is_dir()))
        raise UsageError(
            f"--model: expected a model in {repository}, got {name}", f"there are {there or 'none'}"
        )
    return name


def check_name(model: str, protocol: str, *, load: bool) -> None:
    """Refuse a model by whose name a server could not be asked, before there is one.

    Args:
        model: Its name.
        protocol: By which requests come.
        load: Whether it has to be loaded, which goes by HTTP.

    Raises:
        UsageError: Says what a name may not have.
    """
    from tritonserver_jax.server.errors import ServerError
    from tritonserver_jax.server.model_paths import curl_takes, model_path

    if protocol == "http" and not curl_takes(model):
        raise UsageError(
            f"--protocol http: expected a model whose name goes into an address as it is, got "
            f"{model!r}",
            "measure it by gRPC, or rename its folder",
        )
    if not load:
        return
    try:
        model_path(model)
    except ServerError as error:
        raise UsageError(*next_step_of(str(error))) from error


def check_protocol(protocol: str) -> None:
    """Refuse a protocol that there is not.

    Raises:
        UsageError: Names those that there are.
    """
    if protocol not in ("grpc", "http", "shm"):
        raise UsageError(f"--protocol: expected grpc, http or shm, got {protocol!r}")


def shapes_of(given: Sequence[str]) -> dict[str, Sequence[int]]:
    """Return the shapes of ``--shape``, by input.

    Raises:
        UsageError: Shows how one is written.
    """
    shapes: dict[str, Sequence[int]] = {}
    for text in given:
        name, colon, dims = text.rpartition(":")
        sizes = dims.split(",")
        if not colon or not name or not all(size.isdigit() and int(size) > 0 for size in sizes):
            raise UsageError(f"--shape: expected INPUT:DIMS, such as X:3,224,224; got {text!r}")
        shapes[name] = [int(size) for size in sizes]
    return shapes


def check_release(release: str | None) -> None:
    """Refuse the name of a release that there is not.

    Raises:
        UsageError: It is unknown; says which are known.
    """
    from tritonserver_jax.releases import UnknownReleaseError, find_release

    if release is None:
        return
    try:
        find_release(release)
    except UnknownReleaseError as error:
        message, remedy = next_step_of(str(error.args[0]))
        raise UsageError(f"--{message}", remedy) from error


def check_python(python: str | None) -> None:
    """Refuse a Python that is not there.

    Raises:
        UsageError: No program has that name or path.
    """
    if python is not None and shutil.which(python) is None:
        raise UsageError(
            f"--python: expected a program, found none called {python}",
            "leave it out for the first suitable one, or give the path of a Python",
        )


def check_backends(folder: Path) -> None:
    """Refuse a folder that is no backend directory, but lies above or below one.

    Raises:
        UsageError: It is not there, is a backend's own folder or holds the backend directory; says
            which folder is meant.
    """
    if not folder.is_dir():
        raise UsageError(
            f"--backends: expected the server's backend directory, found no folder {folder}",
            "it is /opt/tritonserver/backends in a release image",
        )
    place = folder.resolve()
    own = any(place.glob("libtriton_*.so")) or (place / "BUILD_INFO.json").is_file()
    if own or (place.name, place.parent.name) == ("jax", "backends"):
        raise UsageError(
            f"--backends: expected the folder that holds the backends, got one backend's: {folder}",
            f"use --backends {place.parent}",
        )
    below = place / "backends"
    if below.is_dir() or (place / "bin" / "tritonserver").is_file():
        raise UsageError(
            f"--backends: expected the folder that holds the backends, got the server's: {folder}",
            f"use --backends {below}",
        )


def check_sources(
    *,
    release: str | None,
    artifact: str | None,
    backends: Path | None,
    server: Path | None,
    python: str | None,
) -> None:
    """Refuse to serve with what is not there, or with two backends.

    Raises:
        UsageError: Says what is expected, of which option or in which folder.
    """
    if backends is not None and artifact is not None:
        raise UsageError("--artifact and --backends: expected one of them", "leave one out")
    check_release(release)
    check_python(python)
    if backends is not None:
        check_backends(backends)
        if not (backends / "jax" / "libtriton_jax.so").is_file():
            raise UsageError(
                f"--backends: expected the backend in {backends / 'jax'}, found no "
                "libtriton_jax.so there",
                f"install it with `tritonserver-jax install --backends {backends} --with-env`",
            )
    if server is not None and not (server / "bin" / "tritonserver").is_file():
        raise UsageError(
            f"--server: expected a server, found no {server / 'bin' / 'tritonserver'}",
            "it is /opt/tritonserver in a release image; leave it out to have one downloaded",
        )
