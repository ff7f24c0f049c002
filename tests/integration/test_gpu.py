# SPDX-License-Identifier: Apache-2.0
"""What only a GPU can show: its memory, who takes it, and what is read from it.

Without a GPU all of this is skipped. `--gpu-environment` names an environment of the backend with
JAX's plugin for CUDA, made with `setup_env.sh --requirements`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import tritonclient.http as triton_http

from tests.support.backend import LOAD_TIMEOUT, Backend
from tests.support.client import infer
from tests.support.gpu import ON_CPU, ON_GPU, cuda_region, gpus, memory
from tests.support.models import LINEAR, MLP, mlp_params, write_model
from tritonserver_jax.server import ServerError, TritonServer

pytestmark = [pytest.mark.integration, pytest.mark.gpu]

PARAMS = {"w": np.ones((4, 3), np.float32), "b": np.zeros(3, np.float32)}
ROW = {"x": np.ones((1, 4), np.float32)}
MEBIBYTE = 1 << 20
#: What Triton takes of each GPU for itself, whatever backend there is: none of it in these tests.
NO_POOLS = ["--cuda-memory-pool-byte-size=0:0", "--cuda-memory-pool-byte-size=1:0"]

# Tells what JAX's allocator on the GPU says of itself. It imports JAX first, as models do.
TELLS_MEMORY = """
    import jax
    import jax.numpy as jnp
    import numpy as np

    SIGNATURE = {"inputs": {"x": ("FP32", [4])}, "max_batch_size": 1}

    def predict(params, x):
        return {"y": x * 2}

    def postprocess(outputs):
        statistics = jax.devices("gpu")[0].memory_stats()
        keys = ("bytes_limit", "peak_bytes_in_use", "bytes_in_use")
        return {"memory": np.array([[statistics[key] for key in keys]], np.int64)}
"""


def told(server: TritonServer, model: str = "tells") -> tuple[int, int, int]:
    """Limit, peak and use in bytes, of the process that serves the model."""
    limit, peak, used = infer(server, model, ROW)["memory"][0].tolist()
    return limit, peak, used


# -- shares of memory ------------------------------------------------------------------------------


@contextmanager
def two_servers(
    backend: Backend, tmp_path: Path, order: str
) -> Iterator[tuple[TritonServer, TritonServer]]:
    """Two servers, each with a fifth of one GPU, started in an order or at once."""
    write_model(tmp_path, "tells", TELLS_MEMORY, config=ON_GPU)
    settings = {"memory-fraction": "0.2", "preallocate": "true"}
    servers = [backend.server(tmp_path, backend_config=settings, args=NO_POOLS) for _ in range(2)]
    first, second = servers if order != "second first" else reversed(servers)
    with first:
        if order != "at once":
            first.wait_model("tells", timeout=LOAD_TIMEOUT)
        with second:
            for server in servers:
                server.wait_model("tells", timeout=LOAD_TIMEOUT)
            yield servers[0], servers[1]


@pytest.mark.parametrize("order", ["first first", "second first", "at once"])
def test_each_server_gets_its_share_of_a_gpu_whoever_starts_first(
    gpu_backend: Backend, tmp_path: Path, order: str
) -> None:
    free, total = memory()
    with two_servers(gpu_backend, tmp_path, order) as servers:
        for server in servers:
            limit, peak, _ = told(server)
            assert limit == pytest.approx(0.2 * total, rel=0.02)
            assert peak <= limit
        left, _ = memory()
        # A context takes some hundred MiB beside what the allocator has.
        assert free - left == pytest.approx(2 * 0.2 * total, abs=2 * 1024 * MEBIBYTE)


def test_the_share_holds_though_model_py_imports_jax_first(
    gpu_backend: Backend, tmp_path: Path
) -> None:
    code = """
        import os
        os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = "0.9"
    """
    write_model(tmp_path, "tells", code + TELLS_MEMORY, config=ON_GPU)
    with gpu_backend.server(tmp_path, backend_config={"memory-fraction": "0.1"}) as server:
        server.wait_model("tells", timeout=LOAD_TIMEOUT)
        assert told(server)[0] == pytest.approx(0.1 * memory()[1], rel=0.02)
        assert "XLA_PYTHON_CLIENT_MEM_FRACTION in os.environ is set by model.py" in (
            server.log_text()
        )


def test_models_on_the_cpu_take_no_memory_of_the_gpu(gpu_backend: Backend, tmp_path: Path) -> None:
    """Beside what tritonserver itself takes, which a server without models shows."""
    empty, models = tmp_path / "empty", tmp_path / "models"
    empty.mkdir()
    write_model(models, "linear", LINEAR, params=PARAMS, config=ON_CPU)
    left = {}
    for repository in (empty, models):
        with gpu_backend.server(
            repository, explicit=True, backend_config={"platforms": "cpu"}, args=NO_POOLS
        ) as server:
            server.wait_live(LOAD_TIMEOUT)
            if repository is models:
                server.load_model("linear")
                assert infer(server, "linear", ROW)["y"].tolist() == [[4, 4, 4]]
                assert "devices cpu:0" in server.log_text()
            left[repository], _ = memory()
    assert left[empty] - left[models] < 16 * MEBIBYTE


def test_failed_loads_give_the_memory_of_the_gpu_back(gpu_backend: Backend, tmp_path: Path) -> None:
    """Of models that fail in their warm-up, when their parameters are on the device already."""
    code = """
        import jax
        import numpy as np

        SIGNATURE = {"inputs": {"x": ("FP32", [4])}, "max_batch_size": 1}

        def load(context):
            return {"large": np.ones((256 << 20) // 4, np.float32)}

        def fail(x):
            raise ValueError("it cannot be warmed up")

        def predict(params, x):
            y = jax.pure_callback(fail, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
            return {"y": y + params["large"][0]}
    """
    write_model(tmp_path, "tells", TELLS_MEMORY, config=ON_GPU)
    path = write_model(tmp_path, "fails", code, config=ON_GPU) / "model.py"
    settings = {"preallocate": "false"}
    with gpu_backend.server(tmp_path, explicit=True, backend_config=settings) as server:
        server.wait_live(LOAD_TIMEOUT)
        server.load_model("tells")
        before = told(server)[2]
        for _ in range(30):
            with pytest.raises(ServerError, match="it cannot be warmed up"):
                server.load_model("fails")
        assert told(server)[2] - before < 16 * MEBIBYTE
        path.write_text(path.read_text().replace('raise ValueError("it cannot', 'return x  # ("'))
        server.load_model("fails")


def test_an_instance_on_one_gpu_leaves_the_others_alone(
    gpu_backend: Backend, tmp_path: Path
) -> None:
    kinds = gpus(gpu_backend.environment)
    if len(kinds) < 2:
        pytest.skip(f"there is one GPU ({kinds[0]}); this needs two")
    write_model(tmp_path, "tells", TELLS_MEMORY, config=ON_GPU)
    before = [memory(device)[0] for device in range(2)]
    # What the server sees as its GPU 0 is the second one of the machine.
    with gpu_backend.server(
        tmp_path, env={"CUDA_VISIBLE_DEVICES": "1"}, backend_config={"memory-fraction": "0.2"}
    ) as server:
        server.wait_model("tells", timeout=LOAD_TIMEOUT)
        assert told(server)[0] > 0
        after = [memory(device)[0] for device in range(2)]
    assert before[0] - after[0] < 16 * MEBIBYTE
    assert before[1] - after[1] > 256 * MEBIBYTE


# -- devices ---------------------------------------------------------------------------------------


def test_a_gpu_that_jax_does_not_open_is_refused(gpu_backend: Backend, tmp_path: Path) -> None:
    write_model(tmp_path, "linear", LINEAR, params=PARAMS, config=ON_GPU)
    with gpu_backend.server(tmp_path, explicit=True, backend_config={"platforms": "cpu"}) as server:
        server.wait_live(LOAD_TIMEOUT)
        with pytest.raises(ServerError) as refused:
            server.load_model("linear")
        assert "wants KIND_GPU, but JAX has no gpu device (it has cpu:0)" in str(refused.value)


@pytest.mark.parametrize("config", [ON_GPU, ON_CPU], ids=["GPU", "CPU"])
def test_a_model_runs_where_its_instance_group_says(
    gpu_backend: Backend, tmp_path: Path, config: str
) -> None:
    write_model(tmp_path, "linear", LINEAR, params=PARAMS, config=config)
    with gpu_backend.server(tmp_path) as server:
        server.wait_model("linear", timeout=LOAD_TIMEOUT)
        assert infer(server, "linear", ROW)["y"].tolist() == [[4, 4, 4]]
        device = "gpu:0" if config is ON_GPU else "cpu:0"
        assert f'jax_predict_calls{{device="{device}",model="linear"' in server.metrics()


@pytest.mark.parametrize(("precision", "tolerance"), [("default", 2e-2), ("highest", 1e-5)])
def test_a_row_gets_the_same_answer_in_any_batch_on_a_gpu(
    gpu_backend: Backend, tmp_path: Path, precision: str, tolerance: float
) -> None:
    """By default a GPU multiplies with fewer bits (TF32), so rows may differ by as much."""
    parameter = f'parameters {{ key: "matmul_precision" value {{ string_value: "{precision}" }} }}'
    write_model(tmp_path, "mlp", MLP, params=mlp_params(), config=ON_GPU + parameter)
    rows = np.random.default_rng(1).normal(size=(8, 16)).astype(np.float32)
    with gpu_backend.server(tmp_path) as server:
        server.wait_model("mlp", timeout=LOAD_TIMEOUT)
        alone = infer(server, "mlp", {"x": rows[:1]})["y"][0]
        for count in (2, 5, 7, 8):
            got = infer(server, "mlp", {"x": rows[:count]})["y"][0]
            np.testing.assert_allclose(got, alone, rtol=tolerance, atol=tolerance)


# -- buffers on the device -------------------------------------------------------------------------


def test_a_region_of_the_gpu_that_the_client_reuses_at_once_is_not_read_again(
    gpu_backend: Backend, tmp_path: Path
) -> None:
    rounds, length = 10_000, 4096
    code = f"""
        SIGNATURE = {{"inputs": {{"x": ("INT32", [{length}])}}, "max_batch_size": 0}}

        def predict(params, x):
            return {{"y": x ^ 1}}
    """
    write_model(tmp_path, "reuses", code, config=ON_GPU)
    random = np.random.default_rng(0)
    zeros = np.zeros(length, np.int32)
    with gpu_backend.server(tmp_path) as server:
        server.wait_model("reuses", timeout=LOAD_TIMEOUT)
        with cuda_region(server, "reused", 4 * length) as region:
            client = triton_http.InferenceServerClient(server.http_url)
            x = triton_http.InferInput("x", [length], "INT32")
            x.set_shared_memory("reused", region.size)
            mismatches = 0
            for _ in range(rounds):
                sent = random.integers(0, 1 << 30, length, dtype=np.int32)
                region.write(sent)
                answer = client.infer("reuses", [x])
                region.write(zeros)
                mismatches += not np.array_equal(answer.as_numpy("y"), sent ^ 1)
            client.close()
    assert mismatches == 0


def test_statistics_of_the_allocator_are_those_of_one_process(
    gpu_backend: Backend, tmp_path: Path
) -> None:
    """Two models of one server share its memory: neither asks for a share of its own."""
    for name in ("tells", "tells_too"):
        write_model(tmp_path, name, TELLS_MEMORY, config=ON_GPU)
    with gpu_backend.server(tmp_path, backend_config={"memory-fraction": "0.2"}) as server:
        server.wait_ready(LOAD_TIMEOUT)
        assert told(server)[0] == told(server, "tells_too")[0]
