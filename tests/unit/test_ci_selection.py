# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from ci.base_image import stand_in_name
from ci.selection import (
    IMAGE,
    RELEASES,
    STAND_IN,
    VARIANTS,
    SelectionError,
    on_stand_in,
    selected_plans,
    selected_releases,
    selected_variants,
)
from tritonserver_jax.releases import find_release, load_catalog

CATALOG = load_catalog()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, [*CATALOG.releases]),
        ("all", [*CATALOG.releases]),
        ("gate", [*CATALOG.gate_releases]),
        ("24.10, 23.10", ["23.10", "24.10"]),
        ("gate 25.01", [*CATALOG.gate_releases, "25.01"]),
    ],
)
def test_releases(text: str | None, expected: list[str]) -> None:
    variables = {} if text is None else {RELEASES: text}
    assert [one.release for one in selected_releases(variables)] == expected


@pytest.mark.parametrize("text", ["", " ", "24.13", "24.10 none"])
def test_what_is_no_release_is_named(text: str) -> None:
    with pytest.raises(SelectionError, match=r"TRITON_RELEASES: expected all, gate, or releases"):
        selected_releases({RELEASES: text})


def test_variants() -> None:
    release = find_release("24.10")
    assert selected_variants(release, {}) == ("cpu", "cuda12")
    assert selected_variants(release, {VARIANTS: "cpu"}) == ("cpu",)
    assert selected_variants(release, {VARIANTS: "cuda13"}) == ("cpu",)
    assert selected_variants(release, {VARIANTS: "cpu cuda12"}) == ("cpu", "cuda12")
    with pytest.raises(SelectionError, match=r"got rocm"):
        selected_variants(release, {VARIANTS: "cpu rocm"})


def test_images_are_made_on_the_repository_that_is_named() -> None:
    variables = {RELEASES: "24.10", VARIANTS: "cpu"}
    (official,) = selected_plans(variables)
    assert official.base_image == find_release("24.10").image
    (mirrored,) = selected_plans({**variables, IMAGE: "mirror.example.com/triton"})
    assert mirrored.base_image == "mirror.example.com/triton:24.10-py3"
    assert (mirrored.python, mirrored.tags) == (official.python, official.tags)


def test_the_stand_in_is_known_by_its_name() -> None:
    assert stand_in_name(find_release("23.10")) == f"{STAND_IN}:23.10-py3"
    assert on_stand_in({IMAGE: STAND_IN})
    assert not on_stand_in({})
    assert selected_plans({RELEASES: "24.10", IMAGE: STAND_IN})[0].base_image.startswith("nvcr.io")
