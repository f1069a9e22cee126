"""Objects in S3 to rows: one test for each kind of object a bucket may hold."""

import gzip
from datetime import datetime, timezone

import pytest
from support.s3.opened import bucket_of
from support.source.fetched_objects import (
    BUCKET,
    CONNECTION,
    EVERYTHING,
    HEADER,
    LOCATION,
    failure,
    fetch,
    fetched,
    fetching,
    header_of,
    listed,
    put,
    spec,
    written,
)

from dbt.adapters.mzs3.errors import ExecutorError, S3Error, SourceError
from dbt.adapters.mzs3.formats.read.columns import Column
from dbt.adapters.mzs3.formats.read.format import Reading
from dbt.adapters.mzs3.formats.read.header import header_difference
from dbt.adapters.mzs3.source.executor.fetch import schema_ddl
from dbt.adapters.mzs3.source.executor.listing import iter_pages, list_objects
from dbt.adapters.mzs3.store.location import S3Location

FIX = "Correct the object or remove it, then run again"
FIX_HEADER = (
    "Correct the object or remove it, or narrow `pattern` so that it is left out, then run again"
)
PREAMBLE = "; or set skip_lines, if other lines precede the header"


def test_rows_carry_their_object_their_number_and_its_time(s3):
    put(s3, "1.csv", b"id,amount\n1,a\n2,b\n")
    before = datetime.now(timezone.utc)
    (batch,) = fetching(spec())(iter(listed()))
    uri = "s3://acme-raw/orders/1.csv"
    assert batch.column("_mz_object").to_pylist() == [uri, uri]
    assert batch.column("_mz_record").to_pylist() == [1, 2]
    head = s3.head_object(Bucket=BUCKET, Key="orders/1.csv")
    assert batch.column("_mz_last_modified").to_pylist() == [head["LastModified"]] * 2
    assert abs((head["LastModified"] - before).total_seconds()) < 60


@pytest.mark.parametrize(
    "reading", [Reading(), Reading(on_bad_row="reject"), Reading(on_header_mismatch="skip_object")]
)
def test_the_schema_in_spark_is_that_of_the_batches(s3, reading):
    put(s3, "1.csv", b"id,amount\n1,a\n")
    of = spec(reading=reading, columns=(Column("a`b; --", "int"), Column("amount")))
    (batch,) = fetching(of)(iter(listed()))
    kinds = ["int32", "string", "string", "int64", "timestamp[us, tz=UTC]"]
    ddl = (
        "`a``b; --` int, `amount` string, `_mz_object` string, `_mz_record` bigint, "
        "`_mz_last_modified` timestamp"
    )
    fields = [(name, "bigint") for name in ("line", "byte")]
    fields += [(name, "string") for name in ("raw", "column", "error")]
    assert schema_ddl(of.columns) == (
        f"{ddl}, `mz_problem` struct<{', '.join(f'`{name}`: {kind}' for name, kind in fields)}>"
    )
    if reading == Reading():
        assert of.ddl == ddl
    else:
        assert of.ddl == schema_ddl(of.columns)
        kinds.append(
            "struct<line: int64, byte: int64, raw: string, column: string, error: string>"
        )
    assert [str(field.type) for field in batch.schema] == kinds


def test_records_are_numbered_across_chunks(s3):
    data = b"id,amount\n" + b"".join(b"%d,x\n" % n for n in range(1, 101))
    rows = fetched(s3, data, block_bytes=16)
    assert [row[0] for row in rows] == [row[2] for row in rows] == list(range(1, 101))


def test_several_objects_each_with_its_header(s3):
    put(s3, "1.csv", b"id,amount\n1,a\n")
    put(s3, "2.csv", b"id,amount\n2,b\n3,c\n")
    assert fetch() == [(1, "a", 1), (2, "b", 1), (3, "c", 2)]


def test_an_empty_object_has_no_rows(s3):
    assert fetched(s3, b"") == []


def test_an_empty_object_with_a_byte_order_mark_has_no_rows(s3):
    assert fetched(s3, b"\xef\xbb\xbf") == []


@pytest.mark.parametrize("data", [b"id,amount\n", b"id,amount", b"id,amount\r\n"])
def test_a_header_alone_has_no_rows(s3, data):
    assert fetched(s3, data) == []


def test_a_byte_order_mark(s3):
    assert fetched(s3, b"\xef\xbb\xbfid,amount\n1,a\n") == [(1, "a", 1)]


def test_crlf(s3):
    assert fetched(s3, b"id,amount\r\n1,a\r\n2,\r\n") == [(1, "a", 1), (2, None, 2)]


def test_quoted_newlines(s3):
    assert fetched(s3, b'id,amount\n1,"a\nb"\n2,"\r\n"\n') == [(1, "a\nb", 1), (2, "\r\n", 2)]


def test_null_and_the_empty_string(s3):
    assert fetched(s3, b'id,amount\n1,""\n2,\n') == [(1, "", 1), (2, None, 2)]


def test_no_final_newline(s3):
    assert fetched(s3, b'id,amount\n1,a\n"2",') == [(1, "a", 1), (2, None, 2)]


@pytest.mark.parametrize(
    "name", ["a b+c%20=&é/ü?#.csv", "%2F.csv", "x y/1.csv", "日本.csv", "a'b\"c.csv"]
)
def test_a_name_that_needs_url_encoding(s3, name):
    put(s3, name, b"id,amount\n1,a\n")
    (batch,) = fetching(spec())(iter(listed()))
    assert batch.column("_mz_object").to_pylist() == [f"s3://acme-raw/orders/{name}"]


@pytest.mark.parametrize("name", ["1.csv.gz", "1.GZ", "1.csv.gzip"])
def test_a_gzip_object(s3, name):
    assert fetched(s3, gzip.compress(b"id,amount\n1,a\n"), name) == [(1, "a", 1)]


def test_a_gzip_object_of_several_members(s3):
    data = gzip.compress(b"id,amo") + gzip.compress(b"unt\n1,a") + b"\0" * 9
    assert fetched(s3, data, "1.gz") == [(1, "a", 1)]


def test_gzip_declared(s3):
    data = gzip.compress(b"id,amount\n1,a\n")
    assert fetched(s3, data, "1.csv", compression="gzip") == [(1, "a", 1)]


def test_no_gzip_declared(s3):
    assert fetched(s3, b"id,amount\n1,a\n", "1.gz", compression="none") == [(1, "a", 1)]


def test_an_empty_object_with_a_gzip_suffix(s3):
    assert fetched(s3, b"", "1.gz") == []


def test_gzip_that_is_not(s3):
    assert failure(s3, b"id,amount\n1,a\n", "2.gz") == (
        "lake.orders: object s3://acme-raw/orders/2.gz: it is not valid gzip (Not a gzipped "
        "file (b'id')). Correct or remove the object; for objects that are not compressed declare "
        "`compression: none`"
    )


def test_gzip_that_ends_early(s3):
    data = gzip.compress(b"id,amount\n1,a\n")[:-9]
    assert failure(s3, data, "2.gz") == (
        f"lake.orders: object s3://acme-raw/orders/2.gz: its gzip stream ends early. {FIX}"
    )


def test_gzip_without_its_suffix(s3):
    data = gzip.compress(b"id,amount\n1,a\n")
    assert fetched(s3, data, "1.csv") == [(1, "a", 1)]
    assert failure(s3, data, "2.csv", compression="none") == (
        "lake.orders: object s3://acme-raw/orders/1.csv, line 1, byte 0: it is compressed by "
        "gzip. Declare `compression: by_suffix`, which goes by an object's first bytes too"
    )


@pytest.mark.parametrize("how", ["fail", "skip_object"])
def test_what_is_no_text_is_skipped_as_another_header_is(s3, how):
    put(s3, "1.csv", b"id,amount\n1,a\n")
    put(s3, "2.csv", b"PK\x03\x04" + bytes(100))
    reading = Reading(on_header_mismatch=how)
    if how == "fail":
        with pytest.raises(ExecutorError, match=r"2\.csv: it is a zip archive, not text"):
            fetch(reading=reading)
    else:
        first, second = written(reading=reading)
        assert first["id"] == 1
        assert second["mz_problem"]["error"] == "it is a zip archive, not text"


def test_a_header_that_differs_in_one_object(s3):
    put(s3, "1.csv", b"id,amount\n1,a\n")
    assert failure(s3, b"id,amount,x\n1,a,b\n") == (
        "lake.orders: object s3://acme-raw/orders/2.csv, line 1, byte 0: header is id,amount,x "
        "but the source's header is id,amount: first difference at column 3, 'x' instead of "
        "nothing. Correct the object or remove it, or narrow `pattern` so that it is left out, "
        "then run again; or set skip_lines, if other lines precede the header; or set "
        "on_new_columns: add"
    )


@pytest.mark.parametrize(
    ("found", "difference"),
    [
        (("id", "Amount"), "column 2, 'Amount' instead of 'amount'"),
        ((" id", "amount"), "column 1, ' id' instead of 'id'"),
        (("amount", "id"), "column 1, 'amount' instead of 'id'"),
        (("id",), "column 2, nothing instead of 'amount'"),
    ],
)
def test_where_headers_differ(found, difference):
    assert header_difference(found, HEADER).endswith(f"first difference at {difference}")


def test_long_headers_are_cut_in_the_error():
    pinned = [f"column_{n}" for n in range(1000)]
    text = header_difference([*pinned[:999], "x" * 1000], pinned)
    assert len(text) < 400
    assert text.endswith("x... instead of 'column_999'")


def test_an_object_without_the_header_of_the_others(s3):
    assert "first difference at column 1, '1' instead of 'id'" in failure(s3, b"1,a\n2,b\n")


def test_a_malformed_header(s3):
    assert failure(s3, b'\xef\xbb\xbfid,"amount\n1,a\n') == (
        "lake.orders: object s3://acme-raw/orders/2.csv, line 1, byte 3: the header is "
        f"malformed: column 2 has a quoted field that is not closed. {FIX_HEADER}{PREAMBLE}"
    )


def test_a_ragged_row(s3):
    assert failure(s3, b'id,amount\n1,"a\nb"\n5,6,7\n8,9\n') == (
        "lake.orders: object s3://acme-raw/orders/2.csv, line 4, byte 18: expected 2 columns, "
        f"got 3. {FIX}; or set extra_columns: ignore"
    )


def test_a_value_of_another_type(s3):
    data = gzip.compress(b"\xef\xbb\xbfid,amount\r\n1,a\r\nabc,b\r\n")
    assert failure(s3, data, "2.csv.gz") == (
        "lake.orders: object s3://acme-raw/orders/2.csv.gz, line 3, byte 19: column id: 'abc' is "
        f"not a bigint. {FIX}; or declare the column as a string"
    )


@pytest.mark.parametrize("block", [1, 2, 3, 5, 17, 40, 1000])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_the_position_does_not_depend_on_the_block(s3, block, line_end):
    head = f'id,"amo\nunt"{line_end}' + f'1,"\n"{line_end}' * 5
    data = f"{head}1{line_end}2,x".encode()
    message = failure(s3, data, header=("id", "amo\nunt"), block_bytes=block)
    position = f"line {head.count(chr(10)) + 1}, byte {len(head)}: expected 2 columns, got 1"
    assert position in message


def test_without_headers_the_first_record_is_data(s3):
    assert fetched(s3, b"1,a\n2,b\n", header=None) == [(1, "a", 1), (2, "b", 2)]


def test_an_object_that_is_replaced_after_it_was_listed(s3):
    put(s3, "1.csv", b"id,amount\n1,a\n")
    before = listed()
    put(s3, "1.csv", b"id,amount\n2,b\n")
    with pytest.raises(ExecutorError) as raised:
        list(fetching(spec())(iter(before)))
    etag = before[0].column("etag")[0].as_py()
    assert raised.value.message == (
        "lake.orders: object s3://acme-raw/orders/1.csv: it was replaced after it was listed: its "
        f"ETag is no longer {etag}. Do not overwrite objects while they are ingested; run again "
        "to list it anew"
    )


def test_an_object_that_is_removed_after_it_was_listed(s3):
    put(s3, "1.csv", b"id,amount\n1,a\n")
    before = listed()
    s3.delete_object(Bucket=BUCKET, Key="orders/1.csv")
    with pytest.raises(ExecutorError) as raised:
        list(fetching(spec())(iter(before)))
    assert raised.value.message == (
        "lake.orders: object s3://acme-raw/orders/1.csv: it was removed after it was listed. Put "
        "it back, or run again without it"
    )


@pytest.mark.parametrize(
    ("data", "names"),
    [
        (b"id,amount\n1,a\n", ("id", "amount")),
        (b"\xef\xbb\xbfid\r\n", ("id",)),
        (b'"a,b","say ""x""","two\nlines", \n', ("a,b", 'say "x"', "two\nlines", " ")),
        (b'a,"\xc3\xa9",""', ("a", "é", "")),
        (b"", None),
        (b"\xef\xbb\xbf", None),
        (b'"' + b"long\n" * 50_000 + b'",b\n', ("long\n" * 50_000, "b")),
    ],
)
def test_reading_a_header(s3, data, names):
    put(s3, "1.csv", data)
    assert header_of(s3, "1.csv") == names


def test_a_header_that_cannot_be_read(s3):
    put(s3, "1.csv", b"a,\xff\n")
    with pytest.raises(SourceError) as raised:
        header_of(s3, "1.csv")
    assert str(raised.value) == (
        "lake.orders: object s3://acme-raw/orders/1.csv, line 1, byte 0: the header is malformed: "
        f"column 2 is not valid UTF-8: byte 0xff. {FIX_HEADER}{PREAMBLE}"
    )


def test_the_listing_has_what_the_pattern_takes_below_the_location(s3):
    for key in ("orders/1.csv", "orders/x/2.csv", "orders/3.txt", "orders2/4.csv", "5.csv"):
        s3.put_object(Bucket=BUCKET, Key=key, Body=b"id\n")
    s3.put_object(Bucket=BUCKET, Key="orders/", Body=b"")
    s3.put_object(Bucket=BUCKET, Key="orders/x/", Body=b"")
    (batch,) = listed("**/*.csv")
    assert batch.column("key").to_pylist() == ["orders/1.csv", "orders/x/2.csv"]
    assert batch.column("size").to_pylist() == [3, 3]
    head = s3.head_object(Bucket=BUCKET, Key="orders/1.csv")
    assert batch.column("etag")[0].as_py() == head["ETag"].strip('"')
    assert batch.column("last_modified")[0].as_py() == head["LastModified"]
    assert [len(page) for page in iter_pages(bucket_of(s3, "acme-raw"), LOCATION, "**")] == [3]


def test_only_keys_under_the_literal_prefix_are_listed(s3):
    asked = []
    s3.meta.events.register(
        "before-parameter-build.s3.ListObjectsV2", lambda params, **_: asked.append(params)
    )
    put(s3, "2024/1.csv", b"")
    assert len(list(iter_pages(bucket_of(s3, "acme-raw"), LOCATION, "2024/*.csv"))) == 1
    assert [params["Prefix"] for params in asked] == ["orders/2024/"]


def test_a_listing_of_several_pages(s3):
    s3.meta.events.register(
        "before-parameter-build.s3.ListObjectsV2", lambda params, **_: params.update(MaxKeys=2)
    )
    for name in ("1.csv", "2.csv", "3.txt", "4.txt", "5.csv"):
        put(s3, name, b"")
    pages = [
        [found.key for found in page]
        for page in iter_pages(bucket_of(s3, "acme-raw"), LOCATION, "*.csv")
    ]
    assert pages == [["orders/1.csv", "orders/2.csv"], ["orders/5.csv"]]


def test_a_listing_of_nothing(s3):
    assert listed() == []


def test_a_bucket_that_is_not_there(s3):
    location = S3Location("no-such-bucket", "orders/")
    says = (
        "listing s3://no-such-bucket/orders/ failed: NoSuchBucket: The specified bucket does not "
        "exist; check the name of the bucket, and the endpoint and keys under aws_connections in "
        "the profile, or make the bucket: dbt-mzs3 makes none"
    )
    with pytest.raises(S3Error, match=says):
        list(iter_pages(bucket_of(s3, location.bucket), location, "**"))
    with pytest.raises(ExecutorError) as raised:
        list(list_objects(CONNECTION, location, "**")(iter([EVERYTHING])))
    assert raised.value.message == says
