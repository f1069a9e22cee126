"""Objects and records that are not as declared, from S3 to the rows that are written."""

import bz2

import pytest
from support.source.fetched_objects import failure, fetching, header_of, listed, put, spec, written

from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.formats.read.chunks import Chunks
from dbt.adapters.mzs3.formats.read.format import Reading

REJECT = Reading(on_bad_row="reject")
SKIP = Reading(on_header_mismatch="skip_object")


def table(**changes):
    """Every row that is written, as dictionaries without the object's time."""
    rows = written(**changes)
    for row in rows:
        del row["_mz_last_modified"]
        row["_mz_object"] = row["_mz_object"].rpartition("/")[2]
    return rows


def good(rows):
    return [
        (r["_mz_object"], r["_mz_record"], r["id"], r["amount"])
        for r in rows
        if r.get("mz_problem") is None
    ]


def problems(rows):
    return [
        (r["_mz_object"], r["_mz_record"], r["id"], r["amount"], *r["mz_problem"].values())
        for r in rows
        if r["mz_problem"] is not None
    ]


@pytest.mark.parametrize("block", [5, 1000])
def test_rejects_are_rows_with_their_problem(s3, block):
    put(s3, "1.csv", b"id,amount\n1,a\nx,b\n3,c\n4\n5,\xff\n6,f\n")
    put(s3, "2.csv", b'id,amount\n7,"g\n')
    rows = table(reading=REJECT, block_bytes=block)
    assert good(rows) == [("1.csv", 1, 1, "a"), ("1.csv", 3, 3, "c"), ("1.csv", 6, 6, "f")]
    assert sorted(problems(rows)) == [
        ("1.csv", 2, None, None, 3, 14, "x,b", "id", "column id: 'x' is not a bigint"),
        ("1.csv", 4, None, None, 5, 22, "4", None, "expected 2 columns, got 1"),
        ("1.csv", 5, None, None, 6, 24, "5,\\xff", "amount",
         "column 2 is not valid UTF-8: byte 0xff"),
        ("2.csv", 1, None, None, 2, 10, '7,"g', "amount",
         "column 2 has a quoted field that is not closed"),
    ]  # fmt: skip


def test_all_batches_have_one_schema(s3):
    put(s3, "1.csv", b"id,amount\n1,a\nx,b\n")
    put(s3, "2.csv", b"other\n")
    reading = Reading(on_bad_row="reject", on_header_mismatch="skip_object")
    batches = list(fetching(spec(reading=reading))(iter(listed())))
    assert [batch.num_rows for batch in batches] == [1, 1, 1]
    assert len({str(batch.schema) for batch in batches}) == 1


def test_an_object_with_another_header_is_skipped_and_the_others_are_not(s3):
    put(s3, "1.csv", b"id,amount\n1,a\n")
    put(s3, "2.csv", b"id,price\n2,b\n" * 1000)
    put(s3, "3.csv", b'id,"amount\n')
    put(s3, "4.csv", b"id,amount\n4,d\n")
    rows = table(reading=SKIP, block_bytes=50)
    assert good(rows) == [("1.csv", 1, 1, "a"), ("4.csv", 1, 4, "d")]
    assert problems(rows) == [
        ("2.csv", None, None, None, None, None, None, None,
         "line 1, byte 0: header is id,price but the source's header is id,amount: first "
         "difference at column 2, 'price' instead of 'amount'"),
        ("3.csv", None, None, None, None, None, None, None,
         "line 1, byte 0: the header is malformed: column 2 has a quoted field that is not "
         "closed"),
    ]  # fmt: skip


def test_a_bad_row_is_no_reason_to_skip_its_object(s3):
    assert "is not a bigint" in failure(s3, b"id,amount\nx,a\n", reading=SKIP)


def test_an_object_that_cannot_be_read_is_no_reason_to_skip_it(s3):
    message = failure(s3, bz2.compress(b"id,amount\n1,a\n")[:-5], "2.bz2", reading=SKIP)
    assert message == (
        "lake.orders: object s3://acme-raw/orders/2.bz2: its bzip2 stream ends early. Correct the "
        "object or remove it, then run again"
    )


def test_headers_in_any_order_with_other_names(s3):
    put(s3, "1.csv", b"id,amount\n1,a\n")
    put(s3, "2.csv", b"x,amount,y,id\n,b,,2\nq,,,3\n")
    reading = Reading(header_match="subset")
    assert good(table(reading=reading)) == [
        ("1.csv", 1, 1, "a"),
        ("2.csv", 1, 2, "b"),
        ("2.csv", 2, 3, None),
    ]
    message = failure(s3, b"amount,id\n1\n", "3.csv", reading=reading)
    assert "line 2, byte 10: expected 2 columns, got 1" in message
    message = failure(s3, b"amount,x,id\na,b,c\n", "3.csv", reading=reading)
    assert "line 2, byte 12: column id: 'c' is not a bigint" in message


def test_a_header_that_lacks_a_pinned_name(s3):
    assert failure(s3, b"id,x\n", reading=Reading(header_match="subset")) == (
        "lake.orders: object s3://acme-raw/orders/2.csv, line 1, byte 0: header is id,x but the "
        "names of the source's header are id,amount, in any order: 'amount' is missing. Correct "
        "the object or remove it, or narrow `pattern` so that it is left out, then run again; "
        "or set skip_lines, if other lines precede the header"
    )


@pytest.mark.parametrize(("limit", "says"), [(0, "a record was"), (1, "more than 1 records were")])
def test_more_rejects_than_may_be_in_one_task(s3, limit, says):
    put(s3, "1.csv", b"id,amount\n1\n")
    reading = Reading(on_bad_row="reject", max_rejects=limit)
    assert failure(s3, b"id,amount\n1\n2\n3\n", reading=reading) == (
        f"lake.orders: {says} rejected, and max_rejects is {limit}; nothing of this run is "
        "committed. The first: object s3://acme-raw/orders/1.csv, line 2, byte 10: expected 2 "
        "columns, got 1. Correct or remove the objects, or raise max_rejects, then run again"
    )


def test_as_many_rejects_as_may_be(s3):
    put(s3, "1.csv", b"id,amount\n1\n2,b\n3\n")
    assert len(problems(table(reading=Reading(on_bad_row="reject", max_rejects=2)))) == 2


@pytest.fixture
def small_records(monkeypatch):
    def small(*args, **more):
        return Chunks(*args, **more, max_record_bytes=200)

    monkeypatch.setattr("dbt.adapters.mzs3.formats.read.text.Chunks", small)


def test_a_record_that_cannot_be_held_is_rejected_with_all_behind_it(s3, small_records):
    put(s3, "1.csv", b'id,amount\n1,a\n2,"b\n' + b"3,c\n" * 500)
    put(s3, "2.csv", b"id,amount\n4,d\n")
    rows = table(reading=REJECT, block_bytes=20)
    assert good(rows) == [("1.csv", 1, 1, "a"), ("2.csv", 1, 4, "d")]
    ((name, number, _, _, line, byte, raw, column, error),) = problems(rows)
    assert (name, number, line, byte, column) == ("1.csv", 2, 3, 14, None)
    assert raw.startswith('2,"b\n3,c\n3,c\n')
    assert error == (
        "the record is larger than 0 MB; is a quoted field not closed? All that follows in the "
        "object is rejected with it"
    )


def test_a_header_that_cannot_be_held(s3, small_records):
    data = b'id,"amount\n' + b"3,c\n" * 500
    assert failure(s3, data, block_bytes=20) == (
        "lake.orders: object s3://acme-raw/orders/2.csv, line 1, byte 0: the header is malformed: "
        "the record is larger than 0 MB; is a quoted field not closed? Correct the object or "
        "remove it, or narrow `pattern` so that it is left out, then run again"
    )
    assert [p[8] for p in problems(table(reading=SKIP, block_bytes=20))] == [
        "line 1, byte 0: the header is malformed: the record is larger than 0 MB; is a quoted "
        "field not closed?"
    ]


def test_another_encoding(s3):
    data = "id,größe\n1,é\nx,ü\n".encode("cp1252")
    message = failure(s3, data, header=("id", "größe"), reading=Reading(encoding="cp1252"))
    assert "line 3, byte 13: column id: 'x' is not a bigint" in message
    assert header_of(s3, "2.csv", encoding="cp1252") == ("id", "größe")
    with pytest.raises(SourceError, match="column 2 is not valid UTF-8: byte 0xf6"):
        header_of(s3, "2.csv")
