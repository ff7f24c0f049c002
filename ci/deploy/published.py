# SPDX-License-Identifier: Apache-2.0
"""The names of all that a version consists of, or of all that is published somewhere."""

from __future__ import annotations

from dataclasses import dataclass, fields

__all__ = ["PublishedNames"]


@dataclass(frozen=True, slots=True)
class PublishedNames:
    """What was declared, or what is there; both are compared.

    Attributes:
        images: ``<repository>:<tag>`` of the container registry, a chart's among them.
        packages: ``<package>/<version>/<file>`` of the package registry.
        distributions: File names of the package index.
        links: ``<tag>: <name of a link>`` of the releases.
    """

    images: frozenset[str]
    packages: frozenset[str]
    distributions: frozenset[str]
    links: frozenset[str]

    @classmethod
    def nothing(cls) -> PublishedNames:
        """Return no names."""
        return cls(*(frozenset() for _ in fields(cls)))

    def differences(self, there: PublishedNames) -> list[str]:
        """Say what of this is not there, and what is there beside it."""
        found = []
        for one in fields(self):
            declared: frozenset[str] = getattr(self, one.name)
            present: frozenset[str] = getattr(there, one.name)
            found += [f"{one.name}: {name} is missing" for name in sorted(declared - present)]
            found += [f"{one.name}: {name} is not declared" for name in sorted(present - declared)]
        return found
