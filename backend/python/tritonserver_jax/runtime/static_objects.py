# SPDX-License-Identifier: Apache-2.0
"""Objects of a model's own classes that JAX keeps after the model is unloaded.

A method that is jitted with its object as a static argument, which JAX's documentation recommends
(https://docs.jax.dev/en/latest/faq.html#how-to-use-jit-with-methods), puts the object into caches
of JAX's that live as long as the process. They are asked for nothing more of it, but what it holds,
such as a table, would stay in memory. So it is emptied.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable
from types import ModuleType
from typing import Any, Final

import jax

__all__ = ["empty_those_kept", "note_classes"]

_JITTED: Final = type(jax.jit(lambda: None))
_classes: Final[list[weakref.ref[type]]] = []


def note_classes(modules: Iterable[ModuleType]) -> None:
    """Remember the classes of which JAX may keep objects.

    Args:
        modules: Of a model whose code will not run again.
    """
    for module in modules:
        for cls in _classes_in(module):
            # By identity alone: the caches go on asking for the hash of what they hold.
            by_identity = all(getattr(cls, n) is getattr(object, n) for n in ("__hash__", "__eq__"))
            if by_identity and any(
                isinstance(value, _JITTED) for base in cls.__mro__ for value in vars(base).values()
            ):
                _classes.append(weakref.ref(cls))


def _classes_in(module: ModuleType) -> set[type]:
    """The classes that a module defines, also inside of others."""
    found: set[type] = set()
    owners: list[Any] = [module]
    while owners:
        for value in [*vars(owners.pop()).values()]:
            own = isinstance(value, type) and value.__module__ == module.__name__
            if own and value not in found:
                found.add(value)
                owners.append(value)
    return found


def empty_those_kept() -> None:
    """Empty the objects that are still there, after the garbage collector has run."""
    while _classes:
        cls = _classes.pop()()
        if cls is None:
            continue
        for one in gc.get_referrers(cls):
            if type(one) is cls:
                getattr(one, "__dict__", {}).clear()
