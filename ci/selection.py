# SPDX-License-Identifier: Apache-2.0
"""What a pipeline makes: which releases, which images of them, and on which base.

Three variables say it, and `.gitlab-ci.yml` declares them with what they mean:

* ``TRITON_RELEASES``: ``all``, ``gate`` (those that every change is tested on), or names;
* ``TRITON_VARIANTS``: ``all``, or names as in ``cpu cuda12``;
* ``TRITON_IMAGE``: the repository of the releases' own images. A mirror may be named, and so may
  the stand-in of `ci.base_image`, for where neither can be reached.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ci.base_image import stand_in_name
from ci.image_plan import CPU, ImagePlan, plan_image, variants
from tritonserver_jax.releases import DEFAULT_RELEASE, Release, find_release, load_catalog

__all__ = [
    "ALL",
    "GATE",
    "IMAGE",
    "RELEASES",
    "STAND_IN",
    "VARIANTS",
    "SelectionError",
    "official_image",
    "on_stand_in",
    "selected_plans",
    "selected_releases",
    "selected_variants",
]

RELEASES: Final = "TRITON_RELEASES"
VARIANTS: Final = "TRITON_VARIANTS"
IMAGE: Final = "TRITON_IMAGE"

ALL: Final = "all"
GATE: Final = "gate"

#: What ``TRITON_IMAGE`` is where images are made on the stand-in.
STAND_IN: Final = stand_in_name(find_release(DEFAULT_RELEASE)).partition(":")[0]


class SelectionError(ValueError):
    """A variable names something that there is not."""


def official_image() -> str:
    """Return the repository of the releases' own images, as ``releases.toml`` has it."""
    return find_release(DEFAULT_RELEASE).image.partition(":")[0]


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[\s,]+", text) if word]


def selected_releases(variables: Mapping[str, str]) -> list[Release]:
    """Return the releases that are made, from the oldest to the newest.

    Args:
        variables: Where ``TRITON_RELEASES`` is; all releases where it is not.

    Raises:
        SelectionError: It names none, or one that there is not.
    """
    catalog = load_catalog()
    words = _words(variables.get(RELEASES, ALL))
    unknown = [word for word in words if word not in {ALL, GATE, *catalog.releases}]
    if unknown or not words:
        raise SelectionError(
            f"{RELEASES}: expected {ALL}, {GATE}, or releases of releases.toml as in "
            f'"23.10 24.10", got {" ".join(unknown) or "nothing"}'
        )
    names = set(words)
    if ALL in names:
        return list(catalog.releases.values())
    if GATE in names:
        names |= {*catalog.gate_releases}
    return [release for name, release in catalog.releases.items() if name in names]


def selected_variants(release: Release, variables: Mapping[str, str]) -> tuple[str, ...]:
    """Return the variants of a release's image that are made; ``cpu`` is always one.

    Args:
        release: The release.
        variables: Where ``TRITON_VARIANTS`` is; all that the release has where it is not.

    Raises:
        SelectionError: It names one that no release has.
    """
    words = set(_words(variables.get(VARIANTS, ALL)))
    known = {one for every in load_catalog().releases.values() for one in variants(every)}
    if unknown := words - {ALL, *known}:
        raise SelectionError(
            f"{VARIANTS}: expected {ALL}, or some of {', '.join(sorted(known))}, "
            f"got {' '.join(sorted(unknown))}"
        )
    return tuple(one for one in variants(release) if one == CPU or words & {ALL, one})


def selected_plans(variables: Mapping[str, str]) -> list[ImagePlan]:
    """Return the plans of all images that are made.

    Where they are made on the stand-in, a plan names the release's own image still: the stand-in
    has to be there first, and `ci.images.prepared` makes it.
    """
    return [
        _on_mirror(plan_image(release, variant), variables)
        for release in selected_releases(variables)
        for variant in selected_variants(release, variables)
    ]


def on_stand_in(variables: Mapping[str, str]) -> bool:
    """Say whether images are made on the stand-in of the releases' own."""
    return variables.get(IMAGE) == STAND_IN


def _on_mirror(plan: ImagePlan, variables: Mapping[str, str]) -> ImagePlan:
    mirror = variables.get(IMAGE)
    if not mirror or on_stand_in(variables):
        return plan
    image = f"{mirror}{plan.base_image.removeprefix(official_image())}"
    return plan.on(image, digest=plan.base_digest)
