# SPDX-License-Identifier: Apache-2.0
"""What a person gets wrong on the command line is named, with the next step."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ci.process import ROOT
from tritonserver_jax import diagnosis
from tritonserver_jax.cli.app import make_app
from tritonserver_jax.cli.command import CommandFailedError, ExitCode, Output
from tritonserver_jax.cli.commands import serve as serve_module
from tritonserver_jax.cli.commands.install import _is_there
from tritonserver_jax.cli.commands.serve import (
    control_mode,
    loaded_models,
    refused_models,
)
from tritonserver_jax.findings import Finding, Status
from tritonserver_jax.server import ServerError
from tritonserver_jax.server.facts import server_facts
from tritonserver_jax.server.log_lines import LogLine

POLL_FAILED = (
    'E1130 00:37:52.862406 24372 model_repository_manager.cc:1460] "Poll failed for model '
    "directory 'bad': failed to read text proto from /m/bad/config.pbtxt\""
)
NO_VERSION = (
    "E1130 00:38:05.420479 24609 model_repository_manager.cc:584] failed to load model 'nov': at "
    "least one version must be available under the version policy of model 'nov'"
)


def run(*arguments: str | Path) -> tuple[int, str, str]:
    result = CliRunner().invoke(make_app(), [str(one) for one in arguments])
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A repository with one model."""
    folder = tmp_path / "models" / "mine" / "1"
    folder.mkdir(parents=True)
    (folder / "model.py").touch()
    (folder.parent / "config.pbtxt").write_text('backend: "jax"\n', encoding="utf-8")
    return tmp_path / "models"


def test_a_backend_directory_below_the_root_has_no_server() -> None:
    for root in (Path("/"), Path("/tmp"), Path("/a/b")):
        assert server_facts(root, {}).server_version is None


@pytest.mark.parametrize("release", ["99.99", "abc", "24.1", ""])
@pytest.mark.parametrize("name", ["install", "serve", "verify", "tune", "bench"])
def test_a_release_that_there_is_not(name: str, release: str, models: Path, tmp_path: Path) -> None:
    place = ["--backends", str(tmp_path)] if name == "install" else [str(models)]
    code, _, err = run(name, *place, "--release", release)
    assert code == ExitCode.USAGE
    assert f"got {release!r}" in err
    assert "24.10" in err


@pytest.mark.parametrize("port", ["0", "-1", "65536", "99999"])
@pytest.mark.parametrize("option", ["--http-port", "--grpc-port", "--metrics-port"])
def test_a_port_that_there_is_not(option: str, port: str, models: Path) -> None:
    code, _, err = run("serve", models, option, port)
    assert code == ExitCode.USAGE
    assert option in err


@pytest.mark.parametrize(
    ("options", "said", "next_step"),
    [
        (["--http-port", "9000", "--grpc-port", "9000"], "three different ones", "--grpc-port"),
        (["--http-port", "8001"], "three different ones", "--grpc-port"),
        (["--", "--http-port=8001"], "three different ones", "--grpc-port"),
        (["--http-port=9000", "--", "--http-port", "9001"], "got 9000 and 9001", "leave one out"),
        (["--", "--grpc-port=x"], "--grpc-port: expected a port from 1 to 65535", "=8000"),
        (["--", "--metrics-port"], "--metrics-port: expected a port from 1 to 65535", "=8000"),
        (["--", "--http-port=0"], "got '0'", "one that is free"),
        (["--", "--allow-http=false"], "--allow-http=false: expected a server", "leave it out"),
        (["--server", "EMPTY"], "bin/tritonserver", "/opt/tritonserver"),
        (["--backends", "EMPTY"], "libtriton_jax.so", "tritonserver-jax install --backends"),
        (["--python", "no-such-python"], "no-such-python", "leave it out"),
        (["--artifact", "none.tar.gz"], "none.tar.gz", "./dist"),
        (["--artifact", "http://h/x.tar.gz"], "#sha256=", "SHA256SUMS"),
    ],
)
def test_what_serve_is_given_has_to_be_there(
    options: list[str], said: str, next_step: str, models: Path, tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    given = [str(empty) if one == "EMPTY" else one for one in options]
    code, out, err = run("serve", "--json", models, *given)
    assert code == ExitCode.USAGE, err
    error = json.loads(out.splitlines()[-1])["error"]
    assert said in error["message"]
    assert next_step in error["remedy"]


def test_a_model_in_place_of_its_repository(models: Path) -> None:
    code, _, err = run("serve", models / "mine")
    assert code == ExitCode.USAGE
    assert "got a model" in err
    assert f"-> serve the folder that it is in: {models}" in err


def test_models_without_a_version_are_named_at_once(models: Path) -> None:
    for name in ("first", "second"):
        (models / name).mkdir()
        (models / name / "config.pbtxt").touch()
    (models / "second" / "make.py").touch()
    code, _, err = run("serve", models)
    assert code == ExitCode.FAILED
    assert "model first: expected a version folder" in err
    assert f"{models / 'second' / 'make.py'} makes it" in err
    assert "mine" not in err
    _, out, _ = run("serve", models, "--json")
    *events, end = map(json.loads, out.splitlines())
    assert [one["model"] for one in events] == ["first", "second"]
    assert [one["model"] for one in end["failed_models"]] == ["first", "second"]


def test_options_of_the_server_say_what_is_loaded() -> None:
    options = ["--load-model=a", "--model-control-mode", "explicit", "--load-model", "b"]
    assert control_mode(options) == "explicit"
    assert loaded_models([*options, "--load-model=*"]) == ["a", "b"]
    assert control_mode([]) == "none"


@pytest.mark.parametrize(
    ("options", "ports", "left"),
    [
        ([], [None, None, None], []),
        (["--http-port=1", "--log-verbose=1"], [1, None, None], ["--log-verbose=1"]),
        (["--load-model", "a", "--grpc-port", "2"], [None, 2, None], ["--load-model", "a"]),
        (["--metrics-port", "3", "--http-port=1", "--http-port=1"], [1, None, 3], []),
        # As getopt takes them.
        (["--http-p=1", "--grpc-po", "2", "--metrics-por=3"], [1, 2, 3], []),
        (["--reuse-http-port=1", "--http-address=0.0.0.0", "--http-thread-count", "2"], None, None),
    ],
)
def test_ports_that_are_handed_on_are_known(
    options: list[str], ports: list[int | None] | None, left: list[str] | None
) -> None:
    own = dict.fromkeys(("--http-port", "--grpc-port", "--metrics-port"))
    expected = ([None] * 3 if ports is None else ports, options if left is None else left)
    assert serve_module.take_ports(own, options) == expected
    assert serve_module.take_ports({**own, "--http-port": 1}, options)[0][0] == 1


class Named:
    """A server with a model, whatever it is called."""

    http_url = "127.0.0.1:8000"

    def model_metadata(self, _model: str) -> dict[str, object]:
        return {"inputs": [{"name": "x", "shape": [-1, 2], "datatype": "FP32"}]}


def test_the_request_to_try_names_the_model_as_triton_takes_it() -> None:
    def address(name: str) -> str:
        return serve_module.request_to_try(Named(), name)[2]  # type: ignore[arg-type]

    assert address("a%20+") == "http://127.0.0.1:8000/v2/models/a%20+/infer"
    # What no request can name, or curl would not, is not shown.
    for name in ("with space", "a?b", "a#b", "a[1-3]", "über"):
        assert address(name) == "http://127.0.0.1:8000/v2"


@pytest.mark.parametrize("command", ["bench", "tune"])
@pytest.mark.parametrize("name", ["with space", "a?b"])
def test_a_name_that_no_request_can_have_is_refused_before_a_server_starts(
    tmp_path: Path, command: str, name: str
) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "config.pbtxt").write_text('backend: "jax"\n', encoding="utf-8")
    code, out, _ = run(command, tmp_path, "--model", name, "--json")
    assert code == ExitCode.USAGE
    error = json.loads(out)["error"]
    assert f"model {name!r}: expected a name that a request over HTTP can have" in error["message"]
    assert "rename its folder" in error["remedy"]
    code, out, _ = run(command, tmp_path, "--model", name, "--protocol", "http", "--json")
    assert code == ExitCode.USAGE
    assert "--protocol http: expected a model whose name" in json.loads(out)["error"]["message"]


def test_the_log_names_models_that_have_no_state() -> None:
    log = f"{POLL_FAILED}\n{NO_VERSION}\nI1130 00:00:00.000000 1 a.cc:1] fine\n"
    found = {one.name: one.reason for one in refused_models(log, set())}
    assert found["bad"] == "failed to read text proto from /m/bad/config.pbtxt"
    assert "at least one version must be available" in found["nov"]
    assert [one.name for one in refused_models(log, {"bad"})] == ["nov"]


def test_a_quiet_serve_shows_the_log_that_it_points_to(capsys: pytest.CaptureFixture[str]) -> None:
    shown = serve_module._Shown(Output(as_json=False), quiet=True)
    for number in range(100):
        shown.show(LogLine("info", "00:00:00", "a.cc:1", f"line {number}"))
    assert not capsys.readouterr().err
    shown.reveal()
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].endswith("line 99")
    assert len(lines) == 40


def test_a_traceback_in_the_log_has_lines(capsys: pytest.CaptureFixture[str]) -> None:
    shown = serve_module._Shown(Output(as_json=False), quiet=False)
    shown.show(LogLine("error", "00:00:00", "a.cc:1", "it failed:\\nTraceback\\n  File"))
    lines = capsys.readouterr().err.splitlines()
    assert [line.strip() for line in lines[1:]] == ["Traceback", "File"]


class Loading:
    """A server that is told to end while it loads its models."""

    returncode = None
    stopped = False

    def __enter__(self) -> Loading:
        return self

    def __exit__(self, *_: object) -> None: ...

    def wait_ready(self, _timeout: float) -> None:
        raise KeyboardInterrupt

    def stop(self) -> int:
        self.stopped = True
        return -15


def test_ctrl_c_while_models_load_is_no_error_of_the_server() -> None:
    server = Loading()
    with pytest.raises(KeyboardInterrupt):
        serve_module._serve(Output(as_json=False), server, 1, [])  # type: ignore[arg-type]
    assert server.stopped


class Idle(Loading):
    """A server that is ready without a model."""

    def wait_ready(self, _timeout: float) -> None: ...

    def model_index(self) -> list[object]:
        return []

    def log_text(self) -> str:
        return POLL_FAILED


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ([], "model bad: failed to read text proto"),
        (["--model-control-mode=explicit", "--load-model=nope"], "model nope: expected in the"),
    ],
)
def test_ready_without_what_was_asked_for_is_a_failure(options: list[str], named: str) -> None:
    server = Idle()
    with pytest.raises(CommandFailedError, match=named) as caught:
        serve_module._serve(Output(as_json=False), server, 1, options)  # type: ignore[arg-type]
    assert server.stopped
    assert caught.value.result["failed_models"]


@pytest.mark.parametrize("name", ["install", "doctor"])
def test_a_folder_that_is_no_backend_directory(name: str, tmp_path: Path) -> None:
    root = tmp_path / "triton"
    own = root / "backends" / "jax"
    own.mkdir(parents=True)
    for wrong in (own, root):
        code, _, err = run(name, "--backends", wrong)
        assert code == ExitCode.USAGE
        assert f"-> use --backends {root / 'backends'}\n" in err
    code, _, err = run(name, "--backends", root / "backends", "--timeout", "1")
    assert "expected the folder that holds the backends" not in err


def test_what_is_there_already_is_not_installed_again() -> None:
    backend = Finding("backend", Status.OK, "already installed: it in there")
    environment = Finding("environment", Status.OK, "can be made: there")
    ready = Finding("environment", Status.OK, "up to date: there")
    assert _is_there([backend], with_env=False)
    assert not _is_there([backend], with_env=True)
    assert not _is_there([backend, environment], with_env=True)
    assert _is_there([backend, ready], with_env=True)
    assert not _is_there([ready], with_env=False)


def unpacked_script(folder: Path) -> Path:
    """The install.sh of the least that it takes for a tarball."""
    (folder / "lib").mkdir(parents=True)
    (folder / "lib" / "libtriton_jax.so").touch()
    info = '{\n  "project_version": "1",\n  "release": "24.10",\n  "server_version": "2.51.0"\n}\n'
    (folder / "BUILD_INFO.json").write_text(info, encoding="utf-8")
    lines = []
    for name in ("BUILD_INFO.json", "lib/libtriton_jax.so"):
        digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        lines.append(f"{digest}  {name}\n")
    (folder / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")
    (folder / "scripts").mkdir()
    source = ROOT / "packaging" / "scripts" / "install.sh"
    return Path(shutil.copy2(source, folder / "scripts" / "install.sh"))


def test_the_script_refuses_the_same_folders(tmp_path: Path) -> None:
    script = unpacked_script(tmp_path / "jax")
    backends = tmp_path / "triton" / "backends"
    other = backends / "onnx"
    other.mkdir(parents=True)
    (backends / "jax").mkdir()
    (other / "libtriton_onnx.so").touch()
    for wrong in (backends / "jax", other, backends.parent):
        command = ["bash", str(script), "--backends", str(wrong)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 1, done.stdout
        assert done.stderr.endswith(f"; use --backends {backends}\n")
    (backends / "jax").rmdir()
    done = subprocess.run(
        ["bash", str(script), "--backends", str(backends)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (backends / "jax" / "libtriton_jax.so").is_file()


def test_install_does_not_advise_an_option_that_it_has_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRITONSERVER_JAX_ARTIFACT", raising=False)
    code, out, _ = run("install", "--backends", tmp_path, "--json")
    assert code == ExitCode.FAILED
    error = json.loads(out)["error"]
    assert error["remedy"].startswith("download it from")
    assert "name it as an argument or in $TRITONSERVER_JAX_ARTIFACT" in error["remedy"]
    assert "--artifact" not in out


def test_a_model_that_is_not_there(models: Path) -> None:
    code, _, err = run("tune", models, "--model", "nope")
    assert code == ExitCode.USAGE
    assert "got nope" in err
    assert "there are mine" in err


def test_folders_of_artifacts_are_listed(tmp_path: Path) -> None:
    for release in ("23.10", "24.10"):
        (tmp_path / release).mkdir()
        (tmp_path / release / "SHA256SUMS").touch()
    code, _, err = run("verify", tmp_path)
    assert code == ExitCode.USAGE
    assert "23.10, 24.10" in err
    assert f"name one of them, such as {tmp_path / '23.10'}" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["install", "--json"], "--backends"),
        (["verify", "--json", "--nope", "x"], "--nope"),
        (["serve", "--json"], "REPOSITORY"),
        (["instal", "--json"], "instal"),
        (["serve", "--http-port", "99999", "--json", "x"], "--http-port"),
    ],
)
def test_a_machine_is_told_of_wrong_usage(arguments: list[str], said: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "backend" / "python")}
    program = [sys.executable, "-m", "tritonserver_jax.cli", *arguments]
    done = subprocess.run(
        program, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == ExitCode.USAGE
    answer = json.loads(done.stdout)
    assert (answer["ok"], answer["exit_code"]) == (False, 2)
    assert said in answer["error"]["message"]
    assert "--help" in answer["error"]["remedy"]


def test_the_next_step_of_an_exception_is_apart() -> None:
    from tritonserver_jax.cli.command import _failure, next_step_of

    assert next_step_of(
        "no Python.\n  Tried: a\n  What may help: apt-get install it\n  or b\nend"
    ) == (
        "no Python.\n  Tried: a\nend",
        "apt-get install it or b",
    )
    assert next_step_of("first; second\nthird") == ("first; second\nthird", "")
    assert next_step_of("bad") == ("bad", "")
    failure = _failure(ServerError("port 1: expected a free one, it is taken; choose another"))
    assert failure.message == "port 1: expected a free one, it is taken"
    assert failure.remedy == "choose another"


def test_what_was_shown_is_not_said_again(capsys: pytest.CaptureFixture[str]) -> None:
    error = CommandFailedError("it is broken", "mend it", brief="see above")
    Output(as_json=False).error(error)
    assert capsys.readouterr().err == "error: see above\n"
    Output(as_json=True).error(error)
    assert capsys.readouterr().err == "error: it is broken\n  -> mend it\n"


def test_a_server_without_its_library_is_not_well(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tritonserver").write_bytes(Path(sys.executable).resolve().read_bytes())
    finding = diagnosis._of_server(server_facts(tmp_path, {}))
    assert finding.status is Status.WARN
    assert "libtritonserver" in finding.detail
    assert finding.remedy
