# SPDX-License-Identifier: Apache-2.0
"""What of a configuration Triton refuses, or takes for something else than its author means.

The backend never sees a model that Triton refuses, so what it would say is said here. What the
backend itself finds wrong is found by loading the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tritonserver_jax.checking.repository import served_versions
from tritonserver_jax.findings import Finding, Status

__all__ = ["against_triton", "batch_sizes"]

_NAME: Final = "config"
#: Triton keeps versions as signed numbers of 64 bits, and does not expect others.
_LARGEST_VERSION: Final = 2**63 - 1


def _fail(detail: str, remedy: str) -> Finding:
    return Finding(_NAME, Status.FAIL, detail, remedy)


def against_triton(
    config: Mapping[str, Any], directory: Path, versions: Sequence[int]
) -> Iterator[Finding]:
    """Yield what Triton refuses of a configuration before a backend sees it.

    Args:
        config: As its author wrote it.
        directory: Of the model.
        versions: That there are.
    """
    name = str(config.get("name", ""))
    if name and name != directory.name:
        yield _fail(
            f'config.pbtxt says name: "{name}", but the folder is {directory.name}',
            "leave the name out, or rename the folder",
        )
    if config.get("platform"):
        yield _fail(
            f'config.pbtxt has platform: "{config["platform"]}" beside backend: "jax", and '
            "Triton takes one of them",
            "leave out platform",
        )
    if versions and not served_versions(config, list(versions)):
        wanted = config["version_policy"]["specific"]["versions"]
        yield _fail(
            f"version_policy asks for the versions {', '.join(map(str, wanted))}, and there are "
            f"{', '.join(map(str, versions))}",
            "name one that is there, or leave version_policy out for the newest",
        )
    if versions and versions[-1] > _LARGEST_VERSION:
        yield _fail(
            f"the version folder {versions[-1]} is larger than {_LARGEST_VERSION}, which ends a "
            "server",
            "give it a smaller number",
        )
    yield from _of_labels(config, directory)
    rows = int(config.get("max_batch_size", 0))
    if rows < 0:
        yield _fail(f"max_batch_size is {rows}", "set it to 0 for a model without batches")
    yield from _of_dims(config)
    yield from _of_batching(config, rows)
    yield from _of_instances(config)


def _of_labels(config: Mapping[str, Any], directory: Path) -> Iterator[Finding]:
    for tensor in config.get("output", ()):
        name = str(tensor.get("label_filename", ""))
        if name and not (directory / name).is_file():
            yield _fail(
                f"output '{tensor.get('name', '')}' has the label_filename {name}, and there is no "
                f"such file in {directory}",
                "put it beside config.pbtxt, or leave label_filename out",
            )


def _of_dims(config: Mapping[str, Any]) -> Iterator[Finding]:
    for kind in ("input", "output"):
        for tensor in config.get(kind, ()):
            wrong = [dim for dim in tensor.get("dims", ()) if int(dim) == 0 or int(dim) < -1]
            if wrong:
                yield _fail(
                    f"{kind} '{tensor.get('name', '')}' has the dims {list(tensor['dims'])}: "
                    f"expected sizes > 0, or -1 for one that varies, got {wrong[0]}",
                    "correct it; dims are without the batch dimension",
                )


def _of_batching(config: Mapping[str, Any], rows: int) -> Iterator[Finding]:
    batching: Mapping[str, Any] = config.get("dynamic_batching", {})
    preferred = [int(size) for size in batching.get("preferred_batch_size", ())]
    for size in preferred:
        if size <= 0:
            yield _fail(
                f"preferred_batch_size of dynamic_batching is {size}", "set it to a size > 0"
            )
        elif size > rows:
            # Triton compares them before the backend has said what the model's largest batch is.
            said = f"max_batch_size is {rows}" if rows else "config.pbtxt has no max_batch_size"
            yield _fail(
                f"preferred_batch_size of dynamic_batching is {size}, but {said}",
                f"write max_batch_size: {max(preferred)} into config.pbtxt as well, or prefer "
                "smaller batches",
            )
            return
    levels = int(batching.get("priority_levels", 0))
    default = int(batching.get("default_priority_level", 0))
    if levels and not 1 <= default <= levels:
        yield _fail(
            f"dynamic_batching has {levels} priority_levels and the default_priority_level "
            f"{default}",
            f"set default_priority_level to one from 1 to {levels}",
        )


def _of_instances(config: Mapping[str, Any]) -> Iterator[Finding]:
    for number, group in enumerate(config.get("instance_group", ())):
        kind = str(group.get("kind", "KIND_AUTO"))
        gpus = list(group.get("gpus", ()))
        what = f"instance_group {group.get('name') or number}"
        if gpus and kind in ("KIND_CPU", "KIND_MODEL"):
            yield _fail(
                f"{what} is {kind} and names the GPUs {', '.join(map(str, gpus))}",
                "leave out gpus, or make it KIND_GPU",
            )
        if int(group.get("count", 0)) < 0:
            yield _fail(f"{what} has the count {group['count']}", "set it to 1 or more")


def batch_sizes(config: Mapping[str, Any], declared: int | None, chosen: int) -> Iterator[Finding]:
    """Yield where configuration and model disagree on batches, which the server lets pass.

    Args:
        config: As its author wrote it.
        declared: ``max_batch_size`` of SIGNATURE; None where it does not say.
        chosen: What the server takes.
    """
    if declared is not None and chosen > declared:
        says = "takes no batches (max_batch_size 0)" if declared == 0 else f"says {declared}"
        yield _fail(
            f"config.pbtxt has max_batch_size {chosen}, but SIGNATURE of model.py {says}; the "
            "server would send it what config.pbtxt says",
            f"leave max_batch_size out of config.pbtxt, or raise it in SIGNATURE to {chosen} if "
            "the model can do that",
        )
    elif declared is not None and chosen < declared:
        yield Finding(
            _NAME,
            Status.NOTE,
            f"config.pbtxt lowers max_batch_size to {chosen}; SIGNATURE of model.py says "
            f"{declared}",
        )
    if chosen == 0 and "dynamic_batching" in config:
        yield Finding(
            _NAME,
            Status.WARN,
            "config.pbtxt has dynamic_batching, but the model takes no batches, so that nothing "
            "is ever batched",
            "leave dynamic_batching out, or give the model a max_batch_size",
        )
