# SPDX-License-Identifier: Apache-2.0
"""Moving tags go back to an earlier version, and to nothing else."""

from __future__ import annotations

import pytest

from ci.deploy import rollback
from ci.local_services import LocalServices
from tests.support.release import Images, Job, assert_no_secret, moving_tag
from tritonserver_jax import __version__
from tritonserver_jax.releases import DEFAULT_RELEASE

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

EARLIER = "0.0.9"


def test_a_moving_tag_goes_back_to_an_earlier_version_and_forth_again(
    publishing: Job,
    services: LocalServices,
    images: Images,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (image,) = publishing.plan().images
    images.make(image, version=EARLIER, content="earlier")
    earlier = images.push(services, f"{EARLIER}-triton{DEFAULT_RELEASE}", "nightly")
    assert publishing.deploy("images", "packages", "wheel", "release")[0] == 0
    newest = moving_tag(services)
    assert newest not in (None, earlier)
    everything = services.image_digests()

    # It is looked at first.
    assert rollback.main([EARLIER, "--dry-run"]) == 0
    assert f"{DEFAULT_RELEASE}: {newest} -> {earlier}" in capfd.readouterr().out
    assert moving_tag(services) == newest

    assert rollback.main([EARLIER]) == 0
    said = capfd.readouterr().out
    assert f"is {EARLIER} now, {earlier}; was {__version__}, {newest}" in said
    assert_no_secret(said, services)
    assert moving_tag(services) == earlier
    # No other tag was touched.
    name = f"{services.variables['CI_REGISTRY_IMAGE']}:{DEFAULT_RELEASE}"
    assert services.image_digests() == everything | {name: earlier}

    # By the digest, too; a second time changes nothing.
    for _ in range(2):
        assert rollback.main([str(newest), "--release", DEFAULT_RELEASE]) == 0
        assert moving_tag(services) == newest
    assert f"is {__version__} already" in capfd.readouterr().out


def test_what_no_version_has_is_refused(
    publishing: Job,
    services: LocalServices,
    images: Images,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (image,) = publishing.plan().images
    assert publishing.deploy("images")[0] == 0
    images.make(image, version="0.0.1", content="never released")
    images.client.images.get(f"{images.name}:0.0.1-triton{DEFAULT_RELEASE}").tag(
        images.name, "unreleased"
    )
    unreleased = images.push(services, "unreleased")
    before = services.image_digests()
    for target in ("0.0.8", "sha256:" + "0" * 64, unreleased):
        assert rollback.main([target]) == 1
        said = capfd.readouterr().err
        assert f"expected {target} under the tag of a version" in said
        assert f"{__version__}-triton{DEFAULT_RELEASE}" in said
        assert "Nothing was moved" in said
    assert rollback.main([__version__, "--release", "99.99"]) == 1
    assert "expected a release of releases.toml, got 99.99" in capfd.readouterr().err
    assert services.image_digests() == before
