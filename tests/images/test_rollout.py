# SPDX-License-Identifier: Apache-2.0
"""Real servers are replaced under load, with the chart's settings, and no request is lost."""

from __future__ import annotations

import docker
import pytest

from ci import toolchain
from ci.chart import VALUE_SETS, documents, render
from ci.rollout.__main__ import CASES, complaints
from ci.rollout.pod import read_spec
from ci.rollout.proxy import requirement
from ci.rollout.rehearsal import rehearse

pytestmark = [pytest.mark.integration, pytest.mark.thorough, pytest.mark.timeout(600)]


@pytest.mark.parametrize("name", CASES)
def test_servers_are_replaced_under_load(
    engine: docker.DockerClient, image: str, name: str
) -> None:
    toolchain.ensure([requirement()])
    case = CASES[name]
    spec = read_spec(documents(render(VALUE_SETS["minimal"])))
    report = rehearse(engine, image, spec, layer=case.layer, pre_stop=case.pre_stop)
    print(report.table())
    assert list(complaints(case, report)) == []
