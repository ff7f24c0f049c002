# SPDX-License-Identifier: Apache-2.0
"""Parameters of a model and settings of the backend: each has its effect, or is refused."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.support.backend import LOAD_TIMEOUT, Backend
from tests.support.client import infer
from tests.support.metrics import sample
from tests.support.models import LINEAR, write_model
from tritonserver_jax.server import ServerError, TritonServer

pytestmark = pytest.mark.integration

PARAMS = {"w": np.ones((4, 3), np.float32), "b": np.zeros(3, np.float32)}
ROW = {"x": np.ones((1, 4), np.float32)}


def config(**parameters: str) -> str:
    """A config.pbtxt with these parameters."""
    lines = [
        f"parameters {{ key: {json.dumps(key)} value {{ string_value: {json.dumps(value)} }} }}"
        for key, value in parameters.items()
    ]
    return "\n".join(['backend: "jax"', *lines, ""])


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return "".join(c if c.isalnum() else "_" for c in request.node.name)[:60]


# -- parameters of a model (buckets, lengths, max_programs: test_config_completion, test_lengths) -


def test_engine(server: TritonServer, repository: Path, name: str) -> None:
    write_model(repository, name, LINEAR, params=PARAMS, config=config(engine="python"))
    server.load_model(name)
    server.unload_model(name)
    write_model(repository, name, LINEAR, params=PARAMS, config=config(engine="pjrt"))
    with pytest.raises(ServerError, match="parameter 'engine': expected python, got 'pjrt'"):
        server.load_model(name)


@pytest.mark.parametrize(("value", "dtype"), [("true", np.float64), ("false", np.float32)])
def test_x64(server: TritonServer, repository: Path, name: str, value: str, dtype: type) -> None:
    code = """
        import jax.numpy as jnp

        SIGNATURE = {"inputs": {"x": ("FP32", [1])}, "max_batch_size": 2}

        def predict(params, x):
            return {"y": jnp.zeros((x.shape[0], 1)) + x}
    """.replace("jnp.zeros((x.shape[0], 1)) + x", "jnp.asarray(1 / 3) * jnp.ones((x.shape[0], 1))")
    write_model(repository, name, code, config=config(x64=value))
    server.load_model(name)
    y = infer(server, name, {"x": np.ones((1, 1), np.float32)})["y"]
    assert y.dtype == dtype
    assert y[0, 0] == dtype(1 / 3)


def test_warm_up(server: TritonServer, repository: Path, name: str) -> None:
    code = """
        import pathlib
        import jax

        SIGNATURE = {"inputs": {"x": ("FP32", [4])}, "max_batch_size": 4}
        log = pathlib.Path(__file__).with_name("calls")

        def note(x):
            with log.open("a") as file:
                file.write(f"{len(x)}\\n")
            return x

        def predict(params, x):
            return {"y": jax.pure_callback(note, jax.ShapeDtypeStruct(x.shape, x.dtype), x)}
    """
    calls = repository / name / "1" / "calls"
    write_model(repository, name, code)
    server.load_model(name)
    assert sorted(calls.read_text().split()) == ["1", "2", "4"]
    calls.unlink()
    write_model(repository, name, code + "\n", config=config(warm_up="compile"))
    server.load_model(name)
    assert not calls.exists()
    assert np.array_equal(infer(server, name, ROW)["y"], ROW["x"])
    labels = {"model": name, "version": "1"}
    assert (sample(server.metrics(), "jax_xla_compilations", **labels) or 0) % 3 == 0


def test_matmul_precision(server: TritonServer, repository: Path, name: str) -> None:
    """The precision reaches the program: the CPU has only one, so the traced program is asked."""
    code = """
        import jax

        SIGNATURE = {"inputs": {"x": ("FP32", [4])}, "max_batch_size": 1}

        def predict(params, x):
            precision = jax.config.jax_default_matmul_precision
            return {"y": x @ params["w"], f"precision_{precision}": x}
    """
    for value in ("highest", "default", "high"):
        write_model(
            repository,
            name,
            code + f"    # {value}\n",
            params=PARAMS,
            config=config(matmul_precision=value),
        )
        server.load_model(name)
        assert f"precision_{value}" in infer(server, name, ROW)


def test_xla_flags(server: TritonServer, repository: Path, name: str) -> None:
    write_model(
        repository,
        name,
        LINEAR,
        params=PARAMS,
        config=config(xla_flags="--xla_cpu_enable_fast_math=true xla_embed_ir_in_executable=true"),
    )
    server.load_model(name)
    assert np.array_equal(infer(server, name, ROW)["y"], [[4, 4, 4]])
    warning = f"model '{name}' version 1: xla_cpu_enable_fast_math lets XLA change results"
    assert warning in server.log_text()
    server.unload_model(name)
    write_model(
        repository, name, LINEAR, params=PARAMS, config=config(xla_flags="--xla_no_such_flag=1")
    )
    with pytest.raises(ServerError, match="xla_no_such_flag"):
        server.load_model(name)
    assert np.array_equal(infer(server, "bystander", ROW)["y"], [[4, 4, 4]])


def test_donate(server: TritonServer, repository: Path, name: str) -> None:
    code = LINEAR.replace('x @ params["w"] + params["b"]', "x * 2")
    write_model(repository, name, code, params=PARAMS, config=config(donate="true"))
    server.load_model(name)
    for rows in (1, 3, 8, 2):
        x = np.arange(rows * 4, dtype=np.float32).reshape(rows, 4)
        assert np.array_equal(infer(server, name, {"x": x})["y"], 2 * x)


# -- the compile cache ----------------------------------------------------------------------------


def counts(server: TritonServer, model: str) -> tuple[float, float]:
    """Hits and misses of the compile cache."""
    labels = {"model": model, "version": "1"}
    metrics = server.metrics()
    hits = sample(metrics, "jax_compile_cache_hits", **labels)
    misses = sample(metrics, "jax_compile_cache_misses", **labels)
    assert hits is not None
    assert misses is not None
    return hits, misses


@pytest.fixture
def cached(repository: Path, tmp_path: Path, name: str) -> Iterator[tuple[str, Path]]:
    """A model with a compile cache of its own."""
    cache = tmp_path / "cache"
    write_model(repository, name, LINEAR, params=PARAMS, config=config(compile_cache=str(cache)))
    yield name, cache
    if cache.exists():
        cache.chmod(0o755)


def test_the_second_load_takes_programs_from_the_cache(
    server: TritonServer, cached: tuple[str, Path]
) -> None:
    name, cache = cached
    server.load_model(name)
    assert counts(server, name) == (0, 4)
    assert [path for path in cache.rglob("*") if path.is_file()]
    server.unload_model(name)
    server.load_model(name)
    assert counts(server, name) == (4, 0)
    assert np.array_equal(infer(server, name, ROW)["y"], [[4, 4, 4]])


def test_another_program_is_not_taken_for_this_one(
    server: TritonServer, repository: Path, cached: tuple[str, Path]
) -> None:
    name, _ = cached
    server.load_model(name)
    server.unload_model(name)
    path = repository / name / "1" / "model.py"
    path.write_text(path.read_text().replace("+ params", "- 1 + params"))
    server.load_model(name)
    assert counts(server, name) == (0, 4)
    assert np.array_equal(infer(server, name, ROW)["y"], [[3, 3, 3]])


@pytest.mark.parametrize("content", [b"", b"\x00" * 100, b"not a program"])
def test_a_damaged_cache_costs_time_only(
    server: TritonServer, cached: tuple[str, Path], content: bytes
) -> None:
    name, cache = cached
    server.load_model(name)
    server.unload_model(name)
    for path in cache.rglob("*"):
        if path.is_file():
            path.write_bytes(content)
    server.load_model(name)
    assert np.array_equal(infer(server, name, ROW)["y"], [[4, 4, 4]])


def test_a_cache_that_cannot_be_made_costs_a_warning(
    server: TritonServer, cached: tuple[str, Path]
) -> None:
    name, cache = cached
    cache.write_text("a file where the directory should be")
    server.load_model(name)
    assert np.array_equal(infer(server, name, ROW)["y"], [[4, 4, 4]])
    warning = f"model '{name}' version 1: compiling without the compile cache {cache}: "
    assert warning in server.log_text()


# -- settings of the backend ----------------------------------------------------------------------


def test_compile_cache_of_all_models(backend: Backend, tmp_path: Path) -> None:
    repository = tmp_path / "models"
    write_model(repository, "one", LINEAR, params=PARAMS)
    write_model(repository, "two", LINEAR, params=PARAMS)
    settings = {"compile-cache": str(tmp_path / "cache")}
    for round_number, expected in enumerate([(0, 8), (8, 0)]):
        with backend.server(repository, backend_config=settings) as server:
            server.wait_ready(LOAD_TIMEOUT)
            found = [counts(server, model) for model in ("one", "two")]
            total = (sum(hits for hits, _ in found), sum(misses for _, misses in found))
            # Both models are the same program: the second may find what the first compiled.
            if round_number == 0:
                assert total[0] + total[1] == 8
                assert total[1] >= 4
            else:
                assert total == expected
            seconds = sample(server.metrics(), "jax_xla_compilation_time", model="one")
            assert seconds is not None


def test_cpu_devices_and_instance_groups(backend: Backend, tmp_path: Path) -> None:
    code = """
        import jax

        SIGNATURE = {"inputs": {"x": ("FP32", [4])}, "max_batch_size": 1}

        def predict(params, x):
            return {"y": x}
    """
    for name, group in {
        "cpu": "kind: KIND_CPU count: 2",
        "model": "kind: KIND_MODEL",
        "auto": "kind: KIND_AUTO",
    }.items():
        text = f'backend: "jax"\ninstance_group {{ {group} }}\n'
        write_model(tmp_path, name, code, config=text)
    with backend.server(tmp_path, backend_config={"cpu-devices": "3"}) as server:
        server.wait_ready(LOAD_TIMEOUT)
        assert "devices cpu:0, cpu:1, cpu:2" in server.log_text()
        for name in ("cpu", "model", "auto"):
            infer(server, name, ROW)
            metrics = server.metrics()
            assert sample(metrics, "jax_predict_calls", model=name, device="cpu:0") == 1


def test_devices_of_the_models_choice(backend: Backend, tmp_path: Path) -> None:
    """Each instance runs on its own device, with one copy of the parameters there."""
    group = "instance_group { kind: KIND_MODEL count: 4 }\n"
    write_model(
        tmp_path, "spread", LINEAR, params=PARAMS, config=config(devices="cpu:2,cpu:1") + group
    )
    write_model(tmp_path, "absent", LINEAR, params=PARAMS, config=config(devices="cpu:7") + group)
    settings = {"cpu-devices": "3"}
    with backend.server(tmp_path, explicit=True, backend_config=settings) as server:
        server.wait_live(LOAD_TIMEOUT)
        server.load_model("spread")
        labels = {"model": "spread"}
        metrics = server.metrics()
        for device in ("cpu:1", "cpu:2"):
            assert sample(metrics, "jax_xla_compilations", device=device, **labels) == 4
        assert sample(metrics, "jax_xla_compilations", device="cpu:0", **labels) is None
        for _ in range(40):
            assert np.array_equal(infer(server, "spread", ROW)["y"], [[4, 4, 4]])
        calls = [
            sample(server.metrics(), "jax_predict_calls", device=device, **labels)
            for device in ("cpu:1", "cpu:2")
        ]
        assert all(calls), calls
        assert sum(call or 0 for call in calls) == 40
        with pytest.raises(ServerError) as refused:
            server.load_model("absent")
        assert "names cpu:7, which JAX does not have (it has cpu:0, cpu:1, cpu:2)" in str(
            refused.value
        )


def test_log_detail(backend: Backend, tmp_path: Path) -> None:
    write_model(tmp_path, "linear", LINEAR, params=PARAMS)
    line = "model 'linear' version 1: compiled predict for x: float32[8,4]"
    for detail, expected in (("quiet", 0), ("normal", 1), ("detailed", 1)):
        with backend.server(tmp_path, backend_config={"log-detail": detail}) as server:
            server.wait_model("linear", timeout=LOAD_TIMEOUT)
            log = server.log_text()
            assert log.count(line) == expected
            assert ("jax._src" in log or "Finished tracing" in log) == (detail == "detailed")


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("memory-fraction", "2", "expected a number > 0 and <= 1, such as 0.5, got '2'"),
        ("preallocate", "no", "expected true or false, got 'no'"),
        ("platforms", "cpu,", "expected names separated by commas, the preferred one first"),
        ("cpu-devices", "many", "expected an integer > 0, got 'many'"),
        ("log-detail", "all", "expected quiet, normal or detailed, got 'all'"),
        ("compile-cache", "here", "expected an absolute path, got 'here'"),
        ("default-max-batch-size", "x", "default-max-batch-size must be an integer >= 0, got 'x'"),
        ("preallocated", "true", "did you mean 'preallocate'?"),
    ],
)
def test_settings_that_are_wrong_are_refused(
    backend: Backend, tmp_path: Path, setting: str, value: str, words: str
) -> None:
    write_model(tmp_path, "linear", LINEAR, params=PARAMS)
    with backend.server(tmp_path, explicit=True, backend_config={setting: value}) as server:
        server.wait_live(LOAD_TIMEOUT)
        with pytest.raises(ServerError) as refused:
            server.load_model("linear")
        assert words in str(refused.value)


def test_memory_settings_reach_jax(backend: Backend, tmp_path: Path) -> None:
    code = """
        import os

        SIGNATURE = {"inputs": {"x": ("FP32", [4])}, "max_batch_size": 1}
        FOUND = [os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"],
                 os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"]]

        def predict(params, x):
            return {"y": x, ".".join(FOUND): x}
    """
    write_model(tmp_path, "memory", code)
    settings = {"memory-fraction": "0.25", "preallocate": "false"}
    with backend.server(tmp_path, backend_config=settings) as server:
        server.wait_model("memory", timeout=LOAD_TIMEOUT)
        assert "0.25.false" in infer(server, "memory", ROW)


# -- placement ------------------------------------------------------------------------------------


def test_inputs_in_place(server: TritonServer, repository: Path, name: str) -> None:
    """Its effect is in test_types and in the core's own tests; here a wrong value is refused."""
    write_model(repository, name, LINEAR, params=PARAMS, config=config(inputs_in_place="always"))
    with pytest.raises(
        ServerError, match="'inputs_in_place': expected true or false, got 'always'"
    ):
        server.load_model(name)


@pytest.mark.parametrize("value", ["true", "false"])
def test_phase_times(server: TritonServer, repository: Path, name: str, value: str) -> None:
    write_model(repository, name, LINEAR, params=PARAMS, config=config(phase_times=value))
    server.load_model(name)
    infer(server, name, ROW)
    phases = ("read", "gather", "run", "scatter", "send", "finish")
    # The last of them end after the answer is there.
    for _ in range(50):
        metrics = server.metrics()
        found = [sample(metrics, "jax_phase_time", model=name, phase=phase) for phase in phases]
        if value == "false" or all(found):
            break
        time.sleep(0.1)
    if value == "false":
        assert found == [None] * len(phases)
    else:
        assert all(seconds is not None and 0 < seconds < 60 for seconds in found), found
    server.unload_model(name)


def test_no_gpu_is_no_cpu(server: TritonServer, repository: Path, name: str) -> None:
    text = 'backend: "jax"\ninstance_group { kind: KIND_GPU }\n'
    write_model(repository, name, LINEAR, params=PARAMS, config=text)
    with pytest.raises(ServerError, match="GPU"):
        server.load_model(name)


def test_instances_share_their_parameters(
    server: TritonServer, repository: Path, name: str
) -> None:
    """Four instances of a model with 64 MiB of parameters do not take four times that."""
    import psutil

    code = """
        import numpy as np

        SIGNATURE = {"inputs": {"x": ("FP32", [4])}, "max_batch_size": 1}

        def load(context):
            return np.ones((4, 4 * 2**20), np.float32)

        def predict(params, x):
            return {"y": x @ params[:, :3]}
    """
    process = psutil.Process(server.pid)
    sizes = []
    for count in (1, 4):
        text = f'backend: "jax"\ninstance_group {{ kind: KIND_CPU count: {count} }}\n'
        before = process.memory_info().rss
        write_model(repository, f"{name}_{count}", code, config=text)
        server.load_model(f"{name}_{count}")
        assert np.array_equal(infer(server, f"{name}_{count}", ROW)["y"], [[4, 4, 4]])
        sizes.append((process.memory_info().rss - before) / 2**20)
        server.unload_model(f"{name}_{count}")
    assert sizes[1] - sizes[0] < 30, sizes
    assert sizes[0] < 160, sizes


def test_every_parameter_and_setting_is_tested_here() -> None:
    from tritonserver_jax.runtime.parameters import PARAMETERS
    from tritonserver_jax.runtime.settings import SETTINGS

    tests = "".join(
        path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("test_*.py"))
    )
    for one in (*PARAMETERS, *SETTINGS):
        assert re.search(rf"\b{one.key}\b", tests), f"no test uses {one.key}"
