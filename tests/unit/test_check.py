# SPDX-License-Identifier: Apache-2.0
"""What `check` finds of a model: each kind of mistake with a model that has it, and one without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.models import LINEAR, MLP, mlp_params, write_model
from tritonserver_jax.checking.model_check import Options, check_model
from tritonserver_jax.checking.results import ModelReport
from tritonserver_jax.findings import Finding, Status
from tritonserver_jax.model_config import parse_config

PARAMS = {"w": np.ones((4, 3), np.float32), "b": np.zeros(3, np.float32)}


def look(
    tmp_path: Path,
    code: str,
    *,
    params: Any = None,
    config: str | None = None,
    options: Options | None = None,
) -> ModelReport:
    """The report of a model that is written for this."""
    write_model(tmp_path, "m", code, params=params, config=config)
    (report,) = check_model(tmp_path / "m", options=options, tell=lambda _: None)
    return report


def bad(report: ModelReport) -> list[Finding]:
    return [one for one in report.findings if one.status in (Status.FAIL, Status.WARN)]


def the_only(report: ModelReport, name: str, status: Status = Status.FAIL) -> Finding:
    """The one thing that is not well; it has to say what to do."""
    (finding,) = bad(report)
    assert (finding.name, finding.status) == (name, status), finding
    assert finding.remedy
    return finding


def model(body: str, inputs: str = '{"x": ("FP32", [4])}', **more: object) -> str:
    """A model.py; the body begins in its line 6."""
    extra = "".join(f', "{key}": {value!r}' for key, value in more.items())
    arguments = ", ".join(["params", *(part.split('"')[1] for part in inputs[1:].split("), "))])
    if "masks" in body:
        arguments += ", masks"
    lines = [
        "import jax",
        "import jax.numpy as jnp",
        f'SIGNATURE = {{"inputs": {inputs}, "max_batch_size": 4{extra}}}',
        "",
        f"def predict({arguments}):",
        *(f"    {line}" for line in body.strip().splitlines()),
    ]
    return "\n".join(lines) + "\n"


# -- a good model ----------------------------------------------------------------------------------


def test_a_good_model_is_described(tmp_path: Path) -> None:
    report = look(tmp_path, MLP, params=mlp_params())
    assert bad(report) == []
    assert [one.name for one in report.findings] == ["load", "types", "rows", "padding"]
    assert report.loaded
    assert [str(one) for one in (*report.inputs, *report.outputs)] == ["x FP32[16]", "y FP32[4]"]
    assert (report.max_batch_size, report.x64) == (8, False)
    assert report.parameter_bytes == sum(one.nbytes for one in mlp_params().values())
    assert sorted(one.rows or 0 for one in report.programs) == [1, 2, 4, 8]
    for program in report.programs:
        assert program.compile_seconds > 0
        assert program.run_seconds is not None
        assert program.run_seconds > 0
        assert program.tensor_bytes >= (program.rows or 0) * (16 + 4) * 4
        assert program.shapes == f"x: float32[{program.rows},16]"
    assert report.peak_bytes is not None
    assert report.peak_bytes > 50 << 20
    assert ModelReport.from_json(report.as_json()) == report


def test_the_completed_configuration_is_one_that_passes(tmp_path: Path) -> None:
    first = look(tmp_path, LINEAR, params=PARAMS)
    config = parse_config(first.config)
    assert config["max_batch_size"] == 8
    assert config["dynamic_batching"]["preferred_batch_size"] == [2, 4, 8]
    second = look(tmp_path, LINEAR, params=PARAMS, config=first.config)
    assert bad(second) == []
    assert parse_config(second.config) == config


# -- numbers that do not fit -----------------------------------------------------------------------

BIG = {"table": np.array([1, 5_000_000_000], np.int64)}
X64 = 'backend: "jax"\nparameters { key: "x64" value { string_value: "true" } }\n'
LOOKUP = model('return {"y": x + params["table"].sum()}')


def test_a_parameter_that_32_bits_cannot_hold(tmp_path: Path) -> None:
    finding = the_only(look(tmp_path, LOOKUP, params=BIG), "types")
    assert "'table' is int64 and holds 5000000000, which int32 cannot" in finding.detail
    assert "it would become 705032704" in finding.detail
    assert 'key: "x64" value { string_value: "true" }' in finding.remedy


def test_a_parameter_in_the_64_bit_mode_is_kept(tmp_path: Path) -> None:
    assert bad(look(tmp_path, LOOKUP, params=BIG, config=X64)) == []


def test_a_parameter_of_64_bits_that_fits_32_is_only_noted(tmp_path: Path) -> None:
    report = look(tmp_path, LOOKUP, params={"table": np.arange(3)})
    assert bad(report) == []
    assert any("'table' (int64)" in one.detail for one in report.findings)


INTS = '{"x": ("INT32", [4])}'
BYTE = '{"x": ("UINT8", [4])}'


@pytest.mark.parametrize(
    ("body", "inputs", "status", "said"),
    [
        (
            'return {"y": x.astype(jnp.int64) * 3_000_000}',
            INTS,
            Status.FAIL,
            "mul (model.py:6) makes 3000000000000, which int32 cannot hold: it becomes 2112827392",
        ),
        ('return {"y": x * 2}', BYTE, Status.FAIL, "mul (model.py:6) makes 510, which uint8"),
        ('return {"y": x - 128}', BYTE, Status.FAIL, "sub (model.py:6) makes -128, which uint8"),
        ('return {"y": x.astype(jnp.int8)}', BYTE, Status.FAIL, "makes 255, which int8"),
        ('return {"y": x * x}', INTS, Status.WARN, "mul (model.py:6) makes 1000000000000"),
        (
            'return {"y": jax.jit(lambda x: x * x)(x)}',
            INTS,
            Status.WARN,
            "mul (model.py:6) makes 1000000000000",
        ),
        (
            'return {"y": jax.lax.scan(lambda c, _: (c * 3, None), x, None, 20)[0]}',
            INTS,
            Status.WARN,
            "the loop (model.py:6) makes 3486784401000000, which int32 cannot",
        ),
        (
            'return {"y": jax.lax.fori_loop(0, 2, lambda i, c: c * 16, x)}',
            BYTE,
            Status.FAIL,
            "the loop (model.py:6) makes 65280, which uint8 cannot",
        ),
        (
            'more = lambda c: (c > 1).all() & (c < 2**30).all()\n'
            'return {"y": jax.lax.while_loop(more, lambda c: c * c, jnp.abs(x) + 2)}',
            INTS,
            Status.WARN,
            "the loop (model.py:7) makes ",
        ),
        (
            'y = jnp.zeros(x.shape)\n'
            'for_x = lambda i, y: y + (x * x).astype("float32")\n'
            'return {"y": jax.lax.fori_loop(0, 3, for_x, y)}',
            INTS,
            Status.WARN,
            "instead of 3e+12, because a whole number in it does not fit its type",
        ),
        (
            'return {"y": jax.lax.cond(x[0, 0] > 5, lambda x: x * 2, lambda x: x, x)}',
            BYTE,
            Status.FAIL,
            "mul (model.py:6) makes 510, which uint8",
        ),
        ('return {"y": jnp.cumprod(x, -1)}', INTS, Status.WARN, "cumprod (model.py:6) makes"),
        ('return {"y": x.at[:, 0].add(9)}', BYTE, Status.FAIL, "scatter-add (model.py:6)"),
        (
            'import numpy as np\nreturn {"y": x + np.array([5_000_000_000, 1, 2, 3])}',
            INTS,
            Status.FAIL,
            "a constant of predict (model.py:7) is int64 and holds 5000000000, which int32 cannot",
        ),
        (
            'return {"y": x.astype(jnp.int32)}',
            '{"x": ("INT64", [4])}',
            Status.WARN,
            "an input of int64 is made int32 (model.py:6): a client that sends 3000000000",
        ),
        (
            'return {"y": x + jnp.float64(1)}',
            '{"x": ("FP32", [4])}',
            Status.WARN,
            "the model asks for float64 (model.py:6), and gets float32",
        ),
    ],
)  # fmt: skip
def test_numbers_that_wrap_around(
    tmp_path: Path, body: str, inputs: str, status: Status, said: str
) -> None:
    finding = the_only(look(tmp_path, model(body, inputs)), "types", status)
    assert said in finding.detail


@pytest.mark.parametrize(
    ("body", "inputs"),
    [
        ('return {"y": x.astype(jnp.int32) * 2}', BYTE),
        ('return {"y": x.astype(jnp.float32) / 255}', BYTE),
        ('return {"y": x * 3_000_000}', '{"x": ("INT64", [4])}'),
        ('return {"y": jnp.arange(100.0)[x]}', INTS),
        ('return {"y": jax.random.bits(jax.random.key(0), (4,)) * x}', '{"x": ("UINT32", [4])}'),
        # What looks like wrapping around, and never comes out.
        ('return {"y": jnp.where(x > 100, x - 100, 100 - x)}', BYTE),
        ('return {"y": jnp.arange(100.0)[x]}', '{"x": ("INT8", [4])}'),
        # Where it is meant.
        ('return {"y": ((x * 31) ^ (x >> 3)) * 17}', BYTE),
        ('return {"y": (x << 3) | (x >> 5)}', BYTE),
        # A loop that would never end, if a number did not wrap around.
        (
            'n = jax.lax.while_loop(lambda n: n != 0, lambda n: n + 1, jnp.uint8(1))\n'
            'return {"y": x + n.astype(x.dtype) * 0}',
            INTS,
        ),
        ('return {"y": jax.lax.fori_loop(0, 3, lambda i, c: c / 2, x.astype("float32"))}', BYTE),
        ('import numpy as np\nreturn {"y": x + np.array([5, 1, 2, 3])}', INTS),
        # JAX's own code has larger constants in the other mode.
        (
            'keys = jax.vmap(jax.random.fold_in, (None, 0))(jax.random.key(0), x[:, 0])\n'
            'return {"y": jax.vmap(lambda key: jax.random.randint(key, (3,), 0, 10))(keys)}',
            INTS,
        ),
    ],
)  # fmt: skip
def test_numbers_that_fit(tmp_path: Path, body: str, inputs: str) -> None:
    assert bad(look(tmp_path, model(body, inputs))) == []


@pytest.mark.parametrize("where", ["", "    "])
@pytest.mark.parametrize("function", ["asarray(", "asarray(a=", "array(object=", "array("])
def test_an_array_that_jax_narrows_silently(tmp_path: Path, where: str, function: str) -> None:
    """At the top of model.py, and inside of predict."""
    make = f"{where}table = jnp.{function}np.array([3_000_000_000, 1, 2, 3]))"
    code = model('return {"y": jax.lax.scan(lambda c, t: (c + t, None), x, table)[0]}', INTS)
    lines = ["import numpy as np", *code.splitlines()]
    lines.insert(6 if where else 3, make)
    finding = the_only(look(tmp_path, "\n".join(lines)), "types")
    line = 7 if where else 4
    assert finding.detail.startswith(
        f"an array that the model gives to JAX (model.py:{line}) is int64 and holds 3000000000, "
        "which int32 cannot: it would become -1294967296"
    )
    fits = "\n".join(lines).replace("3_000_000_000", "3_000")
    assert bad(look(tmp_path / "fits", fits)) == []
    meant = "\n".join(lines).replace("1, 2, 3])", '1, 2, 3]).astype("int32")')
    assert bad(look(tmp_path / "meant", meant)) == []


def test_numbers_behind_host_code(tmp_path: Path) -> None:
    code = model('return {"y": x * 2}', BYTE)
    host = "\ndef preprocess(inputs):\n    return {'x': inputs['x'] // 2}\n"
    assert bad(look(tmp_path, code + host)) == []
    finding = the_only(look(tmp_path, code + host.replace("// 2", "// 1")), "types")
    assert "mul (model.py:6) makes 510, which uint8" in finding.detail


def test_numbers_of_the_author(tmp_path: Path) -> None:
    """Of floating-point numbers nobody knows how large they are; of those of --data one does."""
    code = model('return {"y": (x * 255).astype(jnp.uint8)}')
    assert bad(look(tmp_path, code)) == []
    data = tmp_path / "rows.npz"
    rows = np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4)
    np.savez(data, x=rows)
    assert bad(look(tmp_path, code, options=Options(data=data))) == []
    np.savez(data, x=rows * 2)
    finding = the_only(look(tmp_path, code, options=Options(data=data)), "types")
    assert "makes 278, which uint8 cannot hold: it becomes 255 (with the rows of --data)" in (
        finding.detail
    )


def test_the_mode_that_is_switched_off_is_refused_by_the_runtime(tmp_path: Path) -> None:
    config = X64.replace("true", "false")
    code = model('return {"y": x}', '{"x": ("INT64", [4])}')
    finding = the_only(look(tmp_path, code, config=config), "load")
    assert "input 'x' is INT64, which JAX narrows to 32 bits" in finding.detail
    assert "remove the parameter 'x64'" in finding.remedy


# -- rows that are not on their own ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('return {"y": x - x.mean(0)}', "reduce_sum in model.py:6 mixes them"),
        ('return {"y": (x - x.mean(0)).at[:, 0].set(-1e9)}', "reduce_sum in model.py:6 mixes them"),
        ('z = jnp.tanh(x)\nreturn {"y": z / jnp.abs(z).max()}', "reduce_max in model.py:7"),
        ('return {"y": jax.nn.softmax(x, axis=0)}', "model.py:6 mixes them"),
        ('return {"y": jnp.cumsum(x, 0)}', "row 3 of 4"),
        ('return {"y": jnp.sort(x, 0)}', "sort in model.py:6 mixes them"),
        ('return {"y": x[::-1]}', "model.py:6 mixes them"),
        (
            'return {"y": (x.reshape(-1) - x.reshape(-1).mean()).reshape(x.shape)}',
            "model.py:6 mixes them",
        ),
    ],
)
def test_an_answer_that_depends_on_other_rows(tmp_path: Path, body: str, said: str) -> None:
    report = look(tmp_path, model(body))
    finding = next(one for one in bad(report) if one.name == "rows")
    assert finding.status is Status.FAIL
    assert "output 'y' changes by" in finding.detail
    assert said in finding.detail
    assert "jax.vmap" in finding.remedy


@pytest.mark.parametrize(
    "body",
    [
        'return {"y": x - x.mean(-1, keepdims=True)}',
        'return {"y": jax.nn.softmax(x)}',
        'return {"y": jax.vmap(lambda row: row / jnp.abs(row).max())(x)}',
        'return {"y": jnp.sort(x, -1)}',
        'z = x.astype("bfloat16") @ jnp.ones((4, 2), "bfloat16")\nreturn {"y": z.astype(x.dtype)}',
    ],
)
def test_answers_that_are_their_rows_own(tmp_path: Path, body: str) -> None:
    assert bad(look(tmp_path, model(body))) == []


def test_an_answer_that_depends_on_its_place(tmp_path: Path) -> None:
    report = look(tmp_path, model('return {"y": x + jnp.arange(x.shape[0])[:, None]}'))
    assert "depends on its place in the batch" in bad(report)[0].detail


def test_an_answer_that_is_another_each_time(tmp_path: Path) -> None:
    body = (
        "import numpy as np\n"
        "spec = jax.ShapeDtypeStruct(x.shape, x.dtype)\n"
        "noise = lambda x: np.random.default_rng().random(x.shape, np.float32)\n"
        'return {"y": x + jax.pure_callback(noise, spec, x)}'
    )
    finding = the_only(look(tmp_path, model(body)), "rows", Status.WARN)
    assert "another answer each time" in finding.detail


# -- padding ---------------------------------------------------------------------------------------


def test_padding_that_changes_an_answer(tmp_path: Path) -> None:
    finding = the_only(look(tmp_path, model('return {"y": x / x.shape[0]}')), "padding")
    assert "3 rows padded to 4: output 'y' changes by" in finding.detail
    assert "x.shape[0]" in finding.remedy


def test_without_padding_there_is_nothing_to_change(tmp_path: Path) -> None:
    config = (
        'backend: "jax"\nmax_batch_size: 3\n'
        'parameters { key: "buckets" value { string_value: "1,2,3" } }\n'
    )
    report = look(tmp_path, model('return {"y": x * 2}'), config=config)
    assert Finding("padding", Status.OK, "no batch is ever padded") in report.findings
    # But others may share a batch.
    report = look(tmp_path / "other", model('return {"y": x / x.shape[0]}'), config=config)
    assert "1 row at once: output 'y' changes by" in the_only(report, "padding").detail


def test_one_size_that_changes_an_answer(tmp_path: Path) -> None:
    body = 'return {"y": x + (x.shape[0] == 16)}'
    finding = the_only(look(tmp_path, model(body, max_batch_size=32)), "padding")
    assert "16 rows at once: output 'y' changes by 1" in finding.detail


TOKENS = '{"t": ("FP32", [-1])}'
WRONG_MEAN = model('return {"y": t.mean(-1, keepdims=True)}', TOKENS, lengths={"t": [16, 32]})
RIGHT_MEAN = model(
    'real = masks["t"]\n'
    'return {"y": jnp.where(real, t, 0).sum(-1, keepdims=True) / real.sum(-1, keepdims=True)}',
    TOKENS,
    lengths={"t": [16, 32]},
)


def test_a_length_that_changes_an_answer(tmp_path: Path) -> None:
    finding = the_only(look(tmp_path, WRONG_MEAN), "lengths")
    assert "'t' [12]: output 'y' changes by" in finding.detail
    assert "masks" in finding.remedy


#: A table that has fewer rows than most numbers: what is not in it is no number at all.
LOOKED_UP = """
    import jax.numpy as jnp

    SIGNATURE = {"inputs": {"t": ("INT32", [-1])}, "lengths": {"t": [16]}, "max_batch_size": 4}

    def predict(params, t):
        rows = jnp.take(jnp.linspace(1, 2, 5)[:, None], t, axis=0)
        return {"y": rows.mean(-2)}
"""


def test_a_small_table_hides_nothing(tmp_path: Path) -> None:
    finding = the_only(look(tmp_path, LOOKED_UP), "lengths")
    assert "'t' [12]: output 'y' changes by" in finding.detail


def test_what_is_never_a_number_is_said(tmp_path: Path) -> None:
    report = look(tmp_path, model('return {"y": jnp.log(-jnp.abs(x))}'))
    assert "not finite" in the_only(report, "numbers", Status.WARN).detail


def test_a_mask_keeps_the_answer(tmp_path: Path) -> None:
    report = look(tmp_path, RIGHT_MEAN)
    assert bad(report) == []
    assert report.findings[-1].name == "lengths"


RAGGED = """
    backend: "jax"
    input { name: "t" data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }
"""


def test_lengths_of_other_rows(tmp_path: Path) -> None:
    report = look(tmp_path, RIGHT_MEAN, config=RAGGED)
    assert bad(report) == []
    said = [one.detail for one in report.findings if one.name == "lengths"]
    assert said[0] == "'t' of different lengths in one batch: each has the answer that it has alone"
    code = RIGHT_MEAN.replace('masks["t"]', 'masks["t"].any(0, keepdims=True)')
    finding = the_only(look(tmp_path, code, config=RAGGED), "lengths")
    assert "'t' of different lengths in one batch: output 'y' changes by" in finding.detail
    assert "its own mask only" in finding.remedy


# -- a configuration against the model -------------------------------------------------------------

BACKEND = 'backend: "jax"\n'


@pytest.mark.parametrize(
    ("config", "name", "said", "remedy"),
    [
        (
            'input { name: "X" data_type: TYPE_FP32 dims: 4 }',
            "config",
            "input 'X' of config.pbtxt is not one of the inputs of SIGNATURE",
            "",
        ),
        (
            'max_batch_size: 8 input { name: "x" data_type: TYPE_INT32 dims: 4 }',
            "config",
            "config.pbtxt says TYPE_INT32, but SIGNATURE of model.py has TYPE_FP32",
            "",
        ),
        (
            'max_batch_size: 8 input { name: "x" data_type: TYPE_FP32 dims: [ 8, 4 ] }',
            "config",
            "says dims [8, 4], but SIGNATURE of model.py has [4]",
            "leave out the 8 of the batch",
        ),
        (
            'max_batch_size: 8 output { name: "z" }',
            "config",
            "output 'z' of config.pbtxt is not one of the outputs of predict",
            "",
        ),
        (
            'max_batch_size: 8 output { name: "y" dims: 7 }',
            "config",
            "config.pbtxt says dims [7], but predict has [3]",
            "",
        ),
        ("max_batch_size: 64", "config", "has max_batch_size 64, but SIGNATURE", "SIGNATURE to 64"),
        ("max_batch_size: -1", "config", "max_batch_size is -1", "set it to 0"),
        (
            "dynamic_batching { preferred_batch_size: 4 }",
            "config",
            "preferred_batch_size of dynamic_batching is 4, but config.pbtxt has no max_batch_size",
            "write max_batch_size: 4",
        ),
        (
            'parameters { key: "bucket" value { string_value: "1" } }',
            "config",
            "parameter 'bucket' in the model configuration is unknown",
            "did you mean 'buckets'?",
        ),
        (
            'parameters { key: "buckets" value { string_value: "many" } }',
            "load",
            "parameter 'buckets': expected batch sizes > 0",
            "",
        ),
        (
            'max_batch_size: 8 parameters { key: "buckets" value { string_value: "16" } }',
            "load",
            "parameter 'buckets': 16 is more than max_batch_size",
            "",
        ),
        (
            'max_batch_size: 8 output { name: "y" dims: 3 label_filename: "no.txt" }',
            "config",
            "output 'y' has the label_filename no.txt, and there is no such file",
            "beside config.pbtxt",
        ),
        ("instance_group { kind: KIND_GPU }", "load", "wants KIND_GPU", "--cpu"),
        ("instance_group { kind: KIND_CPU gpus: 0 }", "config", "names the GPUs 0", "KIND_GPU"),
        (
            'instance_group { kind: KIND_MODEL } '
            'parameters { key: "devices" value { string_value: "cpu:7" } }',
            "load",
            "names cpu:7, which JAX does not have",
            "",
        ),
        ("model_transaction_policy { decoupled: true }", "config", "has no stream", ""),
        ('name: "other"', "config", 'says name: "other", but the folder is m', "leave the name"),
        ("version_policy { specific { versions: 7 } }", "config", "asks for the versions 7", ""),
        ("input { name: 'x' dims: 0 }", "config", "expected sizes > 0, or -1", "batch dimension"),
        ("max_batchsize: 3", "config", "has no field max_batchsize", "mean max_batch_size?"),
        ('backend: "jaxx"', "config", "is not for this backend", '"jax"'),
        ('name: "m" # backend:', "config", "has no backend", '"jax"'),
    ],
)  # fmt: skip
def test_a_configuration_that_contradicts_the_model(
    tmp_path: Path, config: str, name: str, said: str, remedy: str
) -> None:
    text = config if "backend:" in config else BACKEND + config
    report = look(tmp_path, LINEAR, params=PARAMS, config=text)
    finding = next(one for one in report.findings if one.status is Status.FAIL)
    assert finding.name == name
    assert said in finding.detail
    assert remedy in finding.remedy


def test_a_comment_in_any_encoding(tmp_path: Path) -> None:
    write_model(tmp_path, "m", LINEAR, params=PARAMS, config=BACKEND)
    path = tmp_path / "m" / "config.pbtxt"
    path.write_bytes(path.read_bytes() + b"# gr\xfc\xdfe\n")
    (report,) = check_model(tmp_path / "m", tell=lambda _: None)
    assert bad(report) == []


def test_a_version_that_ends_a_server(tmp_path: Path) -> None:
    number = "9" * 23
    write_model(tmp_path, "m", LINEAR, params=PARAMS)
    (tmp_path / "m" / "1").rename(tmp_path / "m" / number)
    (report,) = check_model(tmp_path / "m", tell=lambda _: None)
    said = [one.detail for one in report.findings if one.status is Status.FAIL]
    assert any(f"the version folder {number} is larger than" in one for one in said)


def test_a_configuration_that_says_all_and_agrees(tmp_path: Path) -> None:
    config = """
        name: "m"
        backend: "jax"
        max_batch_size: 8
        input { name: "x" data_type: TYPE_FP32 dims: 4 }
        output { name: "y" data_type: TYPE_FP32 dims: 3 }
        instance_group { count: 2 kind: KIND_CPU }
        dynamic_batching { preferred_batch_size: [ 4, 8 ] }
        parameters { key: "buckets" value { string_value: "1,4,8" } }
    """
    report = look(tmp_path, LINEAR, params=PARAMS, config=config)
    assert bad(report) == []
    assert sorted(one.rows or 0 for one in report.programs) == [1, 4, 8]


@pytest.mark.parametrize(
    "config", ['backend: "onnxruntime"', 'platform: "ensemble"', 'backend: "python"']
)
def test_a_model_of_another_backend_is_left_to_it(tmp_path: Path, config: str) -> None:
    report = look(tmp_path, LINEAR, config=config)
    (finding,) = report.findings
    assert finding.status is Status.NOTE
    assert "and is not looked at" in finding.detail


def test_a_smaller_batch_is_the_operators_choice(tmp_path: Path) -> None:
    config = BACKEND + "max_batch_size: 4\n"
    report = look(tmp_path, LINEAR, params=PARAMS, config=config)
    assert bad(report) == []
    assert any("lowers max_batch_size to 4" in one.detail for one in report.findings)


def test_on_the_cpu_a_model_for_a_gpu_is_looked_at_all_the_same(tmp_path: Path) -> None:
    config = BACKEND + "instance_group { kind: KIND_GPU }\n"
    report = look(tmp_path, LINEAR, params=PARAMS, config=config, options=Options(on_cpu=True))
    assert bad(report) == []


# -- what keeps a model from being loaded ----------------------------------------------------------


def test_files_packages_and_code_that_fail(tmp_path: Path) -> None:
    finding = the_only(look(tmp_path, LINEAR), "load")
    assert "there is no params.msgpack" in finding.detail
    finding = the_only(look(tmp_path, "import there_is_none\n"), "load")
    assert "ModuleNotFoundError: No module named 'there_is_none' (model.py:1)" in finding.detail
    assert "setup_env.sh --requirements" in finding.remedy
    finding = the_only(look(tmp_path, model('return {"y": x @ jnp.ones((7, 7))}')), "load")
    assert "(model.py:6)" in finding.detail
    finding = the_only(look(tmp_path, "def predict(params, x:\n"), "load")
    assert "SyntaxError" in finding.detail
    assert "(model.py:1)" in finding.detail


def test_folders_that_are_no_model(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (report,) = check_model(tmp_path / "empty", tell=lambda _: None)
    assert "has no config.pbtxt" in the_only(report, "config").detail
    (tmp_path / "empty" / "config.pbtxt").write_text(BACKEND)
    (tmp_path / "empty" / "make.py").touch()
    (report,) = check_model(tmp_path / "empty", tell=lambda _: None)
    assert "make.py makes it" in the_only(report, "load").remedy
    (report,) = check_model(tmp_path / "empty", 3, tell=lambda _: None)
    assert report.version == 3


def test_every_version_that_would_be_served_is_looked_at(tmp_path: Path) -> None:
    for version in (1, 2, 3):
        write_model(tmp_path, "m", LINEAR, params=PARAMS, version=version)
    assert [one.version for one in check_model(tmp_path / "m", tell=lambda _: None)] == [3]
    policy = BACKEND + "version_policy { specific { versions: [ 1, 2 ] } }\n"
    (tmp_path / "m" / "config.pbtxt").write_text(policy)
    assert [one.version for one in check_model(tmp_path / "m", tell=lambda _: None)] == [1, 2]


# -- host code, strings, other kinds of models -----------------------------------------------------

WORDS = """
    import numpy as np

    SIGNATURE = {"inputs": {"text": ("BYTES", [1])}, "max_batch_size": 8}

    def preprocess(inputs):
        return {"n": np.array([[float(t or b"0")] for [t] in inputs["text"]], np.float32)}

    def predict(params, n):
        return {"n": n * 2}

    def postprocess(outputs):
        return {"twice": np.array([[str(n).encode()] for [n] in outputs["n"]], object)}
"""
STRINGS = """
    SIGNATURE = {"inputs": {"text": ("BYTES", [2])}, "lengths": {"text": [8]}, "max_batch_size": 8}

    def predict(params, text):
        return {"same": text, "sum": text.bytes.sum((1, 2), dtype="int32")[:, None]}
"""
RECURRENT = """
    SIGNATURE = {
        "inputs": {"x": ("FP32", [4])},
        "state": {"h": ("FP32", [4])},
        "max_batch_size": 8,
    }

    def predict(params, x, h):
        return {"y": x + h, "h": h * 0.5 + x}
"""
PLAIN = """
    SIGNATURE = {"inputs": {"x": ("FP32", [4]), "s": ("FP32", [])}, "max_batch_size": 0}

    def predict(params, x, s):
        return {"mean": x.mean() * s}
"""


@pytest.mark.parametrize("code", [WORDS, STRINGS, RECURRENT, PLAIN])
def test_other_kinds_of_models_are_well(tmp_path: Path, code: str) -> None:
    report = look(tmp_path, code)
    assert bad(report) == []
    assert report.loaded


def test_host_code_that_mixes_rows(tmp_path: Path) -> None:
    code = WORDS.replace('return {"n": n * 2}', 'return {"n": n - n.mean(0)}')
    report = look(tmp_path, code)
    assert any(one.name == "rows" and one.status is Status.FAIL for one in report.findings)


STREAM = """
    import numpy as np

    SIGNATURE = {
        "inputs": {"x": ("FP32", [1])}, "outputs": {"y": ("FP32", [1])}, "max_batch_size": 0
    }

    def stream(context, x):
        for number in range(3):
            yield {"y": x * number}
"""


def test_a_stream_is_tried(tmp_path: Path) -> None:
    report = look(tmp_path, STREAM)
    assert bad(report) == []
    assert report.findings[-1].detail.startswith("stream has 3 responses to a random request")
    endless = STREAM.replace(
        "for number in range(3)", "import itertools\n        for number in itertools.count()"
    )
    assert "more than 100 responses" in look(tmp_path, endless).findings[-1].detail


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"y": x * number', '"z": x', "output 'y' is missing; got z"),
        ("x * number", "np.float64(x)", "output 'y': expected FP32[1], got FP64[1]"),
        ("x * number", "np.tile(x, 2)", "output 'y': expected FP32[1], got FP32[2]"),
        ("yield", "x[5]; yield", "stream raised IndexError"),
        ("range(3)", "range(0)", "stream has 0 responses"),
    ],
)
def test_a_stream_that_fails(tmp_path: Path, old: str, new: str, said: str) -> None:
    finding = the_only(look(tmp_path, STREAM.replace(old, new)), "rows", Status.WARN)
    assert said in finding.detail


def test_host_code_that_makes_other_dimensions(tmp_path: Path) -> None:
    code = """
        import numpy as np

        SIGNATURE = {"inputs": {"text": ("BYTES", [1])}, "max_batch_size": 4}

        def preprocess(inputs):
            length = max(len(t) for [t] in inputs["text"])
            return {"n": np.zeros((len(inputs["text"]), length or 1), np.float32)}

        def predict(params, n):
            return {"n": n}
    """
    report = look(tmp_path, code)
    finding = next(one for one in bad(report) if one.name == "outputs")
    assert "clients are told that output 'n' is FP32[" in finding.detail


def test_rows_of_the_author(tmp_path: Path) -> None:
    code = WORDS.replace('float(t or b"0")', 'float((t or b"a=0").split(b"=")[1])')
    report = look(tmp_path, code)
    finding = the_only(report, "rows", Status.WARN)
    assert "preprocess raised IndexError" in finding.detail
    assert "--data" in finding.remedy
    data = tmp_path / "rows.npz"
    np.savez(data, text=np.array([["a=1"], ["b=2.5"], ["c=3"]]))
    assert bad(look(tmp_path, code, options=Options(data=data))) == []
    np.savez(data, other=np.zeros(3))
    finding = the_only(look(tmp_path, code, options=Options(data=data)), "data")
    assert "has no array for input 'text' (it has other)" in finding.detail


@pytest.mark.parametrize("count", [2, 3, 4, 8])
def test_rows_of_the_author_that_mix(tmp_path: Path, count: int) -> None:
    data = tmp_path / "rows.npz"
    np.savez(data, x=np.random.default_rng(0).random((count, 4), np.float32))
    code = model('return {"y": x - x.mean(0)}')
    report = look(tmp_path, code, options=Options(data=data))
    assert any(one.name == "rows" and one.status is Status.FAIL for one in report.findings)
    good = look(tmp_path, model('return {"y": x * 2}'), options=Options(data=data))
    assert bad(good) == []
    assert any(f"({min(count, 4)} rows tried)" in one.detail for one in good.findings)


@pytest.mark.parametrize("count", [1, 3])
def test_rows_of_the_author_that_are_all_the_same(tmp_path: Path, count: int) -> None:
    data = tmp_path / "rows.npz"
    np.savez(data, x=np.ones((count, 4), np.float32))
    report = look(tmp_path, model('return {"y": x * 2}'), options=Options(data=data))
    (finding,) = (one for one in report.findings if one.name == "rows")
    assert finding.status is Status.NOTE
    assert "the rows of --data are all the same" in finding.detail


def test_rows_that_cannot_be_read(tmp_path: Path) -> None:
    data = tmp_path / "rows.npz"
    np.savez(data, x=np.ones((64, 4), np.float32))
    whole = data.read_bytes()
    code = model('return {"y": x * 2}')
    for damaged in (b"", b"no archive", whole[:-40], whole[:200] + bytes(300) + whole[500:]):
        data.write_bytes(damaged)
        finding = the_only(look(tmp_path, code, options=Options(data=data)), "data")
        assert finding.detail.startswith(f"--data: cannot read {data}")
    for rows, said in (
        (np.ones((0, 4), np.float32), "have no rows"),
        (np.float32(1), "expected rows of FP32[4], got FP32[]"),
    ):
        np.savez(data, x=rows)
        finding = the_only(look(tmp_path, code, options=Options(data=data)), "data")
        assert said in finding.detail
