# SPDX-License-Identifier: Apache-2.0
"""The packaged chart: the same bytes each time, through a registry and back."""

from __future__ import annotations

import hashlib
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from ci.build import source_date_epoch
from ci.chart import (
    VALUE_SETS,
    ChartError,
    chart_file_name,
    package_chart,
    pull_chart,
    push_chart,
    render,
)
from ci.chart_files import CHART
from ci.local_services import LocalServices, local_services
from ci.process import CommandError
from ci.tarballs import Packed, tar_gz
from tritonserver_jax import __version__


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return package_chart(tmp_path_factory.mktemp("package"))


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServices]:
    with local_services(tmp_path_factory.mktemp("services")) as running:
        yield running


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
    assert set(got) - {"tritonserver-jax/.helmignore"} == {
        str(path) for path in files - left_out
    }
    chart = yaml.safe_load(got["tritonserver-jax/Chart.yaml"])
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


def test_it_is_rendered_as_the_folder_is(package: Path) -> None:
    for values in VALUE_SETS.values():
        assert render(values, chart=package) == render(values)


def test_what_is_pulled_is_what_was_pushed(
    package: Path, services: LocalServices, tmp_path: Path
) -> None:
    given = services.variables
    registry = f"{given['CI_REGISTRY_IMAGE']}/charts"
    login = {"username": given["CI_REGISTRY_USER"], "password": given["CI_REGISTRY_PASSWORD"]}

    with pytest.raises(CommandError, match=r"(?i)unauthori[sz]ed|401"):
        push_chart(package, registry, plain_http=True)

    reference = push_chart(package, registry, plain_http=True, **login)
    name, _, digest = reference.partition("@")
    assert name == f"{registry}/tritonserver-jax"
    assert services.image_digests()[f"{name}:{__version__}"] == digest
    pulled = pull_chart(registry, tmp_path / "pulled", plain_http=True, **login)
    assert pulled.read_bytes() == package.read_bytes()

    # The same again changes nothing; another one of that version is refused, and both are named.
    assert push_chart(package, registry, plain_http=True, **login) == reference
    other = tmp_path / package.name
    changed = {
        name: Packed(content.replace(b"replicas: 2", b"replicas: 3"))
        for name, content in members(package).items()
    }
    other.write_bytes(tar_gz(changed, source_date_epoch()))
    with pytest.raises(ChartError, match="a version that is published never changes") as refused:
        push_chart(other, registry, plain_http=True, **login)
    for path in (package, other):
        assert hashlib.sha256(path.read_bytes()).hexdigest() in str(refused.value)
    assert services.image_digests()[f"{name}:{__version__}"] == digest


def test_a_password_is_in_no_message(package: Path, services: LocalServices) -> None:
    registry = f"{services.variables['CI_REGISTRY_IMAGE']}/charts"
    wrong = os.urandom(8).hex()
    with pytest.raises(CommandError) as raised:
        push_chart(package, registry, username="somebody", password=wrong, plain_http=True)
    assert wrong not in str(raised.value)
