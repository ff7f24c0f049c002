# SPDX-License-Identifier: Apache-2.0
"""The packaged chart: the same bytes each time, with all that belongs to it."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
import yaml

from ci.build import source_date_epoch
from ci.chart import (
    VALUE_SETS,
    chart_file_name,
    package_chart,
    render,
)
from ci.chart_files import CHART
from tritonserver_jax import __version__


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return package_chart(tmp_path_factory.mktemp("package"))


def members(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        return {
            member.name: file.read()
            for member in archive
            if (file := archive.extractfile(member)) is not None
        }


def test_the_same_source_gives_the_same_bytes(package: Path, tmp_path: Path) -> None:
    again = package_chart(tmp_path / "again")
    assert package.name == chart_file_name() == f"tritonserver-jax-{__version__}.tgz"
    assert again.read_bytes() == package.read_bytes()
    assert again.stat().st_mtime == source_date_epoch()
    assert [path.name for path in again.parent.iterdir()] == [again.name]


def test_all_of_the_chart_is_in_it_and_nothing_else(package: Path) -> None:
    got = members(package)
    files = {path.relative_to(CHART.parent) for path in CHART.rglob("*") if path.is_file()}
    left_out = {path for path in files if path.parts[1] in {"ci", ".helmignore"}}
    assert set(got) - {"tritonserver-jax/.helmignore"} == {str(path) for path in files - left_out}
    chart = yaml.safe_load(got["tritonserver-jax/Chart.yaml"])
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


def test_it_is_rendered_as_the_folder_is(package: Path) -> None:
    for values in VALUE_SETS.values():
        assert render(values, chart=package) == render(values)
