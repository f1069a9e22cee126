"""Objects that bring new columns: the definition is widened by the commit that brings them."""

from __future__ import annotations

import io
from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from support.queue.announcing import Died, dying_at
from support.spark.table_formats import not_in_own_catalog

from dbt.adapters.mzs3.errors import ConfigError, SourceError
from dbt.adapters.mzs3.ledger import compaction
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.source.operations.show_definition import read_purified
from dbt.adapters.mzs3.source.run import unlock
from dbt.adapters.mzs3.source.tables import read_tables
from dbt.adapters.mzs3.spark.session import isolated_session

pytestmark = [pytest.mark.spark, pytest.mark.light, not_in_own_catalog]

ADD = {"on_new_columns": "add"}
WIDE = [("1.csv", 1, "1", None), ("2.csv", 1, "2", "x")]


@pytest.fixture
def grown(lake):
    """A source with one object, and another one, not yet ingested, that has another column."""
    lake.external = dict(ADD)
    lake.put("1.csv", "id\n1\n")
    lake.ingest()
    lake.put("2.csv", "id,note\n2,x\n")
    return lake


def die(*_, **__):
    raise Died


def header(lake) -> tuple[str, ...] | None:
    shown = read_purified(lake.spark, lake.definition(), lake.connection)
    assert shown.differences == ()
    return shown.purified.header


def columns(lake) -> list[str]:
    return [c for c in lake.spark.table(lake.relations.source).columns if not c.startswith("_")]


def test_a_new_column_is_null_in_rows_before_it_and_in_those_of_objects_without_it(grown):
    told = []
    assert grown.ingest(tell=told.append).objects == 1
    uri = f"s3://{grown.bucket}/orders/2.csv"
    assert ("say", f"lake.orders: new in object {uri}: `note` string") in told
    assert grown.rows("id", "note") == WIDE
    assert header(grown) == ("id", "note")
    assert grown.ingest().objects == 0
    grown.put("3.csv", "id\n3\n")
    grown.put("4.csv", "id,note,price\n4,y,1.5\n")
    grown.put("5.csv", "id,price\n5,2\n")
    assert grown.ingest().objects == 3
    assert grown.rows("id", "note", "price")[2:] == [
        ("3.csv", 1, "3", None, None), ("4.csv", 1, "4", "y", "1.5"), ("5.csv", 1, "5", None, "2"),
    ]  # fmt: skip
    assert columns(grown) == ["id", "note", "price"]
    # Without the option the columns stay, and no others come.
    grown.external = {}
    grown.put("6.csv", "id,note,price,vat\n6,z,3,0\n")
    with pytest.raises(SourceError, match=r"first difference at column 4.*on_new_columns: add"):
        grown.ingest()


def test_without_the_option_the_error_names_it(grown):
    grown.external = {}
    with pytest.raises(SourceError, match="; or set on_new_columns: add"):
        grown.ingest()


def test_a_first_run_may_find_both_and_a_type_may_be_declared_before(lake):
    lake.external = dict(ADD)
    lake.columns = [{"name": "note", "data_type": "date"}, {"name": "id"}, {"name": "later"}]
    lake.put("1.csv", "id\n1\n")
    lake.put("2.csv", "id,note\n2,2024-02-29\n")
    assert lake.ingest().objects == 2
    notes = [("1.csv", 1, "1", None), ("2.csv", 1, "2", date(2024, 2, 29))]
    assert lake.rows("id", "note") == notes
    assert lake.ingest(afresh=True).objects == 2
    assert lake.rows("id", "note") == notes


def test_a_run_that_fails_pins_no_column(grown):
    grown.columns = [{"name": "id"}, {"name": "note", "data_type": "int"}]
    with pytest.raises(SourceError, match="column note: 'x' is not an int"):
        grown.ingest()
    assert grown.states()["2.csv"][0] == "failed"
    assert (header(grown), columns(grown)) == (("id",), ["id"])
    grown.columns = [{"name": "note", "data_type": "date"}, {"name": "id"}]
    grown.put("2.csv", "id,note\n2,2024-02-29\n")
    grown.ingest()
    assert grown.spark.table(grown.relations.source).schema["note"].dataType.typeName() == "date"
    assert grown.ingest().objects == 0
    grown.columns = [{"name": "id"}, {"name": "note", "data_type": "string"}]
    with pytest.raises(SourceError, match="column 2 is declared as note string but was pinned as"):
        grown.ingest()


def test_names_that_can_be_no_columns_are_an_error_of_the_object(grown):
    grown.put("2.csv", "id,ID\n2,x\n")
    with pytest.raises(ConfigError) as raised:
        grown.ingest()
    assert str(raised.value) == (
        f"source lake.orders, by the header of object s3://{grown.bucket}/orders/2.csv, has 1 "
        'problem in its configuration:\n  - with its new names the columns would be (id, "ID"): '
        "columns 1 and 2 have the same name 'ID' (Spark does not tell upper from lower case by "
        "default); rename it, or narrow `pattern` so that the object is left out"
    )
    assert grown.states()["2.csv"][0] == "failed"
    grown.put("2.csv", "id,mz_epoch\n2,x\n")
    with pytest.raises(SourceError, match="a column can't be named mz_epoch"):
        grown.ingest()
    grown.put("2.csv", "note,id\nx,2\n")  # the order matters
    with pytest.raises(SourceError, match="header is note,id but the source's header is id:"):
        grown.ingest()
    grown.put("2.csv", "Report of May\n")  # another file
    with pytest.raises(SourceError, match="header is Report of May but the source's header is id"):
        grown.ingest()


def test_in_any_order_if_the_order_does_not_matter(grown):
    grown.external["header_match"] = "reorder"
    grown.put("2.csv", "note,id\nx,2\n")
    grown.ingest()
    assert grown.rows("id", "note") == WIDE


@pytest.mark.parametrize("step", ["begin fetch", "committing", "begin widen", "begin unlock"])
def test_a_run_that_dies_leaves_a_source_that_the_next_one_widens(grown, step, monkeypatch):
    with pytest.raises(Died), monkeypatch.context() as patch:
        if step == "committing":
            patch.setattr(Ledger, "write_commit", die)
        grown.ingest(on_step=dying_at(step))
    unlock(grown.spark, grown.definition())
    is_committed = step in ("begin widen", "begin unlock")
    assert (columns(grown) == ["id", "note"]) == (step == "begin unlock")
    assert grown.ingest().objects == (0 if is_committed else 1)
    assert grown.rows("id", "note") == WIDE
    tables = read_tables(grown.spark, grown.definition())
    assert (tables.widened, tables.pinned.header) == ({}, ("id", "note"))


def test_what_a_dead_run_would_have_pinned_is_not_if_its_object_is_another_one(grown, monkeypatch):
    with pytest.raises(Died), monkeypatch.context() as patch:
        patch.setattr(Ledger, "write_commit", die)
        grown.ingest()
    unlock(grown.spark, grown.definition())
    grown.put("2.csv", "id,price\n2,1.5\n")
    grown.ingest()
    assert (header(grown), columns(grown)) == (("id", "price"), ["id", "price"])


def test_a_wider_definition_outlives_compaction_and_reset_drops_it(grown, monkeypatch):
    monkeypatch.setattr(compaction, "COMPACT_AFTER", 1)
    grown.ingest()
    for number in (3, 4, 5):
        grown.put(f"{number}.csv", "id,note\n3,y\n")
        grown.ingest()
    assert grown.rows("id", "note")[:2] == WIDE
    grown.remove("1.csv")
    grown.put("2.csv", "note\nx\n")
    for number in (3, 4, 5):
        grown.remove(f"{number}.csv")
    grown.ingest(afresh=True)
    assert (header(grown), columns(grown)) == (("note",), ["note"])


def test_of_typed_formats_a_column_has_the_type_of_its_field(lake):
    def parquet(**values) -> bytes:
        sink = io.BytesIO()
        pq.write_table(pa.table(values), sink)
        return sink.getvalue()

    lake.external = {**ADD, "format": "parquet", "header_match": "reorder"}
    lake.put("1.parquet", parquet(id=[1]))
    lake.ingest()
    lake.put("2.parquet", parquet(n=[2], id=[2], at=pa.array([0], pa.date32())))
    lake.put("3.parquet", parquet(id=[3], n=[3]))
    assert lake.ingest().objects == 2
    assert [row[1:3] for row in lake.rows("id", "n")] == [(1, 1), (1, 2), (1, 3)]
    types = dict(lake.spark.table(lake.relations.source).dtypes)
    assert (types["n"], types["at"]) == ("bigint", "date")


def test_another_session_sees_the_new_column_once_it_refreshes_the_table(grown, spark_parameters):
    other = isolated_session(spark_parameters)
    assert other.table(grown.relations.source).count() == 1
    grown.ingest()
    if not grown.made.has_transactions:
        with pytest.raises(AnalysisException, match="INCOMPATIBLE_VIEW_SCHEMA_CHANGE"):
            other.table(grown.relations.source)
        other.sql(f"REFRESH TABLE {grown.relations.rows}")
    frame = other.table(grown.relations.source)
    assert sorted((row["id"], row["note"]) for row in frame.collect()) == [("1", None), ("2", "x")]
