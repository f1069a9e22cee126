"""The bytes are messages of the documented file, to a library that knows nothing else."""

from __future__ import annotations

import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from support.examples import examples
from support.shard.proto_messages import message_class
from support.shard.values import columns, list_of, map_of, record_of, wire_array

from dbt.adapters.mzs3.shard.codec.encode import encode_rows
from dbt.adapters.mzs3.shard.types import INT2VECTOR, Type, array_of, range_of

ROW = message_class("Row")
ID = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
NUMERIC = Type("numeric", precision=10, scale=2)
INTEGER, TEXT = Type("integer"), Type("text")

CASES: list[tuple[Type, Any, str]] = [
    (Type("boolean"), True, "bool: true"),
    (Type("tinyint"), -3, "int32: -3"),
    (INTEGER, -(2**31), "int32: -2147483648"),
    (Type("bigint"), 2**63 - 1, "int64: 9223372036854775807"),
    (Type("uint4"), 2**32 - 1, "uint64: 4294967295"),
    (Type("mz_timestamp"), Decimal(2**64 - 1), "uint64: 18446744073709551615"),
    (Type("real"), 1.5, "float: 1.5"),
    (Type("double"), 0.1, "double: 0.1"),
    (TEXT, "a" * 3, 'string: "aaa"'),
    (Type("bytea"), b"\x01", 'bytes: "\\001"'),
    (Type("uuid"), ID.bytes, r'bytes: "\000\021\"3DUfw\210\231\252\273\314\335\356\377"'),
    (NUMERIC, Decimal("1.03"), r'numeric { scale: 2 unscaled: "g' + r"\000" * 15 + '" }'),
    (Type("date"), 19000, "date: 19000"),
    (Type("time"), 1, "time: 1"),
    (Type("timestamp"), -1, "timestamp: -1"),
    (
        Type("interval"),
        {"months": 1, "days": -2, "micros": 3},
        "interval { months: 1 days: -2 micros: 3 }",
    ),
    (Type("jsonb"), "{}", 'json: "{}"'),
    (
        list_of(TEXT),
        ["a", None],
        'list { sizes: 5 sizes: 2 datums { string: "a" } datums { } }',
    ),
    (INT2VECTOR, [7], "list { sizes: 7 datums { int32: 7 } }"),
    (
        record_of(INTEGER, TEXT),
        {"0": 1, "1": None},
        "record { fields { int32: 1 } fields { } }",
    ),
    (record_of(), {}, "record { }"),
    (
        map_of(TEXT, INTEGER),
        [{"0": "k", "1": 1}],
        'map { keys { sizes: 5 datums { string: "k" } } values { sizes: 7 datums { int32: 1 } } }',
    ),
    (
        range_of(INTEGER),
        {"0": {"0": True, "1": 1}, "1": {"0": False, "1": None}},
        "record { fields { record { fields { bool: true } fields { int32: 1 } } } "
        "fields { record { fields { bool: false } fields { } } } }",
    ),
    (
        array_of(INTEGER),
        {"0": [5], "1": [{"0": 1, "1": Decimal(1)}]},
        "record { fields { list { sizes: 7 datums { int32: 5 } } } fields { list { sizes: 27 "
        "datums { record { fields { int64: 1 } fields { uint64: 1 } } } } } }",
    ),
    (TEXT, None, ""),
]


def text_of(message: Any) -> str:
    return " ".join(str(message).split())


@pytest.mark.parametrize(("kind", "value", "text"), CASES, ids=[str(kind) for kind, _, _ in CASES])
def test_each_type_is_its_field(kind: Type, value: Any, text: str) -> None:
    [row] = encode_rows([wire_array([value], kind)], [kind], 1).to_pylist()
    message = ROW.FromString(row)
    assert text_of(message) == f"datums {{ {text} }}".replace("  ", " ")


@examples(60)
@given(columns())
def test_every_message_is_whole(column: tuple[Type, pa.Array]) -> None:
    kind, values = column
    rows = encode_rows([values, values], [kind, kind], len(values)).to_pylist()
    valid = values.is_valid().to_pylist()
    for row, given_value in zip(rows, valid, strict=True):
        message = ROW.FromString(row)
        first, second = message.datums
        assert first.SerializeToString() == second.SerializeToString()  # NaNs are equal to none
        assert (first.WhichOneof("datum") is not None) == given_value
        known = type(message).FromString(row)
        known.DiscardUnknownFields()
        assert known.SerializeToString() == message.SerializeToString()
