# SPDX-License-Identifier: Apache-2.0
"""What everything that is published has in common: first a look, then the rest.

A `Publisher` looks at what is there before anything is published anywhere. Other bytes under a name
of ours end the run at that point. Publishing then adds what is missing, so a run after one that
failed half-way completes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

__all__ = ["MOST_NAMED", "Item", "Missing", "Publisher", "job_of", "missing", "said_of", "some_of"]

#: Of many things that a message is about, how many are named.
MOST_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that is to be published.

    Attributes:
        name: Under which name.
        digest: Of its bytes; of an image, its id. None while nobody has made it.
        there: Whether it is published already.
    """

    name: str
    digest: str | None
    there: bool


class Publisher(Protocol):
    """One place that things are published to."""

    #: What `./ci/nox -s deploy --` calls it.
    part: str

    def survey(self) -> list[Item]:
        """Return what is to be published, and what of it is there.

        Raises:
            DifferentBytesError: Something else is there under a name of ours.
            DeployError: The service cannot be asked, or something is missing here.
        """

    def publish(self) -> None:
        """Publish what is missing.

        Raises:
            DeployError: A service refused it, or failed too often.
        """


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that is not published yet.

    Attributes:
        name: What.
        part: The part that publishes it.
    """

    name: str
    part: str


def missing(publishers: Iterable[Publisher]) -> list[Missing]:
    """Return what is not published yet, and which part publishes it."""
    return [
        Missing(item.name, publisher.part)
        for publisher in publishers
        for item in publisher.survey()
        if not item.there
    ]


def some_of(names: Sequence[str]) -> str:
    """Name a few things, and say how many there are besides."""
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def said_of(absent: Sequence[Missing]) -> str:
    """Say in one line what is missing, by part: how much, and the first of it."""
    parts = dict.fromkeys(one.part for one in absent)
    names = {part: [one.name for one in absent if one.part == part] for part in parts}
    return "; ".join(f"{len(some)} of part {part}: {some_of(some)}" for part, some in names.items())


def job_of(part: str) -> str:
    """Return the job of the pipeline that publishes a part."""
    return f"deploy-{part}"
