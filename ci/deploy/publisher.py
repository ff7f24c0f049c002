# SPDX-License-Identifier: Apache-2.0
"""What everything that is published has in common: first a look, then the rest.

A `Publisher` looks at what is there before anything is published anywhere. Other bytes under a name
of ours end the run at that point. Publishing then adds what is missing, so a run after one that
failed half-way completes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Item", "Publisher", "missing"]


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


def missing(publishers: Iterable[Publisher]) -> list[str]:
    """Say what is not published yet, and which part publishes it."""
    return [
        f"{item.name} (part {publisher.part})"
        for publisher in publishers
        for item in publisher.survey()
        if not item.there
    ]
