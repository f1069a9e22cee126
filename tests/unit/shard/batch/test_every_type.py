"""Each type of the table, one by one: extremes and drawn values, in every encoding."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.shard.files import batch_of, compared, opened, read, tagged, wanted, written
from support.shard.values import every_type, extremes_of, nullable, same, wire_array

from dbt.adapters.mzs3.shard.batch.read import FileComparison
from dbt.adapters.mzs3.shard.batch.structured import from_storage, to_storage
from dbt.adapters.mzs3.shard.batch.write import BatchLayout
from dbt.adapters.mzs3.shard.codec.decode import decode_rows
from dbt.adapters.mzs3.shard.codec.encode import encode_rows
from dbt.adapters.mzs3.shard.types import (
    BATCH_ENCODINGS,
    CONTAINERS,
    EXTENSION_KEY,
    SCALARS,
    BatchEncoding,
    Type,
)

TYPES = list(every_type())


def names_in(kind: Type) -> set[str]:
    return {kind.name}.union(*map(names_in, kind.children))


def test_no_type_is_left_out() -> None:
    assert set().union(*map(names_in, TYPES)) == {*SCALARS, *CONTAINERS, "numeric"}


@pytest.mark.parametrize("encoding", BATCH_ENCODINGS)
@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_extremes_come_back_from_a_file(kind: Type, encoding: BatchEncoding) -> None:
    values = wire_array(extremes_of(kind), kind)
    layout = BatchLayout(tagged(kind), encoding)
    [data] = written(layout, [batch_of([values], len(values))])
    found = read(data, [wanted(0, kind)])
    same(found.column("0").combine_chunks(), values)
    is_compared = len(values) if encoding == "dual" else 0
    assert compared(data) == FileComparison(is_compared, {})


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_both_encodings_decode_to_what_was_drawn(kind: Type) -> None:
    @examples(15)
    @given(st.lists(nullable(kind), min_size=1, max_size=6))
    def check(drawn: list[Any]) -> None:
        values = wire_array(drawn, kind)
        [decoded] = decode_rows(encode_rows([values], [kind], len(values)), [kind])
        same(decoded, values)
        same(from_storage(to_storage(values, kind), kind), values)

    check()


def test_each_field_of_a_file_has_its_extension_name() -> None:
    columns = [wire_array(extremes_of(kind)[-1:], kind) for kind in TYPES]
    [data] = written(BatchLayout(tagged(*TYPES)), [batch_of(columns, 1)])
    nameless: list[str] = []

    def walk(field: pa.Field, path: str) -> None:
        name = (field.metadata or {}).get(EXTENSION_KEY, b"")
        if not name.startswith(b"materialize.persist.1."):
            nameless.append(f"{path} {field.metadata}")
        if pa.types.is_map(field.type):
            inside = [field.type.key_field, field.type.item_field]
        else:
            inside = [field.type.field(place) for place in range(field.type.num_fields)]
        for inner in inside:
            walk(inner, f"{path}.{inner.name}")

    for column in opened(data).schema_arrow.field("k_s").type:
        walk(column, column.name)
    assert not nameless
