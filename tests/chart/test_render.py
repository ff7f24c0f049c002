# SPDX-License-Identifier: Apache-2.0
"""Every set of values gives what clusters of every supported version take as it is."""

from __future__ import annotations

import re

import pytest

from ci.chart import MANIFESTS, VALUE_SETS, documents, lint, outdated_manifests
from tests.chart.conftest import Render
from tests.support.kubernetes import VERSIONS, problems

#: What a set of values needs that older versions have not.
SINCE = {"image-volume": "1.33"}


def number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


@pytest.mark.parametrize("values", VALUE_SETS)
def test_helm_finds_no_fault(values: str) -> None:
    assert "0 chart(s) failed" in lint(VALUE_SETS[values])


def test_helm_finds_no_fault_in_the_chart_as_it_is() -> None:
    assert "0 chart(s) failed" in lint()


@pytest.mark.parametrize("values", VALUE_SETS)
def test_clusters_take_it(objects: Render, values: str) -> None:
    rendered = objects(values)
    versions = [v for v in VERSIONS if number(v) >= number(SINCE.get(values, VERSIONS[0]))]
    assert [problem for version in versions for problem in problems(rendered, version)] == []


def test_what_a_cluster_would_drop_is_found(objects: Render) -> None:
    deployment = next(one for one in objects() if one["kind"] == "Deployment")
    deployment["spec"]["template"]["spec"]["terminationGracePeriod"] = 60
    assert any("terminationGracePeriod" in one for one in problems([deployment], VERSIONS[-1]))
    monitor = next(one for one in objects("monitoring") if one["kind"] == "PodMonitor")
    monitor["spec"]["podMetricsEndpoints"][0]["intervall"] = "5s"
    assert any("intervall" in one for one in problems([monitor], VERSIONS[-1]))


@pytest.mark.parametrize("values", VALUE_SETS)
def test_all_objects_are_of_one_release_and_one_namespace(objects: Render, values: str) -> None:
    rendered = objects(values)
    names = [(one["kind"], one["metadata"]["name"]) for one in rendered]
    assert len(names) == len(set(names))
    for one in rendered:
        metadata = one["metadata"]
        assert metadata["namespace"] == "models"
        assert metadata["labels"]["app.kubernetes.io/instance"] == "jax"
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", metadata["name"])


def test_whatever_selects_servers_selects_them_and_nothing_else(objects: Render) -> None:
    rendered = objects("monitoring") + objects("hpa")
    pod = next(one for one in rendered if one["kind"] == "Deployment")["spec"]["template"]
    test_pod = next(one for one in rendered if one["kind"] == "Pod")
    selectors = []
    for one in rendered:
        spec = one.get("spec", {})
        found = [spec[key] for key in ("selector", "podSelector") if key in spec]
        selectors += [selector.get("matchLabels", selector) for selector in found]
    assert len(selectors) >= 8
    for selector in selectors:
        assert selector.items() <= pod["metadata"]["labels"].items()
        assert not selector.items() <= test_pod["metadata"]["labels"].items()


def test_the_plain_manifests_are_what_the_chart_says() -> None:
    assert outdated_manifests() == []


def test_the_plain_manifests_have_nothing_of_helm_and_of_no_namespace() -> None:
    for path in sorted(MANIFESTS.glob("*.yaml")):
        text = path.read_text()
        rendered = documents(text)
        assert {one["kind"] for one in rendered} >= {"Deployment", "Service", "NetworkPolicy"}
        assert problems(rendered, VERSIONS[0]) == []
        assert not any("namespace" in one["metadata"] for one in rendered)
        below = text[text.index("\n---") :]
        assert "helm" not in below.lower()
