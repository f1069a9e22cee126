"""The table of types: what files say of each, and what a state keeps of it."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from support.shard.values import every_scalar, list_of, map_of, record_of, types

from dbt.adapters.mzs3.shard.types import (
    ACL_ITEM,
    EXTENSION_KEY,
    INT2VECTOR,
    MZ_ACL_ITEM,
    Type,
    array_of,
    extension_name,
    range_of,
    storage_field,
    type_from_json,
)

INTEGER, TEXT = Type("integer"), Type("text")


@given(types)
def test_json_gives_the_type_back(kind: Type) -> None:
    assert type_from_json(json.loads(json.dumps(kind.as_json()))) == kind


@pytest.mark.parametrize(
    "kind",
    [*every_scalar(), list_of(INTEGER), INT2VECTOR, ACL_ITEM, MZ_ACL_ITEM, record_of(TEXT)],
    ids=str,
)
def test_every_field_has_its_extension_name_and_version(kind: Type) -> None:
    field = storage_field("0", kind)
    assert field.metadata == {EXTENSION_KEY: f"materialize.persist.1.{kind.name}".encode()}
    assert extension_name(kind) == f"materialize.persist.1.{kind.name}"


def test_nested_fields_have_names_too() -> None:
    field = storage_field("0", map_of(TEXT, list_of(record_of(INTEGER))))
    value = field.type.item_field
    item = value.type.value_field
    names = [value, item, item.type.field(0)]
    assert [found.metadata[EXTENSION_KEY].decode().split(".")[-1] for found in names] == [
        "list",
        "record",
        "integer",
    ]


@pytest.mark.parametrize(
    ("kind", "storage"),
    [
        (Type("numeric", precision=5, scale=2), "struct<lossy: double, actual: binary>"),
        (Type("date"), "int32"),
        (Type("timestamp"), "int64"),
        (Type("timestamptz"), "int64"),
        (Type("time"), "fixed_size_binary[8]"),
        (Type("interval"), "fixed_size_binary[16]"),
        (Type("jsonb"), "binary"),
        (Type("uuid"), "fixed_size_binary[16]"),
        (Type("mz_timestamp"), "uint64"),
        (INT2VECTOR, "list<item: int16>"),
        (record_of(INTEGER, TEXT), "struct<0: int32, 1: string>"),
        (record_of(), "bool"),
        (
            array_of(TEXT),
            "struct<elements: list<item: string>, "
            "dimensions: list<item: struct<lower_bound: int64, length: uint64>>>",
        ),
        (
            range_of(Type("date")),
            "struct<lower: struct<inclusive: bool, bound: int32>, "
            "upper: struct<inclusive: bool, bound: int32>>",
        ),
        (ACL_ITEM, "struct<grantee: uint32, grantor: uint32, acl_mode: uint64>"),
        (MZ_ACL_ITEM, "struct<grantee: string, grantor: string, acl_mode: uint64>"),
        (map_of(TEXT, INTEGER), "map<string, int32>"),
    ],
    ids=str,
)
def test_storage_is_the_designs(kind: Type, storage: str) -> None:
    found = storage_field("0", kind).type
    assert str(pa.schema([pa.field("x", found)]).remove_metadata().field("x").type) in (
        storage,
        f"{storage} ('0')",
    )


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("nothing", {}),
        ("integer", {"precision": 3}),
        ("integer", {"children": (TEXT,)}),
        ("numeric", {}),
        ("numeric", {"precision": 39}),
        ("numeric", {"precision": 3, "scale": 4}),
        ("list", {}),
        ("map", {"children": (TEXT,)}),
        ("range", {"children": (TEXT,)}),
    ],
)
def test_what_is_no_type_can_not_be_made(name: str, options: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        Type(name, **options)


@pytest.mark.parametrize("value", [None, 3, {"of": []}, "list", {"type": "listt"}])
def test_what_is_no_type_is_not_read(value: object) -> None:
    with pytest.raises(ValueError):
        type_from_json(value)
