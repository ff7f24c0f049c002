# SPDX-License-Identifier: Apache-2.0
"""The folder of a new model: made, and taken away again where what follows fails. Imports no JAX.

Nothing that is there is ever replaced.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from tritonserver_jax.authoring.errors import AuthoringError
from tritonserver_jax.repository import CONFIG_NAME, write_config

__all__ = ["complete_config", "new_version"]

_HEADER: Final = (
    "# Completed from the model. Triton needs only the line with the backend: what is left out is\n"
    "# found in the model again, and what stays here has to agree with it.\n"
)


@contextmanager
def new_version(repository: Path, name: str) -> Iterator[Path]:
    """Make the folder of a model's first version, and take the model away again if a step fails.

    Args:
        repository: Where to; it is made as well.
        name: Of the model.

    Yields:
        The version directory.

    Raises:
        AuthoringError: The name is none, or something is there.
    """
    if not name or "/" in name or name.startswith(".") or name != name.strip():
        raise AuthoringError(
            f"expected a name for the model, got {name!r}; it is the name of a folder, such as "
            "digits"
        )
    model = repository / name
    if model.exists() or model.is_symlink():
        raise AuthoringError(
            f"{model} is there already, and is not replaced; choose another name, or remove it"
        )
    made = [folder for folder in (repository, *repository.parents) if not folder.exists()]
    version = model / "1"
    try:
        version.mkdir(parents=True)
        write_config(model)
        yield version
    except BaseException:
        shutil.rmtree(model, ignore_errors=True)
        for folder in made:
            with suppress(OSError):  # somebody else has put something there
                folder.rmdir()
        raise


def complete_config(version: Path, text: str) -> Path:
    """Write the completed configuration in the place of the shortest one.

    Args:
        version: The version directory of a model that `new_version` made.
        text: Of config.pbtxt.
    """
    path = version.parent / CONFIG_NAME
    path.write_text(_HEADER + text, encoding="utf-8")
    return path
