"""Types of shards, and values of them in wire form, extremes included."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from dbt.adapters.mzs3.arrow.arrays import float_bits
from dbt.adapters.mzs3.shard.types import ACL_ITEM as ACL_ITEM
from dbt.adapters.mzs3.shard.types import (
    INT2VECTOR,
    MZ_ACL_ITEM,
    RECORDS,
    SCALARS,
    Type,
    array_of,
    range_of,
    wire_type,
)


def list_of(element: Type) -> Type:
    return Type("list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", (key, value))


def record_of(*fields: Type) -> Type:
    return Type("record", fields)


def signed(bits: int) -> st.SearchStrategy[int]:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return st.sampled_from([low, -1, 0, 1, high]) | st.integers(low, high)


def unsigned(bits: int) -> st.SearchStrategy[int]:
    return st.sampled_from([0, 1, 2**bits - 1]) | st.integers(0, 2**bits - 1)


def floats(width: int) -> st.SearchStrategy[float]:
    return st.floats(width=width) | st.just(-0.0)


LONG = "x" * 100_000
EXTREMES: dict[str, list[Any]] = {
    "boolean": [False, True],
    "tinyint": [-(2**7), -1, 0, 1, 2**7 - 1],
    "smallint": [-(2**15), -1, 0, 1, 2**15 - 1],
    "integer": [-(2**31), -1, 0, 1, 2**31 - 1],
    "bigint": [-(2**63), -1, 0, 1, 2**63 - 1],
    "uint4": [0, 1, 2**32 - 1],
    "uint8": [Decimal(0), Decimal(1), Decimal(2**64 - 1)],
    "real": [-math.inf, -0.0, 0.0, 2.0**-149, 3.4028234663852886e38, math.inf, math.nan],
    "double": [-math.inf, -0.0, 0.0, 5e-324, 1.7976931348623157e308, math.inf, math.nan],
    "text": ["", "\0", "\x7f", "\u0080", "\uffff", "\U0010ffff", "a\r\n", LONG],
    "bytea": [b"", b"\0", b"\0\0", b"\xff" * 300, LONG.encode()],
    "date": [-(2**31), -1, 0, 1, 2**31 - 1],
    "timestamp": [-(2**63), -1, 0, 1, 2**63 - 1],
    "timestamptz": [-(2**63), -1, 0, 1, 2**63 - 1],
    "time": [0, 1, 10**9 - 1, 10**9, 86_400 * 10**9 - 1],
    "interval": [
        {"months": months, "days": days, "micros": micros}
        for months in (-(2**31), 0, 2**31 - 1)
        for days in (-(2**31), 0, 2**31 - 1)
        for micros in (-(2**63), -1, 0, 2**63 - 1)
    ],
    "jsonb": ["null", "{}", '{"a":[1,2.5,"\u00e4"]}', f'"{LONG}"', "[" * 200 + "]" * 200],
    "uuid": [bytes(16), bytes(15) + b"\x01", b"\x80" + bytes(15), b"\xff" * 16],
    "mz_timestamp": [Decimal(0), Decimal(1), Decimal(2**64 - 1)],
}

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
assert set(VALUES) == set(SCALARS) == set(EXTREMES)

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


def extremes_of(kind: Type) -> list[Any]:
    """The extreme values of the type, NULL last; containers with those of what they hold."""
    if kind.name == "numeric":
        most = 10**kind.precision - 1
        found: list[Any] = [scaled(number, kind.scale) for number in (-most, -1, 0, 1, most)]
    elif kind.name in SCALARS:
        found = list(EXTREMES[kind.name])
    elif kind.name in RECORDS:
        inside = [extremes_of(child) for child in kind.children]
        rows = range(max(map(len, inside), default=1))
        found = [{str(i): v[row % len(v)] for i, v in enumerate(inside)} for row in rows]
    elif kind.name == "map":
        keys, values = (extremes_of(child) for child in kind.children)
        entries = [{"0": k, "1": values[i % len(values)]} for i, k in enumerate(keys[:-1])]
        found = [[], entries[:1], entries]
    else:
        elements = extremes_of(kind.children[0])
        found = [[], elements[:1], elements, [None], elements * 3]
    return [*found, None]


def every_type() -> Iterator[Type]:
    """Each type of the table, containers of some, and containers in containers."""
    yield from every_scalar()
    sizes = [(1, 0), (1, 1), (15, 2), (16, 2), (38, 0), (38, 38)]
    yield from (Type("numeric", precision=p, scale=s) for p, s in sizes)
    yield from (INT2VECTOR, ACL_ITEM, MZ_ACL_ITEM, record_of())
    integer, text, double = Type("integer"), Type("text"), Type("double")
    numeric = Type("numeric", precision=12, scale=2)
    for inner in (integer, text, double, numeric, Type("interval"), Type("jsonb")):
        yield from (list_of(inner), array_of(inner), range_of(inner), map_of(text, inner))
    yield from (map_of(Type(key), numeric) for key in KEYS)
    yield record_of(*every_scalar())
    yield list_of(record_of(map_of(text, list_of(numeric)), range_of(Type("date"))))


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
