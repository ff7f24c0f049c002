# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tritonserver_jax.releases import DEFAULT_RELEASE, find_release
from tritonserver_jax.server import ServerDistribution, ServerError, TritonServer, obtain_server
from tritonserver_jax.server.ports import HOST, PortReservation

EXPLICIT = "--model-control-mode=explicit"


@pytest.fixture(scope="module")
def distribution() -> ServerDistribution:
    return obtain_server(find_release(DEFAULT_RELEASE))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    return folder


def add_model(repository: Path, name: str, code: str) -> None:
    version = repository / name / "1"
    version.mkdir(parents=True)
    (repository / name / "config.pbtxt").write_text(
        'backend: "python"\n'
        'input [{ name: "X", data_type: TYPE_FP32, dims: [1] }]\n'
        'output [{ name: "Y", data_type: TYPE_FP32, dims: [1] }]\n'
        "instance_group [{ kind: KIND_CPU }]\n"
    )
    (version / "model.py").write_text(code)


# Answers nothing: only its state matters here.
GOOD = "class TritonPythonModel:\n    def execute(self, requests):\n        return []\n"
BROKEN = "raise RuntimeError('no such weights: w.bin')\n"


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def server(
    distribution: ServerDistribution, repository: Path, *args: str, log_path: Path | None = None
) -> TritonServer:
    return TritonServer(
        distribution,
        [repository],
        backend_directory=distribution.backend_directory,
        extra_args=args,
        # The python backend imports numpy, and takes its environment from the python3 on PATH.
        env={"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
        log_path=log_path,
    )


def test_it_starts_answers_and_ends_with_exit_code_0(
    distribution: ServerDistribution, repository: Path, tmp_path: Path
) -> None:
    log = tmp_path / "logs" / "server.log"
    with server(distribution, repository, EXPLICIT, log_path=log) as triton:
        triton.wait_live(30)
        triton.wait_ready(30)
        assert triton.model_index() == []
        assert "nv_cpu_utilization" in triton.metrics()
        for url in (triton.http_url, triton.grpc_url, triton.metrics_url):
            assert url.startswith("127.0.0.1:")
            with socket.create_connection((HOST, int(url.split(":")[1])), timeout=5):
                pass
        pid = triton.pid
        assert triton.returncode is None
        triton.terminate()
        assert triton.stop() == 0
        assert triton.stop() == 0
    assert not alive(pid)
    assert "Started HTTPService" in log.read_text()


def test_it_listens_on_this_machine_only(
    distribution: ServerDistribution, repository: Path
) -> None:
    with server(distribution, repository, EXPLICIT) as triton:
        triton.wait_live(30)
        urls = [triton.http_url, triton.grpc_url, triton.metrics_url]
        ports = {int(url.split(":")[1]) for url in urls}
        found = set()
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            for line in Path(table).read_text().splitlines()[1:]:
                address, port = line.split()[1].split(":")
                if int(port, 16) in ports and line.split()[3] == "0A":
                    found.add(address)
        # 127.0.0.1, also as gRPC has it: mapped into IPv6.
        assert found == {"0100007F", "0000000000000000FFFF00000100007F"}


def test_it_runs_without_metrics_too(distribution: ServerDistribution, repository: Path) -> None:
    with server(distribution, repository, EXPLICIT, "--allow-metrics=false") as triton:
        triton.wait_live(30)
        with pytest.raises(ServerError, match="/metrics: expected an answer"):
            triton.metrics()
        assert triton.stop() == 0


def test_the_log_outlives_the_server(distribution: ServerDistribution, repository: Path) -> None:
    with server(distribution, repository, EXPLICIT) as triton:
        triton.wait_live(30)
        path = triton._log_path
    assert path is not None
    assert not path.exists()
    assert "Started HTTPService" in triton.log_text()


def test_a_process_that_dies_is_reported_at_once_with_its_log(
    distribution: ServerDistribution, repository: Path
) -> None:
    begin = time.monotonic()
    with (
        pytest.raises(ServerError, match="unrecognized option '--no-such-option'"),
        server(distribution, repository, "--no-such-option") as triton,
    ):
        triton.wait_live(60)
    assert time.monotonic() - begin < 10


def test_a_process_that_dies_unasked_fails_the_with_statement(
    distribution: ServerDistribution, repository: Path
) -> None:
    def run() -> None:
        with server(distribution, repository, EXPLICIT) as triton:
            triton.wait_live(30)
            os.kill(triton.pid, signal.SIGKILL)
            os.waitid(os.P_PID, triton.pid, os.WEXITED | os.WNOWAIT)

    with pytest.raises(ServerError, match="ended by itself, exit -9"):
        run()


def test_the_deadline_shows_the_log(distribution: ServerDistribution, repository: Path) -> None:
    begin = time.monotonic()
    with server(distribution, repository, EXPLICIT) as triton:
        triton.wait_live(30)
        with pytest.raises(ServerError, match=r"within 0\.5 s") as raised:
            triton.wait_model("absent", timeout=0.5)
    assert "Started HTTPService" in str(raised.value)
    assert time.monotonic() - begin < 20


def test_a_server_that_ignores_sigterm_is_killed_and_reported(
    distribution: ServerDistribution, repository: Path
) -> None:
    with server(distribution, repository, EXPLICIT) as triton:
        triton.wait_live(30)
        pid = triton.pid
        os.kill(pid, signal.SIGSTOP)
        with pytest.raises(ServerError, match=r"within 0\.5 s of SIGTERM, was still there and was"):
            triton.stop(timeout=0.5)
        assert triton.returncode == -signal.SIGKILL
    assert not alive(pid)


def test_several_servers_run_side_by_side(
    distribution: ServerDistribution, repository: Path
) -> None:
    with contextlib.ExitStack() as stack:
        servers = [
            stack.enter_context(server(distribution, repository, EXPLICIT)) for _ in range(3)
        ]
        for triton in servers:
            triton.wait_ready(60)
        urls = [u for s in servers for u in (s.http_url, s.grpc_url, s.metrics_url)]
        assert len(set(urls)) == 9
        assert [s.stop() for s in servers] == [0, 0, 0]


def test_a_port_taken_in_the_meantime_costs_another_try(
    distribution: ServerDistribution, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as thief:
        thief.bind((HOST, 0))
        thief.listen()
        stolen = thief.getsockname()[1]
        real = PortReservation.__init__
        tries: list[list[int]] = []

        def first_on_a_taken_port(self: PortReservation, *arguments: Any) -> None:
            real(self, *arguments)
            if not tries:
                self.ports[0] = stolen
            tries.append(list(self.ports))

        monkeypatch.setattr(PortReservation, "__init__", first_on_a_taken_port)
        with server(distribution, repository, EXPLICIT) as triton:
            triton.wait_live(60)
            assert len(tries) == 2
            assert triton.http_url == f"{HOST}:{tries[1][0]}"
            assert triton.stop() == 0


def test_models_are_loaded_asked_and_unloaded(
    distribution: ServerDistribution, repository: Path
) -> None:
    add_model(repository, "good", GOOD)
    with server(distribution, repository, EXPLICIT) as triton:
        triton.wait_live(30)
        assert triton.model_state("good").state == ""
        triton.load_model("good")
        triton.wait_model("good", timeout=30)
        triton.wait_model("good", version="1", timeout=30)
        state = triton.model_state("good")
        assert (state.version, state.state, state.failed) == ("1", "READY", False)
        triton.load_model(
            "good",
            config={
                "backend": "python",
                "input": [{"name": "X", "data_type": "TYPE_FP32", "dims": [2]}],
                "output": [{"name": "Y", "data_type": "TYPE_FP32", "dims": [2]}],
                "instance_group": [{"kind": "KIND_CPU"}],
            },
        )
        url = f"http://{triton.http_url}/v2/models/good/config"
        assert b'"dims":[2]' in urllib.request.urlopen(url).read()
        triton.unload_model("good")
        assert triton.model_state("good").reason == "unloaded"
        with pytest.raises(ServerError, match="model bad: expected in the repository, got good"):
            triton.model_state("bad")
        assert triton.stop() == 0


def test_a_model_that_fails_is_reported_at_once_with_the_reason(
    distribution: ServerDistribution, repository: Path
) -> None:
    add_model(repository, "good", GOOD)
    add_model(repository, "broken", BROKEN)
    with server(distribution, repository, "--exit-on-error=false") as triton:
        triton.wait_live(60)
        triton.wait_model("good", timeout=60)
        begin = time.monotonic()
        with pytest.raises(ServerError, match=r"model broken version 1: .*no such weights: w\.bin"):
            triton.wait_model("broken", timeout=60)
        with pytest.raises(ServerError, match=r"model broken version 1: .*no such weights: w\.bin"):
            triton.wait_ready(60)
        assert time.monotonic() - begin < 10
        assert triton.model_state("broken").failed
        with pytest.raises(ServerError, match="load: expected status 200, got 503: explicit"):
            triton.load_model("broken")  # refused: the server is not in explicit mode
        assert triton.stop() == 0


def test_load_model_gives_the_servers_words(
    distribution: ServerDistribution, repository: Path
) -> None:
    add_model(repository, "broken", BROKEN)
    with server(distribution, repository, EXPLICIT) as triton:
        triton.wait_live(60)
        with pytest.raises(ServerError, match=r"load failed for model 'broken': .*no such weights"):
            triton.load_model("broken")
        assert triton.stop() == 0


def test_the_server_does_not_outlive_a_killed_parent(
    distribution: ServerDistribution, repository: Path
) -> None:
    code = (
        "import sys, time; from pathlib import Path; "
        "from tritonserver_jax.releases import find_release; "
        "from tritonserver_jax.server import TritonServer, obtain_server; "
        "d = obtain_server(find_release(sys.argv[1])); "
        "s = TritonServer(d, [Path(sys.argv[2])], backend_directory=d.backend_directory, "
        "extra_args=['--model-control-mode=explicit']); s.start(); s.wait_live(60); "
        "print(s.pid, flush=True); time.sleep(600)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code, DEFAULT_RELEASE, str(repository)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert alive(pid)
    parent.kill()
    parent.communicate()
    deadline = time.monotonic() + 15
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(pid)


def test_ports_are_reserved_until_they_are_released() -> None:
    with PortReservation(3) as first:
        assert len(set(first.ports)) == 3
        port = first.ports[0]
        with PortReservation(3) as second:
            assert not set(first.ports) & set(second.ports)
        with socket.socket() as probe:  # reserved, not bound: the server has to bind it
            probe.bind((HOST, port))


def test_wrong_folders_are_named(distribution: ServerDistribution, tmp_path: Path) -> None:
    absent = tmp_path / "absent"
    with pytest.raises(ServerError, match="absent: expected a folder, found none"):
        TritonServer(distribution, [absent], backend_directory=tmp_path)
    with pytest.raises(ServerError, match="absent: expected a folder, found none"):
        TritonServer(distribution, [tmp_path], backend_directory=absent)
    with pytest.raises(ServerError, match="at least one folder"):
        TritonServer(distribution, [], backend_directory=tmp_path)
    with pytest.raises(ServerError, match="was not started"):
        _ = TritonServer(distribution, [tmp_path], backend_directory=tmp_path).http_url
