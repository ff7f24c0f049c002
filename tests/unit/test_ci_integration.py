# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from ci.integration import GivenBackendError, artifacts_of, main


def test_a_library_needs_its_engine_beside_it(tmp_path: Path) -> None:
    library = tmp_path / "libtriton_jax.so"
    library.write_bytes(b"\x7fELF")
    with (
        pytest.raises(GivenBackendError, match=r"one folder, found no .*libtriton_jax_python\.so"),
        artifacts_of(library, ["24.10"]),
    ):
        pass


@pytest.mark.parametrize("content", [None, b"text"])
def test_what_is_neither_tarball_nor_library_is_named(
    tmp_path: Path, content: bytes | None, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "backend.tar.gz"
    if content is not None:
        path.write_bytes(content)
    assert main(["24.10", "--backend", str(path)]) == 1
    assert f"error: --backend {path}: expected a tarball of ours, or" in capsys.readouterr().err


@pytest.mark.parametrize("names", [[], ["a.tar.gz", "b.tar.gz"]])
def test_a_folder_has_one_tarball(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).touch()
    found = ", ".join(names) or "none"
    with (
        pytest.raises(GivenBackendError, match=f"one tarball in the folder, found {found}"),
        artifacts_of(tmp_path, ["24.10"]),
    ):
        pass


def test_an_unknown_release_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["24.13", "--backend", str(tmp_path / "libtriton_jax.so")]) == 1
    assert "got '24.13'" in capsys.readouterr().err
