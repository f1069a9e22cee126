"""row.proto as Google's own library reads it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PROTO = Path(__file__).parents[3] / "docs" / "persist-shard" / "row.proto"
_PACKAGE = "dbt_mzs3.shard"
_FIELD = re.compile(r"(repeated )?(\w+) (\w+) = (\d+);")


def message_class(name: str) -> Any:
    """The class of a message of the documented file."""
    pool = descriptor_pool.DescriptorPool()
    pool.Add(_file())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


def _file() -> descriptor_pb2.FileDescriptorProto:
    found = descriptor_pb2.FileDescriptorProto(name="row.proto", package=_PACKAGE, syntax="proto3")
    message = None
    in_oneof = False
    for line in PROTO.read_text().splitlines():
        text = line.split("//")[0].strip()
        if text.startswith("message "):
            message = found.message_type.add(name=text.split()[1])
        elif text.startswith("oneof ") and message is not None:
            message.oneof_decl.add(name=text.split()[1])
            in_oneof = True
        elif text == "}":
            in_oneof = False
        elif message is not None and (match := _FIELD.fullmatch(text)):
            _add(message, match, in_oneof=in_oneof)
    return found


def _add(message: Any, match: re.Match[str], *, in_oneof: bool) -> None:
    repeated, kind, name, number = match.groups()
    field = message.field.add(name=name, number=int(number))
    field.label = field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL
    if in_oneof:
        field.oneof_index = 0
    if kind[0].isupper():
        field.type = field.TYPE_MESSAGE
        field.type_name = f".{_PACKAGE}.{kind}"
    else:
        field.type = getattr(field, f"TYPE_{kind.upper()}")
