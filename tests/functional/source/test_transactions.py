"""A source in tables of Delta or Iceberg: rows and record are transactions; one of two wins."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.sql import functions as F
from support.queue.announcing import Died, dying_at
from support.spark.table_formats import SESSION_TABLES, in_session_catalog

from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.ledger import compaction
from dbt.adapters.mzs3.ledger.compaction import compact
from dbt.adapters.mzs3.ledger.events import LEDGER_COLUMNS
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.ledger.ledger_table import ledger_table
from dbt.adapters.mzs3.ledger.rows_table import rows_table
from dbt.adapters.mzs3.source.operations.status import read_status
from dbt.adapters.mzs3.source.reset import reset_source
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES
from dbt.adapters.mzs3.spark.session import isolated_session

pytestmark = [pytest.mark.spark, in_session_catalog]


def events(spark, state):
    columns = (F.lit(None).cast(kind).alias(name) for name, kind in LEDGER_COLUMNS.items())
    return spark.range(1).select(*columns).withColumn("state", F.lit(state))


def ingested(lake):
    lake.put("1.csv", "id\n1\n2\n")
    lake.ingest()
    return lake


def provider(spark, table):
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()
    return [row["data_type"] for row in rows if row["col_name"] == "Provider"]


def test_a_source_is_ingested_again_and_again(lake):
    lake.put("1.csv", "id,full name\n1,a\n2,b\n")
    assert lake.ingest().objects == 1
    for table in (lake.made.rows, lake.made.ledger):
        assert provider(lake.spark, table) == [SESSION_TABLES]
    lake.put("2.csv", "id,full name\n3,c\n")
    assert lake.ingest().rows == 1
    assert lake.ingest().objects == 0
    assert lake.rows("id", "full name") == [
        ("1.csv", 1, "1", "a"),
        ("1.csv", 2, "2", "b"),
        ("2.csv", 1, "3", "c"),
    ]
    status = read_status(lake.spark, lake.definition())
    assert (status.state, status.objects, status.epochs) == ("ok", 2, 2)


def test_rejects_and_what_is_replaced(lake):
    lake.external = {"on_overwrite": "replace", "on_bad_row": "reject"}
    lake.put("1.csv", "id\n1\n2,3\n")
    assert lake.ingest().rejected == 1
    lake.put("1.csv", "id\n4\n5\n")
    lake.ingest()
    assert lake.rows("id") == [("1.csv", 1, "4"), ("1.csv", 2, "5")]
    assert lake.spark.table(lake.relations.rejects).count() == 0


def test_of_two_that_decide_an_epoch_the_second_sees_what_the_first_did(lake):
    ingested(lake)
    table = ledger_table(lake.spark, lake.made)
    folder = table.stage("7", events(lake.spark, "fetched"))
    assert table.folder("7", "commit") is None
    assert table.publish("7", "commit", folder)
    assert table.folder("7", "commit") == folder
    assert table.publish("7", "commit", folder)  # it took effect, and the answer was lost
    assert lake.spark.table(lake.made.ledger).where("epoch = '7'").count() == 1
    assert not table.publish("7", "commit", table.stage("7", events(lake.spark, "fetched")))
    assert not table.close("7", "commit")
    assert table.close("8", "commit")
    assert table.close("8", "commit")
    assert not table.publish("8", "commit", folder)
    assert table.epochs()["8"] == {"commit", "void"}
    table.drop([("7", "commit")])
    assert "7" not in table.epochs()


@pytest.mark.parametrize("closes", [False, True])
def test_of_many_at_once_one_has_the_commit(lake, spark_parameters, closes):
    ingested(lake)
    count, rounds = 4, 3
    sessions = [isolated_session(spark_parameters) for _ in range(count)]
    tables = [ledger_table(session, lake.made) for session in sessions]
    for epoch in map(str, range(11, 11 + rounds)):
        together = threading.Barrier(count)

        def settle(number, epoch=epoch, together=together):
            folder = tables[number].stage(epoch, events(sessions[number], str(number)))
            together.wait(120)
            if closes and number % 2:
                return tables[number].close(epoch, "commit"), "closed"
            return tables[number].publish(epoch, "commit", folder), str(number)

        with ThreadPoolExecutor(count) as pool:
            found = [run.result() for run in [pool.submit(settle, n) for n in range(count)]]
        winners = {name for has_won, name in found if has_won}
        assert len(winners) == 1, found
        there = lake.spark.table(lake.made.ledger).where(f"epoch = '{epoch}'").collect()
        if winners == {"closed"}:
            assert sorted(row["phase"] for row in there) == ["commit", "void"]
        else:
            assert [row["state"] for row in there] == [*winners]


def test_a_run_that_died_between_rows_and_record_commits_nothing_later(lake, monkeypatch):
    monkeypatch.setattr(compaction, "KEEP_MS", 0)
    ingested(lake)
    lake.put("2.csv", "id\n3\n")
    with pytest.raises(Died):
        lake.ingest(on_step=dying_at("end fetch"))
    assert [row[2] for row in lake.rows("id")] == ["1", "2"]
    late = Ledger(lake.spark, lake.made)
    [dead] = [epoch for epoch, on in late.epochs().items() if on == {"plan"}]
    planned = late.plan(dead).selectExpr("*", "1 AS rows", "0 AS rejects", "'' AS error").collect()
    assert lake.ingest().rows == 1
    assert [row[2] for row in lake.rows("id")] == ["1", "2", "3"]
    schema = "object string, etag string, size bigint, last_modified timestamp, hides boolean, "
    schema += "rows bigint, rejects bigint, error string"
    with pytest.raises(SourceError, match="another run took the source over"):
        late.write_commit(dead, lake.spark.createDataFrame(planned, schema))
    # What its server still writes is seen by nobody either.
    written = lake.spark.table(lake.made.rows).where(f"mz_epoch = '{dead}'")
    table = rows_table(lake.spark, lake.made)
    assert table.write(written.drop("mz_epoch"), dead, require_lock=lambda: None) == 1
    assert [row[2] for row in lake.rows("id")] == ["1", "2", "3"]
    assert lake.ingest().objects == 0
    lake.put("3.csv", "id\n4\n")
    for _ in range(2):
        ledger = Ledger(lake.spark, lake.made)
        ledger.write_note(events(lake.spark, "ignored"))
        compact(ledger)
    assert written.count() == 0
    assert [row[2] for row in lake.rows("id")] == ["1", "2", "3"]
    assert lake.ingest().rows == 1
    assert [row[2] for row in lake.rows("id")] == ["1", "2", "3", "4"]


def test_a_reset_leaves_nothing_and_all_is_ingested_again(lake):
    ingested(lake)
    reset_source(lake.spark, lake.definition())
    left = lake.spark.sql(f"SHOW TABLES IN {lake.schema}").collect()
    assert [row["tableName"] for row in left] == []
    assert lake.ingest().rows == 2


def test_a_run_of_before_a_reset_writes_nothing_into_what_was_made_since(lake, tmp_path):
    ingested(lake)
    late = Ledger(lake.spark, lake.made)
    schema = lake.spark.table(lake.made.rows).drop("mz_epoch").schema
    begun, go_on = tmp_path / "begun", tmp_path / "go_on"
    os.mkfifo(begun)
    os.mkfifo(go_on)

    def held(batches):
        begun.write_text("")
        go_on.read_text()
        yield from batches

    rows = lake.spark.table(lake.made.rows).drop("mz_epoch").collect()
    frame = lake.spark.createDataFrame(rows, schema).coalesce(1).mapInArrow(held, schema)
    table = rows_table(lake.spark, late.relations)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(table.write, frame, "7", require_lock=lambda: None)
        begun.read_text()
        reset_source(lake.spark, lake.definition())
        lake.ingest()
        go_on.write_text("")
        print(writing.exception())
    made = Ledger(lake.spark, lake.made).epochs()
    with pytest.raises(SPARK_FAILURES):
        late.table.publish("7", "commit", late.table.stage("7", events(lake.spark, "fetched")))
    assert Ledger(lake.spark, lake.made).epochs() == made
    assert lake.spark.table(lake.made.rows).select("mz_epoch").distinct().count() == 1
    lake.put("2.csv", "id\n3\n")
    assert lake.ingest().rows == 1
    assert [row[2] for row in lake.rows("id")] == ["1", "2", "3"]
    reset_source(lake.spark, lake.definition())
    assert lake.spark.sql(f"SHOW TABLES IN {lake.schema}").isEmpty()


def test_a_run_of_before_a_table_was_made_anew_writes_nothing_into_that(lake):
    lake.put("1.csv", "id\n1,2\n")
    with pytest.raises(SourceError, match="expected 1 column"):
        lake.ingest()
    before = lake.made
    late = lake.spark.table(before.rows).drop("mz_epoch")
    late = lake.spark.createDataFrame([(None,) * len(late.columns)], late.schema)
    lake.put("1.csv", "name\n1\n")
    assert lake.ingest().rows == 1
    assert (lake.made.ledger, lake.made.rows == before.rows) == (before.ledger, False)
    with pytest.raises(SPARK_FAILURES):
        rows_table(lake.spark, before).write(late, "7", require_lock=lambda: None)
    lake.put("2.csv", "name\n2\n")
    assert lake.ingest().rows == 1
    assert [row[2] for row in lake.rows("name")] == ["1", "2"]
    reset_source(lake.spark, lake.definition())
    assert lake.spark.sql(f"SHOW TABLES IN {lake.schema}").isEmpty()


def test_another_format_than_the_one_it_has_is_refused(lake):
    lake.external = {"file_format": "parquet"}
    ingested(lake)
    assert provider(lake.spark, lake.made.rows) == ["parquet"]
    assert lake.made.file_format == "parquet"
    lake.external = {"file_format": SESSION_TABLES}
    lake.put("2.csv", "id\n3\n")
    with pytest.raises(SourceError) as raised:
        lake.ingest()
    said = f"the file_format is declared as '{SESSION_TABLES}' but was pinned as 'parquet'"
    assert said in str(raised.value)
    lake.external = {}  # whatever Spark's default is by now
    assert lake.ingest().rows == 1
    reset_source(lake.spark, lake.definition())
    assert lake.ingest().rows == 3
    assert provider(lake.spark, lake.made.rows) == [SESSION_TABLES]
