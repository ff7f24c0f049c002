# SPDX-License-Identifier: Apache-2.0
"""What docs/clients.md shows, run as it stands there against a real server."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ci.process import ROOT
from tests.support.models import write_model
from tritonserver_jax.server import TritonServer

pytestmark = pytest.mark.integration

PAGE = (ROOT / "docs" / "clients.md").read_text(encoding="utf-8")
#: A block, and the output that the page shows right after it.
_BLOCK = re.compile(r"```(python|sh)\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.DOTALL)
#: What the page says that some servers want of a model with a stream.
DECOUPLED = 'backend: "jax"\nmodel_transaction_policy { decoupled: true }\n'
_MODEL = re.compile(r"# models/(\w+)/1/model\.py\n")


def blocks(language: str) -> list[tuple[str, str]]:
    """The blocks of a language that clients run, each with its output."""
    return [
        (code, output)
        for found, code, output in _BLOCK.findall(PAGE)
        if found == language and not _MODEL.match(code)
    ]


def addressed(code: str, server: TritonServer) -> str:
    """The code for a server that is not at the default ports."""
    code = code.replace("localhost:8000", server.http_url)
    return code.replace("localhost:8001", server.grpc_url)


@pytest.fixture(scope="module")
def shown(server: TritonServer, repository: Path) -> TritonServer:
    """The server, with the models of the page."""
    models = [code for found, code, _ in _BLOCK.findall(PAGE) if _MODEL.match(code)]
    assert len(models) == 2
    for code in models:
        match = _MODEL.match(code)
        assert match
        config = DECOUPLED if "def stream(" in code else None
        write_model(repository, match[1], code, config=config)
        server.load_model(match[1])
    shutil.copytree(ROOT / "examples" / "add_sub", repository / "add_sub", dirs_exist_ok=True)
    server.load_model("add_sub")
    return server


@pytest.mark.parametrize(("code", "output"), blocks("python"), ids=["one", "sequence", "stream"])
def test_python_prints_what_the_page_says(
    shown: TritonServer, tmp_path: Path, code: str, output: str
) -> None:
    script = tmp_path / "client.py"
    script.write_text(addressed(code, shown))
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (0, output), done.stderr


def curl(code: str, server: TritonServer, tmp_path: Path) -> str:
    if shutil.which("curl") is None:
        pytest.skip("no curl on PATH")
    script = tmp_path / "client.sh"
    script.write_text(addressed(code, server))
    return subprocess.run(
        ["sh", script], capture_output=True, text=True, timeout=120, check=True
    ).stdout


def test_curl_gets_an_answer_and_a_stream(shown: TritonServer, tmp_path: Path) -> None:
    (infer, _), (stream, _) = blocks("sh")
    outputs = {one["name"]: one for one in json.loads(curl(infer, shown, tmp_path))["outputs"]}
    assert outputs["OUTPUT0"]["data"] == [5, 5, 5, 5]
    assert outputs["OUTPUT1"]["data"] == [-3, -1, 1, 3]
    lines = [line for line in curl(stream, shown, tmp_path).splitlines() if line]
    events = [json.loads(line.removeprefix("data: ")) for line in lines]
    assert [(one["left"], one["text"]) for one in events] == [
        (left, f"{left} to go") for left in (3, 2, 1)
    ]


@pytest.mark.parametrize(
    ("model", "name", "datatype", "statuses"),
    [("total", "x", "FP32", {"400"}), ("countdown", "n", "INT32", {"501", "400"})],
)
def test_what_is_refused_has_the_status_that_the_page_says(
    shown: TritonServer, tmp_path: Path, model: str, name: str, datatype: str, statuses: set[str]
) -> None:
    request = {"inputs": [{"name": name, "datatype": datatype, "shape": [1, 1], "data": [1]}]}
    code = (
        f"curl -s -o /dev/null -w '%{{http_code}}' localhost:8000/v2/models/{model}/infer "
        f"-d '{json.dumps(request)}'\n"
    )
    assert curl(code, shown, tmp_path) in statuses
