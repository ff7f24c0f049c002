# SPDX-License-Identifier: Apache-2.0
"""Reading and writing config.pbtxt without a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tritonclient.grpc import model_config_pb2

from tritonserver_jax.model_config import ConfigTextError, config_text, parse_config
from tritonserver_jax.model_config.text import message_class
from tritonserver_jax.repository import CONFIG_TEXT

#: Something of every kind: comments, both quotes, both list forms, maps, a oneof, an enum.
TEXT = """
# a comment
name: "m" backend: 'jax'
max_batch_size: 8
input { name: "x" data_type: TYPE_FP32 dims: [ 4, -1 ] }
input [ { name: "y" data_type: TYPE_STRING dims: 1 optional: true } ]
output { name: "z" data_type: TYPE_BF16 dims: 3 dims: 2 reshape { shape: [ 6 ] } }
instance_group { count: 2 kind: KIND_CPU }
dynamic_batching { preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 100 }
parameters { key: "buckets" value { string_value: "1,8" } }
version_policy { specific { versions: [ 1, 3 ] } }
"""


def structure(descriptor: Any, seen: tuple[str, ...] = ()) -> Any:
    """Names and types of all fields, down to scalars and values of enums."""
    found = {}
    for field in descriptor.fields:
        kind: Any = field.type
        if field.message_type is not None:
            kind = structure(field.message_type, (*seen, descriptor.full_name))
        elif field.enum_type is not None:
            kind = [(value.name, value.number) for value in field.enum_type.values]
        group = field.containing_oneof
        found[field.name] = (
            kind,
            field.is_repeated,
            None if group is None else sorted(one.name for one in group.fields),
        )
    return found


def test_the_fields_are_those_of_the_client_library() -> None:
    theirs = structure(model_config_pb2.DESCRIPTOR.message_types_by_name["ModelConfig"])
    assert structure(message_class().DESCRIPTOR) == theirs


def test_a_configuration_is_read_as_triton_gives_it() -> None:
    config = parse_config(TEXT)
    assert (config["name"], config["backend"], config["max_batch_size"]) == ("m", "jax", 8)
    assert [one["dims"] for one in config["input"]] == [[4, -1], [1]]
    assert config["input"][0]["optional"] is False
    assert config["output"][0]["reshape"] == {"shape": [6]}
    assert config["instance_group"][0]["kind"] == "KIND_CPU"
    assert config["parameters"] == {"buckets": {"string_value": "1,8"}}
    assert config["version_policy"] == {"specific": {"versions": [1, 3]}}
    assert config["dynamic_batching"]["max_queue_delay_microseconds"] == 100
    # What is not there is empty, or is missing where that means something else.
    assert config["model_warmup"] == []
    assert "sequence_batching" not in config
    assert parse_config(CONFIG_TEXT)["backend"] == "jax"


def test_a_configuration_comes_back_from_its_text() -> None:
    config = parse_config(TEXT)
    assert parse_config(config_text(config)) == config
    assert "dims: [4, -1]" in config_text(config)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('backend: "jax"\nmax_batchsize: 3\n', "c:2: a model configuration has no field "
         "max_batchsize there; did you mean max_batch_size?"),
        ("input {\n  nam: 'x'\n}", "c:2: a model configuration has no field nam there; did you "
         "mean name?"),
        ("zzzz: 1", "c:1: a model configuration has no field zzzz there; leave it out"),
        ("max_batch_size: 'four'", "c:1: "),
        ("input { data_type: TYPE_FLOAT }", "TYPE_FLOAT"),
        ("input { name: 'x'", "c:1: "),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_text_is_named_with_its_line(text: str, said: str) -> None:
    with pytest.raises(ConfigTextError) as refused:
        parse_config(text, "c")
    assert said in str(refused.value)


def test_the_examples_can_be_read(request: pytest.FixtureRequest) -> None:
    root = Path(request.config.rootpath)
    for path in (root / "examples").glob("*/config.pbtxt"):
        assert parse_config(path.read_text(encoding="utf-8"), str(path))["backend"] == "jax"
