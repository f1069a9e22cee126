"""Files of a batch: what is in them, and what comes back, in every encoding."""

from __future__ import annotations

import random
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import dataset
from support.examples import examples
from support.shard.files import (
    Counting,
    Holding,
    batch_of,
    compared,
    file_of,
    opened,
    read,
    rows_of,
    tagged,
    wanted,
    with_structure_of_other_rows,
    written,
)
from support.shard.values import columns, list_of, map_of, record_of, same, wire_array

from dbt.adapters.mzs3.arrow.parquet import BATCH_BYTES
from dbt.adapters.mzs3.errors import ExecutorError
from dbt.adapters.mzs3.formats.write.parquet import GROUPS_PER_FILE
from dbt.adapters.mzs3.shard.batch.read import BatchError, read_batch
from dbt.adapters.mzs3.shard.batch.write import BatchLayout, as_wire, layout_of
from dbt.adapters.mzs3.shard.codec.encode import datums
from dbt.adapters.mzs3.shard.types import ACL_ITEM, BATCH_ENCODINGS, BatchEncoding, Type

INTEGER, BIGINT, TEXT, DOUBLE = Type("integer"), Type("bigint"), Type("text"), Type("double")
NUMERIC = Type("numeric", precision=10, scale=2)
KINDS = [INTEGER, TEXT, NUMERIC]
ROWS = [[1, None, 3], ["a", "b", None], [Decimal("1.50"), None, Decimal("-2.25")]]


@pytest.mark.parametrize(
    ("encoding", "names"),
    [
        ("dual", ["k", "v", "t", "d", "k_s", "v_s"]),
        ("structured", ["t", "d", "k_s", "v_s"]),
        ("codec", ["k", "v", "t", "d"]),
    ],
)
def test_columns_of_a_file(encoding: BatchEncoding, names: list[str]) -> None:
    [data] = written(BatchLayout(tagged(*KINDS), encoding), [rows_of(KINDS, ROWS)])
    schema = opened(data).schema_arrow
    assert schema.names == names
    if "k_s" in names:
        assert [field.name for field in schema.field("k_s").type] == ["0", "1", "2"]
    if "v" in names:
        assert set(pq.read_table(pa.BufferReader(data)).column("v").to_pylist()) == {b""}


def test_files_have_no_names_of_users() -> None:
    [data] = written(BatchLayout(tagged(*KINDS)), [rows_of(KINDS, ROWS)])
    assert b"name of" not in data


@examples(60)
@given(columns(), st.sampled_from(BATCH_ENCODINGS))
def test_every_type_comes_back(column: tuple[Type, pa.Array], encoding: BatchEncoding) -> None:
    kind, values = column
    layout = BatchLayout({7: kind}, encoding)
    [data] = written(layout, [batch_of([values], len(values))])
    assert layout_of(opened(data).schema_arrow.metadata) == layout
    if len(values):
        found = read(data, [wanted(7, kind)]).column("7")
        same(found.combine_chunks(), pa.concat_arrays([values]))
        assert compared(data).differing == {}


@pytest.mark.parametrize("encoding", BATCH_ENCODINGS)
def test_times_and_changes_come_back(encoding: BatchEncoding) -> None:
    [data] = written(BatchLayout(tagged(*KINDS), encoding), [rows_of(KINDS, ROWS)])
    found = read(data, [])
    assert found.to_pydict() == {"t": [5, 5, 5], "d": [1, -1, 1]}


@pytest.mark.parametrize("encoding", BATCH_ENCODINGS)
def test_columns_come_in_the_order_that_is_asked_for(encoding: BatchEncoding) -> None:
    [data] = written(BatchLayout(tagged(*KINDS), encoding), [rows_of(KINDS, ROWS)])
    found = read(data, [wanted(2, NUMERIC), wanted(0, BIGINT)])
    assert found.column_names == ["t", "d", "2", "0"]
    assert found.column("2").to_pylist() == ROWS[2]
    assert found.column("0").to_pylist() == ROWS[0]
    assert found.column("0").type == pa.int64()


@pytest.mark.parametrize("encoding", BATCH_ENCODINGS)
def test_a_column_that_a_file_lacks_has_its_default(encoding: BatchEncoding) -> None:
    [data] = written(BatchLayout(tagged(*KINDS), encoding), [rows_of(KINDS, ROWS)])
    default = datums(wire_array([50], INTEGER), INTEGER)[0].as_py()
    found = read(data, [wanted(9, INTEGER, default), wanted(8, TEXT)])
    assert found.column("9").to_pylist() == [50, 50, 50]
    assert found.column("8").to_pylist() == [None, None, None]


@pytest.mark.parametrize("encoding", BATCH_ENCODINGS)
def test_numbers_may_be_read_as_doubles(encoding: BatchEncoding) -> None:
    numbers = [Decimal(f"{n}.{n % 100:02}") for n in range(-20_000, 20_000)]
    kinds, columns = [NUMERIC, INTEGER], [[*numbers, None], [*range(40_000), None]]
    [data] = written(BatchLayout(tagged(*kinds), encoding), [rows_of(kinds, columns)])
    sources = [Counting(data), Counting(data)]
    digits, doubles = (
        pa.Table.from_batches(list(read_batch(source, [wanted(0, kind), wanted(1, whole)])))
        for source, kind, whole in zip(sources, (NUMERIC, DOUBLE), (INTEGER, DOUBLE), strict=True)
    )
    assert doubles.column("0").to_pylist() == [*map(float, numbers), None]
    assert doubles.column("1").to_pylist() == [*map(float, range(40_000)), None]
    assert digits.column("0").to_pylist() == columns[0]
    if encoding != "codec":
        # The digits are not fetched then.
        assert sources[1].count < 0.8 * sources[0].count


def test_a_version_that_is_not_trusted_is_read_from_the_codec() -> None:
    layout = BatchLayout(tagged(*KINDS), "dual", version=2)
    [data] = written(layout, [rows_of(KINDS, ROWS)])
    wrong = with_structure_of_other_rows(data)
    assert read(wrong, [wanted(0, INTEGER)]).column("0").to_pylist() == ROWS[0]


def test_structured_columns_of_a_trusted_version_are_what_is_read() -> None:
    [data] = written(BatchLayout(tagged(*KINDS)), [rows_of(KINDS, ROWS)])
    wrong = with_structure_of_other_rows(data)
    assert read(wrong, [wanted(0, INTEGER)]).column("0").to_pylist() == [3, None, 1]


@pytest.mark.parametrize("encoding", BATCH_ENCODINGS)
def test_a_value_that_cannot_be_read_is_told_with_its_column(encoding: BatchEncoding) -> None:
    [data] = written(BatchLayout(tagged(BIGINT), encoding), [rows_of([BIGINT], [[2**40]])])
    with pytest.raises(BatchError, match=r"^column amount \(tag 0\) can't be read: .*restore"):
        read(data, [wanted(0, INTEGER, name="amount")])


def test_nothing_but_an_untrusted_structure_is_an_error() -> None:
    layout = BatchLayout(tagged(*KINDS), "structured", version=2)
    [data] = written(layout, [rows_of(KINDS, ROWS)])
    with pytest.raises(BatchError, match="batch version 2"):
        read(data, [wanted(0, INTEGER)])


def test_an_extension_of_another_version_is_read_from_the_codec() -> None:
    kind = list_of(record_of(INTEGER))
    values = [[{"0": 1}], None]
    [data] = written(BatchLayout(tagged(kind)), [rows_of([kind], [values])])
    table = pq.read_table(pa.BufferReader(data))
    later = pa.field(
        "0", pa.list_(_named("item", pa.struct([_named("0", pa.int32(), 2)]), 1, "record"))
    ).with_metadata({"ARROW:extension:name": "materialize.persist.1.list"})
    structure = pa.StructArray.from_arrays([pa.nulls(2, later.type)], fields=[later])
    fields = list(table.schema)
    fields[4] = pa.field("k_s", structure.type, nullable=False)
    schema = pa.schema(fields, metadata=table.schema.metadata)
    arrays = [*table.columns[:4], pa.chunked_array([structure]), table.column(5)]
    found = read(file_of(pa.table(arrays, schema=schema)), [wanted(0, kind)])
    assert found.column("0").to_pylist() == values


def _named(name: str, kind: pa.DataType, version: int, type_name: str = "integer") -> pa.Field:
    extension = f"materialize.persist.{version}.{type_name}"
    return pa.field(name, kind, metadata={"ARROW:extension:name": extension})


@pytest.mark.parametrize(
    "data",
    [b"", b"PAR1", file_of(pa.table({"t": [1]})), b"x" * 100],
    ids=["empty", "cut", "of others", "no parquet"],
)
def test_what_is_no_batch_is_an_error(data: bytes) -> None:
    with pytest.raises(BatchError):
        read(data, [])


@pytest.mark.parametrize("bit", range(0, 8, 3))
def test_one_bit_that_is_wrong_in_a_page_is_an_error(bit: int) -> None:
    [data] = written(BatchLayout(tagged(*KINDS)), [rows_of(KINDS, ROWS)])
    group = opened(data).metadata.row_group(0)
    chunks = [group.column(place) for place in range(group.num_columns)]
    read_ones = [c for c in chunks if c.path_in_schema.split(".")[0] in ("t", "d", "k", "k_s")]
    assert len(read_ones) == 7
    for chunk in read_ones:
        begin = chunk.dictionary_page_offset or chunk.data_page_offset
        hurt = bytearray(data)
        hurt[begin + chunk.total_compressed_size - 1] ^= 1 << bit  # the last byte of its last page
        columns = [wanted(place, kind) for place, kind in enumerate(KINDS)]
        reads = (
            compared if chunk.path_in_schema.startswith("k") else partial(read, columns=columns)
        )
        with pytest.raises(BatchError, match=r"checksum verification failed.* restore the object"):
            reads(bytes(hurt))


@pytest.mark.parametrize("encoding", BATCH_ENCODINGS)
def test_bytes_do_not_depend_on_how_rows_were_cut(encoding: BatchEncoding) -> None:
    layout, rows = _many(3_000, encoding)
    whole = written(layout, [rows], limit=40_000)
    assert len(whole) > 2
    for size in (7, 1_000):
        cut = [rows.slice(start, size) for start in range(0, rows.num_rows, size)]
        assert written(layout, cut, limit=40_000) == whole


def test_files_end_near_the_limit_and_hold_every_row() -> None:
    layout, rows = _many(6_000, "dual")
    files = written(layout, [rows], limit=60_000)
    assert len(files) > 3
    assert all(len(data) < 1.3 * 60_000 for data in files)
    ids = [
        row for data in files for row in read(data, [wanted(0, INTEGER)]).column("0").to_pylist()
    ]
    assert ids == rows.column(2).to_pylist()


def test_statistics_are_there_to_prune_by() -> None:
    [data] = written(BatchLayout(tagged(*KINDS)), [rows_of(KINDS, ROWS)])
    group = opened(data).metadata.row_group(0)
    ranges = {
        group.column(i).path_in_schema: group.column(i).statistics
        for i in range(group.num_columns)
    }
    found = {path: (s.min, s.max) for path, s in ranges.items() if s and s.has_min_max}
    assert found["t"] == (5, 5)
    assert found["k_s.0"] == (1, 3)
    assert found["k_s.1"] == ("a", "b")
    assert found["k_s.2.lossy"] == (-2.25, 1.5)


def test_columns_are_compressed_and_have_dictionaries() -> None:
    [data] = written(BatchLayout(tagged(*KINDS)), [rows_of(KINDS, ROWS)])
    group = opened(data).metadata.row_group(0)
    columns = [group.column(place) for place in range(group.num_columns - 1)]  # v_s is Boolean
    assert {(one.compression, one.has_dictionary_page) for one in columns} == {("ZSTD", True)}


def test_a_reader_of_sorted_files_skips_what_statistics_exclude(tmp_path: Path) -> None:
    kinds = [INTEGER, TEXT, NUMERIC]
    numbers = range(60_000)
    filling = random.Random(1)
    values = [
        list(numbers),
        [f"{number:06}{filling.randbytes(200).hex()}" for number in numbers],
        [Decimal(number) / 4 for number in numbers],
    ]
    path = tmp_path / "part.parquet"
    layout, rows = BatchLayout(tagged(*kinds)), rows_of(kinds, values)
    path.write_bytes(written(layout, [rows], limit=40_000_000)[0])
    assert pq.ParquetFile(path).metadata.num_row_groups > 4
    [whole] = dataset.dataset(path).get_fragments()
    for found in (
        pc.field("k_s", "0") == 31_000,
        pc.field("k_s", "1") < "000100",
        pc.field("k_s", "2", "lossy") > 14_999.0,
    ):
        assert len(whole.split_by_row_group(found)) == 1


def test_two_of_forty_columns_are_less_than_a_tenth_of_the_bytes() -> None:
    kinds = [INTEGER, TEXT] * 20
    values = random.Random(1)
    found = [
        [values.randrange(10**9) if kind is INTEGER else f"{values.random()}" for _ in range(5000)]
        for kind in kinds
    ]
    [data] = written(BatchLayout(tagged(*kinds)), [rows_of(kinds, found)])
    source = Counting(data)
    columns = [wanted(3, TEXT), wanted(20, INTEGER)]
    table = pa.Table.from_batches(list(read_batch(source, columns)))
    assert table.column("3").to_pylist() == found[3]
    assert source.count < len(data) / 10


def test_messages_are_not_fetched_for_a_column_that_a_file_lacks() -> None:
    numbers = random.Random(1)
    found = [f"{numbers.random()}" for _ in range(40_000)]
    [data] = written(BatchLayout(tagged(TEXT), "codec"), [rows_of([TEXT], [found])])
    source = Counting(data)
    table = pa.Table.from_batches(list(read_batch(source, [wanted(9, TEXT)])))
    assert table.column("9").null_count == 40_000
    assert source.count < len(data) / 3


def test_batches_of_wide_rows_are_short() -> None:
    wide = [f"{number:>01000000}" for number in range(45)]
    [data] = written(BatchLayout(tagged(TEXT), "structured"), [rows_of([TEXT], [wide])])
    batches = list(read_batch(pa.BufferReader(data), [wanted(0, TEXT)]))
    assert [v for batch in batches for v in batch.column("0").to_pylist()] == wide
    assert max(batch.nbytes for batch in batches) < 2 * BATCH_BYTES


def test_of_a_row_group_nothing_is_held_after_its_turn() -> None:
    layout, rows = _many(30_000, "dual")
    [data] = written(layout, [rows], limit=5_000_000)
    assert opened(data).metadata.num_row_groups > 4
    source = Holding(data)
    for _ in read_batch(source, [wanted(0, INTEGER), wanted(2, list_of(TEXT))]):
        pass
    assert source.most < source.count / 2


@pytest.mark.parametrize("encoding", BATCH_ENCODINGS)
@pytest.mark.parametrize("kind", [list_of(Type("tinyint")), NUMERIC], ids=str)
def test_a_row_group_is_bounded_in_memory_whatever_is_made_of_rows(
    kind: Type, encoding: BatchEncoding
) -> None:
    values: list[Any] = [Decimal(n) if kind is NUMERIC else [n % 100] * 50 for n in range(20_000)]
    limit = 1_000_000
    files = written(BatchLayout(tagged(kind), encoding), [rows_of([kind], [values])], limit)
    for file in map(opened, files):
        for number in range(file.num_row_groups):
            assert file.read_row_group(number).nbytes < 1.25 * limit / GROUPS_PER_FILE


def test_text_that_is_not_utf_8_is_an_error_that_names_the_column() -> None:
    text = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.array([0, 1], pa.int32()).buffers()[1], pa.py_buffer(b"\xff")]
    )
    with pytest.raises(ExecutorError, match=r"column name of 0 holds .* UTF"):
        written(BatchLayout(tagged(TEXT)), [batch_of([text], 1)])


@pytest.mark.parametrize("encoding", BATCH_ENCODINGS)
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Type("uint4"), 2**33),
        (Type("uint4"), -1),
        (Type("uint8"), Decimal(2**64)),
        (Type("mz_timestamp"), Decimal(-1)),
        (ACL_ITEM, {"0": 1, "1": 2**32, "2": Decimal(0)}),
        (list_of(Type("uint4")), [1, 2**32]),
        (map_of(TEXT, Type("uint4")), [{"0": "a", "1": 2**32}]),
    ],
    ids=str,
)
def test_numbers_out_of_range_are_errors_in_every_encoding(
    kind: Type, value: Any, encoding: BatchEncoding
) -> None:
    with pytest.raises(ExecutorError, match="column name of 0 holds a value that is none of its"):
        written(BatchLayout(tagged(kind), encoding), [rows_of([kind], [[None, value]])])


def test_numbers_under_a_null_may_be_out_of_range() -> None:
    numbers = pa.array([7, -1], as_wire(pa.array([], pa.int64()), Type("uint4")).type)
    lists = pa.ListArray.from_arrays([0, 1, 2], numbers, mask=pa.array([False, True]))
    assert as_wire(lists, list_of(Type("uint4"))).to_pylist() == [[7], None]


def test_an_empty_file_has_its_schema() -> None:
    layout = BatchLayout(tagged(map_of(TEXT, INTEGER)))
    [data] = written(layout, [])
    assert layout_of(opened(data).schema_arrow.metadata) == layout
    assert list(read_batch(pa.BufferReader(data), [wanted(0, map_of(TEXT, INTEGER))])) == []


def _many(count: int, encoding: BatchEncoding) -> tuple[BatchLayout, pa.RecordBatch]:
    kinds = [INTEGER, TEXT, list_of(TEXT), NUMERIC]
    numbers = range(count)
    found: list[list[Any]] = [
        list(numbers),
        [None if n % 7 == 0 else f"{n * n * 7919:x}" for n in numbers],
        [[f"{n}-{i}" for i in range(n % 4)] for n in numbers],
        [Decimal(n) / 4 for n in numbers],
    ]
    return BatchLayout(tagged(*kinds), encoding), rows_of(kinds, found)
