# SPDX-License-Identifier: Apache-2.0
"""The Python that a command runs in, for commands that need JAX."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any, Final

import typer

from tritonserver_jax import __version__
from tritonserver_jax.cli.command import CommandFailedError, UsageError

__all__ = ["EnvOption", "go_where_jax_is"]

#: Which Python runs the command.
EnvOption: Final[Any] = typer.Option(
    "--env",
    help="A Python environment to run this command in, such as that of an installed backend, "
    "backends/jax/env. Default: the Python that runs this.",
    metavar="DIR",
    show_default=False,
)


def go_where_jax_is(env: Path | None) -> None:
    """Go on in the Python of an environment, or in this one where it has JAX.

    Args:
        env: The environment that was named; this process becomes the command in its Python.

    Raises:
        UsageError: It is no environment with JAX, or has another version of this package.
        CommandFailedError: None was named, and this Python has no JAX.
    """
    if env is None:
        if importlib.util.find_spec("jax") is None:
            raise _no_jax()
        return
    if env.resolve() == Path(sys.prefix).resolve():
        return
    python = env / "bin" / "python"
    if not _has_jax(env) or not python.exists():
        raise UsageError(
            f"--env: expected a Python environment with JAX, found none in {env}",
            "it is jax/env in the backend directory; `tritonserver-jax install --with-env` makes "
            "it",
        )
    version = _version_in(env)
    if version != __version__:
        # What it does not know would end in words about its own code, or be done otherwise.
        raise UsageError(
            f"--env: expected an environment with tritonserver-jax {__version__}, as this command "
            f"is, found {version or 'none'} in {env}",
            f"make it anew with `tritonserver-jax install --with-env` of {__version__}"
            + (f", or install {version} where this command is" if version else ""),
        )
    words = [*_without_env(sys.argv[1:])]
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(python, [str(python), "-m", "tritonserver_jax.cli", *words])  # noqa: S606


def _has_jax(env: Path) -> bool:
    return any(env.glob("lib/python3.*/site-packages/jax/__init__.py"))


def _version_in(env: Path) -> str | None:
    """Return which version of this package an environment has."""
    places = map(str, env.glob("lib/python3.*/site-packages"))
    found = importlib.metadata.distributions(name="tritonserver-jax", path=[*places])
    return next((one.version for one in found), None)


def _without_env(words: list[str]) -> list[str]:
    """Leave the option out of a command line."""
    kept: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word == "--env":
            skip = True
        elif not word.startswith("--env="):
            kept.append(word)
    return kept


def _no_jax() -> CommandFailedError:
    from tritonserver_jax.diagnosis import find_place

    message = f"this Python has no JAX: {sys.executable}"
    environment = find_place(None, None).environment
    if environment is not None and _has_jax(environment):
        return CommandFailedError(message, f"add --env {environment}, which has it")
    return CommandFailedError(
        message,
        "install it there (pip install jax flax); or name the backend's environment with --env, "
        "which `tritonserver-jax install --with-env` makes",
    )
