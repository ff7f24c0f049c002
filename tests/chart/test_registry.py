# SPDX-License-Identifier: Apache-2.0
"""The packaged chart through a registry, and back."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ci.build import source_date_epoch
from ci.chart import ChartError, package_chart, pull_chart, push_chart
from ci.local_services import LocalServices, local_services
from ci.process import CommandError
from ci.tarballs import Packed, tar_gz
from tests.chart.test_package import members
from tritonserver_jax import __version__


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return package_chart(tmp_path_factory.mktemp("package"))


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServices]:
    with local_services(tmp_path_factory.mktemp("services")) as running:
        yield running


def test_what_is_pulled_is_what_was_pushed(
    package: Path, services: LocalServices, tmp_path: Path
) -> None:
    given = services.variables
    registry = f"{given['CI_REGISTRY_IMAGE']}/charts"
    login = {"username": given["CI_REGISTRY_USER"], "password": given["CI_REGISTRY_PASSWORD"]}

    with pytest.raises(CommandError, match="basic credential not found"):
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
