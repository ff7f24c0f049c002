# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from ci.image_plan import plan_image
from ci.image_sizes import RecordedSize, Size, record_size, recorded_sizes
from ci.images import MOST_ADDED_BYTES, ImageError, check_size
from tritonserver_jax.releases import find_release


def test_a_measurement_is_kept_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "sizes.json"
    assert recorded_sizes(path) == []
    record_size("24.10", "registry.local/team/base:24.10-py3", Size(30, 10), path)
    record_size("24.10", "registry.local/team/base:24.10-py3", Size(31, 10), path)
    record_size("23.10", "base:23.10-py3", Size(20, 10), path)
    assert recorded_sizes(path) == [
        RecordedSize("23.10", "base", Size(20, 10)),
        RecordedSize("24.10", "base", Size(31, 10)),
    ]
    assert "registry.local" not in path.read_text()


def test_a_cpu_image_that_adds_too_much_is_refused_and_a_gpu_image_is_not() -> None:
    release = find_release("24.10")
    too_much = Size(MOST_ADDED_BYTES + 2_000_000, 1_000_000)
    with pytest.raises(ImageError, match=r"triton24.10: expected at most 700 MB .* got 701 MB"):
        check_size(plan_image(release), too_much)
    check_size(plan_image(release, "cuda12"), too_much)
