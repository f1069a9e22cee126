"""Parquet objects: whatever table is written, its rows are read, and no more than a part held."""

import io
import re
import struct
from collections.abc import Sequence
from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyarrow.parquet import encryption
from support.examples import examples
from support.s3.stored_objects import MemoryClient, problem_of, read_all, stored

from dbt.adapters.mzs3.arrow import parquet as arrow_parquet
from dbt.adapters.mzs3.formats.read import parquet as formats_parquet
from dbt.adapters.mzs3.formats.read.columns import Column
from dbt.adapters.mzs3.formats.read.format import Reading
from dbt.adapters.mzs3.formats.read.object_error import HeaderProblem, ObjectError
from dbt.adapters.mzs3.formats.read.parquet import parquet_file
from dbt.adapters.mzs3.formats.read.typed import TypedFormat

FORM = TypedFormat(Reading(), parquet_file)
SUBSET = TypedFormat(Reading(header_match="subset"), parquet_file)
TABLE = pa.table({"id": [1, 2, None], "note": ["a", None, ""]})
WAY_OUT = (
    "Write it again, or remove it, or narrow `pattern` so that it is left out, then run again"
)
INSTANTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))
VALUES = {
    pa.bool_(): st.booleans(),
    pa.int8(): st.integers(-(2**7), 2**7 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint32(): st.integers(0, 2**32 - 1),
    pa.float32(): st.floats(width=32, allow_nan=False),
    pa.float64(): st.floats(allow_nan=False),
    pa.decimal128(9, 3): st.integers(-(10**9) + 1, 10**9 - 1).map(lambda n: Decimal(n).scaleb(-3)),
    pa.string(): st.text(st.characters(codec="utf-8"), max_size=5),
    pa.binary(): st.binary(max_size=5),
    pa.date32(): st.dates(),
    pa.timestamp("us"): INSTANTS,
    pa.timestamp("us", tz="UTC"): INSTANTS.map(lambda one: one.replace(tzinfo=timezone.utc)),
}


def file_of(table: pa.Table, **how) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **how)
    return sink.getvalue()


def rows_of(table: pa.Table) -> list[tuple]:
    return list(zip(*table.to_pydict().values(), strict=True))


@st.composite
def tables(draw):
    kinds = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=5))
    length = draw(st.integers(0, 20))
    columns = [
        pa.array(draw(st.lists(VALUES[kind] | st.none(), min_size=length, max_size=length)), kind)
        for kind in kinds
    ]
    return pa.table(columns, names=[f"c.{number}" for number in range(len(columns))])


@examples(150)
@given(
    table=tables(),
    group=st.integers(1, 30),
    batch=st.integers(1, 7),
    compression=st.sampled_from(["none", "snappy", "zstd"]),
)
def test_any_table_is_read_as_it_was_written(table, group, batch, compression):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow_parquet, "BATCH_ROWS", batch)
        data = file_of(table, row_group_size=group, compression=compression)
        assert read_all(FORM, data) == rows_of(table)


def test_the_header_is_the_schema():
    table = pa.table({"id": pa.array([1], pa.int8()), "tags": [[1]], "s": ["x"]})
    fields = FORM.fields(stored(file_of(table.replace_schema_metadata({"a": "b"}))))
    assert [(f.name, f.own) for f in fields] == [
        ("id", "tinyint"),
        ("tags", None),
        ("s", "string"),
    ]
    assert fields[1].words.startswith("list<")
    assert FORM.fields(stored(b"")) is None


def test_texts_in_dictionaries_and_types_of_extensions_are_what_they_stand_for():
    table = pa.table({"d": pa.array(["a", "b", None]).dictionary_encode()})
    assert read_all(FORM, file_of(table)) == [("a",), ("b",), (None,)]
    assert read_all(FORM, file_of(table), {"d": "string"}) == [("a",), ("b",), (None,)]
    views = pa.table(
        {"s": pa.array(["a"], pa.string_view()), "b": pa.array([b"b"], pa.binary_view())}
    )
    assert read_all(FORM, file_of(views)) == [("a", b"b")]
    storage = pa.array([b"0" * 16], pa.binary(16))
    table = pa.table({"u": pa.ExtensionArray.from_storage(pa.uuid(), storage)})
    assert read_all(FORM, file_of(table)) == [(b"0" * 16,)]


def test_old_timestamps_of_96_bits_are_right_in_any_year():
    instants = [datetime(1, 1, 2), datetime(1969, 12, 31, 23), datetime(9999, 12, 31)]
    table = pa.table({"t": pa.array(instants, pa.timestamp("us"))})
    data = file_of(table, use_deprecated_int96_timestamps=True)
    assert read_all(FORM, data) == [(one,) for one in instants]
    zoned = [(one.replace(tzinfo=timezone.utc),) for one in instants]
    assert read_all(FORM, data, {"t": "timestamp"}) == zoned


FIRST_DAY = 2_440_588  # of 1970, as INT96 counts days
DAY_NS = 86_400 * 10**9


def file_of_int96(*instants: tuple[int, int], names: Sequence[str] = ("t",)) -> bytes:
    """A file of these days and nanoseconds, which no writer of today's makes of them."""
    known = [datetime(2001, 1, 1, microsecond=n) for n in range(len(instants))]
    columns = [pa.array(known, pa.timestamp("us")) for _ in names]
    data = file_of(
        pa.table(columns, names=list(names)),
        use_deprecated_int96_timestamps=True,
        compression="none",
        use_dictionary=False,
        store_schema=False,
    )
    for number, (day, nanos) in enumerate(instants):
        written = struct.pack("<QI", number * 1000, FIRST_DAY + (known[0] - EPOCH).days)
        assert data.count(written) == len(names)
        data = data.replace(written, struct.pack("<QI", nanos % 2**64, day % 2**32))
    return data


EPOCH = datetime(1970, 1, 1)
LAST_DAY, LAST_NANOS = divmod((2**63 - 1) * 1000, DAY_NS)
instants = st.tuples(
    st.one_of(
        st.integers(1, 2**31 - 1),
        st.integers(-(2**31), -1),
        st.integers(FIRST_DAY - 800_000, FIRST_DAY + 3_000_000),
        st.integers(FIRST_DAY + LAST_DAY - 1, FIRST_DAY + LAST_DAY + 2),
    ),
    # All 64 bits: outside of a day they are added to it, without a sign, as pyarrow tells no more.
    st.one_of(
        st.integers(0, DAY_NS - 1),
        st.sampled_from([0, LAST_NANOS, DAY_NS - 1, DAY_NS, -1, -DAY_NS, 2**63 - 1, -(2**63)]),
        st.integers(-(2**63), 2**63 - 1),
    ),
)


@examples(150)
@given(st.lists(instants, min_size=1, max_size=9))
# Spark writes the year 290000 so: its day wraps.
@example([(FIRST_DAY, 0), (-105_862_233, 65_316_774_522_880_000 % DAY_NS)])
@example([(FIRST_DAY, -1)])
# Read as microseconds, it would be one of the year 1683.
@example([(-20_000_000, 5)])
@example([(FIRST_DAY + LAST_DAY, LAST_NANOS), (FIRST_DAY + LAST_DAY + 1, 0)])
def test_an_old_timestamp_is_right_or_an_error(pairs):
    micros = [
        (day % 2**32 - FIRST_DAY) * 86_400_000_000 + nanos % 2**64 // 1000 for day, nanos in pairs
    ]
    beyond = [number for number, one in enumerate(micros) if one // 10**6 > LAST_SECOND]
    data = file_of_int96(*pairs)
    for wanted in ("timestamp_ntz", "timestamp"):
        decoder = FORM.decoder(("t",), (Column("c", wanted),))
        if not beyond:
            (records,) = decoder(stored(data))
            assert records.batch.column(0).cast(pa.int64()).to_pylist() == micros
            continue
        with pytest.raises(ObjectError) as raised:
            list(decoder(stored(data)))
        assert raised.value.record == beyond[0] + 1
        assert re.fullmatch(rf"column c: \d+ s since 1970 is not a {wanted}", raised.value.problem)


LAST_SECOND = (2**63 - 1) // 10**6 - 1


def test_where_the_seconds_of_old_timestamps_end_early_nothing_is_read_unchecked(monkeypatch):
    whole = pq.ParquetFile.iter_batches

    def short(file, **how):
        batches = list(whole(file, **how))
        return iter(batches[:-1] if file.schema_arrow.types[0].unit == "s" else batches)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", short)
    decoder = FORM.decoder(("t",), (Column("c", "timestamp"),))
    with pytest.raises(ObjectError, match="it has 0 rows and says 1"):
        list(decoder(stored(file_of_int96((FIRST_DAY, 0)))))


def test_old_timestamps_in_fields_of_the_same_name():
    data = file_of_int96((FIRST_DAY, 0), (-7, 0), names=("x", "x"))
    problem = problem_of(FORM, data, {"a": "timestamp", "b": "timestamp"}, ("x", "x"))
    assert problem.record == 2
    assert problem.problem.startswith("column a: ")


def test_a_field_that_is_not_pinned_is_not_fetched():
    many = 50_000
    wide = pa.array([f"{number:>064}" for number in range(many)])
    table = pa.table({"x": wide, "a.b": pa.array(range(many)), "a": [{"b": 1}] * many})
    data = file_of(table, compression="none", use_dictionary=False)
    client = MemoryClient(data)
    rows = read_all(SUBSET, data, {"n": "bigint"}, ("a.b",), client)
    assert rows == [(number,) for number in range(many)]
    assert len(data) > 3_000_000 > sum(end - start for start, end in client.spans)
    problem = problem_of(FORM, data, {"n": "bigint"}, ("a.b",))
    assert isinstance(problem, HeaderProblem)


def test_fields_in_another_order():
    form = TypedFormat(Reading(header_match="reorder"), parquet_file)
    rows = read_all(form, file_of(TABLE), {"n": "string", "i": "smallint"}, ("note", "id"))
    assert rows == [("a", 1), (None, 2), ("", None)]


def test_names_that_are_there_twice_are_columns_by_position():
    table = pa.table([pa.array([1]), pa.array(["a"])], names=["x", "x"])
    assert read_all(FORM, file_of(table), {"a": "int", "b": "string"}, ("x", "x")) == [(1, "a")]


def test_a_small_object_is_fetched_at_once():
    data = file_of(TABLE)
    client = MemoryClient(data)
    read_all(FORM, data, {"id": "bigint", "note": "string"}, client=client)
    assert client.spans == [(0, len(data))]


def test_a_large_one_in_parts():
    table = pa.table({name: pa.array([1.5 * n for n in range(200_000)]) for name in "abc"})
    data = file_of(table, compression="none", use_dictionary=False)
    client = MemoryClient(data)
    rows = read_all(FORM, data, dict.fromkeys("abc", "double"), client=client)
    assert rows == rows_of(table)
    longest = max(end - start for start, end in client.spans)
    assert longest <= formats_parquet.WINDOW_BYTES < len(data)
    assert sum(end - start for start, end in client.spans) < 2 * len(data)


def test_batches_of_wide_rows_are_short():
    table = pa.table({"x": [f"{number:>0100000}" for number in range(200)]})
    data = file_of(table, use_dictionary=False)
    decoder = FORM.decoder(("x",), (Column("x"),))
    sizes = [records.batch.nbytes for records in decoder(stored(data))]
    assert len(sizes) > 1
    assert max(sizes) < 2 * arrow_parquet.BATCH_BYTES


def test_a_bad_value_is_named_by_its_record_and_column():
    table = pa.table({"id": [*range(100), 300, 400]})
    problem = problem_of(FORM, file_of(table, row_group_size=7), {"n": "tinyint"}, ("id",))
    assert (problem.record, problem.problem) == (101, "column n: 300 is not a tinyint")


def test_what_is_no_parquet():
    whole = file_of(TABLE)
    no_text = file_of(TABLE, store_schema=False).replace(b"note", b"\xff\xff\xff\xff")
    for data in (b"id,note\n1,a\n", whole[:-1], whole[: len(whole) // 2], b"PAR1", no_text):
        problem = problem_of(FORM, data, {"id": "int"})
        assert problem.problem.startswith("it is not valid Parquet (")
        assert problem.advice == WAY_OUT
        assert not isinstance(problem, HeaderProblem)
        with pytest.raises(ObjectError):
            FORM.fields(stored(data))


class NoKeys(encryption.KmsClient):
    """Keys that are as they are named."""

    def wrap_key(self, key_bytes, master_key_identifier):
        return key_bytes

    def unwrap_key(self, wrapped_key, master_key_identifier):
        return wrapped_key


def encrypted(**how) -> bytes:
    factory = encryption.CryptoFactory(lambda _: NoKeys())
    config = encryption.EncryptionConfiguration(footer_key="k", **how)
    keys = factory.file_encryption_properties(encryption.KmsConnectionConfig(), config)
    return file_of(TABLE, encryption_properties=keys)


SOME = {"column_keys": {"k": ["note"]}}


@pytest.mark.parametrize(
    "how",
    [
        {"uniform_encryption": True},
        {"uniform_encryption": True, "plaintext_footer": True},
        SOME,
        {**SOME, "plaintext_footer": True},
    ],
)
def test_what_is_encrypted_is_told_as_such(how):
    problem = problem_of(FORM, encrypted(**how), {"id": "int", "note": "string"})
    assert problem.problem == "it is Parquet that a source can't read (it is encrypted)"
    assert "without Parquet's encryption" in problem.advice
    assert "`header_match: subset`" in problem.advice


def test_columns_that_are_not_encrypted_are_read():
    data = encrypted(**SOME, plaintext_footer=True)
    assert [field.name for field in SUBSET.fields(stored(data))] == ["id", "note"]
    assert read_all(SUBSET, data, {"id": "bigint"}) == [(1,), (2,), (None,)]


def test_what_pyarrow_has_no_reader_for_is_not_told_to_be_wrong(monkeypatch):
    def without(*_, **__):
        raise pa.ArrowNotImplementedError("Codec type LZO not supported in Parquet format")

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", without)
    assert problem_of(FORM, file_of(TABLE), {"id": "int", "note": "string"}).problem == (
        "it is Parquet that a source can't read (Codec type LZO not supported in Parquet format)"
    )


def test_a_page_that_was_changed():
    data = bytearray(file_of(TABLE, compression="none", write_page_checksum=True))
    at = data.index(b"a", 4)
    data[at] = ord("b")
    problem = problem_of(FORM, bytes(data), {"id": "int", "note": "string"})
    assert problem.problem.startswith("it is not valid Parquet (")


class Replaced(MemoryClient):
    """Tells, from its second answer on, that the object is another one."""

    def get_object(self, **request):
        answer = super().get_object(**request)
        return answer if len(self.spans) < 2 else {**answer, "ETag": '"e2"'}


def test_a_part_of_another_version_is_refused():
    table = pa.table({"a": pa.array([1.5 * n for n in range(300_000)])})
    data = file_of(table, compression="none", use_dictionary=False)
    problem = problem_of(FORM, data, {"a": "double"}, client=Replaced(data))
    assert problem.problem == "it was replaced after it was listed: its ETag is no longer e1"


def test_rows_that_are_not_there_are_missed(monkeypatch):
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", lambda *_, **__: iter(()))
    problem = problem_of(FORM, file_of(TABLE), {"id": "int", "note": "string"})
    assert problem.problem == "it is not valid Parquet (it has 0 rows and says 3)"


def test_days_and_instants_that_python_does_not_have():
    day = date(9999, 12, 31).toordinal() - date(1970, 1, 1).toordinal() + 366
    table = pa.table({"d": pa.array([day], pa.date32())})
    decoder = FORM.decoder(("d",), (Column("d", "date"),))
    (records,) = decoder(stored(file_of(table)))
    assert records.batch.column(0).cast(pa.int32()).to_pylist() == [day]
