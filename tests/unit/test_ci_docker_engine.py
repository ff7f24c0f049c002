# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
from pathlib import Path

import pytest

from ci import docker_engine
from ci.docker_engine import EngineError, buildkit_client


def test_an_engine_that_was_named_and_does_not_answer_is_not_replaced(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    with (
        pytest.raises(EngineError, match=r"docker\.sock: expected .*; start that engine, or unset"),
        docker_engine.docker_engine(),
    ):
        pass


def test_a_user_who_may_not_start_one_is_told_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(docker_engine, "SOCKET", tmp_path / "none")
    monkeypatch.setattr(docker_engine, "connect", lambda: (_ for _ in ()).throw(EngineError("no")))
    with (
        pytest.raises(EngineError, match=r"start one \(sudo systemctl .*install docker\.io"),
        docker_engine.docker_engine(),
    ):
        pass


def test_an_engine_that_does_not_start_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, body in (("dockerd", "echo no overlay here; exit 3"), ("docker", "exit 0")):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o755)
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(docker_engine, "connect", lambda: (_ for _ in ()).throw(EngineError("no")))
    with (
        pytest.raises(EngineError, match=r"(?s)dockerd ended with 3; .*no overlay here"),
        docker_engine.docker_engine(),
    ):
        pass


def client(folder: Path, version: str, *, buildx: bool) -> None:
    folder.mkdir()
    program = folder / "docker"
    program.write_text(
        "#!/bin/sh\n"
        f'[ "$1" = --version ] && echo "Docker version {version}, build 1" && exit 0\n'
        f"exit {0 if buildx else 1}\n"
    )
    program.chmod(0o755)


def test_a_client_that_needs_a_plugin_it_lacks_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    client(tmp_path / "new", "28.2.2", buildx=False)
    client(tmp_path / "old", "20.10.24+dfsg1", buildx=False)
    client(tmp_path / "whole", "28.2.2", buildx=True)
    monkeypatch.setenv("PATH", f"{tmp_path}/new:{tmp_path}/old:/bin")
    assert buildkit_client() == [f"{tmp_path}/old/docker", "build"]
    monkeypatch.setenv("PATH", f"{tmp_path}/new:{tmp_path}/whole:/bin")
    assert buildkit_client() == [f"{tmp_path}/whole/docker", "build"]
