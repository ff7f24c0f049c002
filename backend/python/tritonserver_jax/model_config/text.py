# SPDX-License-Identifier: Apache-2.0
"""The text of a config.pbtxt as the JSON that Triton gives a backend, and back.

The parser is protobuf's own, as in Triton; it is given the fields of `schema`.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Mapping
from typing import Any, Final

from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    json_format,
    message_factory,
    text_format,
)

from tritonserver_jax.model_config.schema import ENUMS, MESSAGES, ROOT

__all__ = ["ConfigTextError", "config_text", "parse_config"]

_PACKAGE: Final = "inference"
_FIELD: Final = re.compile(
    r"(?P<name>\w+): (?P<map>\{)?(?:(?P<key>\w+) )?(?P<type>\w+)\}?(?P<list>\*)?"
    r"(?: \| (?P<one>\w+))?"
)
#: Of protobuf's messages: where, and what.
_PLACE: Final = re.compile(r"^(?P<line>\d+):(?P<column>\d+) : (?P<said>.*)", re.DOTALL)
_UNKNOWN: Final = re.compile(r'Message type "[\w.]+" has no field named "(?P<name>\w+)"')
_Field = descriptor_pb2.FieldDescriptorProto


class ConfigTextError(ValueError):
    """A config.pbtxt that Triton would not read: where, why, and what to do."""


def _described(name: str, fields: str) -> Any:
    """Return a message as protobuf describes one."""
    message = descriptor_pb2.DescriptorProto(name=name)
    groups: list[str] = []
    for number, line in enumerate(fields.strip().splitlines(), 1):
        found = _FIELD.fullmatch(line.strip())
        assert found is not None, line  # noqa: S101 - the table is ours
        field = message.field.add(name=found["name"], number=number, label=_Field.LABEL_OPTIONAL)
        if found["map"]:
            entry = "".join(part.title() for part in found["name"].split("_")) + "Entry"
            made = message.nested_type.add(name=entry)
            made.options.map_entry = True
            for index, (part, kind) in enumerate(
                (("key", found["key"] or "string"), ("value", found["type"])), 1
            ):
                _typed(made.field.add(name=part, number=index, label=_Field.LABEL_OPTIONAL), kind)
            field.label = _Field.LABEL_REPEATED
            field.type = _Field.TYPE_MESSAGE
            field.type_name = f".{_PACKAGE}.{name}.{entry}"
            continue
        _typed(field, found["type"])
        if found["list"]:
            field.label = _Field.LABEL_REPEATED
        if found["one"]:
            if found["one"] not in groups:
                groups.append(found["one"])
                message.oneof_decl.add(name=found["one"])
            field.oneof_index = groups.index(found["one"])
    return message


def _typed(field: Any, kind: str) -> None:
    if kind in MESSAGES:
        field.type, field.type_name = _Field.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
    elif kind in ENUMS:
        field.type, field.type_name = _Field.TYPE_ENUM, f".{_PACKAGE}.{kind}"
    else:
        field.type = getattr(_Field, f"TYPE_{kind.upper()}")


@functools.cache
def message_class() -> Any:
    """Return the class of a model configuration."""
    file = descriptor_pb2.FileDescriptorProto(
        name="config.proto", package=_PACKAGE, syntax="proto3"
    )
    for name, values in ENUMS.items():
        kind = file.enum_type.add(name=name)
        for number, value in enumerate(values.split()):
            kind.value.add(name=value, number=number)
    for name, fields in MESSAGES.items():
        file.message_type.append(_described(name, fields))
    # A pool of its own: a client library in the same process may have Triton's messages.
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{ROOT}"))


def parse_config(text: str, where: str = "config.pbtxt") -> dict[str, Any]:
    """Read the text of a configuration, as Triton does.

    Args:
        text: Of config.pbtxt.
        where: For messages, such as the path of the file.

    Returns:
        What Triton gives a backend: every scalar and list, set or not; of messages, those that are
        set.

    Raises:
        ConfigTextError: Says the line, and the field that may be meant.
    """
    message = message_class()()
    try:
        text_format.Parse(text, message)
    except text_format.ParseError as error:
        raise ConfigTextError(_in_words(str(error), where)) from error
    return _as_json(message)


def _in_words(said: str, where: str) -> str:
    found = _PLACE.match(said)
    place, said = (f"{where}:{found['line']}", found["said"]) if found else (where, said)
    unknown = _UNKNOWN.search(said)
    if unknown is None:
        return f"{place}: {said.strip()}; correct it: the syntax is protobuf's text format"
    lines = [line.strip() for fields in MESSAGES.values() for line in fields.splitlines()]
    names = {line.partition(":")[0] for line in lines if line}
    close = difflib.get_close_matches(unknown["name"], names, n=1)
    remedy = f"did you mean {close[0]}?" if close else "leave it out"
    return f"{place}: a model configuration has no field {unknown['name']} there; {remedy}"


def _as_json(message: Any) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            inner = field.message_type.fields_by_name["value"]
            made[field.name] = {str(key): _value(inner, one) for key, one in value.items()}
        elif _is_list(field):
            made[field.name] = [_value(field, one) for one in value]
        elif not field.has_presence or message.HasField(field.name):
            made[field.name] = _value(field, value)
    return made


def _is_list(field: Any) -> bool:
    # Before protobuf 6.31 by the label, which later ones warn of.
    return bool(field.is_repeated if hasattr(field, "is_repeated") else field.label == 3)


def _value(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return _as_json(value)
    if field.enum_type is not None:
        return field.enum_type.values_by_number[value].name
    return value


def config_text(config: Mapping[str, Any]) -> str:
    """Return a configuration as config.pbtxt has it.

    Args:
        config: As `parse_config` returns it, or a server tells it.
    """
    message = json_format.ParseDict(dict(config), message_class()(), ignore_unknown_fields=True)
    made = text_format.MessageToString(message, use_short_repeated_primitives=True, as_utf8=True)
    return str(made)
