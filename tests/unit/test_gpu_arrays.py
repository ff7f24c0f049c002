# SPDX-License-Identifier: Apache-2.0
"""Arrays that JAX and the C++ side hand to each other without a copy.

The CPU takes the part of the GPU: DLPack has both, and its memory can be read here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest

from tests.support.models import write_model
from tritonserver_jax.runtime import gpu
from tritonserver_jax.runtime.dtypes import DTYPES
from tritonserver_jax.runtime.instance import Instance, aligned_bytes
from tritonserver_jax.runtime.model import Model
from tritonserver_jax.runtime.x64 import x64_mode

ADD = """
    SIGNATURE = {
        "inputs": {"x": ("FP32", [2]), "y": ("INT32", [-1])},
        "lengths": {"y": [4]},
        "max_batch_size": 4,
    }

    def predict(params, x, y, masks):
        return {"sum": x.sum(1) + (y * masks["y"]).sum(1), "both": y.astype("bfloat16")}
"""

Take = Callable[..., Instance]


def placed(array: np.ndarray[Any, Any]) -> tuple[int, np.ndarray[Any, Any]]:
    """An address of a copy of an array, and what holds it."""
    memory = aligned_bytes(array.nbytes)
    memory[:] = np.frombuffer(array.tobytes(), np.uint8)
    return memory.ctypes.data, memory


@pytest.fixture
def take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Take:
    """Makes an instance of a model.py that takes the CPU for GPU 0."""
    monkeypatch.setattr(gpu, "number_of", lambda _device: 0)

    def made(code: str, gpu_memory: bool = True, **parameters: str) -> Instance:
        write_model(tmp_path, "m", code)
        model = Model(
            name="m",
            version=1,
            directory=tmp_path / "m",
            config={
                "parameters": {key: {"string_value": value} for key, value in parameters.items()}
            },
            complete_config=True,
            default_max_batch_size=0,
            observe=lambda *_: None,
        )
        return model.create_instance("m_0", 1, 0, gpu_memory)

    return made


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3), (4, 1, 5)], ids=str)
@pytest.mark.parametrize("dtype", [one for one in DTYPES if not one.is_bytes], ids=lambda d: d.name)
def test_jax_takes_every_type_where_it_is(dtype: Any, shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(0)
    count = int(np.prod(shape))
    if dtype.name == "BOOL":
        sent = random.integers(0, 2, count).astype(np.bool_).reshape(shape)
    else:
        raw = random.integers(0, 256, count * dtype.numpy.itemsize, dtype=np.uint8)
        sent = raw.view(dtype.numpy).reshape(shape)
    address, _memory = placed(sent)
    shared = gpu.SharedInput(shape, dtype.numpy, jax.devices("cpu")[0])
    array = shared.array(address)
    assert array.dtype == dtype.numpy
    assert array.shape == shape
    assert np.asarray(array).tobytes() == sent.tobytes()
    assert array.unsafe_buffer_pointer() == address
    # Another one while the first is still there, which outlives what it came from.
    other, _other_memory = placed(np.zeros(shape, dtype.numpy))
    assert not any(np.asarray(shared.array(other)).tobytes())
    del shared
    assert np.asarray(array).tobytes() == sent.tobytes()


def test_a_run_takes_what_is_on_the_gpu_and_the_rest_from_the_host(take: Take) -> None:
    instance = take(ADD)
    assert instance.gpu == 0
    plan = instance.plan(3, [[2], [4]])
    assert plan.call_in_place is not None
    x = np.array([[1, 2], [3, 4], [5, 6], [5, 6]], np.float32)
    y = np.arange(16, dtype=np.int32).reshape(4, 4)
    lengths = plan.lengths[1]
    host = plan.buffers[1]
    assert lengths is not None
    assert host is not None
    lengths[...] = [[4], [0], [2], [2]]
    host.view(np.int32)[...] = y.reshape(-1)
    address, _memory = placed(x)
    elsewhere, _y_memory = placed(y + 100)
    expected = x.sum(1) + np.array([6, 0, 17, 25])
    both, total = plan.call_in_place([address, 0], [])
    assert np.asarray(total).tolist() == expected.tolist()
    assert both.view(ml_dtypes.bfloat16).tolist() == y.tolist()
    _, total = plan.call_in_place([address, elsewhere], [])
    assert np.asarray(total).tolist() == (expected + np.array([400, 0, 200, 200])).tolist()
    # The other way is as it was.
    buffer = plan.buffers[0]
    assert buffer is not None
    buffer.view(np.float32)[...] = 1
    assert np.asarray(plan.call()[1]).tolist() == [8, 2, 19, 27]


def test_outputs_on_a_gpu_are_given_by_their_place(take: Take) -> None:
    instance = take(ADD)
    instance._on_cpu = False
    instance._plain_outputs = False
    plan = instance.plan(2, [[2], [4]])
    buffer = plan.buffers[0]
    assert buffer is not None
    buffer.view(np.float32)[...] = [1, 2, 3, 4]
    both, total = plan.call()
    address, size, dims, number, holder = total
    assert (size, dims, number) == (8, (2,), 0)
    assert np.frombuffer(ctypes.string_at(address, size), np.float32).tolist() == [3, 7]
    assert holder.unsafe_buffer_pointer() == address
    assert both[1:4] == (16, (2, 4), 0)
    # Where nobody reads there, they are on the host.
    instance._outputs_gpu = -1
    both, total = plan.call()
    assert memoryview(total).tolist() == [3, 7]
    assert both.dtype == np.uint16


@pytest.mark.parametrize(
    ("code", "parameters"),
    [
        ("def preprocess(inputs): return inputs", {}),
        ("def stream(context, x): yield {'y': x}", {}),
        ("", {"donate": "true"}),
    ],
    ids=["preprocess", "stream", "donate"],
)
def test_what_needs_its_inputs_on_the_host_takes_none_from_a_gpu(
    take: Take, code: str, parameters: dict[str, str]
) -> None:
    model = (
        "SIGNATURE = {'inputs': {'x': ('FP32', [2])}, 'max_batch_size': 2,"
        " 'outputs': {'y': ('FP32', [2])}}\n"
        f"{code}\n"
        "def predict(params, x): return {'y': x}\n"
    )
    assert take(model, **parameters).gpu == -1


def test_without_a_reader_of_gpus_everything_goes_over_the_host(take: Take) -> None:
    instance = take(ADD, gpu_memory=False)
    assert instance.gpu == -1
    assert instance.plan(1, [[2], [4]]).call_in_place is None


def test_inputs_in_memory_of_the_host_are_used_there_where_the_model_says_so(take: Take) -> None:
    instance = take(ADD, gpu_memory=False, inputs_in_place="true")
    assert instance.gpu == -1
    plan = instance.plan(1, [[2], [4]])
    assert plan.call_in_place is not None
    x, _memory = placed(np.array([[1, 2]], np.float32))
    y, _y_memory = placed(np.arange(4, dtype=np.int32).reshape(1, 4))
    lengths = plan.lengths[1]
    assert lengths is not None
    lengths[...] = 4
    assert np.asarray(plan.call_in_place([x, y], [])[1]).tolist() == [9]
    donating = take(ADD, gpu_memory=False, inputs_in_place="true", donate="true")
    assert donating.plan(1, [[2], [4]]).call_in_place is None


def test_postprocess_gets_host_arrays_of_what_was_run_on_the_gpu(take: Take) -> None:
    code = """
        import numpy as np

        SIGNATURE = {"inputs": {"x": ("INT64", [2])}, "max_batch_size": 2}

        def predict(params, x):
            return {"y": x + 1}

        def postprocess(outputs):
            return {"text": np.array([[str(row.tolist())] for row in outputs["y"]], object)}
    """
    instance = take(code)
    instance._on_cpu = False
    address, _memory = placed(np.array([[1 << 40, 2]], np.int64))
    plan = instance.plan(1, [[2]])
    assert plan.call_in_place is not None
    ((elements, dims),) = plan.call_in_place([address], [])
    assert (elements, dims) == (["[1099511627777, 3]"], (1, 1))


def test_the_number_of_a_device_is_cudas() -> None:
    assert gpu.number_of(jax.devices("cpu")[0]) == -1
    with x64_mode(False):
        shared = gpu.SharedInput((1,), np.dtype(np.int64), jax.devices("cpu")[0])
        address, _memory = placed(np.array([1 << 40]))
        assert shared.array(address).dtype == np.int64
