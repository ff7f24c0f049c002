# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import hcl2
import pytest
import yaml

from ci import image_plan
from ci.image_plan import (
    BAKE,
    DEVCONTAINER,
    DOCKERFILE,
    DOWNLOADS,
    PlanError,
    every_plan,
    outdated,
    plan_image,
    variants,
)
from ci.locks import LOCKS
from ci.monitoring.files import CONFIG
from ci.process import ROOT
from tritonserver_jax import __version__
from tritonserver_jax.releases import find_release, load_releases

TEXT = DOCKERFILE.read_text()
#: How Python's own file begins, by which uv knows it.
SYSCONFIG = (
    "# system configuration generated and used by the sysconfig module\nbuild_time_vars = {}\n"
)


def test_the_committed_files_are_what_the_release_data_says() -> None:
    assert outdated() == []


def test_variants_follow_the_cuda_of_a_release() -> None:
    assert variants(find_release("24.10")) == ("cpu", "cuda12")
    assert variants(find_release("25.12")) == ("cpu", "cuda13")
    assert variants(find_release("23.04")) == ("cpu",)
    with pytest.raises(
        PlanError, match=r"expected cpu or cuda12 for release 24.10 \(its CUDA is 12"
    ):
        plan_image(find_release("24.10"), "cuda13")
    with pytest.raises(PlanError, match="its CUDA is not known"):
        plan_image(find_release("23.04"), "cuda12")


def test_every_image_has_a_tag_for_good_and_one_that_moves_and_none_is_used_twice() -> None:
    plan = plan_image(find_release("24.10"), "cuda12")
    assert plan.tags == (f"{__version__}-triton24.10-cuda12", "24.10-cuda12")
    tags = [tag for plan in every_plan() for tag in plan.tags]
    assert len(tags) == len(set(tags))


def test_an_old_base_gets_a_python_of_its_own_and_a_newer_one_its_own() -> None:
    old, new = plan_image(find_release("24.10")), plan_image(find_release("24.11"))
    assert old.python_source == "standalone"
    assert old.python.startswith("/opt/tritonserver/backends/jax/python/cpython-3.12.")
    assert (new.python_source, new.python) == ("base", "/usr/bin/python3.12")


def test_every_image_takes_a_lock_that_there_is() -> None:
    for plan in every_plan():
        assert (LOCKS / f"requirements-cpu-py{plan.python_minor.replace('.', '')}.txt").is_file()
        assert plan.variant == "cpu" or (LOCKS / plan.requirements).is_file()


def test_the_dockerfile_takes_the_arguments_that_a_plan_gives_and_no_others() -> None:
    declared = {line.split()[1] for line in TEXT.splitlines() if line.startswith("ARG ")}
    plan = plan_image(find_release("24.10"))
    assert declared == {*plan.arguments(), *plan.source_arguments("", 0)}


def test_the_dockerfile_needs_no_frontend_from_a_registry() -> None:
    assert "syntax=" not in TEXT
    sources = [line.split()[1] for line in TEXT.splitlines() if line.startswith("FROM ")]
    stages = {line.split(" AS ")[1] for line in TEXT.splitlines() if line.startswith("FROM ")}
    known = {"${BASE_IMAGE}", "python-${PYTHON_SOURCE}", "scratch"}
    assert set(sources) <= known | stages


def test_labels_say_release_base_and_source() -> None:
    labels = plan_image(find_release("24.10")).labels("abc", 1704067200)
    assert labels["org.opencontainers.image.revision"] == "abc"
    assert labels["org.opencontainers.image.created"] == "2024-01-01T00:00:00Z"
    assert labels["org.opencontainers.image.base.name"] == "nvcr.io/nvidia/tritonserver:24.10-py3"
    assert labels["tritonserver-jax.triton.release"] == "24.10"
    assert not [value for value in labels.values() if "$" in value]


def unquoted(value: object) -> object:
    """hcl2 keeps the quotes of strings."""
    if isinstance(value, dict):
        return {str(unquoted(key)): unquoted(one) for key, one in value.items()}
    if isinstance(value, list):
        return [unquoted(one) for one in value]
    return value.strip('"') if isinstance(value, str) else value


def test_bake_builds_what_the_plans_say() -> None:
    parsed = hcl2.loads(BAKE.read_text())
    targets: dict[str, dict[str, object]] = {}
    for entry in parsed["target"]:
        for name, content in entry.items():
            found = unquoted(content)
            assert isinstance(found, dict)
            targets[name.strip('"')] = found
    plans = every_plan()
    for plan in plans:
        target = targets[plan.target]
        assert target["args"] == plan.arguments()
        assert target["target"] == "runtime"
        assert target["tags"] == [f"${{REGISTRY}}tritonserver-jax:{tag}" for tag in plan.tags]
    releases = len(load_releases())
    assert len(targets) == len(plans) + 2 * releases + 1


def test_uv_is_told_of_every_standalone_python_with_its_hash() -> None:
    known = json.loads(DOWNLOADS.read_text())
    for release in load_releases().values():
        python = release.image_python
        if python.source == "standalone":
            entry = known[f"cpython-{python.version}-linux-x86_64-gnu"]
            assert (entry["url"], entry["sha256"]) == (python.url, python.sha256)


def test_the_container_of_engineers_is_a_stage_of_the_dockerfile() -> None:
    content = json.loads(DEVCONTAINER.read_text().split("\n", 1)[1])
    build = content["build"]
    assert f" AS {build['target']}\n" in TEXT
    assert (DEVCONTAINER.parent / build["dockerfile"]).resolve() == DOCKERFILE
    assert (DEVCONTAINER.parent / build["context"]).resolve() == ROOT


def test_compose_runs_our_image_and_prometheus_reads_its_metrics() -> None:
    folder = DOCKERFILE.parent
    services = yaml.safe_load((folder / "compose.yaml").read_text())["services"]
    assert services["tritonserver"]["image"] == "${IMAGE:-tritonserver-jax:24.10}"
    scrape = yaml.safe_load(CONFIG.read_text())["scrape_configs"][0]
    assert scrape["static_configs"][0]["targets"] == ["tritonserver:8002"]


def test_what_differs_is_named_and_written_when_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "new" / "file"
    monkeypatch.setattr(image_plan, "FILES", {path: lambda: "text\n"})
    assert outdated() == [path]
    assert outdated(write=True) == [path]
    assert outdated() == []


def test_uv_lays_the_standalone_python_where_the_plan_says_and_looks_at_its_hash(
    tmp_path: Path,
) -> None:
    plan = plan_image(find_release("24.10"))
    archive = tmp_path / "python.tar.gz"
    with tarfile.open(archive, "w:gz") as files:
        for name, text, mode in (
            (f"python/bin/python{plan.python_minor}", "#!/bin/sh\n", 0o755),
            (
                f"python/lib/python{plan.python_minor}/_sysconfigdata__linux_x86_64-linux-gnu.py",
                SYSCONFIG,
                0o644,
            ),
        ):
            entry = tarfile.TarInfo(name)
            entry.mode, entry.size = mode, len(text)
            files.addfile(entry, io.BytesIO(text.encode()))
    known = json.loads(DOWNLOADS.read_text())
    (entry_of_python,) = known.values()
    entry_of_python["url"] = archive.as_uri()

    def install(sha256: str) -> subprocess.CompletedProcess[str]:
        entry_of_python["sha256"] = sha256
        listing = tmp_path / "downloads.json"
        listing.write_text(json.dumps(known))
        uv = os.environ.get("UV") or shutil.which("uv")
        assert uv is not None
        command = [uv, "python", "install", "--no-bin", "--no-cache", plan.python_version]
        options = [f"--python-downloads-json-url={listing}", f"--install-dir={tmp_path / 'python'}"]
        return subprocess.run([*command, *options], capture_output=True, text=True, check=False)

    refused = install("0" * 64)
    assert refused.returncode != 0
    assert "Hash mismatch" in refused.stderr
    done = install(hashlib.sha256(archive.read_bytes()).hexdigest())
    assert done.returncode == 0, done.stderr
    below = Path(plan.python).relative_to("/opt/tritonserver/backends/jax")
    assert (tmp_path / below).is_file()
