# SPDX-License-Identifier: Apache-2.0
"""What users of JAX serving and of other backends met, and what happens here.

`docs/decisions.md`, "Reports from elsewhere", has the whole list, and which tests show the rest.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http
from tritonclient.utils import InferenceServerException, shared_memory

from tests.support.backend import LOAD_TIMEOUT, Backend
from tests.support.client import PROTOCOLS, Array, Client, Protocol, RequestError, infer, status
from tests.support.metrics import counted, sample
from tests.support.models import LINEAR, MLP, mlp_params, write_model
from tritonserver_jax.server import ServerError, TritonServer

pytestmark = pytest.mark.integration

PARAMS = {"w": np.ones((4, 3), np.float32), "b": np.zeros(3, np.float32)}
ROW = {"x": np.ones((1, 4), np.float32)}
UNAVAILABLE: dict[Protocol, str] = {"http": "503", "grpc": "StatusCode.UNAVAILABLE"}
UNSUPPORTED: dict[Protocol, str] = {"http": "501", "grpc": "StatusCode.UNIMPLEMENTED"}
INTERNAL: dict[Protocol, str] = {"http": "500", "grpc": "StatusCode.INTERNAL"}
MEBIBYTE = 1 << 20


def status_of(server: TritonServer, path: str) -> int:
    return server._ask("GET", path)[0]


def health_check(backend: Backend, server: TritonServer, *models: str) -> tuple[int, str]:
    script = backend.directory / "jax" / "scripts" / "health_check.py"
    options = [option for model in models for option in ("--model", model)]
    command = [sys.executable, str(script), "--url", server.http_url, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


# -- settings, and JAX's own way to be configured -------------------------------------------------


def test_settings_hold_though_model_py_imports_jax_first(backend: Backend, tmp_path: Path) -> None:
    """The variables that JAX reads at import are set by then; a model sets them too late."""
    code = """
        import os
        import jax
        import numpy as np

        os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = "0.9"
        os.environ["XLA_FLAGS"] = "--xla_no_such_flag=true"
        SEEN = [jax.device_count(), len(jax.devices("cpu"))]
        SIGNATURE = {"inputs": {"x": ("FP32", [1])}, "max_batch_size": 4}

        def predict(params, x):
            return {"y": x}

        def postprocess(outputs):
            rows = len(outputs["y"])
            fraction = float(os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"])
            return {
                "devices": np.full((rows, 2), SEEN, np.int32),
                "fraction": np.full((rows, 1), fraction, np.float32),
                "flags": np.full((rows, 1), os.environ.get("XLA_FLAGS", "").encode(), object),
            }
    """
    write_model(tmp_path, "early", code)
    settings = {"cpu-devices": "3", "memory-fraction": "0.2", "platforms": "cpu"}
    with backend.server(tmp_path, backend_config=settings) as server:
        server.wait_model("early", timeout=LOAD_TIMEOUT)
        got = infer(server, "early", {"x": np.ones((1, 1), np.float32)})
        log = server.log_text()
    assert got["devices"].tolist() == [[3, 3]]
    assert got["fraction"] == np.float32(0.2)
    assert got["flags"].tolist() == [[b""]]
    for name in ("XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_FLAGS"):
        assert f"{name} in os.environ is set by model.py, which has no effect" in log


def test_the_models_xla_flags_go_before_those_of_the_servers_environment(
    backend: Backend, tmp_path: Path
) -> None:
    of_server, of_model = tmp_path / "of_server", tmp_path / "of_model"
    config = f"""
        backend: "jax"
        parameters {{
          key: "xla_flags"
          value {{ string_value: "--xla_dump_to={of_model} --xla_dump_hlo_as_text=true" }}
        }}
    """
    models = tmp_path / "models"
    write_model(models, "with_flags", LINEAR, params=PARAMS, config=config)
    write_model(models, "without_flags", LINEAR, params=PARAMS)
    with backend.server(
        models, explicit=True, env={"XLA_FLAGS": f"--xla_dump_to={of_server}"}
    ) as server:
        server.wait_live(LOAD_TIMEOUT)
        server.load_model("with_flags")
        assert list(of_model.glob("*after_optimizations.txt")), "both flags of the model"
        assert not list(of_server.glob("*after_optimizations.txt")), "the environment's is replaced"
        assert infer(server, "with_flags", ROW)["y"].tolist() == [[4, 4, 4]]
        count = len(list(of_model.iterdir()))
        server.load_model("without_flags")
        assert list(of_server.glob("*after_optimizations*")), "the flag of the environment alone"
        assert len(list(of_model.iterdir())) == count, "a model's flags are its own"
        log = server.log_text()
    line = (
        f"model 'with_flags' version 1: xla_dump_to is {of_model}, from its parameter 'xla_flags', "
        f"which goes before XLA_FLAGS of the server's environment ({of_server})"
    )
    assert line in log
    assert "model 'without_flags' version 1: xla_dump_to" not in log


def test_xla_flags_of_the_environment_that_xla_does_not_know_do_not_end_the_server(
    backend: Backend, tmp_path: Path
) -> None:
    write_model(tmp_path, "linear", LINEAR, params=PARAMS)
    with backend.server(
        tmp_path, explicit=True, env={"XLA_FLAGS": "--xla_no_such_flag=1"}
    ) as server:
        server.wait_live(LOAD_TIMEOUT)
        for _ in range(2):
            with pytest.raises(ServerError) as refused:
                server.load_model("linear")
            assert "XLA refuses the XLA_FLAGS of the server's environment" in str(refused.value)
            assert "--xla_no_such_flag=1" in str(refused.value)
        assert status_of(server, "/v2/health/live") == 200


def test_a_platform_that_is_not_there_is_refused(backend: Backend, tmp_path: Path) -> None:
    write_model(tmp_path, "linear", LINEAR, params=PARAMS)
    settings = {"platforms": "rocm"}
    with backend.server(tmp_path, explicit=True, backend_config=settings) as server:
        server.wait_live(LOAD_TIMEOUT)
        with pytest.raises(ServerError, match=r"JAX finds no device to run on: .*rocm"):
            server.load_model("linear")


# -- loading --------------------------------------------------------------------------------------


def test_failed_loads_give_their_memory_back(server: TritonServer, repository: Path) -> None:
    """Thirty loads of 64 MiB of parameters, each refused because of its output's data type."""
    code = """
        import numpy as np

        SIGNATURE = {"inputs": {"x": ("FP32", [4])}, "max_batch_size": 8}

        def load(context):
            return {"w": np.ones((4, 3), np.float32), "large": np.ones(16 << 20, np.float32)}

        def predict(params, x):
            return {"y": x @ params["w"]}
    """
    wrong = 'backend: "jax"\noutput { name: "y" data_type: TYPE_FP16 dims: 3 }\n'
    directory = write_model(repository, "often_wrong", code, config=wrong).parent
    process = psutil.Process(server.pid)
    used = 0
    for number in range(30):
        with pytest.raises(ServerError) as refused:
            server.load_model("often_wrong")
        assert "400" in str(refused.value)
        assert "output 'y': config.pbtxt says TYPE_FP16, but predict has TYPE_FP32" in str(
            refused.value
        )
        if number == 4:  # what is only needed once is there by now
            used = process.memory_info().rss
    grown = process.memory_info().rss - used
    assert grown < 32 * MEBIBYTE, f"25 loads of 64 MiB took {grown / MEBIBYTE:.0f} MiB"
    (directory / "config.pbtxt").write_text(wrong.replace("FP16", "FP32"))
    server.load_model("often_wrong")
    assert infer(server, "often_wrong", ROW)["y"].tolist() == [[4, 4, 4]]
    server.unload_model("often_wrong")


@pytest.mark.parametrize("when", ["on zeros", "on the sample of model_warmup"])
def test_a_warm_up_that_raises_keeps_the_model_unavailable(
    server: TritonServer, repository: Path, when: str
) -> None:
    raises = "True" if when == "on zeros" else "x.any()"
    code = f"""
        import jax, numpy as np

        SIGNATURE = {{"inputs": {{"x": ("FP32", [4])}}, "max_batch_size": 1}}

        def check(x):
            if {raises}:
                raise LookupError("no such word")
            return x

        def predict(params, x):
            return {{"y": jax.pure_callback(check, jax.ShapeDtypeStruct(x.shape, x.dtype), x)}}
    """
    config = 'backend: "jax"\n'
    if when != "on zeros":
        config += """
            model_warmup {
              name: "noise"
              batch_size: 1
              inputs { key: "x" value { data_type: TYPE_FP32 dims: 4 random_data: true } }
            }
        """
    name = f"warm_up_{when.split()[-1]}"
    write_model(repository, name, code, config=config)
    for _ in range(10):  # some releases of Triton do not always survive a sample that fails
        with pytest.raises(ServerError, match="LookupError: no such word"):
            server.load_model(name)
    assert server.model_state(name).state == "UNAVAILABLE"
    assert status_of(server, f"/v2/models/{name}/ready") != 200


def test_a_slow_compilation_leaves_the_server_live_and_the_model_not_ready(
    server: TritonServer, repository: Path
) -> None:
    code = """
        import time

        SIGNATURE = {"inputs": {"x": ("FP32", [4])}, "max_batch_size": 4}

        def predict(params, x):
            time.sleep(1)  # while it is traced: once for each batch size, and before that
            return {"y": x * 2}
    """
    write_model(repository, "slow_to_compile", code)
    problems: list[str] = []

    def load() -> None:
        # Over gRPC: a load over HTTP keeps one of the few threads that answer HTTP.
        try:
            with triton_grpc.InferenceServerClient(server.grpc_url) as client:
                client.load_model("slow_to_compile")
        except InferenceServerException as error:
            problems.append(str(error))

    loading = threading.Thread(target=load)
    started = time.monotonic()
    loading.start()
    ready: list[int] = []
    live: list[int] = []
    while loading.is_alive():
        ready.append(status_of(server, "/v2/models/slow_to_compile/ready"))
        live.append(status_of(server, "/v2/health/live"))
        infer(server, "bystander", ROW)
        time.sleep(0.05)
    took = time.monotonic() - started
    assert problems == []
    assert took >= 5
    assert set(live) == {200}
    # Until the very end, while the first of the three sizes was compiled two seconds before it.
    assert len(ready) > 20
    assert 200 not in ready[:-2]
    assert status_of(server, "/v2/models/slow_to_compile/ready") == 200
    assert infer(server, "slow_to_compile", ROW)["y"].tolist() == [[2, 2, 2, 2]]


def test_samples_of_model_warmup_are_padded_as_requests_are(
    server: TritonServer, repository: Path
) -> None:
    """And a model that has no quarrel with its samples loads, and compiles nothing for them."""
    code = """
        import jax.numpy as jnp

        SIGNATURE = {"inputs": {"x": ("INT32", [-1])}, "lengths": {"x": [4, 8]},
                     "max_batch_size": 4}

        def predict(params, x, masks):
            return {"sum": jnp.where(masks["x"], x, 0).sum(axis=1, keepdims=True)}
    """
    config = """
        backend: "jax"
        model_warmup {
          name: "three rows of five"
          batch_size: 3
          inputs { key: "x" value { data_type: TYPE_INT32 dims: 5 input_data_file: "five" } }
        }
    """
    model = write_model(repository, "with_samples", code, config=config).parent
    (model / "warmup").mkdir()
    (model / "warmup" / "five").write_bytes(np.arange(5, dtype=np.int32).tobytes())
    server.load_model("with_samples")
    labels = {"model": "with_samples", "version": "1"}
    assert sample(server.metrics(), "jax_xla_compilations", **labels) == 6
    got = infer(server, "with_samples", {"x": np.arange(10, dtype=np.int32).reshape(2, 5)})
    assert got["sum"].tolist() == [[10], [35]]
    # Another model: where a reload fails, Triton 24.10 itself does not stop in time afterwards.
    model.rename(repository / "with_a_bad_sample")
    (repository / "with_a_bad_sample" / "warmup" / "five").write_bytes(b"four")
    with pytest.raises(ServerError, match=r"five: expected 20 bytes for input 'x', got 4"):
        server.load_model("with_a_bad_sample")


# -- shapes and numbers ---------------------------------------------------------------------------


def test_dims_that_repeat_the_batch_are_explained_at_load(
    server: TritonServer, repository: Path
) -> None:
    config = 'backend: "jax"\nmax_batch_size: 8\ninput {{ name: "x" data_type: TYPE_FP32 {} }}\n'
    write_model(
        repository, "batch_twice", LINEAR, params=PARAMS, config=config.format("dims: [ 8, 4 ]")
    )
    with pytest.raises(ServerError) as refused:
        server.load_model("batch_twice")
    assert (
        "input 'x': config.pbtxt says dims [8, 4], but SIGNATURE of model.py has [4] (both without "
        "the batch dimension); leave out the 8 of the batch" in str(refused.value)
    )


@pytest.mark.parametrize("first", [8, -1])
def test_dims_that_repeat_the_batch_are_explained_to_the_client(
    server: TritonServer, repository: Path, first: int
) -> None:
    code = 'def predict(params, x):\n    return {"y": x @ params["w"]}'
    name = f"batch_in_dims_{abs(first)}"
    config = f"""
        backend: "jax"
        max_batch_size: 8
        input {{ name: "x" data_type: TYPE_FP32 dims: [ {first}, 4 ] }}
    """
    write_model(repository, name, code, params=PARAMS, config=config)
    server.load_model(name)
    if first == 8:
        assert "dims are without the batch dimension. If it is meant" in server.log_text()
    with pytest.raises(RequestError) as refused:
        infer(server, name, {"x": np.ones((2, 4), np.float32)})
    assert refused.value.status == "400"
    assert f"[-1,{first},4]" in refused.value.message
    assert "[2,4]" in refused.value.message
    assert "batch dimension" in refused.value.message


@pytest.mark.parametrize("precision", ["default", "highest"])
def test_a_row_gets_the_same_answer_whatever_batch_it_is_in(
    server: TritonServer, repository: Path, precision: str
) -> None:
    name = f"row_alone_{precision}"
    config = f"""
        backend: "jax"
        parameters {{ key: "matmul_precision" value {{ string_value: "{precision}" }} }}
    """
    params = mlp_params()
    write_model(repository, name, MLP, params=params, config=config)
    server.load_model(name)
    rows = np.random.default_rng(1).normal(size=(8, 16)).astype(np.float32)
    wide = {key: array.astype(np.float64) for key, array in params.items()}
    hidden = np.maximum(rows @ wide["w1"] + wide["b1"], 0)
    expected = hidden @ wide["w2"] + wide["b2"]
    alone = infer(server, name, {"x": rows[:1]})["y"][0]
    for count in (2, 5, 7, 8):  # 5 and 7 are padded to 8
        got = infer(server, name, {"x": rows[:count]})["y"]
        np.testing.assert_allclose(got, expected[:count], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(got[0], alone, rtol=1e-6, atol=1e-6)


def test_requests_of_four_clients_are_one_stacked_array(
    server: TritonServer, repository: Path
) -> None:
    code = """
        import numpy as np

        SIGNATURE = {"inputs": {"x": ("FP32", [2])}, "max_batch_size": 8}

        def preprocess(inputs):
            shape = np.asarray(inputs["x"].shape, np.int32)
            return {"x": inputs["x"], "seen": np.tile(shape, (len(inputs["x"]), 1))}

        def predict(params, x, seen):
            return {"y": x * 2, "seen": seen}
    """
    config = """
        backend: "jax"
        max_batch_size: 8
        dynamic_batching { preferred_batch_size: 7 max_queue_delay_microseconds: 20000000 }
    """
    write_model(repository, "stacked", code, config=config)
    server.load_model("stacked")
    answers: dict[int, Mapping[str, Array]] = {}

    def ask(index: int, rows: int) -> None:
        x = np.arange(2 * rows, dtype=np.float32).reshape(rows, 2) + 100 * index
        answers[index] = infer(server, "stacked", {"x": x}, PROTOCOLS[index % 2])

    sizes = (1, 2, 3, 1)
    threads = [threading.Thread(target=ask, args=pair) for pair in enumerate(sizes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for index, rows in enumerate(sizes):
        x = np.arange(2 * rows, dtype=np.float32).reshape(rows, 2) + 100 * index
        assert np.array_equal(answers[index]["y"], 2 * x)
        assert answers[index]["seen"].tolist() == [[7, 2]] * rows
    labels = {"model": "stacked", "version": "1"}
    metrics = server.metrics()
    assert sample(metrics, "jax_predict_calls", **labels) == 1
    assert sample(metrics, "jax_real_rows", **labels) == 7
    assert sample(metrics, "jax_padded_rows", **labels) == 1


def test_strings_cost_a_few_times_what_numbers_cost(server: TritonServer, repository: Path) -> None:
    """64 x 256 strings of five bytes, against as many numbers: on the server, without clients."""
    code = """
        import numpy as np

        SIGNATURE = {{"inputs": {{"x": ("FP32", [256])}}, "max_batch_size": 64}}
        WORDS = np.full((64, 256), {word})

        def predict(params, x):
            return {{"y": x}}

        def postprocess(outputs):
            return {{"y": WORDS[: len(outputs["y"])]}}
    """
    x = {"x": np.ones((64, 256), np.float32)}
    nanoseconds = {}
    for name, word in (("words", 'b"12345"'), ("numbers", "1.5, np.float32")):
        write_model(repository, name, code.format(word=word))
        server.load_model(name)
        with Client(server, "grpc") as client:
            client.infer(name, x)
            times = [compute_times(server, name, requests=1)]
            for number in range(30):
                got = client.infer(name, x)["y"]
                times.append(compute_times(server, name, requests=number + 2))
        assert got[63, 255] == (b"12345" if name == "words" else 1.5)
        nanoseconds[name] = min(after - before for before, after in itertools.pairwise(times))
    # It is 3 to 4 on a quiet machine. Wide enough for a busy one, and narrow enough for a loop over
    # the elements in Python, or for strings as NumPy pads them, which cost hundreds of times.
    assert nanoseconds["words"] < 25 * nanoseconds["numbers"], nanoseconds


def compute_times(server: TritonServer, name: str, *, requests: int) -> int:
    """Nanoseconds that a model has taken for its requests, from their inputs to their outputs."""

    def read() -> Any:
        answer = json.loads(server._ask("GET", f"/v2/models/{name}/stats")[1])
        return answer["model_stats"][0]["inference_stats"]

    counted(lambda: int(read()["success"]["count"]), requests)
    statistics = read()
    parts = ("compute_input", "compute_infer", "compute_output")
    return sum(int(statistics[part]["ns"]) for part in parts)


def test_new_shapes_from_many_threads_are_compiled_once_each(
    server: TritonServer, repository: Path
) -> None:
    rounds, clients = 6, 16
    code = """
        SIGNATURE = {"inputs": {"x": ("FP32", [-1])}, "max_batch_size": 0}

        def predict(params, x):
            return {"reversed": x[::-1] * 2, "sum": x.sum(keepdims=True)}
    """
    config = """
        backend: "jax"
        instance_group { kind: KIND_CPU count: 2 }
        parameters { key: "max_programs" value { string_value: "1000" } }
    """
    write_model(repository, "many_shapes", code, config=config)
    server.load_model("many_shapes")
    problems: list[str] = []
    together = threading.Barrier(clients)

    def ask(index: int) -> None:
        with Client(server, PROTOCOLS[index % 2]) as client:
            for number in range(rounds):
                together.wait(timeout=60)
                # Two clients have each shape, and the two instances compile it at once.
                for offset in (0, 1):
                    length = 1 + number * clients + (index + offset) % clients
                    x = np.arange(length, dtype=np.float32) + index
                    try:
                        got = client.infer("many_shapes", {"x": x})
                    except RequestError as error:
                        problems.append(str(error))
                        continue
                    right = np.array_equal(got["reversed"], 2 * x[::-1])
                    if not right or got["sum"][0] != x.sum():
                        problems.append(f"{index} {length}: {got}")

    threads = [threading.Thread(target=ask, args=(index,)) for index in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    labels = {"model": "many_shapes", "version": "1"}
    assert sample(server.metrics(), "jax_xla_compilations", **labels) == rounds * clients


# -- failures -------------------------------------------------------------------------------------

RAISES = """
    import jax
    import numpy as np

    SIGNATURE = {{"inputs": {{"x": ("FP32", [4])}}, "max_batch_size": 8}}
    raised = []

    def check(x):
        if x.any() and not raised:
            raised.extend([1] * {once})
            raise {what}
        return x

    {function}
"""
IN_PREPROCESS = """
    def preprocess(inputs):
        return {"x": check(inputs["x"])}

    def predict(params, x):
        return {"y": x}
"""
IN_CALLBACK = """
    def predict(params, x):
        return {"y": jax.pure_callback(check, jax.ShapeDtypeStruct(x.shape, x.dtype), x)}
"""


def raising(what: str, function: str, *, once: bool = False) -> str:
    """A model that raises on anything but zeros; perhaps only the first time."""
    return RAISES.format(what=what, function=function.strip(), once=int(once))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("what", "statuses"),
    [
        ("jax.errors.JaxRuntimeError('RESOURCE_EXHAUSTED: Out of memory')", UNAVAILABLE),
        ("MemoryError('cannot allocate')", UNAVAILABLE),
        ("ValueError('RESOURCE_EXHAUSTED, says a database: Out of memory')", INTERNAL),
        ("ValueError('CUDA_ERROR_ILLEGAL_ADDRESS is an interesting error')", INTERNAL),
        ("jax.errors.JaxRuntimeError('INTERNAL: something else')", INTERNAL),
    ],
    ids=["device memory", "host memory", "looks like memory", "looks like a device", "other"],
)
@pytest.mark.parametrize("function", [IN_PREPROCESS, IN_CALLBACK], ids=["preprocess", "callback"])
def test_the_code_of_a_failure_is_that_of_its_cause(
    server: TritonServer,
    repository: Path,
    request: pytest.FixtureRequest,
    protocol: Protocol,
    what: str,
    statuses: Mapping[Protocol, str],
    function: str,
) -> None:
    name = re.sub(r"\W+", "_", request.node.name)[-60:]
    write_model(repository, name, raising(what, function))
    server.load_model(name)
    with pytest.raises(RequestError) as refused:
        infer(server, name, ROW, protocol)
    assert refused.value.status == status(server, protocol, statuses)
    assert "raised" in refused.value.message
    zeros = {"x": np.zeros((1, 4), np.float32)}
    assert infer(server, name, zeros, protocol)["y"].tolist() == [[0, 0, 0, 0]]
    server.unload_model(name)


def test_what_http_cannot_do_is_unsupported(server: TritonServer, repository: Path) -> None:
    code = """
        SIGNATURE = {"inputs": {"x": ("FP32", [4])}, "outputs": {"y": ("FP32", [4])},
                     "max_batch_size": 0}

        def stream(context, x):
            yield {"y": x}
    """
    config = 'backend: "jax"\nmodel_transaction_policy { decoupled: true }\n'
    write_model(repository, "only_streams", code, config=config)
    server.load_model("only_streams")
    with pytest.raises(RequestError) as refused:
        infer(server, "only_streams", {"x": np.ones(4, np.float32)})
    assert refused.value.status == status(server, "http", UNSUPPORTED)


DEVICE_LOST = (
    "jax.errors.JaxRuntimeError('INTERNAL: CUDA error: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal "
    "memory access was encountered')"
)


@pytest.mark.parametrize("function", [IN_PREPROCESS, IN_CALLBACK], ids=["preprocess", "callback"])
def test_after_a_fatal_error_of_the_device_a_model_is_unavailable_until_reload(
    server: TritonServer, backend: Backend, repository: Path, function: str
) -> None:
    name = "device_lost_" + ("preprocess" if function is IN_PREPROCESS else "callback")
    write_model(repository, name, raising(DEVICE_LOST, function, once=True))
    server.load_model(name)
    assert health_check(backend, server, name)[1].count(f"ok   model {name}") == 2
    for attempt in range(4):
        protocol = PROTOCOLS[attempt % 2]
        started = time.monotonic()
        with pytest.raises(RequestError) as refused:
            infer(server, name, ROW, protocol)
        assert refused.value.status == status(server, protocol, UNAVAILABLE)
        assert "CUDA_ERROR_ILLEGAL_ADDRESS" in refused.value.message
        if attempt > 0:
            assert "is not ready until it is reloaded" in refused.value.message
            assert time.monotonic() - started < 5, "at once, without the device"
    labels = {"model": name, "version": "1"}
    assert sample(server.metrics(), "jax_request_failures", code="UNAVAILABLE", **labels) == 4
    assert server.log_text().count(f"jax: model '{name}' is not ready until") == 1
    # Servers before 25.12 do not ask a backend whether a model is ready; who asks the model knows.
    code, report = health_check(backend, server, name)
    assert code == 1
    assert f"FAIL model {name} inference" in report
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in report
    assert infer(server, "bystander", ROW)["y"].tolist() == [[4, 4, 4]]

    path = repository / name / "1" / "model.py"
    path.write_text(path.read_text() + "\n# changed: Triton does not reload what is the same\n")
    server.load_model(name)
    path.write_text(path.read_text().replace("if x.any()", "if False"))
    server.load_model(name)
    assert infer(server, name, ROW)["y"].tolist() == [[1, 1, 1, 1]]


# What a server from 25.12 on does, for one that does not: it asks instances whether they are ready.
# Loaded before everything, it takes note of the instances that go by.
ASKS_INSTANCES = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

typedef void* (*Function)();
static void* instances[16];
static int count = 0;

void* TRITONBACKEND_ModelInstanceSetState(void* instance, void* state) {
  if (state != NULL && count < 16) { instances[count++] = instance; }
  return ((Function)dlsym(RTLD_NEXT, "TRITONBACKEND_ModelInstanceSetState"))(instance, state);
}

int ask_instance(int index, const char* library, char* text, int size) {
  if (index >= count) { return -2; }
  void* backend = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  if (backend == NULL) { return -3; }
  void* error = ((Function)dlsym(backend, "TRITONBACKEND_ModelInstanceReady"))(instances[index]);
  if (error == NULL) { return -1; }
  int (*code)(void*) = (int (*)(void*))dlsym(RTLD_DEFAULT, "TRITONSERVER_ErrorCode");
  const char* (*message)(void*) =
      (const char* (*)(void*))dlsym(RTLD_DEFAULT, "TRITONSERVER_ErrorMessage");
  snprintf(text, size, "%s", message(error));
  return code(error);
}
"""
ASKER = """
    import ctypes
    import numpy as np

    SIGNATURE = {{"inputs": {{"index": ("INT32", [1])}}, "max_batch_size": 0}}

    def predict(params, index):
        return {{"index": index}}

    def postprocess(outputs):
        text = ctypes.create_string_buffer(1000)
        ask = ctypes.CDLL({shim!r}).ask_instance
        code = ask(int(outputs["index"][0]), {library!r}.encode(), text, len(text))
        return {{"code": np.array([code], np.int32), "text": np.array([text.value], object)}}
"""


def test_a_server_that_asks_instances_hears_of_the_fatal_error(
    backend: Backend, tmp_path: Path
) -> None:
    source, shim = tmp_path / "asks.c", tmp_path / "libasks.so"
    source.write_text(ASKS_INSTANCES)
    subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", shim, "-ldl"], check=True)
    library = str(backend.directory / "jax" / "libtriton_jax.so")
    models = tmp_path / "models"
    write_model(models, "lost", raising(DEVICE_LOST, IN_CALLBACK, once=True))
    write_model(models, "asker", ASKER.format(shim=str(shim), library=library))

    with backend.server(models, explicit=True, env={"LD_PRELOAD": str(shim)}) as server:
        server.wait_live(LOAD_TIMEOUT)
        server.load_model("lost")
        server.load_model("asker")

        def ask(index: int) -> tuple[int, bytes]:
            got = infer(server, "asker", {"index": np.array([index], np.int32)})
            return int(got["code"][0]), bytes(got["text"][0])

        ready, no_such, unavailable = -1, -2, 4
        assert [ask(index)[0] for index in range(3)] == [ready, ready, no_such]
        with pytest.raises(RequestError):
            infer(server, "lost", ROW)
        code, text = ask(0)
        assert code == unavailable
        assert text.startswith(b"model 'lost' is not ready until it is reloaded")
        assert ask(1)[0] == ready, "another model of the same server"


def test_there_is_no_process_of_a_model_that_could_die_alone(
    backend: Backend, tmp_path: Path
) -> None:
    """A model lives in the server's process: it cannot be gone while the server says it is well."""
    write_model(tmp_path, "linear", LINEAR, params=PARAMS)
    with backend.server(tmp_path) as server:
        server.wait_model("linear", timeout=LOAD_TIMEOUT)
        assert psutil.Process(server.pid).children(recursive=True) == []
        code, report = health_check(backend, server, "linear")
        assert code == 0, report
        assert re.search(r"ok   model linear inference \d+\.\d ms, on CPU$", report, re.MULTILINE)
        with Client(server, "grpc") as client:
            client.infer("linear", ROW)
            server.terminate()  # so that its end is expected
            os.kill(server.pid, signal.SIGKILL)
            started = time.monotonic()
            with pytest.raises(RequestError) as refused:
                client.infer("linear", ROW)
            assert refused.value.status == UNAVAILABLE["grpc"]
            assert time.monotonic() - started < 5, "no request hangs"
        code, report = health_check(backend, server, "linear")
    assert code == 1
    assert "connection refused" in report


def test_a_region_that_the_client_reuses_at_once_is_not_read_again(
    server: TritonServer, repository: Path
) -> None:
    """After the answer the shared memory is the client's; nothing may look at it any more."""
    rounds, length = 2000, 4096
    code = f"""
        SIGNATURE = {{"inputs": {{"x": ("INT32", [{length}])}}, "max_batch_size": 0}}

        def predict(params, x):
            return {{"y": x ^ 1}}
    """
    write_model(repository, "reuses", code)
    server.load_model("reuses")
    random = np.random.default_rng(0)
    client = triton_http.InferenceServerClient(server.http_url)
    size = 4 * length
    key = f"/tritonserver_jax_test_{os.getpid()}"
    region = shared_memory.create_shared_memory_region("reused", key, size)
    try:
        client.register_system_shared_memory("reused", key, size)
        x = triton_http.InferInput("x", [length], "INT32")
        x.set_shared_memory("reused", size)
        mismatches = 0
        for _ in range(rounds):
            sent = random.integers(0, 1 << 30, length, dtype=np.int32)
            shared_memory.set_shared_memory_region(region, [sent])
            answer = client.infer("reuses", [x])
            shared_memory.set_shared_memory_region(region, [np.zeros(length, np.int32)])
            mismatches += not np.array_equal(answer.as_numpy("y"), sent ^ 1)
        client.unregister_system_shared_memory("reused")
    finally:
        shared_memory.destroy_shared_memory_region(region)
        client.close()
    assert mismatches == 0


# -- metrics, versions ----------------------------------------------------------------------------

GOLDEN = """\
# HELP jax_predict_calls Number of calls of the model's compiled predict function, one per \
executed batch
# TYPE jax_predict_calls counter
jax_predict_calls{device="cpu:0",model="golden",version="1"} 3
# HELP jax_xla_compilation_time Cumulative seconds spent tracing, lowering and compiling XLA \
programs for the model
# TYPE jax_xla_compilation_time counter
jax_xla_compilation_time{device="cpu:0",model="golden",version="1"} SECONDS
"""


def test_the_metrics_page_has_names_kinds_labels_and_help(
    server: TritonServer, repository: Path
) -> None:
    write_model(repository, "golden", LINEAR, params=PARAMS)
    server.load_model("golden")
    for _ in range(3):
        infer(server, "golden", ROW)
    shown = []
    for name in ("jax_predict_calls", "jax_xla_compilation_time"):
        for line in server.metrics().splitlines():
            if line.startswith((f"# HELP {name} ", f"# TYPE {name} ")):
                shown.append(line)
            elif line.startswith(f"{name}{{") and 'model="golden"' in line:
                labels, _, value = line.partition("} ")
                assert float(value) > 0
                shown.append(f"{sorted_labels(labels)} {value if 'calls' in name else 'SECONDS'}")
    assert "\n".join(shown) + "\n" == GOLDEN


def sorted_labels(sample_line: str) -> str:
    name, _, labels = sample_line.partition("{")
    return name + "{" + ",".join(sorted(labels.split(","))) + "}"


def test_the_servers_python_is_that_of_the_environment(backend: Backend, tmp_path: Path) -> None:
    write_model(tmp_path, "linear", LINEAR, params=PARAMS)
    program = "import sys; print('%d.%d' % sys.version_info[:2])"
    python = backend.environment / "bin" / "python"
    done = subprocess.run([python, "-I", "-c", program], capture_output=True, text=True, check=True)
    with backend.server(tmp_path) as server:
        server.wait_model("linear", timeout=LOAD_TIMEOUT)
        maps = Path(f"/proc/{server.pid}/maps").read_text()
    assert set(re.findall(r"/libpython(3\.\d+)\.so", maps)) == {done.stdout.strip()}
    modules = set(re.findall(r"/jaxlib/\S*\.cpython-(\d+)-", maps))
    assert modules <= {done.stdout.strip().replace(".", "")}
