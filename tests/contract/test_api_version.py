# SPDX-License-Identifier: Apache-2.0
"""What the core says to a server whose backend API is not the one that it needs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ci.base_image import sdk_headers
from ci.process import ROOT
from tests.support.api_host import REFUSED, answer_to
from tritonserver_jax.releases import DEFAULT_RELEASE, find_release


@pytest.mark.parametrize("version", [(1, 11), (1, 0), (2, 12), (0, 99)])
def test_another_api_is_refused_with_both_numbers(
    libraries: Path, api_host: Path, version: tuple[int, int]
) -> None:
    answer = answer_to(version, libraries / "libtriton_jax.so", api_host)
    assert answer == REFUSED.format(*version)


@pytest.mark.parametrize("version", [(1, 12), (1, 19), (1, 99)])
def test_this_api_and_its_later_minor_versions_are_accepted(
    libraries: Path, api_host: Path, version: tuple[int, int]
) -> None:
    answer = answer_to(version, libraries / "libtriton_jax.so", api_host)
    assert answer == "2 the version was accepted"


SOURCE = ROOT / "backend" / "src" / "core"


def sdk(folder: Path, replace: tuple[str, str] | None = None) -> Path:
    """An SDK whose headers declare what ours does, but for one replacement.

    It stands in for the official headers, which cannot be had here: inside a release image,
    TRITON_SDK_DIR=/opt/tritonserver gives the real ones.
    """
    text = (SOURCE / "triton_c_api.h").read_text(encoding="utf-8")
    if replace is not None:
        assert text.count(replace[0]) >= 1
        text = text.replace(replace[0], replace[1], 1)
    for name, header in sdk_headers(find_release(DEFAULT_RELEASE), text).items():
        path = folder / "include" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(header)
    return folder


def build_against(sdk_directory: Path, build: Path) -> subprocess.CompletedProcess[str]:
    """Configure the backend with TRITON_SDK_DIR, and build the comparison."""
    configured = subprocess.run(
        ["cmake", "-S", ROOT / "backend", "-B", build, f"-DTRITON_SDK_DIR={sdk_directory}"],
        capture_output=True,
        text=True,
        check=False,
    )
    if configured.returncode != 0:
        return configured
    return subprocess.run(
        ["cmake", "--build", build, "--target", "triton_c_api_check"],
        capture_output=True,
        text=True,
        check=False,
    )


def test_headers_that_agree_with_ours(tmp_path: Path) -> None:
    assert shutil.which("cmake")
    done = build_against(sdk(tmp_path / "sdk"), tmp_path / "build")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("replace", "words"),
    [
        (("X(TRITONSERVER_TYPE_BF16, 14)", "X(TRITONSERVER_TYPE_BF16, 15)"), "BF16"),
        (("X(TRITONSERVER_ERROR_INTERNAL, 1)", "X(TRITONSERVER_ERROR_INTERNAL, 9)"), "INTERNAL"),
        (("const char** location", "const void** location"), "TRITONBACKEND_BackendArtifacts"),
        (("uint64_t* version", "uint32_t* version"), "TRITONBACKEND_ModelVersion"),
    ],
    ids=["data type", "error code", "signature", "width"],
)
def test_headers_that_differ_from_ours_stop_the_build(
    tmp_path: Path, replace: tuple[str, str], words: str
) -> None:
    done = build_against(sdk(tmp_path / "sdk", replace), tmp_path / "build")
    assert done.returncode != 0
    assert words in done.stdout + done.stderr


def test_a_directory_without_headers_is_named(tmp_path: Path) -> None:
    done = build_against(tmp_path, tmp_path / "build")
    assert done.returncode != 0
    message = " ".join(done.stderr.split())
    assert f"TRITON_SDK_DIR={tmp_path} has no include/triton/core/tritonbackend.h" in message
    assert "such as /opt/tritonserver" in message
