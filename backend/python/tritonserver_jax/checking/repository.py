# SPDX-License-Identifier: Apache-2.0
"""The models of a repository, and which versions of one a server would load."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

__all__ = ["BACKEND", "find_models", "find_versions", "is_model", "served_versions"]

#: The name of this backend in a configuration.
BACKEND: Final = "jax"


def is_model(folder: Path) -> bool:
    """Whether a folder is a model, and not a repository of them."""
    return (folder / "config.pbtxt").is_file() or any(
        (folder / str(version) / name).exists()
        for version in find_versions(folder)
        for name in ("model.py", "model.jaxexport", "model.jax")
    )


def find_models(repository: Path) -> list[str]:
    """Return the models of a repository: its folders, but hidden ones and Python's own."""
    return sorted(
        path.name
        for path in repository.iterdir()
        if path.is_dir() and not path.name.startswith((".", "__"))
    )


def find_versions(model: Path) -> list[int]:
    """Return the versions of a model, rising."""
    return sorted(
        int(path.name)
        for path in model.iterdir()
        if path.is_dir() and path.name.isdecimal() and int(path.name) > 0
    )


def served_versions(config: Mapping[str, Any], there: list[int]) -> list[int]:
    """Return the versions that the version policy of a configuration chooses.

    Args:
        config: The configuration.
        there: The versions that there are, rising.
    """
    policy: Mapping[str, Any] = config.get("version_policy", {})
    if "all" in policy:
        return there
    if "specific" in policy:
        wanted = {int(one) for one in policy["specific"].get("versions", ())}
        return [one for one in there if one in wanted]
    latest = int(policy.get("latest", {}).get("num_versions", 0)) or 1
    return there[-latest:]
