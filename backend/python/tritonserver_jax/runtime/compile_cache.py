# SPDX-License-Identifier: Apache-2.0
"""XLA's persistent compile cache, per model.

JAX has one cache directory per process, so compilations that use one run one after another.
"""

from __future__ import annotations

import hashlib
import importlib
import platform
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import jaxlib.version

from tritonserver_jax.runtime import log

_lock = threading.RLock()
_events: threading.local = threading.local()
_listening = False


def _processor() -> str:
    """What the processor can do: machine code for one is no use on a lesser one."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    wanted = ("model name", "flags", "Features")
    seen: dict[str, str] = {}
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() in wanted:
            seen.setdefault(key.strip(), " ".join(sorted(value.split())))
    return str(sorted(seen.items()))


def _directory_for_this_machine(directory: Path) -> Path:
    # JAX's own keys cover program, options and versions; the rest of what could make an entry wrong
    # is in the directory's name.
    text = "\n".join(
        [jax.__version__, jaxlib.version.__version__, platform.machine(), _processor()]
    )
    return directory / f"jax-{jax.__version__}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _on_event(event: str, **_: Any) -> None:
    counts: dict[str, int] | None = getattr(_events, "counts", None)
    if counts is not None:
        if event.endswith("/cache_hits"):
            counts["hits"] += 1
        elif event.endswith("/cache_misses"):
            counts["misses"] += 1


def _use(directory: Path | None) -> None:
    jax.config.update("jax_compilation_cache_dir", None if directory is None else str(directory))
    cache = importlib.import_module("jax._src.compilation_cache")
    cache.reset_cache()  # there is no public call that makes JAX look at another directory


@contextmanager
def compile_cache(
    directory: Path | None, observe: Callable[[str], None], doing: str
) -> Iterator[None]:
    """Compile with a persistent cache in `directory`; without one where it is None.

    A directory that cannot be used costs a warning and the time of compiling, never a load.

    Args:
        directory: of the cache.
        observe: called with ``"hit"`` or ``"miss"`` for each compilation.
        doing: for messages.
    """
    global _listening
    if directory is None:
        yield
        return
    with _lock:
        if not _listening:
            jax.monitoring.register_event_listener(_on_event)
            _listening = True
        place = _directory_for_this_machine(directory)
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            log.warning(
                f"{doing}: compiling without the compile cache {directory}: {error.strerror}"
            )
            yield
            return
        _events.counts = counts = {"hits": 0, "misses": 0}
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        _use(place)
        try:
            yield
        finally:
            _use(None)
            _events.counts = None
            for _ in range(counts["hits"]):
                observe("hit")
            for _ in range(counts["misses"]):
                observe("miss")
