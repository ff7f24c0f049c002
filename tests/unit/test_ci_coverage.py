# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from ci.coverage import main


def test_what_cannot_be_covered_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["core", "rust"])
    assert "expected python or core, got rust" in capsys.readouterr().err
