"""Every type comes back from messages as it went in, whatever the batch."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.shard.values import (
    columns,
    every_scalar,
    list_of,
    record_of,
    same,
    types,
    values_of,
    wire_array,
)

from dbt.adapters.mzs3.shard.codec.decode import (
    DamagedError,
    decode_rows,
    values_of_datums,
)
from dbt.adapters.mzs3.shard.codec.encode import datums, encode_rows
from dbt.adapters.mzs3.shard.types import Type, wire_type


@examples(150)
@given(columns())
def test_a_column_comes_back(column: tuple[Type, pa.Array]) -> None:
    kind, values = column
    rows = encode_rows([values], [kind], len(values))
    assert rows.null_count == 0
    [decoded] = decode_rows(rows, [kind])
    assert decoded.type == wire_type(kind)
    decoded.validate(full=True)
    same(decoded, values)


@examples(40)
@given(columns())
def test_a_datum_comes_back(column: tuple[Type, pa.Array]) -> None:
    kind, values = column
    same(values_of_datums(datums(values, kind), kind), values)


@pytest.mark.parametrize("kind", [*every_scalar()], ids=str)
def test_every_scalar_comes_back(kind: Type) -> None:
    @examples(15)
    @given(st.lists(values_of(kind) | st.none(), max_size=10))
    def check(values: list[object]) -> None:
        array = wire_array(values, kind)
        [decoded] = decode_rows(encode_rows([array], [kind], len(array)), [kind])
        same(decoded, array)

    check()


@examples(40)
@given(st.data(), st.lists(types, min_size=1, max_size=4), st.integers(0, 5))
def test_only_what_is_wanted_is_decoded(data: st.DataObject, kinds: list[Type], rows: int) -> None:
    arrays = [
        wire_array(data.draw(st.lists(values_of(k) | st.none(), min_size=rows, max_size=rows)), k)
        for k in kinds
    ]
    wanted = data.draw(st.sets(st.integers(0, len(kinds) - 1)))
    decoded = decode_rows(encode_rows(arrays, kinds, rows), kinds, wanted)
    assert len(decoded) == len(wanted)
    for found, place in zip(decoded, sorted(wanted), strict=True):
        same(found, arrays[place])


@examples(40)
@given(columns(), st.integers(0, 12))
def test_bytes_do_not_depend_on_the_batch(column: tuple[Type, pa.Array], at: int) -> None:
    kind, values = column
    whole = encode_rows([values], [kind], len(values))
    halves = [values.slice(0, at), values.slice(at)]
    parts = [row for half in halves for row in encode_rows([half], [kind], len(half)).to_pylist()]
    assert whole.to_pylist() == parts


def test_nothing_is_made_of_what_is_under_a_null() -> None:
    kind = list_of(Type("integer"))
    hidden = pa.ListArray.from_arrays(
        pa.array([0, None, 3], pa.int32()), pa.array([1, 2, 3], pa.int32())
    )
    values = pa.Array.from_buffers(
        wire_type(kind),
        2,
        [pa.py_buffer(b"\x02"), pa.array([0, 2, 3], pa.int32()).buffers()[1]],
        children=[pa.array([1, 2, 3], pa.int32())],
    )
    assert hidden.to_pylist()[1] is None
    rows = encode_rows([values], [kind], 2)
    assert rows.to_pylist() == encode_rows([wire_array([None, [3]], kind)], [kind], 2).to_pylist()


def test_all_nans_are_one() -> None:
    nans = pa.Array.from_buffers(
        pa.float64(),
        2,
        [None, pa.py_buffer(b"\0" * 6 + b"\xf8\x7f" + b"\x01" + b"\0" * 5 + b"\xf8\xff")],
    )
    rows = encode_rows([nans], [Type("double")], 2)
    assert rows[0] == rows[1]
    [decoded] = decode_rows(rows, [Type("double")])
    assert all(map(math.isnan, decoded.to_pylist()))


def test_rows_without_columns_are_empty() -> None:
    assert encode_rows([], [], 2).to_pylist() == [b"", b""]
    assert decode_rows(pa.array([b"", b""], pa.binary()), []) == []


_KIND = record_of(Type("integer"), list_of(Type("text")), Type("numeric", precision=9, scale=2))


@examples(100)
@given(st.data())
def test_damage_is_an_error_or_another_value_but_nothing_else(data: st.DataObject) -> None:
    values = wire_array(data.draw(st.lists(values_of(_KIND), min_size=1, max_size=4)), _KIND)
    rows = encode_rows([values], [_KIND], len(values)).to_pylist()
    row = bytearray(rows[-1])
    action = data.draw(st.sampled_from(["cut", "flip", "add"]))
    place = data.draw(st.integers(0, len(row) - 1))
    if action == "cut":
        del row[place:]
    elif action == "flip":
        row[place] ^= data.draw(st.integers(1, 255))
    else:
        row[place:place] = data.draw(st.binary(min_size=1, max_size=3))
    damaged = pa.array([*rows[:-1], bytes(row)], pa.binary())
    try:
        [decoded] = decode_rows(damaged, [_KIND])
    except (DamagedError, pa.ArrowInvalid):
        return
    decoded.validate()
    assert len(decoded) == len(values)


def test_a_uuid_has_16_bytes() -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        encode_rows([pa.array([b"short"])], [Type("uuid")], 1)
