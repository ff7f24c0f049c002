# SPDX-License-Identifier: Apache-2.0
"""Models whose code does what it likes with its host and with what it is given."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import pytest

from tests.support.client import Client, RequestError, infer, status
from tests.support.models import LINEAR, write_model
from tritonserver_jax.server import ServerError, TritonServer

pytestmark = [pytest.mark.core, pytest.mark.integration]

PARAMS = {"w": np.ones((4, 3), np.float32), "b": np.zeros(3, np.float32)}


@pytest.mark.parametrize("keep", ['i["x"]', 'i["x"][:1]', 'jax.device_put(i["x"])'])
def test_what_preprocess_keeps_stays_as_it_was(
    server: TritonServer, repository: Path, keep: str, request: pytest.FixtureRequest
) -> None:
    name = f"keeps_{request.node.callspec.indices['keep']}"
    code = f"""
        import jax
        import numpy as np

        SIGNATURE = {{"inputs": {{"x": ("FP32", [4])}}, "max_batch_size": 8}}
        kept = []

        def preprocess(i):
            kept.append({keep})
            return {{"x": i["x"], "sum": np.full(len(i["x"]), sum(np.asarray(k).ravel()[0]
                     for k in kept), np.float32)}}

        def predict(params, x, sum):
            return {{"x": x, "sum": sum}}
    """
    write_model(repository, name, code)
    server.load_model(name)
    total = 0.0
    with Client(server, "http") as client:
        for value in (1, 5, 100, 7):
            total += value
            got = client.infer(name, {"x": np.full((1, 4), value, np.float32)})
            assert np.array_equal(got["x"], np.full((1, 4), value))
            assert got["sum"].ravel().tolist() == [total]


def test_postprocess_may_work_in_place(server: TritonServer, repository: Path) -> None:
    code = """
        SIGNATURE = {"inputs": {"x": ("FP32", [4])}, "max_batch_size": 8}

        def preprocess(inputs):
            inputs["x"] *= 3
            return inputs

        def predict(params, x):
            return {"y": x + 1}

        def postprocess(outputs):
            outputs["y"] *= 2
            return outputs
    """
    write_model(repository, "in_place", code)
    server.load_model("in_place")
    x = np.ones((3, 4), np.float32)
    for _ in range(2):
        assert np.array_equal(infer(server, "in_place", {"x": x})["y"], np.full((3, 4), 8))


def test_postprocess_may_return_what_jax_would_narrow(
    server: TritonServer, repository: Path
) -> None:
    code = (
        LINEAR
        + """
    def postprocess(outputs):
        import numpy as np
        return {"label": np.argmax(outputs["y"], -1) + 2**40, "big": outputs["y"].astype(">f8")}
    """
    )
    write_model(repository, "wide_labels", code, params=PARAMS)
    server.load_model("wide_labels")
    got = infer(server, "wide_labels", {"x": np.ones((2, 4), np.float32)})
    assert got["label"].ravel().tolist() == [2**40] * 2
    assert np.array_equal(got["big"], np.full((2, 3), 4.0))


def test_preprocess_must_not_return_what_jax_would_narrow(
    server: TritonServer, repository: Path
) -> None:
    code = """
        import numpy as np

        SIGNATURE = {"inputs": {"x": ("FP32", [4])}, "max_batch_size": 8}

        def preprocess(i):
            return {"ids": i["x"].astype(np.int64) * 2**40}

        def predict(params, ids):
            return {"large": ids > 100, "ids": ids}
    """
    write_model(repository, "wide_ids", code)
    with pytest.raises(ServerError) as refused:
        server.load_model("wide_ids")
    assert "returned 'ids' as int64, which JAX would narrow to 32 bits" in str(refused.value)
    assert "make it int32, or set the parameter 'x64' to true" in str(refused.value)
    config = 'backend: "jax"\nparameters { key: "x64" value { string_value: "true" } }\n'
    (repository / "wide_ids" / "config.pbtxt").write_text(config)
    server.load_model("wide_ids")
    got = infer(server, "wide_ids", {"x": np.ones((1, 4), np.float32)})
    assert got["ids"].ravel().tolist() == [2**40] * 4
    assert got["large"].all()


def test_padding_never_shows_in_an_output(server: TritonServer, repository: Path) -> None:
    code = LINEAR.replace('x @ params["w"] + params["b"]', "x @ x.T")
    write_model(repository, "across_rows", code, params=PARAMS)
    with pytest.raises(ServerError, match="only its first dimension may depend on the batch"):
        server.load_model("across_rows")


def test_padding_does_nothing_that_the_rows_do_not(server: TritonServer, repository: Path) -> None:
    """A loop that ends for every real row ends for the padded batch too."""
    code = """
        import jax
        import jax.numpy as jnp

        SIGNATURE = {"inputs": {"n": ("INT32", [1])}, "max_batch_size": 4}

        def steps(n):
            def more(state):
                return state[0] != 1

            def step(state):
                n, count = state
                return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), count + 1

            return jax.lax.while_loop(more, step, (n, 0))[1]

        def predict(params, n):
            return {"steps": jax.vmap(steps)(n[:, 0])}
    """
    config = 'backend: "jax"\nparameters { key: "warm_up" value { string_value: "compile" } }\n'
    write_model(repository, "collatz", code, config=config)
    server.load_model("collatz", timeout=60)
    got = infer(server, "collatz", {"n": np.array([[6], [27], [1]], np.int32)})
    assert got["steps"].ravel().tolist() == [8, 111, 0]


def test_jax_settings_of_a_model_are_its_own(server: TritonServer, repository: Path) -> None:
    wide = """
        import jax
        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_debug_nans", True)

        SIGNATURE = {"inputs": {"x": ("FP32", [1])}, "max_batch_size": 2}

        def predict(params, x):
            return {"y": x.astype("float64") / 3}
    """
    narrow = """
        import jax.numpy as jnp

        SIGNATURE = {"inputs": {"x": ("FP32", [2])}, "max_batch_size": 2}

        def predict(params, x):
            return {"label": jnp.argmax(x, -1), "nan": jnp.log(x - 2)}
    """
    write_model(repository, "sets_x64", wide)
    write_model(repository, "plain", narrow)
    server.load_model("sets_x64")
    server.load_model("plain")
    y = infer(server, "sets_x64", {"x": np.ones((1, 1), np.float32)})["y"]
    assert y.dtype == np.float64
    assert y[0, 0] == 1 / 3
    got = infer(server, "plain", {"x": np.array([[0, 1]], np.float32)})
    assert got["label"].dtype == np.int32
    assert np.isnan(got["nan"]).all()
    log = server.log_text()
    assert "model 'sets_x64' version 1: jax_enable_x64 = True holds for this model alone" in log
    assert "model 'sets_x64' version 1: jax_debug_nans = True, which would hold for every" in log


#: All of it computes with JAX, and with numbers beyond 32 bits.
WIDE_CODE = """
    import jax
    {setting}
    import jax.numpy as jnp
    import numpy as np

    SIGNATURE = {{"inputs": {{"x": ("INT64", [1])}}, "max_batch_size": 2}}
    TABLE = jnp.asarray(np.array([2**40]))

    def load(context):
        return {{"w": jnp.asarray(np.int64(2**41))}}

    def preprocess(inputs):
        return {{"x": np.asarray(jnp.asarray(inputs["x"]) + 1)}}

    def predict(params, x):
        return {{"y": x + params["w"] + TABLE}}

    def postprocess(outputs):
        return {{"y": np.asarray(jnp.asarray(outputs["y"]) - 1)}}
"""
X64_CONFIG = 'backend: "jax"\nparameters { key: "x64" value { string_value: "true" } }\n'


@pytest.mark.parametrize("way", ["parameter", "code"])
def test_all_code_of_a_model_runs_in_its_64_bit_mode(
    server: TritonServer, repository: Path, way: str
) -> None:
    name = f"wide_{way}"
    setting = 'jax.config.update("jax_enable_x64", True)' if way == "code" else ""
    config = 'backend: "jax"\n' if way == "code" else X64_CONFIG
    write_model(repository, name, WIDE_CODE.format(setting=setting), config=config)
    server.load_model(name)
    x = np.array([[2**50]])
    assert infer(server, name, {"x": x})["y"].tolist() == [[2**50 + 2**41 + 2**40]]


def test_a_changed_file_beside_model_py_is_seen(server: TritonServer, repository: Path) -> None:
    code = """
        from . import layers

        SIGNATURE = {"inputs": {"x": ("FP32", [4])}, "max_batch_size": 8}

        def predict(params, x):
            return {"y": layers.scale(x)}
    """
    directory = write_model(repository, "siblings", code)
    layers = directory / "layers.py"
    layers.write_text("def scale(x):\n    return x * 2\n")
    stamp = layers.stat()
    server.load_model("siblings")
    x = np.ones((1, 4), np.float32)
    assert infer(server, "siblings", {"x": x})["y"][0, 0] == 2
    layers.write_text("def scale(x):\n    return x * 3\n")
    os.utime(layers, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # as quick an editor as can be
    os.utime(directory / "model.py")
    server.load_model("siblings")
    assert infer(server, "siblings", {"x": x})["y"][0, 0] == 3
    assert not list(directory.glob("__pycache__"))


def test_an_absolute_import_of_a_sibling_is_explained(
    server: TritonServer, repository: Path
) -> None:
    directory = write_model(repository, "absolute", "import layers\n")
    (directory / "layers.py").write_text("")
    with pytest.raises(ServerError, match=r"it is beside model\.py: import it as `from \. import"):
        server.load_model("absolute")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (
            "def predict(params, image): return {'y': image}",
            "predict(params, image) cannot be called",
        ),
        ("def predict(params, inputs): return {'y': inputs}", "name its arguments as the inputs"),
        ("def predict(x): return {'y': x}", "predict(x) cannot be called with the inputs x"),
        ("def predict(params, x, y): return {'y': x}", "missing a required argument: 'y'"),
        ("def load(context): return {'a': ['text']}", "hold str at params['a'][0]"),
        ("import numpy as np\ndef load(c): return np.array(['a'])", "expected numbers"),
        ("def predict(params, x): return {'y': x + params.w}", "there is no params.msgpack"),
        ("def predict(params, x): return {'y': x @ params}", "there is no params.msgpack"),
        ("def load(c): raise ValueError('bad \\0 \\udc80')", "ValueError: bad \\0 \\udc80"),
        (
            "import jax\nkeys = jax.random.split\n"
            "def predict(params, x): return {'y': keys(jax.random.key(0), len(x))}",
            "output 'y': Triton has no data type for key<fry>",
        ),
        (
            "predict = lambda params, x: {'y': {'a': x, 'b': [x, x]}, 'y.a': x}",
            "each output once, got two by the name",
        ),
    ],
)
def test_frequent_slips_are_explained(
    server: TritonServer, repository: Path, code: str, words: str, request: pytest.FixtureRequest
) -> None:
    name = f"slip_{request.node.callspec.indices['code']}"
    head = "SIGNATURE = {'inputs': {'x': ('FP32', [4])}, 'max_batch_size': 8}\n"
    tail = "" if "predict" in code else "\ndef predict(params, x): return {'y': x}\n"
    write_model(repository, name, head + code + tail)
    with pytest.raises(ServerError) as refused:
        server.load_model(name)
    assert words in str(refused.value)


def test_missing_weights_are_named_only_where_they_are_missed(
    server: TritonServer, repository: Path
) -> None:
    code = (
        "SIGNATURE = {'inputs': {'x': ('FP32', [4])}}\ndef predict(params, x): return {'y': x.no}"
    )
    write_model(repository, "no_weights", code)
    with pytest.raises(ServerError) as refused:
        server.load_model("no_weights")
    assert "params.msgpack" not in str(refused.value)
    assert "AttributeError" in str(refused.value)


def test_nested_outputs_are_named_by_their_keys(server: TritonServer, repository: Path) -> None:
    code = """
        SIGNATURE = {"inputs": {"x": ("FP32", [4])}, "max_batch_size": 8}

        def predict(params, x):
            return {"head": {"logits": x * 2, "aux": [x.sum(1), (x * 3,)]}, "x": x}
    """
    write_model(repository, "nested", code)
    server.load_model("nested")
    x = np.ones((2, 4), np.float32)
    got = infer(server, "nested", {"x": x})
    assert set(got) == {"head.logits", "head.aux.0", "head.aux.1.0", "x"}
    assert np.array_equal(got["head.logits"], 2 * x)
    assert np.array_equal(got["head.aux.1.0"], 3 * x)


@pytest.mark.parametrize(
    ("dims", "body"),
    [
        ("[-1]", "x.reshape(x.shape[0], -1, 32).sum(1)"),
        ("[-1]", "x + params[: x.shape[1]]"),
    ],
    ids=["a multiple of 32", "a table of 8"],
)
def test_open_dimensions_that_a_model_constrains(
    server: TritonServer, repository: Path, dims: str, body: str, request: pytest.FixtureRequest
) -> None:
    name = f"constrained_{len(request.node.callspec.id)}"
    code = f"""
        import numpy as np

        SIGNATURE = {{"inputs": {{"x": ("FP32", {dims})}}, "max_batch_size": 2}}

        def load(context):
            return np.arange(8, dtype=np.float32)

        def predict(params, x):
            return {{"y": {body}}}
    """
    write_model(repository, name, code)
    server.load_model(name)
    size = 64 if "32" in body else 5
    assert infer(server, name, {"x": np.ones((1, size), np.float32)})["y"].shape[0] == 1


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ('default_model_filename: "other.py"', "default_model_filename is other.py"),
        (
            'model_operations { op_library_filename: "ops.so" }',
            "model_operations in config.pbtxt is not supported",
        ),
        (
            'batch_input { kind: BATCH_ELEMENT_COUNT target_name: "n" data_type: TYPE_FP32 '
            'source_input: "x" }',
            "batch_input in config.pbtxt is not supported; an input with allow_ragged_batch",
        ),
    ],
)
def test_what_would_be_ignored_is_refused(
    server: TritonServer, repository: Path, config: str, words: str, request: pytest.FixtureRequest
) -> None:
    name = f"ignored_{request.node.callspec.indices['config']}"
    text = f'backend: "jax"\nmax_batch_size: 8\n{config}\n'
    write_model(repository, name, LINEAR, params=PARAMS, config=text)
    with pytest.raises(ServerError) as refused:
        server.load_model(name)
    assert words in str(refused.value)


def test_an_explicit_zero_on_one_line(server: TritonServer, repository: Path) -> None:
    write_model(
        repository, "one_line", LINEAR, params=PARAMS, config='backend: "jax" max_batch_size: 0'
    )
    server.load_model("one_line")
    got = infer(server, "one_line", {"x": np.ones(4, np.float32)})
    assert got["y"].shape == (3,)


def memory_over_loads(server: TritonServer, load: Callable[[], None]) -> list[float]:
    """MiB of the server after each of 20 loads, past the first ten, which settle."""
    process = psutil.Process(server.pid)
    sizes = []
    for number in range(30):
        load()
        if number >= 9:
            sizes.append(process.memory_info().rss / 2**20)
    return sizes


TABLE = "\n    import numpy as np\n    TABLE = np.ones(2_500_000, np.float32)\n"


@pytest.mark.slow
def test_a_model_takes_its_globals_with_it(server: TritonServer, repository: Path) -> None:
    """10 MB in a model's globals, loaded 30 times, are not 300 MB, nor 100 MB for a while."""
    directory = write_model(repository, "globals", LINEAR + TABLE, params=PARAMS)

    def load() -> None:
        (directory / "model.py").touch()
        server.load_model("globals")

    sizes = memory_over_loads(server, load)
    server.unload_model("globals")
    assert sizes[-1] - sizes[0] < 25, sizes


#: As JAX's documentation says to do it; but its caches keep the object, and the object the table.
STATIC_SELF = """
    from functools import partial

    import jax
    import numpy as np

    SIGNATURE = {"inputs": {"x": ("FP32", [4])}, "max_batch_size": 4}

    class Scaled:
        def __init__(self):
            self.table = np.ones(2_500_000, np.float32)

        @partial(jax.jit, static_argnums=0)
        def __call__(self, x):
            return x * self.table[0]

    scaled = Scaled()

    def predict(params, x):
        return {"y": scaled(x)}
"""


@pytest.mark.slow
def test_a_model_takes_its_static_objects_with_it(server: TritonServer, repository: Path) -> None:
    directory = write_model(repository, "static_self", STATIC_SELF)

    def load() -> None:
        (directory / "model.py").touch()
        server.load_model("static_self")
        ones = np.ones((1, 4), np.float32)
        np.testing.assert_array_equal(infer(server, "static_self", {"x": ones})["y"], ones)

    sizes = memory_over_loads(server, load)
    server.unload_model("static_self")
    assert sizes[-1] - sizes[0] < 25, sizes


def test_a_model_that_fails_to_load_leaves_nothing(server: TritonServer, repository: Path) -> None:
    """Nor is what a model held that fails to load time after time, as one does that is polled."""
    code = LINEAR + TABLE + "    raise ValueError('no such file')\n"
    write_model(repository, "failing_globals", code, params=PARAMS)

    def load() -> None:
        with pytest.raises(ServerError, match="no such file"):
            server.load_model("failing_globals")

    sizes = memory_over_loads(server, load)
    assert sizes[-1] - sizes[0] < 25, sizes


def test_one_requests_failure_does_not_touch_its_batch_mates(
    server: TritonServer, repository: Path
) -> None:
    import threading

    code = """
        import numpy as np

        SIGNATURE = {"inputs": {"x": ("FP32", [1])}, "max_batch_size": 8}

        def preprocess(inputs):
            if (inputs["x"] < 0).any():
                raise ValueError("negative")
            return inputs

        def predict(params, x):
            return {"y": x * 2}
    """
    config = """
        backend: "jax"
        max_batch_size: 8
        dynamic_batching { preferred_batch_size: 4 max_queue_delay_microseconds: 2000000 }
    """
    write_model(repository, "mates", code, config=config)
    server.load_model("mates")
    results: dict[float, object] = {}

    def ask(value: float) -> None:
        try:
            results[value] = infer(server, "mates", {"x": np.full((1, 1), value, np.float32)})["y"]
        except RequestError as error:
            results[value] = error

    values = (1.0, 2.0, -3.0, 4.0)
    threads = [threading.Thread(target=ask, args=(value,)) for value in values]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert isinstance(results[-3.0], RequestError)
    assert "preprocess raised ValueError: negative" in str(results[-3.0])
    for value in (1.0, 2.0, 4.0):
        assert np.array_equal(results[value], [[2 * value]])  # type: ignore[arg-type]


def test_jax_settings_of_load_are_undone_too(server: TritonServer, repository: Path) -> None:
    strict = """
        import jax

        SIGNATURE = {"inputs": {"x": ("FP32", [1])}, "max_batch_size": 2}

        def load(context):
            jax.config.update("jax_numpy_dtype_promotion", "strict")

        def predict(params, x):
            return {"y": x}
    """
    mixed = """
        import jax.numpy as jnp

        SIGNATURE = {"inputs": {"x": ("FP32", [1])}, "max_batch_size": 2}

        def predict(params, x):
            return {"y": x + jnp.ones(1, "int32")}
    """
    write_model(repository, "strict", strict)
    write_model(repository, "mixed", mixed)
    server.load_model("strict")
    server.load_model("mixed")
    assert "jax_numpy_dtype_promotion" in server.log_text()


def test_a_models_words_do_not_condemn_the_device(server: TritonServer, repository: Path) -> None:
    code = """
        import jax

        SIGNATURE = {"inputs": {"x": ("FP32", [1])}, "max_batch_size": 2}

        def check(x):
            if (x < 0).any():
                raise ValueError("CUDA_ERROR_ILLEGAL_ADDRESS, out of memory, says the client")
            return x

        def predict(params, x):
            return {"y": jax.pure_callback(check, jax.ShapeDtypeStruct(x.shape, x.dtype), x)}
    """
    write_model(repository, "words", code)
    server.load_model("words")
    with pytest.raises(RequestError) as refused:
        infer(server, "words", {"x": np.full((1, 1), -1, np.float32)})
    assert refused.value.status == status(server, "http", {"http": "500"})
    one = np.ones((1, 1), np.float32)
    assert np.array_equal(infer(server, "words", {"x": one})["y"], one)
