"""Objects and records that are not as declared: what a run takes of them, and what it says."""

from __future__ import annotations

import bz2
import gzip
import os
from dataclasses import replace
from urllib.parse import urlsplit

import pyarrow.parquet as pq
import pytest

from dbt.adapters.mzs3.errors import ConfigError, SourceError
from dbt.adapters.mzs3.ledger.partitions import partition_sql
from dbt.adapters.mzs3.source.ingest import ingest

pytestmark = [pytest.mark.spark, pytest.mark.light]

OBJECTS = {
    "1.csv": 'id,note\n1,a\nx,b\n3,"c\nd"\n4\n5,e\n',
    "2.csv": "note,id\nf,6\n",
    "3.csv.bz2": bz2.compress(b"extra,note,id,extra\n?,g,7,?\n?,h,y,?\n"),
    "4.csv.gz": gzip.compress(b'id,note\n5" pipe,i\n8,j\n'),
    "5.csv": "id,price\n9,k\n",
    "6.csv": "id,note\nz,l\n",
    "7.csv": "",
}
EXTERNAL = {
    "header": ["id", "note"],
    "header_match": "subset",
    "on_header_mismatch": "skip_object",
    "on_bad_row": "reject",
    "max_rejects": 5,
}
SKIPPED = (
    "line 1, byte 0: header is id,price but the names of the source's header are id,note, in any "
    "order: 'note' is missing"
)
CHANGED = (
    "lake.orders: the tasks of this run wrote {}, and {} are there; nothing of it is committed. "
    "Something else has changed the files of the source's tables: find out what, and run again"
)


@pytest.fixture(scope="module")
def ingested(new_lake):
    lake = new_lake()
    lake.external = dict(EXTERNAL)
    lake.columns = [{"name": "id", "data_type": "int"}, {"name": "note"}]
    for name, content in OBJECTS.items():
        lake.put(name, content)
    return lake, lake.ingest()


def test_good_rows_keep_their_numbers(ingested):
    lake, _ = ingested
    assert lake.rows("id", "note") == [
        ("1.csv", 1, 1, "a"),
        ("1.csv", 3, 3, "c\nd"),
        ("1.csv", 5, 5, "e"),
        ("2.csv", 1, 6, "f"),
        ("3.csv.bz2", 1, 7, "g"),
        ("4.csv.gz", 2, 8, "j"),
    ]
    names = lake.spark.table(lake.relations.source).columns
    assert names == ["id", "note", "_mz_object", "_mz_record", "_mz_last_modified"]


def test_rejects_are_a_view_with_place_text_column_and_error(ingested):
    lake, _ = ingested
    frame = lake.spark.table(lake.relations.rejects)
    assert frame.columns == ["object", "record", "line", "byte", "raw", "column", "error"]
    start = len(f"s3://{lake.bucket}/orders/")
    assert sorted((row[0][start:], *row[1:]) for row in frame.collect()) == [
        ("1.csv", 2, 3, 12, "x,b", "id", "column id: 'x' is not an int"),
        ("1.csv", 4, 6, 24, "4", None, "expected 2 columns, got 1"),
        ("3.csv.bz2", 2, 3, 28, "?,h,y,?", "id", "column id: 'y' is not an int"),
        ("4.csv.gz", 1, 2, 8, '5" pipe,i', "id",
         "column 1 has a quote inside a field that does not start with one"),
        ("6.csv", 1, 2, 8, "z,l", "id", "column id: 'z' is not an int"),
    ]  # fmt: skip


def test_the_ledger_and_the_report_count_them(ingested):
    lake, report = ingested
    assert (report.objects, report.skipped, report.rows, report.rejected) == (6, 1, 6, 5)
    assert "COPY 6 (6 new objects, 1 skipped, 5 rejected) in " in report.line()
    assert lake.states() == {
        "1.csv": ("fetched", 3, None),
        "2.csv": ("fetched", 1, None),
        "3.csv.bz2": ("fetched", 1, None),
        "4.csv.gz": ("fetched", 1, None),
        "5.csv": ("skipped", 0, SKIPPED),
        "6.csv": ("fetched", 0, None),
        "7.csv": ("fetched", 0, None),
    }
    rejects = lake.spark.table(lake.relations.objects).select("object", "rejects").collect()
    assert [r["rejects"] for r in sorted(rejects)] == [2, 0, 1, 1, 0, 1, 0]


def test_what_was_skipped_is_not_taken_again(ingested):
    lake, _ = ingested
    assert lake.ingest().objects == 0


def test_rows_from_before_anything_could_be_rejected_stay(lake):
    lake.columns = [{"name": "id", "data_type": "int"}]
    lake.put("1.csv", "id\n1\n")
    lake.ingest()
    lake.external = {"on_bad_row": "reject"}
    lake.put("2.csv", "id\n2\nx\n")
    lake.ingest()
    assert lake.rows("id") == [("1.csv", 1, 1), ("2.csv", 1, 2)]
    [reject] = lake.spark.table(lake.relations.rejects).collect()
    assert (reject["record"], reject["raw"]) == (2, "x")
    lake.external = {}
    lake.put("3.csv", "id\n3\n")
    lake.spark.conf.set("spark.sql.parquet.compression.codec", "zstd")
    lake.ingest()
    assert lake.rows("id") == [("1.csv", 1, 1), ("2.csv", 1, 2), ("3.csv", 1, 3)]
    assert lake.spark.table(lake.relations.rejects).count() == 1
    if os.environ.get("MZS3_TABLES", "parquet") == "parquet":
        stored = lake.spark.table(lake.relations.rows)
        files = [pq.read_metadata(urlsplit(file).path) for file in stored.inputFiles()]
        has_problem = ["mz_problem" in file.schema.to_arrow_schema().names for file in files]
        assert sorted(has_problem) == [False, False, True]
        codecs = [file.row_group(0).column(0).compression for file in files]
        assert sorted(codecs) == ["SNAPPY", "SNAPPY", "ZSTD"]


def test_the_object_that_failed_is_on_record_whatever_its_values_spell(lake):
    lake.columns = [{"name": "id", "data_type": "int"}]
    folder = f"s3://{lake.bucket}/orders"
    fine, wrong = f"{folder}/as-it-should-be.csv", f"{folder}/x.csv"
    lake.put("as-it-should-be.csv", "id\n1\n")
    lake.put("x.csv", f"id\n{fine}\n")
    with pytest.raises(SourceError) as raised:
        lake.ingest()
    error, _, way_out = str(raised.value).partition("; or go on without it after: ")
    assert error.startswith(f"lake.orders: object {wrong}, line 2, byte 3: column id: '{fine}' is")
    assert f'objects: ["{wrong}"]' in way_out
    assert lake.states()["x.csv"] == ("failed", None, error)


def test_more_rejects_than_max_rejects_commit_nothing(lake):
    lake.columns = [{"name": "id", "data_type": "int"}]
    lake.external = {"on_bad_row": "reject", "max_rejects": 1}
    # Each in a task of its own, or both in one: the run is the same.
    lake.put("1.csv", "id\n1\nx\n")
    lake.put("2.csv", "id\n2\ny\n")
    with pytest.raises(SourceError) as raised:
        lake.ingest()
    text = str(raised.value)
    assert text.startswith(
        "lake.orders: more than 1 records were rejected, and max_rejects is 1; nothing of this "
        f"run is committed. The first: object s3://{lake.bucket}/orders/"
    )
    assert text.endswith(
        "is not an int. Correct or remove the objects, or raise max_rejects, then run again"
    )
    assert lake.rows("id") == []
    assert lake.spark.table(lake.relations.rejects).count() == 0
    lake.external["max_rejects"] = 2
    assert lake.ingest().rejected == 2
    assert lake.rows("id") == [("1.csv", 1, 1), ("2.csv", 1, 2)]


def test_rows_that_were_added_after_they_were_written_are_not_committed(lake):
    lake.put("1.csv", "id\n1\n")

    def double(step):
        if step == "begin commit":
            rows = lake.relations.rows
            lake.spark.sql(f"INSERT INTO {rows} SELECT * FROM {rows}")

    with pytest.raises(SourceError) as raised:
        lake.ingest(on_step=double)
    assert str(raised.value) == CHANGED.format("1 row", 2)
    assert lake.rows("id") == []


def test_rows_of_an_object_that_are_there_twice_are_not_committed(lake):
    lake.put("1.csv", "id\n1\n")
    lake.put("2.csv", "id\n2\n")

    def mistake(step):
        if step == "begin commit":
            table = lake.spark.table(lake.relations.rows)
            # As many rows as before, both of the same object.
            first = [row for row in table.collect() if row["_mz_object"].endswith("1.csv")]
            twice = lake.spark.createDataFrame(first * 2, table.schema)
            twice.write.insertInto(lake.relations.rows, overwrite=True)

    with pytest.raises(SourceError) as raised:
        lake.ingest(on_step=mistake)
    assert str(raised.value) == (
        f"lake.orders: object s3://{lake.bucket}/orders/1.csv has 2 rows where it should have 1; "
        "nothing of this run is committed. This is a defect, please report it"
    )
    assert lake.rows("id") == []


def test_rows_that_went_after_they_were_written_are_not_committed(lake):
    lake.put("1.csv", "id\n1\n")

    def lose(step):
        if step == "begin commit":
            rows = lake.relations.rows
            [found] = lake.spark.sql(f"SHOW PARTITIONS {rows}").collect()
            partition = dict([found["partition"].split("=")])
            lake.spark.sql(f"ALTER TABLE {rows} DROP {partition_sql(partition)}")

    with pytest.raises(SourceError) as raised:
        lake.ingest(on_step=lose)
    assert str(raised.value) == CHANGED.format("1 row", 0)
    assert lake.rows("id") == []
    assert lake.ingest().objects == 1


def test_another_encoding_is_pinned_and_so_is_that_there_are_no_quotes(lake):
    lake.external = {"encoding": "cp1252", "quote": ""}
    lake.put("1.csv", 'id,größe\n1,é"\n"2,"\n'.encode("cp1252"))
    lake.ingest()
    lake.put("2.csv", 'id,größe\n",3\n'.encode("cp1252"))
    lake.ingest()
    assert lake.rows("größe") == [("1.csv", 1, 'é"'), ("1.csv", 2, '"'), ("2.csv", 1, "3")]
    lake.external = {}
    pinned = (
        r"the quote is declared as '\"' but was pinned as ''\s+- the encoding is declared as 'ut"
    )
    with pytest.raises(SourceError, match=pinned):
        lake.ingest()


def test_a_header_whose_names_are_one_to_spark_is_an_error_until_aliases_are_declared(lake):
    lake.put("1.csv", "\u0131d,id\n1,2\n")
    with pytest.raises(ConfigError, match="declare `columns` to name them"):
        lake.ingest()
    assert not lake.spark.catalog.tableExists(lake.relations.rows)
    lake.columns = [{"name": "dotless"}, {"name": "dotted"}]
    lake.ingest()
    assert lake.rows("dotless", "dotted") == [("1.csv", 1, "1", "2")]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"identifier": "or-ders"}, "identifier or-ders"),
        ({"identifier": "or.ders"}, "identifier or.ders"),
        ({"schema": "raw-lake"}, "schema raw-lake"),
    ],
)
def test_a_name_that_sparks_catalog_refuses_is_told_as_it_was_given(lake, given, told):
    definition = replace(lake.definition(), **given)
    with pytest.raises(
        SourceError, match=rf"^lake.orders: Spark's catalog .* the {told}: "
    ) as raised:
        ingest(lake.spark, definition, lake.connection)
    assert "__" not in str(raised.value)
