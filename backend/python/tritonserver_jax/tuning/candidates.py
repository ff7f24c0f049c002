# SPDX-License-Identifier: Apache-2.0
"""The configurations that are tried, and how they are written in config.pbtxt."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

__all__ = ["Candidate", "bucket_choices", "stages"]

#: Microseconds for which the dynamic batcher may hold a request back.
DELAYS: Final = (0, 100, 500)
#: An instance takes a thread of its own, and parameters are shared: a few are worth a try.
MOST_INSTANCES: Final = 4


@dataclass(frozen=True)
class Candidate:
    """What is changed of a configuration; None leaves it as it is.

    Attributes:
        instances: ``count`` of each instance group.
        delay: ``max_queue_delay_microseconds``.
        preferred: ``preferred_batch_size``; empty for none.
        buckets: Batch sizes to compile for.
    """

    instances: int | None = None
    delay: int | None = None
    preferred: tuple[int, ...] | None = None
    buckets: tuple[int, ...] | None = None

    @property
    def is_default(self) -> bool:
        """Whether nothing is changed."""
        return self == Candidate()

    def __str__(self) -> str:
        """For people: what is changed, in a few words."""
        said = []
        if self.instances is not None:
            said.append(f"{self.instances} instance{'s' if self.instances > 1 else ''}")
        if self.delay is not None:
            said.append(f"delay {self.delay} µs")
        if self.preferred is not None:
            said.append("prefer " + (",".join(map(str, self.preferred)) or "no size"))
        if self.buckets is not None:
            said.append("buckets " + ",".join(map(str, self.buckets)))
        return ", ".join(said) or "as it is"

    def applied(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return a configuration with the changes in it.

        Args:
            config: A complete one, as the server tells it. It is not changed.
        """
        made: dict[str, Any] = copy.deepcopy(dict(config))
        if self.instances is not None:
            groups = made.get("instance_group") or [{"kind": "KIND_AUTO"}]
            for group in groups:
                group["count"] = self.instances
            made["instance_group"] = groups
        if self.delay is not None or self.preferred is not None:
            batching = made.setdefault("dynamic_batching", {})
            if self.delay is not None:
                batching["max_queue_delay_microseconds"] = self.delay
            if self.preferred is not None:
                batching["preferred_batch_size"] = list(self.preferred)
        if self.buckets is not None:
            value = {"string_value": ",".join(map(str, self.buckets))}
            made.setdefault("parameters", {})["buckets"] = value
        return made

    def fragment(self, config: Mapping[str, Any]) -> str:
        """Return the changes as lines of config.pbtxt.

        Args:
            config: The complete configuration before the changes: a block is given whole.
        """
        made = self.applied(config)
        lines = []
        if self.instances is not None:
            for group in made["instance_group"]:
                gpus = "".join(f" gpus: {gpu}" for gpu in group.get("gpus", ()))
                lines.append(
                    f"instance_group {{ count: {group['count']} kind: {group['kind']}{gpus} }}"
                )
        if self.delay is not None or self.preferred is not None:
            batching = made["dynamic_batching"]
            inner = (
                "".join(
                    f" preferred_batch_size: {size}" for size in batching["preferred_batch_size"]
                )
                if batching.get("preferred_batch_size")
                else ""
            )
            delay = int(batching.get("max_queue_delay_microseconds", 0))
            if delay:
                inner += f" max_queue_delay_microseconds: {delay}"
            if batching.get("preferred_batch_size"):
                # Triton compares them before the backend has completed the largest batch.
                lines.append(f"max_batch_size: {made['max_batch_size']}")
            lines.append(f"dynamic_batching {{{inner} }}")
        if self.buckets is not None:
            text = ",".join(map(str, self.buckets))
            lines.append(f'parameters {{ key: "buckets" value {{ string_value: "{text}" }} }}')
        return "\n".join(lines)


def bucket_choices(max_batch: int) -> list[tuple[int, ...]]:
    """Return sets of batch sizes to compile for, beside the powers of two.

    Few sizes batch more alike and pad more; one size pads everything.

    Args:
        max_batch: ``max_batch_size`` of the model.
    """
    if max_batch < 4:
        return []
    fours = []
    size = 1
    while size < max_batch:
        fours.append(size)
        size *= 4
    halves = sorted({1, max_batch // 2, max_batch})
    choices = [(*fours, max_batch), tuple(halves)]
    # Steps of a quarter between the powers of two: less padding, more programs.
    fine = sorted(
        {
            step
            for power in (2**exponent for exponent in range(max_batch.bit_length()))
            for step in (power, power * 3 // 2)
            if step <= max_batch
        }
        | {max_batch}
    )
    choices.append(tuple(fine))
    return list(dict.fromkeys(choices))


def stages(
    config: Mapping[str, Any], processors: int, concurrency: int
) -> Iterator[Sequence[Candidate]]:
    """Yield what to try, a knob after the other; each stage is tried on the best of the last.

    Args:
        config: The complete configuration.
        processors: Of the machine.
        concurrency: Of the load: a batch cannot grow larger than that.
    """
    max_batch = int(config.get("max_batch_size", 0))
    groups = config.get("instance_group") or [{"count": 1}]
    counts = sorted({1, 2, min(MOST_INSTANCES, max(2, processors))})
    now = {int(group.get("count", 1)) for group in groups}
    yield [Candidate(instances=count) for count in counts if now != {count}]
    if max_batch < 2 or "dynamic_batching" not in config:
        return
    batching = config["dynamic_batching"]
    delay = int(batching.get("max_queue_delay_microseconds", 0))
    yield [Candidate(delay=one) for one in DELAYS if one != delay]
    largest = min(max_batch, concurrency)
    sizes = [(size,) for size in dict.fromkeys((largest, largest // 2)) if size > 1]
    preferred = tuple(int(size) for size in batching.get("preferred_batch_size", ()))
    yield [Candidate(preferred=one) for one in sizes if one != preferred]
    yield [Candidate(buckets=one) for one in bucket_choices(max_batch)]


def combined(base: Candidate, change: Candidate) -> Candidate:
    """Return a candidate with the changes of two, the second one's where both have some."""
    changed = {name: value for name, value in vars(change).items() if value is not None}
    return replace(base, **changed)
