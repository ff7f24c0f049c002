# SPDX-License-Identifier: Apache-2.0
"""What the command ``tune`` refuses before it starts anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tritonserver_jax.cli.app import make_app


def _model(repository: Path, name: str) -> None:
    (repository / name).mkdir(parents=True)
    (repository / name / "config.pbtxt").write_text('backend: "jax"\n', encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--protocol", "carrier-pigeon"], "--protocol: expected grpc, http or shm"),
        (["--shape", "X"], "--shape: expected INPUT:DIMS, such as X:3,224,224; got 'X'"),
        (["--shape", "X:3,-1"], "--shape: expected INPUT:DIMS"),
        (["--artifact", "a", "--backends", "b"], "expected one of them"),
        ([], "which model? found one, two"),
    ],
)
def test_wrong_options_are_named(tmp_path: Path, options: list[str], said: str) -> None:
    _model(tmp_path, "one")
    _model(tmp_path, "two")
    result = CliRunner().invoke(make_app(), ["tune", str(tmp_path), *options])
    assert result.exit_code == 2
    assert said in result.output


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(make_app(), ["tune", str(tmp_path / "none")])
    assert result.exit_code == 2
    assert f"{tmp_path / 'none'}: expected a folder that holds models, found none" in result.output
