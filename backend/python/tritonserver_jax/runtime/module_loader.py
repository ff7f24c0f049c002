# SPDX-License-Identifier: Apache-2.0
"""Importing a model's code: as it is on disk now, apart from other models, and without a trace.

Python's own import would take byte code from ``__pycache__`` for a file of the same size and time,
and write it into what may be a read-only or watched model repository.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import itertools
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import jax

from tritonserver_jax.runtime import errors, log, static_objects
from tritonserver_jax.runtime.errors import refuse

_PREFIX = "tritonserver_jax_model_"
_numbers = itertools.count(1)

# What a model may well set for itself at the top of model.py: the backend does it for it alone.
# One at a time: what one model sets must not be taken for another's.
_configuring = threading.Lock()
# Environment variables that JAX and XLA read when they start.
_VARIABLES = ("JAX_", "XLA_", "CUDA_VISIBLE_DEVICES")
_TAKEN_OVER = {"jax_enable_x64": "x64", "jax_default_matmul_precision": "matmul_precision"}


class _FreshLoader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


class _SiblingFinder(importlib.abc.MetaPathFinder):
    """Finds the files beside a model.py for ``from . import layers``."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,  # noqa: ARG002 - part of the interface
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith(_PREFIX) or path is None:
            return None
        name = fullname.rpartition(".")[2]
        for folder in map(Path, path):
            package = folder / name / "__init__.py"
            for file, inside in ((package, [str(package.parent)]), (folder / f"{name}.py", None)):
                if file.is_file():
                    return importlib.util.spec_from_file_location(
                        fullname,
                        file,
                        loader=_FreshLoader(fullname, str(file)),
                        submodule_search_locations=inside,
                    )
        return None


def import_model(path: Path, doing: str) -> ModuleType:
    """Import a model.py under a name of its own, as a package.

    Args:
        path: of model.py.
        doing: for messages, such as ``"model 'm' version 1"``.

    Raises:
        BackendError: with what the code raised.
    """
    if not any(isinstance(finder, _SiblingFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _SiblingFinder())
    importlib.invalidate_caches()  # packages may have come or gone since the last load
    name = f"{_PREFIX}{next(_numbers)}"
    spec = importlib.util.spec_from_file_location(
        name,
        path,
        loader=_FreshLoader(name, str(path)),
        submodule_search_locations=[str(path.parent)],
    )
    if spec is None or spec.loader is None:
        refuse(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with errors.model_code(f"{doing}: importing {path.name}", path.parent):
            spec.loader.exec_module(module)
    except BaseException:
        forget(module)
        raise
    return module


def forget(module: ModuleType) -> None:
    """Take a model's module, and those that it imported from beside itself, out of sys.modules.

    Without that, everything that a model holds in its globals would stay after it is unloaded.
    """
    names = [
        name
        for name in [*sys.modules]
        if name == module.__name__ or name.startswith(module.__name__ + ".")
    ]
    static_objects.note_classes([sys.modules.pop(name) for name in names])


def _jax_variables() -> dict[str, str]:
    return {name: os.environ[name] for name in os.environ if name.startswith(_VARIABLES)}


def _undo_variables(before: dict[str, str], doing: str) -> None:
    """Put back variables that JAX has read already, and say that they had no effect."""
    after = _jax_variables()
    for name in sorted({*before, *after}):
        if before.get(name) == after.get(name):
            continue
        if name in before:
            os.environ[name] = before[name]
        else:
            del os.environ[name]
        log.warning(
            f"{doing}: {name} in os.environ is set by model.py, which has no effect: JAX runs "
            "already, for all models of this server. Use the model's parameters (xla_flags, x64, "
            "matmul_precision), --backend-config=jax,KEY=VALUE, or the server's own environment"
        )


@contextmanager
def jax_config_kept(doing: str) -> Iterator[dict[str, Any]]:
    """Undo what a model's code does to JAX's configuration, which all models of the server share.

    Yields:
        A dict that afterwards has the settings which the backend takes over for this model alone.
    """
    wanted: dict[str, Any] = {}
    with _configuring:
        before = dict(jax.config.values)
        variables = _jax_variables()
        try:
            yield wanted
        finally:
            _undo_variables(variables, doing)
            for key, value in jax.config.values.items():
                # The compile cache's are set by the backend, perhaps just now.
                if value == before.get(key) or "cache" in key:
                    continue
                jax.config.update(key, before[key])
                if key in _TAKEN_OVER:
                    wanted[_TAKEN_OVER[key]] = value
                    log.info(f"{doing}: {key} = {value} holds for this model alone")
                else:
                    log.warning(
                        f"{doing}: {key} = {value}, which would hold for every model of this "
                        "server, is undone now that model.py is imported"
                    )
