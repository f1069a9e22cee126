"""What statistics skip has no row that a filter would keep, and what is read is counted."""

from __future__ import annotations

import io
import random
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.shard.files import Counting, opened, rows_of, wanted, written
from support.shard.values import wire_array

from dbt.adapters.mzs3.shard.batch.footer import MESSAGES, Bounds, Tally, sizes
from dbt.adapters.mzs3.shard.batch.read import read_batch
from dbt.adapters.mzs3.shard.batch.write import BatchLayout
from dbt.adapters.mzs3.shard.codec.encode import datums
from dbt.adapters.mzs3.shard.types import BatchEncoding, Type

INTEGER, BIGINT, TEXT, DATE = (Type(name) for name in ("integer", "bigint", "text", "date"))
NUMERIC = Type("numeric", precision=38, scale=20)
SMALLEST = Decimal(10) ** -20
# Of each type the values, as bounds have them. Some decimals are next to each other, and are one
# number as doubles.
VALUES = {
    INTEGER: st.integers(-20, 20),
    TEXT: st.text(alphabet="ab\u00e9\uffff\U0001f600", max_size=3),
    NUMERIC: st.decimals(-9, 9, places=20) | st.sampled_from([1 - SMALLEST, 1, 1 + SMALLEST]),
    DATE: st.integers(-20, 20),
}
Group = list[Any]


def file_of(
    kind: Type, groups: list[Group], encoding: BatchEncoding = "structured", **how: int
) -> bytes:
    """A file with the values, in a column with the tag 0, in these row groups."""
    layout = BatchLayout({0: kind}, encoding, **how)
    of_each = [written(layout, [rows_of([kind], [_stored(kind, group)])])[0] for group in groups]
    tables = [opened(data).read() for data in of_each]
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, tables[0].schema, use_compliant_nested_type=False) as writer:
        for table in tables:
            writer.write_table(table)
    return sink.getvalue()


def _stored(kind: Type, group: Group) -> Group:
    days = date(1970, 1, 1).toordinal()
    return [v if kind is not DATE or v is None else date.fromordinal(days + v) for v in group]


def kept(data: bytes, kind: Type, *bounds: Bounds) -> tuple[list[Any], Tally]:
    """The values of the row groups that are read."""
    tally = Tally()
    batches = read_batch(pa.BufferReader(data), [wanted(0, kind)], bounds=bounds, tally=tally)
    return [value for rows in batches for value in rows.column("0").to_pylist()], tally


@st.composite
def filtered(draw: st.DrawFn) -> tuple[Type, list[Group], list[Bounds]]:
    kind = draw(st.sampled_from(list(VALUES)))
    group = st.lists(st.none() | VALUES[kind], min_size=1, max_size=4)
    end = st.none() | VALUES[kind]
    ranges = st.lists(st.tuples(end, end), max_size=3).map(tuple)
    bounds = st.builds(Bounds, st.just(0), ranges, st.booleans())
    return kind, draw(st.lists(group, min_size=1, max_size=4)), draw(st.lists(bounds, max_size=2))


def is_within(value: Any, bounds: Bounds) -> bool:
    if value is None:
        return bounds.is_null
    ends = bounds.ranges
    return any(
        (low is None or low <= value) and (high is None or value <= high) for low, high in ends
    )


@examples(300)
@given(filtered())
def test_no_row_that_a_filter_keeps_is_skipped(
    drawn: tuple[Type, list[Group], list[Bounds]],
) -> None:
    kind, groups, bounds = drawn
    found, tally = kept(file_of(kind, groups), kind, *bounds)
    needed = [any(all(is_within(v, one) for one in bounds) for v in group) for group in groups]
    read = [group for group, is_needed in zip(groups, needed, strict=True) if is_needed]
    rest = iter(found)
    # In order, and maybe with other groups between them.
    assert all(value in rest for group in read for value in _stored(kind, group))
    assert (tally.files, tally.groups) == (1, len(groups))
    assert len(groups) - tally.skipped >= len(read)


@pytest.mark.parametrize(
    ("bounds", "read"),
    [
        (Bounds(0, ((4, 4),)), [[3, 4]]),
        (Bounds(0, ((None, 2),)), [[1, 2]]),
        (Bounds(0, ((5, None),)), [[5, None]]),
        (Bounds(0, ((2, 2), (5, 5))), [[1, 2], [5, None]]),
        (Bounds(0, ((6, None),)), []),
        (Bounds(0, (), is_null=True), [[5, None], [None, None]]),
        (Bounds(0, ((None, None),)), [[1, 2], [3, 4], [5, None]]),
        (Bounds(9, ((6, None),)), [[1, 2], [3, 4], [5, None], [None, None]]),
    ],
)  # fmt: skip
def test_row_groups_without_such_values_are_skipped(bounds: Bounds, read: list[Group]) -> None:
    groups = [[1, 2], [3, 4], [5, None], [None, None]]
    found, tally = kept(file_of(INTEGER, groups), BIGINT, bounds)
    assert found == [value for group in read for value in group]
    assert tally.skipped == len(groups) - len(read)


def test_a_column_that_a_file_lacks_skips_nothing() -> None:
    data = file_of(INTEGER, [[1], [2]])
    default = datums(wire_array([50], INTEGER), INTEGER)[0].as_py()
    columns = [wanted(0, INTEGER), wanted(7, INTEGER, default)]
    found = read_batch(pa.BufferReader(data), columns, bounds=[Bounds(7, ((50, 50),))])
    assert [value for rows in found for value in rows.column("7").to_pylist()] == [50, 50]


def test_long_texts_without_statistics_are_read() -> None:
    long = "x" * 10_000
    found, tally = kept(file_of(TEXT, [[long], ["a"]]), TEXT, Bounds(0, (("y", None),)))
    assert (found, tally.skipped) == ([long], 1)


def test_statistics_of_what_is_not_trusted_skip_nothing() -> None:
    never = Bounds(0, ((9, 9),))
    groups: list[Group] = [[1], [2]]
    assert kept(file_of(INTEGER, groups, "codec"), INTEGER, never)[0] == [1, 2]
    assert kept(file_of(INTEGER, groups, "dual", version=2), INTEGER, never)[0] == [1, 2]
    assert kept(file_of(INTEGER, groups, "dual"), INTEGER, never)[0] == []


def test_bytes_are_counted_by_column_as_they_are_in_the_file() -> None:
    numbers = random.Random(1)
    kinds = [TEXT, INTEGER]
    texts = [f"{numbers.random()}" for _ in range(20_000)]
    columns = [texts, [numbers.randrange(10**9) for _ in texts]]
    rows = [rows_of(kinds, columns)]
    layout = BatchLayout(dict(enumerate(kinds)), "dual")
    [data], [untrusted] = written(layout, rows), written(replace(layout, version=2), rows)
    whole = sizes(opened(data).metadata.row_group(0))
    assert sum(whole.values()) < len(data) < 1.1 * sum(whole.values())
    for file, want, read in ((data, 0, {0}), (data, 1, {1}), (untrusted, 0, {MESSAGES})):
        source, tally = Counting(file), Tally()
        assert len(list(read_batch(source, [wanted(want, kinds[want])], tally=tally))) > 1
        assert tally.bytes == {tag: whole[tag] for tag in read}
        # Of the file, no more is fetched than these, times and counts, and the footer.
        assert 0 <= source.count - tally.bytes.total() < 64 * 1024 + 30_000


def test_reports_add_up() -> None:
    tally = Tally()
    for one in (Tally(1, 3, 1, Tally().bytes), Tally(2, 2)):
        one.bytes.update({4: 100, MESSAGES: 7})
        tally.add(one.report())
    assert (tally.files, tally.groups, tally.skipped) == (3, 5, 1)
    assert tally.bytes == {4: 200, MESSAGES: 14}
