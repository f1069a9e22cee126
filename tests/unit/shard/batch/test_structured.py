"""Every type comes back from its stored form, whose bytes sort as values do."""

from __future__ import annotations

import math
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.shard.values import (
    columns,
    every_scalar,
    numerics,
    same,
    scaled,
    values_of,
    wire_array,
)

from dbt.adapters.mzs3.shard.batch.structured import from_storage, nearest_doubles, to_storage
from dbt.adapters.mzs3.shard.codec.decode import decode_rows
from dbt.adapters.mzs3.shard.codec.encode import encode_rows
from dbt.adapters.mzs3.shard.types import SCALARS, Type, storage_type


@examples(150)
@given(columns())
def test_a_column_comes_back(column: tuple[Type, pa.Array]) -> None:
    kind, values = column
    array = to_storage(values, kind)
    array.validate(full=True)
    assert array.type == storage_type(kind)
    assert array.null_count == values.null_count
    same(from_storage(array, kind), values)


@examples(50)
@given(columns())
def test_both_encodings_decode_to_equal_values(column: tuple[Type, pa.Array]) -> None:
    kind, values = column
    [decoded] = decode_rows(encode_rows([values], [kind], len(values)), [kind])
    same(from_storage(to_storage(values, kind), kind), decoded)


@pytest.mark.parametrize("kind", [*every_scalar()], ids=str)
def test_every_scalar_comes_back(kind: Type) -> None:
    @examples(20)
    @given(st.lists(values_of(kind) | st.none(), max_size=10))
    def check(values: list[object]) -> None:
        array = wire_array(values, kind)
        same(from_storage(to_storage(array, kind), kind), array)

    check()


def in_order(value: Any) -> Any:
    if isinstance(value, dict):
        return value["months"], value["days"], value["micros"]
    return value


# Zeros of both signs are one value to a comparison, and JSON has no order.
SORTED = [name for name in SCALARS if name not in ("real", "double", "jsonb")]


@pytest.mark.parametrize("name", SORTED)
def test_stored_values_sort_as_values(name: str) -> None:
    kind = Type(name)

    @examples(30)
    @given(st.lists(values_of(kind), min_size=2, max_size=10))
    def check(values: list[Any]) -> None:
        ordered = sorted(values, key=in_order)
        array = to_storage(wire_array(ordered, kind), kind)
        for (one, other), (first, second) in zip(
            pairwise(ordered), pairwise(array.to_pylist()), strict=True
        ):
            assert (first < second) == (in_order(one) < in_order(other))

    check()


@given(numerics, numerics, st.data())
def test_numerics_of_any_scale_sort_together(one: Type, other: Type, data: st.DataObject) -> None:
    values = [
        *data.draw(st.lists(values_of(one).map(lambda v: (v, one)), max_size=6)),
        *data.draw(st.lists(values_of(other).map(lambda v: (v, other)), max_size=6)),
    ]
    ordered = sorted(values, key=lambda pair: pair[0])
    encoded = [to_storage(wire_array([value], kind), kind)[0].as_py() for value, kind in ordered]
    for (first, second), ((a, _), (b, _)) in zip(
        pairwise(encoded), pairwise(ordered), strict=True
    ):
        assert (first["actual"] < second["actual"]) == (a < b)
        assert first["lossy"] <= second["lossy"]


@given(numerics, st.data())
def test_the_double_is_the_one_next_to_the_number(kind: Type, data: st.DataObject) -> None:
    values = data.draw(st.lists(values_of(kind), max_size=8))
    assert nearest_doubles(wire_array(values, kind)).to_pylist() == [float(v) for v in values]


@pytest.mark.parametrize(
    ("number", "stored_as"),
    [
        ("0", b"\x80"),
        ("0.050", b"\x8005"),
        ("7", b"\x817"),
        ("100", b"\x83100"),
        ("123.450", b"\x8312345"),
        ("-0.5", b"\x7f\xca\xff"),
        ("-12", b"\x7d\xce\xcd\xff"),
        ("9" * 35 + ".999", b"\xa3" + b"9" * 38),
    ],
)
def test_a_numeric_is_its_digits_behind_their_count(number: str, stored_as: bytes) -> None:
    kind = Type("numeric", precision=38, scale=3)
    values = to_storage(wire_array([None, Decimal(number), None], kind), kind)
    assert values.field("actual").to_pylist() == [None, stored_as, None]


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"\xa712",
        b"\x82xy",
        b"\x82\xff1",
        b"\x59\xce\xff",
        b"\x7d\xce\xcd\xcc\xcb",  # -12.34 without its end
        b"\x7f\xff",
        b"\x841",
        b"\x82001",
        b"\x80100",
        b"\x8010",
        b"\x80" + b"0" * 77 + b"5",
    ],
)
def test_bytes_that_are_no_numeric_are_an_error(damaged: bytes) -> None:
    kind = Type("numeric", precision=38, scale=3)
    values = [{"lossy": 1.0, "actual": actual} for actual in (b"\x811", damaged, None)]
    with pytest.raises(ValueError, match=r"bytes of|valid decimal|UTF8"):
        from_storage(pa.array(values, storage_type(kind)), kind)


def test_a_wider_numeric_reads_what_a_narrower_one_stored() -> None:
    narrow, wide = Type("numeric", precision=4, scale=2), Type("numeric", precision=12, scale=5)
    values = to_storage(wire_array([Decimal("-12.34"), None], narrow), narrow)
    assert from_storage(values, wide).to_pylist() == [Decimal("-12.34000"), None]


def test_a_numeric_that_does_not_fit_is_an_error() -> None:
    wide, narrow = Type("numeric", precision=12, scale=5), Type("numeric", precision=4, scale=2)
    values = to_storage(wire_array([scaled(1, 5)], wide), wide)
    with pytest.raises(pa.ArrowInvalid):
        from_storage(values, narrow)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("uuid", b"short", "16 bytes"),
        ("uint4", 2**32, "not in range"),
        ("uint4", -1, "not in range"),
        ("uint8", Decimal(-1), "[Ii]nteger|range|bounds"),
        ("mz_timestamp", Decimal(2**64), "[Ii]nteger|range|bounds"),
    ],
)
def test_values_that_are_none_of_the_type_are_errors(name: str, value: Any, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        to_storage(wire_array([value], Type(name)), Type(name))


def test_all_nans_are_one() -> None:
    nans = pa.array([float("nan"), None])
    negative = pc.negate(nans)
    kind = Type("double")
    raw = [to_storage(values, kind).buffers()[1].to_pybytes()[:8] for values in (nans, negative)]
    assert raw[0] == raw[1]
    for values in (nans, negative):
        first, second = from_storage(to_storage(values, kind), kind).to_pylist()
        assert math.isnan(first)
        assert second is None
