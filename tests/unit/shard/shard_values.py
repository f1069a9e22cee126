"""Types of shards, and values of them in wire form, extremes included."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from dbt.adapters.mzs3.arrow.floats import float_bits
from dbt.adapters.mzs3.shard.types.kind import ACL_ITEM as ACL_ITEM
from dbt.adapters.mzs3.shard.types.kind import (
    INT2VECTOR,
    MZ_ACL_ITEM,
    Type,
    array_of,
    list_of,
    map_of,
    range_of,
    record_of,
)
from dbt.adapters.mzs3.shard.types.storage import wire_type
from dbt.adapters.mzs3.shard.types.table import RECORDS, SCALARS


def signed(bits: int) -> st.SearchStrategy[int]:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return st.sampled_from([low, -1, 0, 1, high]) | st.integers(low, high)


def unsigned(bits: int) -> st.SearchStrategy[int]:
    return st.sampled_from([0, 1, 2**bits - 1]) | st.integers(0, 2**bits - 1)


def floats(width: int) -> st.SearchStrategy[float]:
    return st.floats(width=width) | st.just(-0.0)


_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200) | st.just("")
_UNSIGNED_DECIMALS = unsigned(64).map(Decimal)

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "tinyint": signed(8),
    "smallint": signed(16),
    "integer": signed(32),
    "bigint": signed(64),
    "uint4": unsigned(32),
    "uint8": _UNSIGNED_DECIMALS,
    "real": floats(32),
    "double": floats(64),
    "text": _TEXTS,
    "bytea": st.binary(max_size=300),
    "date": signed(32),
    "timestamp": signed(64),
    "timestamptz": signed(64),
    "time": st.integers(0, 86_400 * 10**9 - 1),
    "interval": st.fixed_dictionaries(
        {"months": signed(32), "days": signed(32), "micros": signed(64)}
    ),
    "jsonb": st.sampled_from(["null", "{}", '{"a":[1,2.5,"\u00e4"]}', '"' + "x" * 200 + '"']),
    "uuid": st.binary(min_size=16, max_size=16),
    "mz_timestamp": _UNSIGNED_DECIMALS,
}
assert set(VALUES) == set(SCALARS)

KEYS = ("boolean", "integer", "bigint", "text", "bytea", "date", "uuid", "uint8")

numerics = st.integers(1, 38).flatmap(
    lambda precision: st.integers(0, precision).map(
        lambda scale: Type("numeric", precision=precision, scale=scale)
    )
)
scalars = st.sampled_from([Type(name) for name in SCALARS]) | numerics
types = st.recursive(
    scalars | st.sampled_from([INT2VECTOR, ACL_ITEM, MZ_ACL_ITEM]),
    lambda inner: st.one_of(
        inner.map(list_of),
        st.lists(inner, max_size=3).map(lambda fields: record_of(*fields)),
        st.builds(map_of, st.sampled_from([Type(name) for name in KEYS]), inner),
        inner.map(array_of),
        inner.map(range_of),
    ),
    max_leaves=4,
)


def values_of(kind: Type) -> st.SearchStrategy[Any]:
    """Values that are not NULL, as pyarrow takes them for the type's wire form."""
    if kind.name == "numeric":
        most = 10**kind.precision - 1
        unscaled = st.sampled_from([-most, -1, 0, 1, most]) | st.integers(-most, most)
        return unscaled.map(lambda number: scaled(number, kind.scale))
    if kind.name in SCALARS:
        return VALUES[kind.name]
    if kind.name in RECORDS:
        fields = {str(i): nullable(child) for i, child in enumerate(kind.children)}
        return st.fixed_dictionaries(fields)
    if kind.name == "map":
        key, value = kind.children
        entries = st.dictionaries(values_of(key), nullable(value), max_size=4)
        return entries.map(lambda found: [{"0": k, "1": v} for k, v in found.items()])
    (element,) = kind.children
    return st.lists(nullable(element), max_size=5)


def scaled(number: int, scale: int) -> Decimal:
    """Exactly, whatever the context's precision."""
    sign, digits, _ = Decimal(number).as_tuple()
    return Decimal((sign, digits, -scale))


def nullable(kind: Type) -> st.SearchStrategy[Any]:
    return st.none() | values_of(kind)


@st.composite
def columns(draw: st.DrawFn, kinds: st.SearchStrategy[Type] = types) -> tuple[Type, pa.Array]:
    """A type and an array of its wire form, sometimes a slice of a longer one."""
    kind = draw(kinds)
    found = draw(st.lists(nullable(kind), max_size=12))
    array = wire_array(found, kind)
    start = draw(st.integers(0, min(2, len(found))))
    return kind, array.slice(start)


def wire_array(values: list[Any], kind: Type) -> pa.Array:
    return pa.array(values, wire_type(kind))


def same(one: pa.Array, other: pa.Array) -> None:
    """Both are of one type and have the same values: NaN for NaN, and zeros of the same sign."""
    assert one.type == other.type
    assert float_bits(one).equals(float_bits(other))


def every_scalar() -> Iterator[Type]:
    yield Type("numeric", precision=38, scale=10)
    yield from (Type(name) for name in SCALARS)
