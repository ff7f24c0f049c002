"""The examples: data, training, what `predict` declares, and the clients' ways to fail."""

from __future__ import annotations

import importlib
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from examples.add_sub import client as add_sub_client
from examples.digits import client as digits_client
from examples.digits import data, reference, train
from tritonserver_jax.repository import CONFIG_TEXT, write_config
from tritonserver_jax.runtime.author import AuthorModel, LoadContext, load_author_model
from tritonserver_jax.runtime.errors import BackendError
from tritonserver_jax.runtime.model import Model

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
DTYPES = {"FP32": np.float32}
MODELS = sorted(path.parent.name for path in EXAMPLES.glob("*/config.pbtxt"))
MADE = sorted(path.parent.name for path in EXAMPLES.glob("*/make.py"))


@pytest.fixture(scope="module")
def briefly_trained() -> train.Trained:
    return train.train(seed=7, epochs=2, report=None)


def zeros(signature: dict[str, Any], batch: int) -> dict[str, np.ndarray[Any, Any]]:
    return {
        name: np.zeros((batch, *dims), DTYPES[dtype])
        for name, (dtype, dims) in signature["inputs"].items()
    }


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@pytest.mark.parametrize("model", MODELS)
def test_config_is_the_generated_one(model: str, tmp_path: Path) -> None:
    text = (EXAMPLES / model / "config.pbtxt").read_text()
    assert text == CONFIG_TEXT
    assert text == write_config(tmp_path).read_text()


def test_no_python_file_lies_directly_in_the_repository() -> None:
    # Its __pycache__ would be a folder, and so a model to Triton.
    assert list(EXAMPLES.glob("*.py")) == []


@pytest.mark.parametrize("batch", [1, 3, 8])
def test_add_sub_declares_what_it_computes(batch: int) -> None:
    model = reference.load_module(EXAMPLES / "add_sub" / "1")
    assert batch <= model.SIGNATURE["max_batch_size"] == 8
    inputs = zeros(model.SIGNATURE, batch)
    outputs = jax.eval_shape(model.predict, {}, **inputs)
    assert {name: (out.shape, out.dtype) for name, out in outputs.items()} == {
        "OUTPUT0": ((batch, 4), np.float32),
        "OUTPUT1": ((batch, 4), np.float32),
    }


def test_add_sub_adds_and_subtracts() -> None:
    model = reference.load_module(EXAMPLES / "add_sub" / "1")
    outputs = jax.jit(model.predict)({}, INPUT0=np.ones((1, 4)), INPUT1=np.full((1, 4), 3.0))
    assert outputs["OUTPUT0"].tolist() == [[4.0] * 4]
    assert outputs["OUTPUT1"].tolist() == [[-2.0] * 4]


@pytest.mark.parametrize("batch", [1, 5, 64])
def test_digits_declares_what_it_computes(batch: int, briefly_trained: train.Trained) -> None:
    model = reference.load_module(EXAMPLES / "digits" / "1")
    assert batch <= model.SIGNATURE["max_batch_size"] == 64
    inputs = zeros(model.SIGNATURE, batch)
    outputs = jax.eval_shape(model.predict, briefly_trained.params, **inputs)
    assert {name: (out.shape, out.dtype) for name, out in outputs.items()} == {
        "LOGITS": ((batch, 10), np.float32),
        "PROBABILITIES": ((batch, 10), np.float32),
    }


def load(model_directory: Path) -> AuthorModel:
    def context(directory: Path) -> LoadContext:
        return LoadContext(directory, model_directory.name, 1, {}, {})

    return load_author_model(model_directory / "1", context, model_directory.name)


def test_digits_before_it_is_trained_says_what_it_wants(tmp_path: Path) -> None:
    copy = tmp_path / "digits"
    shutil.copytree(
        EXAMPLES / "digits", copy, ignore=shutil.ignore_patterns("params.*", "__pycache__")
    )
    with pytest.raises(BackendError) as refused:
        Model(
            name="digits",
            version=1,
            directory=copy,
            config={"backend": "jax", "max_batch_size": 0, "input": [], "output": []},
            complete_config=True,
            default_max_batch_size=0,
            observe=lambda _event, _device, _value: None,
        )
    said = str(refused.value)
    assert "there is no params.msgpack" in said
    assert f"({copy / 'train.py'} makes it)" in said
    assert "ApplyScope" not in said


@pytest.mark.parametrize("name", MADE)
def test_made_examples_are_the_same_for_the_same_seed(name: str, tmp_path: Path) -> None:
    make = importlib.import_module(f"examples.{name}.make")
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    answers = []
    for run, seed in enumerate((0, 0, 1)):
        directory = tmp_path / str(run) / name
        path = make.make(directory, seed)
        assert path.parent == directory / "1"
        assert (directory / "config.pbtxt").read_text() == CONFIG_TEXT
        model = load(directory)
        answers.append(np.asarray(jax.jit(model.predict)(model.params, X=x)["Y"]))
    assert answers[0].shape == (3, 3)
    np.testing.assert_array_equal(answers[0], answers[1])
    assert np.abs(answers[0] - answers[2]).max() > 0.01


def test_a_made_example_can_be_made_again(tmp_path: Path) -> None:
    for name in MADE:
        make = importlib.import_module(f"examples.{name}.make")
        assert make.main(["--output", str(tmp_path / name)]) == 0
        assert make.main(["--output", str(tmp_path / name), "--seed", "1"]) == 0
        load(tmp_path / name)


def test_held_out_images_are_not_trained_on() -> None:
    learn, held = data.training(), data.held_out()
    assert len(learn.images) + len(held.images) == 1797
    assert len(held.images) == round(0.2 * 1797)
    seen = {image.tobytes() for image in learn.images}
    assert not any(image.tobytes() in seen for image in held.images)


def test_data_is_as_the_model_takes_it() -> None:
    for digits in data.training(), data.held_out():
        assert digits.images.shape == (len(digits.labels), 8, 8, 1)
        assert digits.images.dtype == np.float32
        assert (digits.images.min(), digits.images.max()) == (0, 16)
        assert set(digits.labels.tolist()) == set(range(10))


def test_the_split_never_changes() -> None:
    # A changed split would compare figures of different images.
    first, second = data.held_out(), data.held_out()
    np.testing.assert_array_equal(first.images, second.images)
    assert first.labels[:10].tolist() == [4, 2, 0, 3, 7, 0, 2, 0, 7, 5]


def test_the_same_seed_trains_the_same_weights(briefly_trained: train.Trained) -> None:
    again = train.train(seed=7, epochs=2, report=None)
    jax.tree.map(np.testing.assert_array_equal, briefly_trained.params, again.params)
    assert briefly_trained.accuracy == again.accuracy > 0.8
    other = train.train(seed=8, epochs=2, report=None)
    assert not np.array_equal(
        briefly_trained.params["Dense_0"]["kernel"], other.params["Dense_0"]["kernel"]
    )


def test_train_writes_a_servable_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "models" / "digits"
    assert train.main(["--output", str(output)]) == 0
    assert (output / "config.pbtxt").read_text() == CONFIG_TEXT
    version = output / "1"
    assert (version / "model.py").read_bytes() == (
        EXAMPLES / "digits" / "1" / "model.py"
    ).read_bytes()
    assert (version / "params.msgpack").stat().st_size < 300_000
    held = data.held_out()
    outputs = reference.predict(version, held.images)
    accuracy = np.mean(np.argmax(outputs["LOGITS"], axis=-1) == held.labels)
    assert accuracy >= 0.97
    np.testing.assert_allclose(outputs["PROBABILITIES"].sum(axis=-1), 1, atol=1e-5)
    printed = capsys.readouterr().out
    assert f"held-out accuracy {accuracy:.4f}" in printed
    assert printed.count("epoch ") == train.EPOCHS


def test_train_writes_nothing_when_the_accuracy_is_low(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train.main(["--epochs", "1", "--output", str(tmp_path / "digits")]) == 1
    assert "is below 0.97; nothing was written" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_train_keeps_a_config_written_by_hand(
    tmp_path: Path, briefly_trained: train.Trained
) -> None:
    (tmp_path / "config.pbtxt").write_text('backend: "jax"\nmax_batch_size: 4\n')
    with pytest.raises(FileExistsError, match="was not written by write_config"):
        train.write_model(tmp_path, briefly_trained.params)


def test_reference_names_what_is_missing_or_damaged(
    tmp_path: Path, briefly_trained: train.Trained
) -> None:
    with pytest.raises(FileNotFoundError, match=r"model\.py: no such file"):
        reference.load_module(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"params\.msgpack: .*train\.py"):
        reference.load_params(tmp_path)
    path = train.write_model(tmp_path / "digits", briefly_trained.params)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ValueError, match=r"params\.msgpack: not a complete flax msgpack file"):
        reference.load_params(path.parent)


@pytest.mark.parametrize("script", ["add_sub", "digits"])
def test_client_without_a_server_says_so_in_one_line(script: str) -> None:
    port = free_port()
    done = subprocess.run(
        [
            sys.executable,
            str(EXAMPLES / script / "client.py"),
            f"--url=127.0.0.1:{port}",
            f"--grpc-url=127.0.0.1:{port}",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("client.py: HTTP: ")
    assert f"127.0.0.1:{port}" in line
    assert "is a server running there, with this model?" in line


def test_grpc_client_without_a_server_fails_by_name() -> None:
    port = free_port()
    with (
        digits_client.DigitsClient("gRPC", f"127.0.0.1:{port}") as client,
        pytest.raises(digits_client.ClientError, match=rf"gRPC: model 'digits' at .*:{port}: "),
    ):
        client.metadata()


@pytest.mark.parametrize("main", [add_sub_client.main, digits_client.main])
def test_client_pointed_at_another_service_says_so(
    main: Callable[[list[str]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def greet() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"220 mail.example.org ESMTP\r\n")

        service = threading.Thread(target=greet)
        service.start()
        status = main([f"--url=127.0.0.1:{listener.getsockname()[1]}"])
        service.join(timeout=10)
    assert status == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "HTTPParseError" in line


@pytest.mark.parametrize("main", [add_sub_client.main, digits_client.main])
@pytest.mark.parametrize("option", ["--url", "--grpc-url"])
def test_client_refuses_an_address_with_a_scheme(
    main: Callable[[list[str]], int], option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([option, "http://localhost:8000"])
    assert "expected HOST:PORT, without a scheme or path" in capsys.readouterr().err


class KnownAnswers:
    """A classifier with given logits: what a report must say of it is known."""

    def __init__(self, images: digits_client.FloatArray, logits: digits_client.FloatArray) -> None:
        self.protocol = "known"
        self.sizes: list[int] = []
        self._answers = {image.tobytes(): row for image, row in zip(images, logits, strict=True)}

    def logits(self, images: digits_client.FloatArray) -> digits_client.FloatArray:
        self.sizes.append(len(images))
        return np.stack([self._answers[image.tobytes()] for image in images])


def exact_logits(digits: data.Digits) -> digits_client.FloatArray:
    return np.eye(10, dtype=np.float32)[digits.labels]


def test_report_counts_every_image_once_per_repeat() -> None:
    digits = data.held_out()
    logits = exact_logits(digits)
    client = KnownAnswers(digits.images, logits)
    report = digits_client.classify(client, digits, seed=3, repeat=2, reference=logits)
    measured = client.sizes[digits_client.WARM_UP_REQUESTS :]
    assert report.images == sum(measured) == 2 * len(digits.images)
    assert report.requests == len(measured)
    assert set(measured) == set(range(1, 9))
    assert (report.accuracy, report.max_difference) == (1.0, 0.0)
    assert 0 < report.p50_ms <= report.p99_ms
    assert report.problems() == []


def test_report_sends_the_same_batches_for_the_same_seed() -> None:
    digits = data.held_out()
    first, second, other = (KnownAnswers(digits.images, exact_logits(digits)) for _ in range(3))
    digits_client.classify(first, digits, seed=1)
    digits_client.classify(second, digits, seed=1)
    digits_client.classify(other, digits, seed=2)
    assert first.sizes == second.sizes != other.sizes


@pytest.mark.parametrize("wrong", [1e-3, np.nan])
def test_report_finds_a_single_wrong_logit(wrong: float) -> None:
    digits = data.held_out()
    logits = exact_logits(digits)
    served = logits.copy()
    served[17, 0] += wrong
    client = KnownAnswers(digits.images, served)
    report = digits_client.classify(client, digits, reference=logits)
    (problem,) = report.problems()
    assert "known: a logit differs by" in problem
    assert "expected at most 1e-05" in problem


def test_report_finds_low_accuracy() -> None:
    digits = data.held_out()
    wrong = np.roll(exact_logits(digits), 1, axis=-1)
    report = digits_client.classify(KnownAnswers(digits.images, wrong), digits)
    assert report.accuracy == 0
    assert report.max_difference is None
    (problem,) = report.problems()
    assert "known: accuracy 0.0000, expected at least 0.97" in problem
