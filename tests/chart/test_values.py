# SPDX-License-Identifier: Apache-2.0
"""What cannot be meant is refused, in words that say what to do."""

from __future__ import annotations

import json
import re

import pytest
import yaml

from ci.chart import VALUE_SETS, render
from ci.chart_files import CHART, outdated, value_table
from ci.process import CommandError


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        # What the schema says.
        ({"replica": 3}, r"additional properties 'replica' not allowed"),
        ({"replicas": 0}, r"/replicas.*minimum: got 0, want 1"),
        ({"replicas": "two"}, r"/replicas.*got string, want integer"),
        ({"image.release": "24.13"}, r"/image/release.*must be one of '23.04'"),
        ({"image.variant": "rocm"}, r"/image/variant.*'auto', 'cpu', 'cuda12'"),
        ({"image.digest": "latest"}, r"/image/digest.*does not match pattern"),
        ({"models.source": "ftp"}, r"/models/source.*'claim', 'objectStore'"),
        ({"models.objectStore.url": "https://x"}, r"/models/objectStore/url.*\(s3\|gs\|as\)://"),
        ({"compileCache.size": "2GB"}, r"/compileCache/size.*does not match pattern"),
        ({"drain.seconds": 5}, r"/drain/seconds.*minimum: got 5, want 20"),
        ({"server.args": ["exit-on-error"]}, r"/server/args/0.*does not match pattern"),
        ({"gpu.count": -1}, r"/gpu/count.*minimum"),
        ({"monitoring.interval": "often"}, r"/monitoring/interval.*does not match pattern"),
        ({"rollout.maxSurge": "half"}, r"/rollout/maxSurge.*does not match pattern"),
        # What it cannot say.
        (
            {"models.claim.name": ""},
            r"models\.claim\.name: expected the PersistentVolumeClaim.*--set",
        ),
        ({"models.source": "objectStore"}, r"models\.objectStore\.url: expected where"),
        ({"models.source": "image"}, r"models\.image\.reference: expected the image"),
        ({"gpu.count": 1, "image.release": "23.04"}, r"gpu\.count: release 23\.04 has no image"),
        ({"image.variant": "cuda13"}, r"image\.variant: expected cpu or cuda12 for release 24\.10"),
        ({"autoscaling.kind": "keda"}, r"autoscaling\.keda\.prometheus: expected the address"),
        (
            {"autoscaling.kind": "hpa", "autoscaling.minReplicas": 20},
            r"minReplicas is 20 and maxReplicas 10",
        ),
        (
            {"autoscaling.kind": "hpa", "resources": {"requests": None}},
            r"cpu is a share of resources\.requests\.cpu",
        ),
        ({"rollout.maxSurge": 0}, r"maxSurge and maxUnavailable are both 0"),
        ({"rollout.maxSurge": "0%"}, r"maxSurge and maxUnavailable are both 0"),
        ({"server.args": ["--exit-timeout-secs=3"]}, r"made from drain\.seconds; change that"),
        ({"server.args": ["--http-port", "--x"]}, r"--http-port is what the probes"),
        ({"server.backendConfig": {"compile-cache": "/x"}}, r"made from compileCache"),
        ({"resources.limits": {"nvidia.com/gpu": 1}}, r"made from gpu\.count"),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)
def test_nonsense_is_refused(sets: dict[str, object], words: str) -> None:
    with pytest.raises(CommandError) as raised:
        render(VALUE_SETS["minimal"], sets=sets)
    said = " ".join(str(raised.value).split())
    assert re.search(words, said), said


@pytest.mark.parametrize("kubernetes", ["1.30.0", "1.32.4"])
def test_a_cluster_that_is_too_old_for_the_values_is_told_apart(kubernetes: str) -> None:
    words = "mounted from Kubernetes 1.3[13] on, this is v" + re.escape(kubernetes)
    with pytest.raises(CommandError, match=words):
        render(VALUE_SETS["image-volume"], kubernetes=kubernetes)


def test_a_cluster_that_is_too_old_for_the_chart_is_refused() -> None:
    with pytest.raises(CommandError, match=r"kubeVersion: >=1\.28"):
        render(VALUE_SETS["minimal"], kubernetes="1.27.9")


def test_the_files_are_what_they_are_made_of() -> None:
    assert outdated() == []


def test_the_defaults_are_those_of_the_schema() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    table = value_table()
    assert len(table) > 60
    for path, shown, meaning in table:
        node = values
        for part in path.split("."):
            node = node[part]
        assert shown in (node, json.dumps(node)), path
        assert meaning.endswith("."), path


def test_every_value_is_used_and_every_used_value_is_declared() -> None:
    text = "".join(path.read_text() for path in sorted(CHART.glob("templates/**/*.*")))
    # `$scaling.keda.prometheus` after `$scaling := .Values.autoscaling`.
    for name, path in re.findall(r"(\$\w+) := \.Values\.([\w.]+)", text):
        text = re.sub(rf"{re.escape(name)}((?:\.\w+)+)", rf".Values.{path}\1", text)
    used = set(re.findall(r"\.Values\.(\w+(?:\.\w+)*)", text))
    declared = {path for path, _, _ in value_table()}
    groups = {path.rpartition(".")[0] for path in declared}
    assert {
        path for path in used if path not in declared | groups and "resources" not in path
    } == set()
    assert declared - used == set()
