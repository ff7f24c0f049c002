# SPDX-License-Identifier: Apache-2.0
"""What is checked before JAX is imported, because it would be too late afterwards."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import metadata

from tritonserver_jax.runtime.errors import Code, refuse

_DISTRIBUTION = "tritonserver-jax"
_REQUIREMENT = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)\s*(?P<range>[<>=!~][^;]*)?")
_CLAUSE = re.compile(r"\s*(>=|<)\s*([0-9.]+)\s*")
_FLAGS_TIMEOUT = 60


def _numbers(version: str) -> tuple[int, ...]:
    """The release part of a version, comparable: 0.7.2.dev1 is 0.7.2, and 0.7 is 0.7.0."""
    found = re.match(r"\d+(\.\d+)*", version)
    parts = [int(part) for part in found[0].split(".")] if found else [0]
    return tuple(parts + [0] * (4 - len(parts)))


def needed_jax() -> str:
    """The versions of JAX that the backend works with, as its own package declares them."""
    try:
        requirements = metadata.requires(_DISTRIBUTION) or []
    except metadata.PackageNotFoundError:  # run from a checkout
        return ""
    for requirement in requirements:
        match = _REQUIREMENT.match(requirement)
        if match and match["name"] == "jax":
            return (match["range"] or "").strip()
    return ""


def check_versions() -> None:
    """That the environment's JAX is one that the backend works with.

    `setup_env.sh` installs no other; an environment that somebody made or changed may have one.

    Raises:
        BackendError: UNAVAILABLE naming both versions.
    """
    needed = needed_jax()
    has = metadata.version("jax")
    for operator, bound in _CLAUSE.findall(needed):
        at_least = _numbers(has) >= _numbers(bound)
        if at_least != (operator == ">="):
            refuse(
                f"the Python environment {sys.prefix} has JAX {has}, but the jax backend needs "
                f"jax{needed}; make the environment anew with scripts/setup_env.sh",
                Code.UNAVAILABLE,
            )


def check_xla_flags() -> None:
    """That XLA understands the XLA_FLAGS of the server's environment.

    It ends the process over a flag that it does not know, which here would be the server. So
    another process is asked first, and only where there are flags.

    Raises:
        BackendError: INVALID_ARG with what XLA says of the flags.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if not flags.strip():
        return
    # On the CPU: what is asked is about the flags, and not to take memory of a GPU.
    program = "import jax; jax.config.update('jax_platforms', 'cpu'); jax.devices()"
    done = subprocess.run(
        [sys.executable, "-I", "-c", program],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_FLAGS_TIMEOUT,
        check=False,
    )
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        said = next((line for line in lines if "XLA_FLAGS" in line), lines[-1] if lines else "")
        refuse(
            f"XLA refuses the XLA_FLAGS of the server's environment, {flags!r}: "
            f"{said.rpartition('] ')[2] or f'exit status {done.returncode}'}; correct them, or set "
            "flags of one model by its parameter 'xla_flags'"
        )


def environment_flags() -> dict[str, str]:
    """The flags in XLA_FLAGS of the server's environment, by name."""
    flags = {}
    for part in os.environ.get("XLA_FLAGS", "").split():
        name, _, value = part.removeprefix("--").partition("=")
        flags[name] = value
    return flags
