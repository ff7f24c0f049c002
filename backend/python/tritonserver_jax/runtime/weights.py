# SPDX-License-Identifier: Apache-2.0
"""Weights beside ``model.py``: flax msgpack, safetensors and Orbax, read as NumPy arrays.

Nothing here runs code from a file. Every failure names the path, the reason and what to do.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from tritonserver_jax.runtime import log
from tritonserver_jax.runtime.errors import BackendError, Code, refuse

MSGPACK_FILE = "params.msgpack"
SAFETENSORS_FILE = "params.safetensors"
ORBAX_DIRECTORY = "params.orbax"

# What JAX has in its 64-bit mode only.
_WIDE = ("float64", "int64", "uint64", "complex128")
#: Scripts that write a model's weights, by the names that the examples use.
_MAKERS = ("train.py", "make.py")
_GIT_LFS = b"version https://git-lfs"
_ORBAX_TREE = "_METADATA"
_ORBAX_STEP = "_CHECKPOINT_METADATA"
_ORBAX_UNFINISHED = ".orbax-checkpoint-tmp"


@dataclass(frozen=True)
class Found:
    """What the default loading found in a directory.

    Attributes:
        params: a pytree of NumPy arrays; None where there are no weights.
        missing: for messages: what was looked for, where there are none.
    """

    params: Any
    missing: str


def load_default(directory: Path) -> Found:
    """Load the weights beside a model, whichever of the known kinds they are.

    Raises:
        BackendError: naming the files, if there are weights of several kinds, or the file or the
            leaf of it that is not fit to be parameters.
    """
    found: dict[str, Callable[[], Any]] = {}
    if (directory / MSGPACK_FILE).exists():
        found[MSGPACK_FILE] = partial(load_msgpack, directory / MSGPACK_FILE)
    for path in _safetensors_files(directory):
        found[path.name] = partial(load_safetensors, path)
    if (directory / ORBAX_DIRECTORY).exists():
        found[ORBAX_DIRECTORY] = partial(load_orbax, directory / ORBAX_DIRECTORY)
    if len(found) > 1:
        refuse(
            f"{directory} holds several weights: {', '.join(found)}; leave one of them there, or "
            "choose in model.py, such as: "
            "def load(context): return context.load_msgpack('params.msgpack')"
        )
    for name, load in found.items():
        params = load()
        _check_params(params, directory / name)
        return Found(params, "")
    return Found(None, _missing(directory))


def _safetensors_files(directory: Path) -> list[Path]:
    if (directory / SAFETENSORS_FILE).exists():
        return [directory / SAFETENSORS_FILE]
    return sorted(directory.glob("*.safetensors"))


def _missing(directory: Path) -> str:
    unfinished = sorted(path.name for path in directory.glob(f"*{_ORBAX_UNFINISHED}*"))
    if unfinished:
        return (
            f"{directory} holds {unfinished[0]}, an Orbax checkpoint whose saving was not "
            f"finished; wait for it (wait_until_finished), or save it again as {ORBAX_DIRECTORY}"
        )
    kinds = f"{MSGPACK_FILE}, {SAFETENSORS_FILE} or {ORBAX_DIRECTORY}"
    return f"there is no {kinds} in {directory}{_made_by(directory)}"


def _made_by(directory: Path) -> str:
    """What makes the weights, where the model says so: a script beside its config.pbtxt."""
    for name in _MAKERS:
        if (directory.parent / name).is_file():
            return f" ({directory.parent / name} makes it)"
    return ""


def load_msgpack(path: Path, target: Any = None) -> Any:
    """Read a parameter file that flax serialized.

    Args:
        path: the file.
        target: a pytree to restore the structure of, with the shapes and types that are expected;
            by default nested dicts.

    Raises:
        BackendError: naming the file and the reason.
    """
    from flax import serialization

    data = read(path)
    try:
        restored = serialization.msgpack_restore(data)
    except Exception as error:
        refuse(
            f"{path} ({len(data)} bytes) is not a whole msgpack file of flax's "
            f"({_reason(error)}); write it with flax.serialization.to_bytes, or copy it again"
        )
    return restored if target is None else _restructured(target, restored, path)


def load_safetensors(path: Path, *, nested: bool = True) -> dict[str, Any]:
    """Read a safetensors file.

    Args:
        path: the file.
        nested: whether a dot in a name goes a level down: ``"dense.kernel"`` comes back as
            ``{"dense": {"kernel": ...}}``. Otherwise the names stay as they are.

    Raises:
        BackendError: naming the file and the reason.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    _check_file(path)
    try:
        tensors: dict[str, Any] = load_file(path)
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        refuse(
            f"{path} ({path.stat().st_size} bytes) is not a whole safetensors file of types that "
            f"NumPy knows ({_reason(error)}); write it with safetensors.numpy.save_file, or copy "
            "it again"
        )
    except OSError as error:
        refuse(f"cannot read {path}: {error.strerror or error}", Code.NOT_FOUND)
    return _nested(tensors, path) if nested else tensors


def _nested(tensors: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Names with dots as nested dicts; which is possible unless one name is a prefix of another."""
    tree: dict[str, Any] = {}
    for name, tensor in tensors.items():
        *parents, last = name.split(".")
        node = tree
        for depth, parent in enumerate(parents, 1):
            node = node.setdefault(parent, {})
            if not isinstance(node, dict):
                _ambiguous(".".join(parents[:depth]), name, path)
        if last in node:
            inside = next(other for other in tensors if other.startswith(f"{name}."))
            _ambiguous(name, inside, path)
        node[last] = tensor
    return tree


def _ambiguous(name: str, other: str, path: Path) -> None:
    refuse(
        f"{path}: '{name}' and '{other}' cannot both be in nested dicts; keep the names flat in "
        f"model.py: def load(context): return context.load_safetensors('{path.name}', nested=False)"
    )


def load_orbax(path: Path, target: Any = None) -> Any:
    """Read an Orbax checkpoint, whatever devices it was saved from.

    Args:
        path: the directory that ``StandardCheckpointer`` or ``PyTreeCheckpointer`` wrote, or a
            step of a ``CheckpointManager`` with one item in it.
        target: a pytree to restore the structure of, with the shapes and types that are expected;
            by default nested dicts and lists, as far as the checkpoint tells.

    Raises:
        BackendError: naming the directory and the reason.
    """
    # Orbax takes no relative path, which that of a model repository may be.
    tree_path = _orbax_tree(path).absolute()
    try:
        restored = _restore(tree_path, target)
    except BackendError:
        raise
    except Exception as error:
        refuse(
            f"{path} is not a whole Orbax checkpoint, or not of the structure asked for "
            f"({_reason(error)}); save it again, or copy the whole directory again"
        )
    if target is not None:
        check_fit(target, restored, str(path))
    return restored


def _orbax_tree(path: Path) -> Path:
    """The directory with the pytree in it: `path`, or its only item.

    Raises:
        BackendError: if there is none, or saving it was not finished.
    """
    if not path.is_dir():
        if path.exists():
            refuse(f"{path} is a file; an Orbax checkpoint is a directory")
        unfinished = sorted(path.parent.glob(f"{path.name}{_ORBAX_UNFINISHED}*"))
        if unfinished:
            refuse(
                f"{unfinished[0]} is an Orbax checkpoint whose saving was not finished; wait for "
                "it (wait_until_finished), or save it again",
                Code.NOT_FOUND,
            )
        refuse(f"there is no Orbax checkpoint {path}{_made_by(path.parent)}", Code.NOT_FOUND)
    for directory in (path, *sorted(entry for entry in path.iterdir() if entry.is_dir())):
        _check_finished(directory)
    if (path / _ORBAX_TREE).is_file():
        return path
    items = sorted(entry for entry in path.iterdir() if (entry / _ORBAX_TREE).is_file())
    if len(items) == 1:
        return items[0]
    found = ", ".join(sorted(entry.name for entry in path.iterdir())) or "nothing"
    refuse(
        f"{path} is no whole Orbax checkpoint: expected {_ORBAX_TREE} in it, or in one directory "
        f"in it, found {found}; save the parameters there with "
        "orbax.checkpoint.StandardCheckpointer, or copy one step of a CheckpointManager there",
        Code.NOT_FOUND if found == "nothing" else Code.INVALID_ARG,
    )


def _check_finished(directory: Path) -> None:
    try:
        text = (directory / _ORBAX_STEP).read_text(encoding="utf-8")
    except OSError:
        return  # older checkpoints, and the items of a step, have none
    try:
        finished = json.loads(text).get("commit_timestamp_nsecs") is not None
    except (ValueError, AttributeError):
        finished = False
    if not finished or _ORBAX_UNFINISHED in directory.name:
        refuse(
            f"{directory} is an Orbax checkpoint whose saving was not finished ({_ORBAX_STEP} has "
            "no commit time); wait for it (wait_until_finished), or save it again"
        )


def _restore(path: Path, target: Any) -> Any:
    import orbax.checkpoint as ocp

    with ocp.Checkpointer(ocp.PyTreeCheckpointHandler()) as checkpointer:
        tree = target
        if tree is None:
            item = checkpointer.metadata(path).item_metadata
            # Orbax logs why, and gives None.
            tree = {} if item is None else item.tree
            if item is None:
                refuse(
                    f"{path} is not a whole Orbax checkpoint: files that {_ORBAX_TREE} lists are "
                    "missing or damaged; save it again, or copy the whole directory again"
                )
        # As NumPy arrays: the devices that they were saved from need not be here.
        arrays = jax.tree.map(lambda _: ocp.RestoreArgs(restore_type=np.ndarray), tree)
        return checkpointer.restore(
            path, args=ocp.args.PyTreeRestore(item=target, restore_args=arrays)
        )


def read(path: Path) -> bytes:
    """The bytes of a file of the model's.

    Raises:
        BackendError: naming the file, if it cannot be read or is a Git LFS pointer.
    """
    _check_file(path)
    try:
        return path.read_bytes()
    except OSError as error:
        refuse(f"cannot read {path}: {error.strerror}", Code.NOT_FOUND)


def _check_file(path: Path) -> None:
    try:
        with path.open("rb") as file:
            begin = file.read(len(_GIT_LFS))
    except OSError as error:
        made_by = "" if path.exists() else _made_by(path.parent)
        refuse(f"cannot read {path}: {error.strerror}{made_by}", Code.NOT_FOUND)
    if begin == _GIT_LFS:
        refuse(f"{path} is a Git LFS pointer and not the file itself; run git lfs pull")


def _restructured(target: Any, restored: Any, path: Path) -> Any:
    from flax import serialization

    try:
        fitted = serialization.from_state_dict(target, restored)
    except Exception as error:
        refuse(f"{path} does not fit the model: {_reason(error)}")
    check_fit(target, fitted, str(path))
    return fitted


def as_structure_of(target: Any, params: Any, where: str) -> Any:
    """Parameters in the structure of `target`: what files keep as dicts may be lists there.

    Raises:
        BackendError: naming the leaf, expected and got.
    """
    expected: Any = jax.tree.structure(target)
    if expected != jax.tree.structure(params):
        return _restructured(target, params, Path(where))
    check_fit(target, params, where)
    return params


def check_fit(target: Any, params: Any, where: str) -> None:
    """Check that parameters have the structure, shapes and types of `target`.

    Raises:
        BackendError: naming the leaf, expected and got.
    """
    expected = _leaves(target)
    got = _leaves(params)
    for name in [*expected, *got]:
        if name not in got or name not in expected:
            which = "is missing" if name not in got else "is not part of the model"
            refuse(
                f"{where} does not fit the model: '{name}' {which} (expected "
                f"{', '.join(expected) or 'nothing'}; got {', '.join(got) or 'nothing'})"
            )
    for name, leaf in expected.items():
        if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
            continue
        array = np.asarray(got[name])
        if (tuple(leaf.shape), np.dtype(leaf.dtype)) != (array.shape, array.dtype):
            refuse(
                f"{where} does not fit the model: '{name}' is {_array_text(array)}, expected "
                f"{_array_text(leaf)}; save it again with the model's shapes and types"
            )


def _leaves(tree: Any) -> dict[str, Any]:
    return {leaf_name(path): leaf for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]}


def leaf_name(path: Any) -> str:
    """For messages: where in a pytree a leaf is, such as ``dense.kernel``."""
    parts = []
    for entry in path:
        for attribute in ("key", "idx", "name"):
            if hasattr(entry, attribute):
                parts.append(str(getattr(entry, attribute)))
                break
    return ".".join(parts)


def warn_of_narrowing(params: Any, doing: str) -> None:
    """Say in the log which parameters lose bits in a model without the 64-bit mode."""
    wide = {
        name: np.dtype(leaf.dtype)
        for name, leaf in _leaves(params).items()
        if isinstance(leaf, np.ndarray) and leaf.dtype.name in _WIDE
    }
    if wide:
        name, dtype = next(iter(wide.items()))
        others = f" (and {len(wide) - 1} more have 64-bit types)" if len(wide) > 1 else ""
        log.warning(
            f"{doing}: the parameter '{name}' is {dtype.name}{others}, which JAX narrows while its "
            "64-bit mode is off; save it with 32 bits, or set the parameter 'x64' of the model"
        )


def _array_text(array: Any) -> str:
    return f"{np.dtype(array.dtype).name}[{','.join(map(str, array.shape))}]"


def _check_params(params: Any, path: Path) -> None:
    """What is loaded without the author's `load` must be something that JAX can take."""
    if not isinstance(params, Mapping | list | tuple):
        refuse(
            f"{path} holds a {type(params).__name__}, expected a nested dict of arrays; write it "
            "with tritonserver_jax.repository"
        )
    for name, leaf in _leaves(params).items():
        if isinstance(leaf, bool | int | float | complex):
            continue
        dtype = getattr(leaf, "dtype", None)
        # ml_dtypes such as bfloat16 are kind "V" (void) but have no fields.
        if dtype is None or not (
            dtype.kind in "biufc" or (dtype.kind == "V" and dtype.names is None)
        ):
            what = type(leaf).__name__ if dtype is None else f"an array of {dtype}"
            refuse(
                f"{path}: '{name}' is {what}, which JAX cannot take; leave it out of the file, or "
                "pick the arrays in model.py with load(context)"
            )


def _reason(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = " ".join(lines)
    # TensorStore puts its whole specification behind the reason.
    text = text.split(" [tensorstore_spec", 1)[0]
    return f"{type(error).__name__}: {text[:500]}" if text else type(error).__name__
