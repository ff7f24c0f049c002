# SPDX-License-Identifier: Apache-2.0
"""The server that the chart describes: safe, patient at its start, and honest at its end."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ci.chart import VALUE_SETS
from ci.image_plan import plan_image, variants
from ci.rollout.pod import read_spec
from tests.chart.conftest import Render
from tests.support.kubernetes import named
from tritonserver_jax.releases import find_release, load_releases

HEALTH_CHECK = "/opt/tritonserver/backends/jax/scripts/health_check.py"
REPOSITORY = "registry.gitlab.com/tritonserver-jax/tritonserver-jax"


def pod_of(objects: list[dict[str, Any]]) -> dict[str, Any]:
    spec: dict[str, Any] = named(objects, "Deployment")["spec"]["template"]["spec"]
    return spec


def server_of(objects: list[dict[str, Any]]) -> dict[str, Any]:
    (container,) = pod_of(objects)["containers"]
    return dict(container)


def option(arguments: list[str], name: str) -> str | None:
    found = [one.partition("=")[2] for one in arguments if one.partition("=")[0] == name]
    assert len(found) <= 1, arguments
    return found[0] if found else None


# -- safety ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", VALUE_SETS)
def test_every_pod_is_restricted(objects: Render, values: str) -> None:
    """What Kubernetes' Pod Security Standard calls restricted, and more."""
    rendered = objects(values)
    for pod in (pod_of(rendered), named(rendered, "Pod")["spec"]):
        whole = pod["securityContext"]
        assert whole["runAsNonRoot"] is True
        assert (whole["runAsUser"], whole["runAsGroup"], whole["fsGroup"]) == (1000, 1000, 1000)
        assert whole["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
        for container in pod["containers"]:
            own = container["securityContext"]
            assert own["readOnlyRootFilesystem"] is True
            assert own["allowPrivilegeEscalation"] is False
            assert own["capabilities"] == {"drop": ["ALL"]}
            assert not any("hostPort" in port for port in container.get("ports", []))
        assert not any("hostPath" in volume for volume in pod.get("volumes", []))


@pytest.mark.parametrize("values", VALUE_SETS)
def test_only_folders_of_a_bounded_size_can_be_written_to(objects: Render, values: str) -> None:
    pod = pod_of(objects(values))
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    for mount in server_of(objects(values))["volumeMounts"]:
        volume = volumes.pop(mount["name"])
        if "emptyDir" in volume and mount["name"] != "extra":
            assert "sizeLimit" in volume["emptyDir"]
        elif mount["name"] in {"models", "credentials"}:
            assert mount["readOnly"] is True
    assert volumes == {}, "mounted nowhere"


def test_a_large_number_of_a_user_stays_a_number(objects: Render) -> None:
    pod = pod_of(objects(pod__user=1000620000))
    assert pod["securityContext"]["runAsUser"] == 1000620000


def test_the_network_is_closed_but_for_what_is_needed(objects: Render) -> None:
    policy = named(objects(), "NetworkPolicy")["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert policy["egress"] == []
    assert [[port["port"] for port in rule["ports"]] for rule in policy["ingress"]] == [
        ["http", "grpc"],
        ["metrics"],
    ]
    assert not any("from" in rule for rule in policy["ingress"])

    policy = named(objects("s3"), "NetworkPolicy")["spec"]
    ports = [port["port"] for rule in policy["egress"] for port in rule["ports"]]
    assert ports == [53, 53, 9000]

    # Without a secret, the cloud's own service is asked who the pod is.
    policy = named(objects("s3-identity"), "NetworkPolicy")["spec"]
    assert {"ipBlock": {"cidr": "169.254.0.0/16"}} in policy["egress"][-1]["to"]

    policy = named(objects("monitoring"), "NetworkPolicy")["spec"]
    clients, prometheus = policy["ingress"]
    assert clients["from"] != prometheus["from"]
    assert policy["egress"][1]["to"] == [{"ipBlock": {"cidr": "10.0.0.0/8"}}]


# -- which image, which models ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["23.04", "24.10", "25.12"])
def test_the_image_is_the_one_that_is_released(objects: Render, name: str) -> None:
    release = find_release(name)
    for variant in variants(release):
        gpus = 0 if variant == "cpu" else 2
        server = server_of(objects(image__release=name, gpu__count=gpus))
        assert server["image"] == f"{REPOSITORY}:{plan_image(release, variant).tags[0]}"
        assert server["resources"]["limits"].get("nvidia.com/gpu") == (gpus or None)


def test_a_digest_and_a_tag_of_ones_own_are_taken(objects: Render) -> None:
    digest = f"sha256:{'0' * 64}"
    server = server_of(objects(image__digest=digest))
    assert server["image"] == f"{REPOSITORY}:{plan_image(find_release('24.10')).tags[0]}@{digest}"
    assert server_of(objects(image__tag="mine"))["image"] == f"{REPOSITORY}:mine"


def test_helm_tests_with_the_very_image(objects: Render) -> None:
    for values in VALUE_SETS:
        (container,) = named(objects(values), "Pod")["spec"]["containers"]
        assert container["image"] == server_of(objects(values))["image"]
        assert container["command"][:2] == [HEALTH_CHECK, "--url=jax-tritonserver-jax:8000"]


def test_a_gpu_is_asked_for_and_its_taint_put_up_with(objects: Render) -> None:
    pod = pod_of(objects("gpu"))
    assert pod["runtimeClassName"] == "nvidia"
    assert pod["tolerations"] == [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    ]
    server = server_of(objects("gpu"))
    assert server["resources"]["limits"] == {"memory": "16Gi", "nvidia.com/gpu": 1}
    assert "--backend-config=jax,memory-fraction=0.8" in server["args"]
    assert "tolerations" not in pod_of(objects())


def test_models_of_a_claim(objects: Render) -> None:
    rendered = objects("bare")
    arguments = server_of(rendered)["args"]
    assert option(arguments, "--model-repository") == "/models"
    assert option(arguments, "--model-control-mode") == "explicit"
    assert option(arguments, "--load-model") == "digits"
    mount = next(m for m in server_of(rendered)["volumeMounts"] if m["name"] == "models")
    assert mount["subPath"] == "triton/models"
    assert option(server_of(objects())["args"], "--model-control-mode") is None


@pytest.mark.parametrize(
    ("values", "url", "variables"),
    [
        (
            "s3",
            "s3://https://minio.storage:9000/models/production",
            {
                "AWS_ACCESS_KEY_ID": False,
                "AWS_DEFAULT_REGION": True,
                "AWS_SECRET_ACCESS_KEY": False,
                "AWS_SESSION_TOKEN": True,
            },
        ),
        ("s3-identity", "s3://bucket/models", {}),
        (
            "azure",
            "as://account/container/models",
            {"AZURE_STORAGE_ACCOUNT": False, "AZURE_STORAGE_KEY": False},
        ),
        ("gcs", "gs://bucket/models", {}),
    ],
)
def test_models_of_an_object_store(
    objects: Render, values: str, url: str, variables: dict[str, bool]
) -> None:
    server = server_of(objects(values))
    assert option(server["args"], "--model-repository") == url
    assert "models" not in {mount["name"] for mount in server["volumeMounts"]}
    from_secret = {
        one["name"]: one["valueFrom"]["secretKeyRef"]
        for one in server.get("env", [])
        if "valueFrom" in one
    }
    assert {name: ref["optional"] for name, ref in from_secret.items()} == variables
    assert all(ref["name"] == "models-credentials" for ref in from_secret.values())
    assert all(ref["key"] == name for name, ref in from_secret.items())
    account = named(objects(values), "ServiceAccount")
    assert ("annotations" in account["metadata"]) == (values == "s3-identity")


def test_credentials_of_gcs_are_a_file(objects: Render) -> None:
    server = server_of(objects("gcs"))
    (variable,) = server["env"]
    assert variable["name"] == "GOOGLE_APPLICATION_CREDENTIALS"
    mount = next(one for one in server["volumeMounts"] if one["name"] == "credentials")
    assert variable["value"] == f"{mount['mountPath']}/credentials.json"
    (volume,) = [v for v in pod_of(objects("gcs"))["volumes"] if v["name"] == "credentials"]
    assert volume["secret"]["secretName"] == "models-credentials"


def test_models_of_an_image(objects: Render) -> None:
    pod = pod_of(objects("image-volume"))
    (volume,) = [one for one in pod["volumes"] if one["name"] == "models"]
    assert volume["image"] == {
        "reference": "registry.example.com/models:7",
        "pullPolicy": "IfNotPresent",
    }
    assert pod["imagePullSecrets"] == [{"name": "registry"}]


# -- start, readiness, end -------------------------------------------------------------------------


def test_a_server_may_compile_as_long_as_it_is_given(objects: Render) -> None:
    for seconds in (30, 901):
        rendered = objects(startup__seconds=seconds)
        probe = server_of(rendered)["startupProbe"]
        assert probe["httpGet"] == {"path": "/v2/health/live", "port": "http"}
        assert probe["failureThreshold"] == math.ceil(seconds / probe["periodSeconds"])
        # A rollout that is waited for must not be called a failure before.
        assert named(rendered, "Deployment")["spec"]["progressDeadlineSeconds"] > seconds


def test_ready_is_a_server_all_of_whose_models_are(objects: Render) -> None:
    probe = server_of(objects())["readinessProbe"]
    assert probe["httpGet"] == {"path": "/v2/health/ready", "port": "http"}
    probe = server_of(objects("image-volume"))["readinessProbe"]
    assert probe["exec"]["command"] == [HEALTH_CHECK, "--no-infer", "--timeout=10"]
    assert probe["timeoutSeconds"] > 10


def test_a_busy_server_is_not_restarted_soon(objects: Render) -> None:
    probe = server_of(objects())["livenessProbe"]
    assert probe["httpGet"]["path"] == "/v2/health/live"
    assert probe["periodSeconds"] * probe["failureThreshold"] >= 60


@pytest.mark.parametrize("seconds", [20, 61, 300, 7200])
def test_the_end_is_made_from_one_value(objects: Render, seconds: int) -> None:
    rendered = objects(drain__seconds=seconds)
    arguments = server_of(rendered)["args"]
    spec = read_spec(rendered)
    program, slept = spec.pre_stop
    timeout = option(arguments, "--exit-timeout-secs")
    age = option(arguments, "--grpc-max-connection-age")
    assert timeout is not None
    assert age is not None
    assert (program, spec.grace_seconds) == ("sleep", seconds)
    # Some is left for the models to be given up, which takes JAX seconds.
    assert int(slept) + int(timeout) <= seconds - 5
    assert int(timeout) >= int(slept) >= 5
    # Every gRPC connection is given up while the server still takes requests.
    assert 1.1 * int(age) / 1000 < 0.6 * int(slept)


def test_grpc_connections_end_only_where_the_server_can_and_may_do_so(objects: Render) -> None:
    name = "--grpc-max-connection-age"
    for release in load_releases().values():
        known = "grpc_connection_age" in release.features
        arguments = server_of(objects(image__release=release.release))["args"]
        assert (option(arguments, name) is not None) == known
    assert option(server_of(objects("azure"))["args"], name) is None
    # A stream may take as long as it likes.
    assert option(server_of(objects())["args"], f"{name}-grace") is None


def test_no_server_goes_before_another_is_there(objects: Render) -> None:
    strategy = named(objects(), "Deployment")["spec"]["strategy"]["rollingUpdate"]
    assert strategy == {"maxSurge": 1, "maxUnavailable": 0}
    assert named(objects(), "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1
    assert strategy != named(objects("gpu"), "Deployment")["spec"]["strategy"]["rollingUpdate"]


def test_servers_are_spread(objects: Render) -> None:
    def rules(values: str) -> dict[str, str]:
        found = pod_of(objects(values)).get("topologySpreadConstraints", [])
        return {one["topologyKey"]: one["whenUnsatisfiable"] for one in found}

    node, zone = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
    assert rules("minimal") == {node: "ScheduleAnyway", zone: "ScheduleAnyway"}
    assert rules("image-volume") == {node: "DoNotSchedule", zone: "ScheduleAnyway"}
    assert rules("bare") == {}


def test_compiled_programs_are_kept(objects: Render) -> None:
    option_name = "--backend-config=jax,compile-cache=/cache"
    for values, kind in (("minimal", "emptyDir"), ("image-volume", "persistentVolumeClaim")):
        assert option_name in server_of(objects(values))["args"]
        (volume,) = [v for v in pod_of(objects(values))["volumes"] if v["name"] == "compile-cache"]
        assert kind in volume
    assert option_name not in server_of(objects("bare"))["args"]


# -- how many --------------------------------------------------------------------------------------


def test_one_decides_how_many_servers_there_are(objects: Render) -> None:
    assert named(objects(), "Deployment")["spec"]["replicas"] == 2
    for values, kind in (
        ("hpa", "HorizontalPodAutoscaler"),
        ("hpa-queue", "HorizontalPodAutoscaler"),
        ("keda", "ScaledObject"),
    ):
        rendered = objects(values)
        assert "replicas" not in named(rendered, "Deployment")["spec"]
        scaled = named(rendered, kind)["spec"]["scaleTargetRef"]
        assert scaled["name"] == named(rendered, "Deployment")["metadata"]["name"]


def test_the_autoscaler_of_kubernetes_asks_for_cpu_or_for_the_time_in_the_queue(
    objects: Render,
) -> None:
    (metric,) = named(objects("hpa"), "HorizontalPodAutoscaler")["spec"]["metrics"]
    assert metric["resource"]["target"] == {"type": "Utilization", "averageUtilization": 80}
    (metric,) = named(objects("hpa-queue"), "HorizontalPodAutoscaler")["spec"]["metrics"]
    assert metric["pods"]["metric"]["name"] == "triton_queue_milliseconds"
    assert metric["pods"]["target"] == {"type": "AverageValue", "averageValue": "12500m"}
