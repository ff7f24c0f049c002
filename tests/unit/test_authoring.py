# SPDX-License-Identifier: Apache-2.0
"""Models made of a template, Python objects, checkpoints and exported programs."""

from __future__ import annotations

import ast
import importlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import pytest
from flax import linen as nn
from typer.testing import CliRunner

from ci.process import ROOT
from tests.support.models import LINEAR, write_model
from tritonserver_jax.authoring import exporting, new_model, process
from tritonserver_jax.authoring.code import output_name as new_output
from tritonserver_jax.authoring.errors import AuthoringError
from tritonserver_jax.authoring.inputs import parse_inputs
from tritonserver_jax.checking.model_check import check_model
from tritonserver_jax.checking.results import ModelReport
from tritonserver_jax.checking.trial import CheckedModel, answers
from tritonserver_jax.cli.app import make_app
from tritonserver_jax.cli.command import ExitCode
from tritonserver_jax.findings import Status
from tritonserver_jax.model_config import parse_config
from tritonserver_jax.repository import save_exported, save_params, save_safetensors

X = np.random.default_rng(3).standard_normal((3, 4)).astype(np.float32)
PARAMS = {"w": np.ones((4, 3), np.float32), "b": np.arange(3, dtype=np.float32)}
F32 = parse_inputs(["X:FP32[4]"])


def run(*arguments: str | Path) -> tuple[int, str, str]:
    result = CliRunner().invoke(make_app(), [str(one) for one in arguments])
    return result.exit_code, result.stdout, result.stderr


def report_of(model: Path) -> ModelReport:
    (report,) = check_model(model, tell=lambda _: None)
    bad = [one for one in report.findings if one.status in (Status.FAIL, Status.WARN)]
    assert bad == []
    return report


def answer(model: Path, **arrays: np.ndarray[Any, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """What a server would answer."""
    text = (model / "config.pbtxt").read_text(encoding="utf-8")
    loaded = CheckedModel(directory=model, version=1, config=parse_config(text))
    (instance,) = loaded.instances(on_cpu=True)
    return dict(answers(loaded, instance, arrays))


# -- inputs ----------------------------------------------------------------------------------------


def test_inputs_are_read_as_triton_writes_them() -> None:
    image, ids, one = parse_inputs(["IMAGE:FP32[8,8,1]", "ids:int64[-1]", "s:BOOL[]"])
    assert (image.name, str(image)) == ("IMAGE", "FP32[8, 8, 1]")
    assert str(ids) == "INT64[-1]"
    assert one.dims == ()


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["X"], "--input: expected an input, got 'X'; write it as NAME:TYPE[dims]"),
        (["X:FP32"], "expected an input, got 'X:FP32'"),
        (["X:FP32[a]"], "expected numbers as dims"),
        (["X:FLOAT[4]"], "'FLOAT' is no data type"),
        (["a-b:FP32[4]"], "'a-b' is no name that a Python function can have"),
        (["class:FP32[4]"], "'class' is no name that a Python function can have"),
        (["X:FP32[4]", "X:FP32[5]"], "'X' is given twice"),
    ],
)
def test_inputs_that_are_none(texts: list[str], said: str) -> None:
    with pytest.raises(AuthoringError) as refused:
        parse_inputs(texts)
    assert said in str(refused.value)


# -- a template ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inputs", "rows"),
    [
        (["X:FP32[4]"], 4),
        (["X:FP32[4]"], 0),
        (["a:INT64[2]", "B:BOOL[]", "c:BF16[2,2]", "d:FP16[-1]"], 2),
    ],
)
def test_a_template_is_a_model(tmp_path: Path, inputs: list[str], rows: int) -> None:
    with new_model.new_version(tmp_path, "m") as version:
        new_model.from_template(version, parse_inputs(inputs), rows)
    report = check_model(tmp_path / "m", tell=lambda _: None)[0]
    assert not report.count(Status.FAIL)
    assert report.max_batch_size == rows
    given = {new_output(one.name): (one.dtype, one.dims) for one in report.inputs}
    assert {one.name: (one.dtype, one.dims) for one in report.outputs} == given


# -- Python objects --------------------------------------------------------------------------------

NET = """
    import equinox as eqx
    import haiku as hk
    import jax
    import jax.numpy as jnp
    from flax import linen as nn
    from flax import nnx

    def predict(params, X):
        return {"Y": X @ params["w"] + params["b"]}

    def plain(X):
        return jnp.tanh(X), X.sum(-1, keepdims=True)

    class Dense(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(3)(x)

    linen = Dense()

    class Network(nnx.Module):
        def __init__(self, rngs):
            self.dense = nnx.Linear(4, 3, rngs=rngs)
            self.norm = nnx.BatchNorm(3, rngs=rngs)
            self.drop = nnx.Dropout(0.5, rngs=rngs)

        def __call__(self, x):
            return self.drop(self.norm(self.dense(x)))

    flax = nnx.Module
    network = Network(nnx.Rngs(0))
    mlp = eqx.nn.MLP(4, 3, 8, 1, key=jax.random.key(0))
    forward = hk.transform(lambda x: hk.Linear(3)(x))
    number = 3
"""


@pytest.fixture
def net(tmp_path: Path) -> Path:
    path = tmp_path / "net.py"
    path.write_text(textwrap.dedent(NET), encoding="utf-8")
    return path


def checkpoint(folder: Path, kind: str, params: Any) -> Path:
    folder.mkdir(exist_ok=True)
    if kind == "orbax":
        with ocp.StandardCheckpointer() as checkpointer:
            checkpointer.save(folder.resolve() / "some.orbax", params)
        return folder / "some.orbax"
    return (
        save_safetensors(folder, params) if kind == "safetensors" else save_params(folder, params)
    )


def linen_params() -> Any:
    params = nn.Dense(3).init(jax.random.key(1), X)["params"]
    return {"Dense_0": jax.tree.map(np.asarray, params)}


def haiku_params() -> Any:
    return {"linear": {"w": np.ones((4, 3), np.float32), "b": np.ones(3, np.float32)}}


@pytest.mark.parametrize(
    ("name", "kind", "params", "expected"),
    [
        ("predict", "msgpack", lambda: PARAMS, lambda: X @ PARAMS["w"] + PARAMS["b"]),
        ("plain", "", None, lambda: np.tanh(X)),
        (
            "linen",
            "safetensors",
            linen_params,
            lambda: X @ linen_params()["Dense_0"]["kernel"],
        ),
        ("forward", "msgpack", haiku_params, lambda: X @ np.ones((4, 3)) + 1),
        ("network", "", None, None),
        ("mlp", "", None, None),
    ],
)
def test_objects_become_models_and_artifacts(
    tmp_path: Path,
    net: Path,
    name: str,
    kind: str,
    params: Callable[[], Any] | None,
    expected: Callable[[], Any] | None,
) -> None:
    given = None if params is None else checkpoint(tmp_path / "saved", kind, params())
    with new_model.new_version(tmp_path / "models", name) as version:
        found = new_model.from_object(version, f"{net}:{name}", F32, 4, given)
    model = tmp_path / "models" / name
    assert (version / "net.py").read_bytes() == net.read_bytes()
    report_of(model)
    got = answer(model, X=X)
    if expected is None:
        value = found.value
        expected = lambda: jax.vmap(value)(X) if name == "mlp" else value(X)  # noqa: E731
    first = got["OUTPUT0" if name == "plain" else "Y" if name == "predict" else "OUTPUT"]
    np.testing.assert_allclose(first, np.asarray(expected()), rtol=1e-5, atol=1e-5)

    with new_model.new_version(tmp_path / "exported", name) as version:
        source = exporting.of_object(f"{net}:{name}", F32, 4, given)
        exporting.export_source(source, version, ("cpu", "cuda"))
    assert not (version / "model.py").exists()
    again = answer(tmp_path / "exported" / name, X=X)
    assert again.keys() == got.keys()
    for key, array in got.items():
        np.testing.assert_allclose(again[key], array, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("reference", "inputs", "said"),
    [
        ("net.py:nothing", F32, "has no nothing; it has"),
        ("net.py:number", F32, "is a int; expected a function"),
        ("net.py:Network", F32, "is a class, and an object is expected"),
        ("net.py", F32, "expected a module and an object, got 'net.py'"),
        ("none.py:x", F32, "expected a file, found none: none.py"),
        ("no_such_package:x", F32, "importing no_such_package raised ModuleNotFoundError"),
        ("net.py:predict", F32, "its parameters are elsewhere; name them with --checkpoint"),
        ("net.py:plain", parse_inputs(["Z:FP32[4]"]), "has the arguments X, which do not fit"),
        ("net.py:plain", parse_inputs(["X:BYTES[1]"]), "input 'X' is BYTES"),
        ("net.py:plain", (), "nobody says what the inputs are; add --input"),
        ("net.py:mlp", parse_inputs(["X:FP32[7]"]), "cannot be traced with the inputs X FP32[7]"),
    ],
)
def test_objects_that_are_no_models(
    tmp_path: Path,
    net: Path,
    reference: str,
    inputs: Any,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(net.parent)
    with (
        pytest.raises(AuthoringError) as refused,
        new_model.new_version(tmp_path / "models", "m") as version,
    ):
        new_model.from_object(version, reference, inputs, 8, None)
    assert said in str(refused.value)
    assert not (tmp_path / "models").exists()


def test_parameters_for_what_has_its_own(tmp_path: Path, net: Path) -> None:
    path = save_params(tmp_path, PARAMS)
    with pytest.raises(AuthoringError, match="takes no parameters from a checkpoint"):
        exporting.of_object(f"{net}:mlp", F32, 8, path)


# -- checkpoints and artifacts ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["msgpack", "safetensors", "orbax"])
def test_a_checkpoint_is_a_model_that_lists_its_parameters(tmp_path: Path, kind: str) -> None:
    path = checkpoint(tmp_path / "saved", kind, {"dense": PARAMS})
    with new_model.new_version(tmp_path, "m") as version:
        new_model.from_checkpoint(version, path, F32, 8)
    report_of(tmp_path / "m")
    code = (version / "model.py").read_text(encoding="utf-8")
    assert "#   dense.w: float32[4, 3]" in code
    assert all(len(line) <= 100 for line in code.splitlines())
    assert (version / f"params.{kind}").exists()


def test_an_artifact_is_copied(tmp_path: Path) -> None:
    made = tmp_path / "made"
    made.mkdir()
    path = save_exported(made, lambda _, x: {"y": x * 2}, {"x": ("FP32", [4])})
    with new_model.new_version(tmp_path, "m") as version:
        new_model.from_exported(version, path)
    report = report_of(tmp_path / "m")
    assert [str(one) for one in report.inputs] == ["x FP32[4]"]


# -- exporting models ------------------------------------------------------------------------------

MASKS = """
    SIGNATURE = {"inputs": {"t": ("FP32", [-1])}, "lengths": {"t": [4]}, "max_batch_size": 2}

    def predict(params, t, masks):
        return {"y": t * masks["t"]}
"""
HOST = LINEAR + "\n    def preprocess(inputs):\n        return inputs\n"
CALLBACK = """
    import jax
    import numpy as np

    SIGNATURE = {"inputs": {"x": ("FP32", [4])}, "max_batch_size": 2}

    def predict(params, x):
        return {"y": jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)}
"""
SIZE = """
    SIGNATURE = {"inputs": {"x": ("FP32", [4])}, "max_batch_size": 2}

    def predict(params, x):
        return {"y": x if x.shape[0] > 1 else x * 1}
"""
STATE = """
    SIGNATURE = {
        "inputs": {"x": ("FP32", [4])}, "state": {"h": ("FP32", [4])}, "max_batch_size": 2
    }

    def predict(params, x, h):
        return {"y": x + h, "h": h}
"""


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (MASKS, "predict takes masks"),
        (HOST, "it has preprocess, which run in Python on the host"),
        (CALLBACK, "it calls Python while it runs"),
        (SIZE, "it cannot be traced for any number of rows at once"),
        (STATE, "it keeps a state"),
    ],
)
def test_what_an_artifact_cannot_hold(tmp_path: Path, code: str, said: str) -> None:
    write_model(tmp_path / "models", "m", code, params=PARAMS if "w" in code else None)
    with (
        pytest.raises(AuthoringError) as refused,
        new_model.new_version(tmp_path / "exported", "m") as version,
    ):
        exporting.export_source(exporting.of_model(tmp_path / "models" / "m", 1), version, ("cpu",))
    assert said in str(refused.value)
    assert "keep model.py" in str(refused.value)


@pytest.mark.parametrize("name", ["nnx_mlp", "equinox_mlp"])
def test_examples_are_exported(tmp_path: Path, name: str) -> None:
    importlib.import_module(f"examples.{name}.make").make(tmp_path / "models" / name)
    with new_model.new_version(tmp_path / "exported", name) as version:
        source = exporting.of_model(tmp_path / "models" / name, 1)
        exporting.export_source(source, version, ("cpu", "cuda"))
    report = report_of(tmp_path / "exported" / name)
    assert report.max_batch_size == 16
    expected = answer(tmp_path / "models" / name, X=X)["Y"]
    got = answer(tmp_path / "exported" / name, X=X)["Y"]
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_64_bits_and_lengths_are_kept(tmp_path: Path) -> None:
    code = """
        SIGNATURE = {
            "inputs": {"x": ("INT64", [-1])}, "lengths": {"x": [4, 8]}, "max_batch_size": 2
        }

        def predict(params, x):
            return {"y": x * 3_000_000_000}
    """
    write_model(tmp_path / "models", "m", code)
    with new_model.new_version(tmp_path / "exported", "m") as version:
        exporting.export_source(exporting.of_model(tmp_path / "models" / "m", 1), version, ("cpu",))
    got = answer(tmp_path / "exported" / "m", x=np.array([[1, 2, 3]]))["y"]
    assert got.tolist() == [[3_000_000_000, 6_000_000_000, 9_000_000_000]]


# -- the commands ----------------------------------------------------------------------------------


def test_init_makes_a_model_that_passes_and_replaces_nothing(tmp_path: Path) -> None:
    models = tmp_path / "models"
    code, out, err = run("init", "mine", "--template", "--repository", models)
    assert code == 0, out + err
    assert f"tritonserver-jax serve {models}" in out
    config = (models / "mine" / "config.pbtxt").read_text(encoding="utf-8")
    assert parse_config(config)["input"][0]["dims"] == [4]
    before = sorted(models.rglob("*"))
    code, out, _ = run("init", "mine", "--template", "--repository", models, "--json")
    assert code == 1
    error = json.loads(out)["error"]
    assert error["message"] == f"{models / 'mine'} is there already, and is not replaced"
    assert error["remedy"] == "choose another name, or remove it"
    assert sorted(models.rglob("*")) == before
    assert report_of(models / "mine").max_batch_size == 8


def test_init_says_what_is_wrong_with_what_it_made(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text("def predict(X):\n    return X - X.mean(0)\n", encoding="utf-8")
    models = tmp_path / "models"
    options: list[str | Path] = [
        "--from",
        f"{path}:predict",
        "--input",
        "X:FP32[4]",
        "--repository",
        models,
    ]
    code, out, _ = run("init", "m", *options, "--json")
    assert code == 1
    answer = json.loads(out)
    assert answer["files"] == ["1/model.py", "1/net.py", "config.pbtxt"]
    assert "is written, but is not well" in answer["error"]["message"]
    assert any("net.py:2 mixes them" in one["detail"] for one in answer["check"]["findings"])


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        ([], 2, "expected what to make the model of, got nothing"),
        (["--template", "--exported", "f"], 2, "expected one of them"),
        (["--template", "--checkpoint", "f"], 2, "--template and --checkpoint: expected one"),
        (["--exported", "f", "--input", "X:FP32[4]"], 2, "has its own inputs"),
        (["--exported", "no.jaxexport"], 1, "--exported: expected a file, found none"),
        (["--checkpoint", "no.msgpack", "--input", "X:FP32[4]"], 1, "found nothing: no.msgpack"),
        (["--checkpoint", "no.msgpack"], 1, "nobody says what the inputs are"),
        (["--template", "--input", "X"], 1, "write it as NAME:TYPE[dims]"),
        (["--template", "--input", "t:BYTES[1]"], 1, "docs/types.md"),
    ],
)
def test_init_refuses(tmp_path: Path, options: list[str], code: int, said: str) -> None:
    got, _, err = run("init", "m", "--repository", tmp_path / "models", *options)
    assert got == code
    assert said in err
    assert not (tmp_path / "models").exists()


@pytest.mark.parametrize("name", ['x"""y', "back\\N{slash", "über uns"])
def test_any_name_of_a_folder_will_do(tmp_path: Path, name: str) -> None:
    with new_model.new_version(tmp_path, name) as version:
        new_model.from_template(version, parse_inputs(["X:FP32[4]"]), 4)
    module = ast.parse((version / "model.py").read_text(encoding="utf-8"))
    assert name in (ast.get_docstring(module) or "")


def test_a_failure_leaves_no_folder_behind(tmp_path: Path) -> None:
    options = ["--checkpoint", "no.msgpack", "--input", "X:FP32[4]"]
    code, _, _ = run("init", "m", "--repository", tmp_path / "a" / "b" / "c", *options)
    assert code == 1
    assert list(tmp_path.iterdir()) == []


ENDS = {
    "os._exit(0)": "ended with status 0",
    "os._exit(3)": "ended with status 3",
    "os.kill(os.getpid(), 11)": "was ended by SIGSEGV",
    "threading.Timer(0.2, os._exit, [0]).start(); time.sleep(60)": "ended with status 0",
}
#: While it is imported, and while it is traced.
PLACES = (
    "import os, threading, time\n{line}\ndef predict(X):\n    return X\n",
    "import os, threading, time\ndef predict(X):\n    {line}\n    return X\n",
)


@pytest.fixture
def no_byte_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Python itself keeps beside a module that it imports is nothing of ours."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")


@pytest.mark.usefixtures("no_byte_code")
@pytest.mark.parametrize("command", ["init", "export"])
@pytest.mark.parametrize(("line", "place"), [*((line, 0) for line in ENDS), ("os._exit(0)", 1)])
def test_code_that_ends_its_process_fails_in_words_and_leaves_nothing(
    tmp_path: Path, command: str, line: str, place: int
) -> None:
    path = tmp_path / "net.py"
    path.write_text(PLACES[place].format(line=line), encoding="utf-8")
    made = tmp_path / "a" / "models"
    named = ["m", "--repository"] if command == "init" else ["--name", "m", "--output"]
    source = ["--from", f"{path}:predict", "--input", "X:FP32[4]"]
    code, out, _ = run(command, *named, made, *source, "--json")
    assert code == 1
    error = json.loads(out)["error"]
    assert error["message"] == f"code that was loaded ended its process, which {ENDS[line]}"
    assert "os._exit" in error["remedy"]
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_model_does_while_it_is_exported_ends_no_command(tmp_path: Path) -> None:
    write_model(tmp_path / "models", "m", "import os\nos._exit(0)\n")
    code, _, err = run("export", tmp_path / "models", "--output", tmp_path / "out")
    assert code == 1
    assert "error: code that was loaded ended its process, which ended with status 0" in err
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("no_byte_code")
@pytest.mark.parametrize(
    ("line", "code", "message", "remedy"),
    [
        ("raise SystemExit(0)", 1, "ended this command: sys.exit(0)", "take that out of the"),
        ("raise ValueError('no')", 1, "raised ValueError: no", "correct it, or add the package"),
    ],
)
def test_what_an_object_raises_is_said(
    tmp_path: Path, line: str, code: int, message: str, remedy: str
) -> None:
    path = tmp_path / "net.py"
    path.write_text(f"print('{{}}')\n{line}\n", encoding="utf-8")
    source = ["--from", f"{path}:predict", "--input", "X:FP32[4]"]
    got, out, _ = run("init", "m", "--repository", tmp_path / "models", *source, "--json")
    assert got == code
    error = json.loads(out)["error"]
    assert message in error["message"]
    assert remedy in error["remedy"]
    assert list(tmp_path.iterdir()) == [path]


def test_a_fault_and_a_full_disk_are_said_as_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="'version'") as fault:
        process.make_in_process("make", {})
    assert type(fault.value).__name__ == "KeyError"
    assert "worker.py" in fault.value.__notes__[0]
    request = {"template": True, "inputs": ["X:FP32[4]"], "max_batch_size": 4, "checkpoint": None}
    with pytest.raises(FileNotFoundError, match="No such file") as absent:
        process.make_in_process("make", {**request, "version": str(tmp_path / "no" / "1")})
    assert str(absent.value.filename).startswith(str(tmp_path / "no"))


#: Where the tests run in the background, a signal from the keyboard is ignored.
HEARS = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from tritonserver_jax.cli import main
main()
"""
SLOW = """
    import pathlib
    import time

    import jax.numpy as jnp

    def waits():
        pathlib.Path({marker!r}).touch()
        time.sleep(600)

    {module}
    def predict(X):
        {traced}
        return jnp.tanh(X)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("command", ["init", "export", "init, looking at it"])
def test_a_signal_ends_what_makes_a_model_and_takes_it_away(
    tmp_path: Path, command: str, number: signal.Signals
) -> None:
    path, marker = tmp_path / "net.py", tmp_path / "marker"
    looking = "looking" in command
    # The copy beside model.py is what is looked at.
    module = "if __file__.endswith('/1/net.py'): waits()" if looking else ""
    traced = "" if looking else "waits()"
    text = textwrap.dedent(SLOW).format(marker=str(marker), module=module, traced=traced)
    path.write_text(text, encoding="utf-8")
    made = tmp_path / "models"
    named = ["--name", "m", "--output"] if command == "export" else ["m", "--repository"]
    words = [command.partition(",")[0], *named, str(made), "--from", f"{path}:predict"]
    with subprocess.Popen(
        [sys.executable, "-c", HEARS, *words, "--input", "X:FP32[4]", "--json"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "backend" / "python")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        deadline = time.monotonic() + 120
        while not marker.exists():
            assert program.poll() is None, program.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        program.send_signal(number)
        out, err = program.communicate(timeout=60)
    expected = ExitCode.INTERRUPTED if number == signal.SIGINT else ExitCode.TERMINATED
    assert program.returncode == expected, err
    assert json.loads(out)["exit_code"] == expected
    assert "Traceback" not in err
    assert not made.exists()
    still = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert str(path) not in still.stdout


@pytest.mark.parametrize("name", ["a/b", ".hidden", " m", ""])
def test_names_that_are_none(tmp_path: Path, name: str) -> None:
    code, _, err = run("init", name, "--template", "--repository", tmp_path / "models")
    assert code == 1
    assert "expected a name for the model" in err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "expected a model repository or --from, got neither"),
        (["MODELS", "--from", "a:b"], "got both"),
        (["--from", "a:b"], "--name: expected with --from"),
        (["MODELS", "--platform", "gpu"], "--platform: expected cpu, cuda, rocm or tpu, got gpu"),
        (["MODELS", "--input", "X:FP32[4]"], "--input: expected with --from"),
        (["MODELS", "--version", "7"], "has no version 7"),
        (["MODELS", "--model", "n"], "there are m"),
    ],
)
def test_export_refuses(tmp_path: Path, options: list[str], said: str) -> None:
    write_model(tmp_path / "models", "m", LINEAR, params=PARAMS)
    given = [str(tmp_path / "models") if one == "MODELS" else one for one in options]
    code, _, err = run("export", *given, "--output", tmp_path / "out")
    assert code == 2
    assert said in err
    assert not (tmp_path / "out").exists()


def test_the_template_is_as_an_author_would_write_it(tmp_path: Path) -> None:
    with new_model.new_version(tmp_path, "m") as version:
        new_model.from_template(version, F32, 8)
    code = (version / "model.py").read_text(encoding="utf-8")
    assert all(len(line) <= 100 for line in code.splitlines())
    assert '"X": ("FP32", [4]),' in code
    assert jnp.asarray(answer(tmp_path / "m", X=X)["X_OUT"]).tolist() == X.tolist()
