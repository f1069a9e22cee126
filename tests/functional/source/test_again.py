"""The second run and later ones: what is new, what was corrected, and what contradicts."""

from __future__ import annotations

import re

import pytest
from support.queue.announcing import Died, dying_at

from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.source.listing.plan import new_objects
from dbt.adapters.mzs3.source.reset import reset_source
from dbt.adapters.mzs3.source.run import SourceRun
from dbt.adapters.mzs3.spark import frames
from dbt.adapters.mzs3.store import s3 as s3_store

pytestmark = pytest.mark.spark

STEPS = [
    *("end fetch", "begin commit", "end commit"),
    *(
        pytest.param(step, marks=pytest.mark.long)
        for step in ("begin create", "end create", "begin plan", "end plan", "begin fetch")
    ),
]
RESET = "dbt run-operation reset_s3_source --args '{source: lake.orders, confirm: true}'"


def test_later_runs_take_new_objects_only_wherever_their_keys_sort(lake):
    lake.put("m.csv", "id\n1\n")
    assert lake.ingest().objects == 1
    assert lake.ingest().objects == 0
    lake.put("a.csv", "id\n2\n")
    lake.put("z.csv", "id\n3\n")
    report = lake.ingest()
    assert (report.objects, report.rows) == (2, 2)
    assert lake.rows("id") == [("a.csv", 1, "2"), ("m.csv", 1, "1"), ("z.csv", 1, "3")]


@pytest.mark.light
def test_a_run_without_new_objects_leaves_the_ledger_as_it_is(lake):
    lake.put("1.csv", "id\n1\n")
    lake.ingest()
    before = Ledger(lake.spark, lake.relations).epochs()
    lake.ingest()
    assert Ledger(lake.spark, lake.relations).epochs() == before


@pytest.mark.light
def test_all_is_taken_once_the_object_in_error_is_corrected(lake):
    lake.put("1.csv", "id,note\n1\n")
    lake.put("2.csv", "id,note\n2,b\n")
    for _ in range(2):
        with pytest.raises(SourceError, match=re.escape("orders/1.csv, line 2")):
            lake.ingest()
    lake.put("1.csv", "id,note\n1,a\n")
    assert lake.ingest().objects == 2
    assert lake.rows("id", "note") == [("1.csv", 1, "1", "a"), ("2.csv", 1, "2", "b")]
    assert {state for state, *_ in lake.states().values()} == {"fetched"}


@pytest.mark.light
def test_the_others_are_taken_once_the_object_in_error_is_removed(lake):
    lake.put("1", "id\n1\n")
    lake.put("1.csv", "id\n1,2\n")
    with pytest.raises(SourceError):
        lake.ingest()
    # The one in error is named, not one whose name is the beginning of its name.
    assert {name: state for name, (state, *_) in lake.states().items()} == {
        "1": "listed",
        "1.csv": "failed",
    }
    lake.remove("1.csv")
    assert lake.ingest().objects == 1
    assert lake.rows("id") == [("1", 1, "1")]


@pytest.mark.light
def test_an_overwritten_object_is_an_error_until_it_is_put_back(lake):
    lake.put("1.csv", "id\n1\n")
    lake.ingest()
    lake.put("1.csv", "id\n9\n")
    lake.put("2.csv", "id\n2\n")
    with pytest.raises(SourceError, match=r"orders/1\.csv was overwritten after it was ingested"):
        lake.ingest()
    assert lake.rows("id") == [("1.csv", 1, "1")]
    lake.put("1.csv", "id\n1\n")
    assert lake.ingest().objects == 1
    assert lake.rows("id") == [("1.csv", 1, "1"), ("2.csv", 1, "2")]


@pytest.mark.light
@pytest.mark.parametrize("after_commit", ["keep", "tag"])
def test_an_object_that_is_removed_after_it_was_read_is_committed(lake, after_commit):
    lake.external = {"after_commit": after_commit}
    lake.put("1.csv", "id\n1\n")
    lake.put("2.csv", "id\n2\n")

    def remove(step):
        if step == "end fetch":
            lake.remove("1.csv")

    assert lake.ingest(on_step=remove).objects == 2
    assert lake.ingest().objects == 0
    assert lake.rows("id") == [("1.csv", 1, "1"), ("2.csv", 1, "2")]
    assert {name: state for name, (state, *_) in lake.states().items()} == {
        "1.csv": "fetched",
        "2.csv": "fetched",
    }


@pytest.mark.light
def test_a_removed_object_keeps_its_rows(lake):
    lake.put("1.csv", "id\n1\n")
    lake.ingest()
    lake.remove("1.csv")
    assert lake.ingest().objects == 0
    assert lake.rows("id") == [("1.csv", 1, "1")]


@pytest.mark.light
def test_a_changed_definition_is_refused_with_the_difference_and_the_way_out(lake):
    lake.put("1.csv", "id,note\n1,a\n")
    lake.ingest()
    lake.columns = [{"name": "id", "data_type": "bigint"}, {"name": "note"}]
    with pytest.raises(SourceError) as raised:
        lake.ingest()
    text = str(raised.value)
    assert "FORMAT CSV WITH HEADER COLUMNS (id, note)" in text
    assert "column 1 is declared as id bigint but was pinned as id string" in text
    assert text.endswith(f"drop what was made with the old one: {RESET}")
    reset_source(lake.spark, lake.definition())
    assert lake.ingest().rows == 1
    assert lake.rows("id", "note") == [("1.csv", 1, 1, "a")]


def test_a_table_of_somebody_else_is_left_alone(lake):
    lake.spark.sql(f"CREATE SCHEMA `{lake.schema}`")
    lake.spark.sql(f"CREATE TABLE {lake.relations.source} USING parquet AS SELECT 7 AS id")
    lake.put("1.csv", "id\n1\n")
    with pytest.raises(SourceError, match=r"raw_\d+\.orders exists, but raw_\d+\.orders__rows"):
        lake.ingest()
    assert [row["id"] for row in lake.spark.table(lake.relations.source).collect()] == [7]


def test_a_lost_table_of_rows_is_no_reason_to_go_on_without_them(lake):
    lake.put("1.csv", "id\n1\n")
    lake.ingest()
    lake.spark.sql(f"DROP TABLE {lake.relations.rows}")
    with pytest.raises(SourceError, match="orders__rows, which holds the source's rows, does not"):
        lake.ingest()


@pytest.mark.light
def test_a_lost_ledger_is_no_reason_to_take_everything_again(lake):
    lake.put("1.csv", "id\n1\n")
    lake.ingest()
    lake.spark.sql(f"DROP TABLE {lake.relations.ledger}")
    with pytest.raises(
        SourceError, match="orders__ledger, which says what is committed"
    ) as raised:
        lake.ingest()
    assert not lake.spark.catalog.tableExists(lake.relations.ledger)
    assert str(raised.value).endswith(f"start the source afresh with: {RESET}")
    reset_source(lake.spark, lake.definition())
    assert lake.ingest().rows == 1


@pytest.mark.light
def test_columns_whose_names_spark_would_redact_are_known_again(lake):
    names = ("url", "hourly_rate", "access_token", "secret", "remark")
    lake.columns = [{"name": name} for name in names]
    lake.put("1.csv", "image_url,rate,token,password,note\na,b,c,d,e\n")
    lake.ingest()
    lake.put("2.csv", "image_url,rate,token,password,note\nf,g,h,i,j\n")
    assert lake.ingest().objects == 1
    assert lake.rows(*names) == [("1.csv", 1, *"abcde"), ("2.csv", 1, *"fghij")]


def test_a_source_that_moved_or_reads_otherwise_is_refused(lake):
    lake.put("1.csv", "id\n1\n")
    lake.ingest()
    lake.external = {"location": f"s3://{lake.bucket}/", "null": "-"}
    with pytest.raises(SourceError) as raised:
        lake.ingest()
    text = str(raised.value)
    moved = f"'s3://{lake.bucket}/' but was pinned as 's3://{lake.bucket}/orders/'"
    assert f"the location is declared as {moved}" in text
    assert "the null is declared as '-' but was pinned as ''" in text
    assert "Restore the definition" in text


@pytest.mark.light
def test_a_narrower_pattern_is_no_contradiction(lake):
    lake.put("1.csv", "id\n1\n")
    lake.ingest()
    lake.external = {"pattern": "*.csv"}
    lake.put("2.txt", "id\n2\n")
    lake.put("3.csv", "id\n3\n")
    assert lake.ingest().objects == 1
    assert lake.rows("id") == [("1.csv", 1, "1"), ("3.csv", 1, "3")]


@pytest.mark.light
def test_what_spark_lists_a_second_time_lets_no_overwritten_object_through(lake, monkeypatch):
    monkeypatch.setattr(s3_store, "KEYS_PER_PAGE", 1)  # tasks list what is behind it
    lake.put("1.csv", "id\n1\n")
    lake.put("2.csv", "id\n2\n")
    lake.ingest()
    lake.put("3.csv", "id\n3\n")
    ledger = Ledger(lake.spark, lake.relations)
    run = SourceRun(lake.spark, lake.definition(), lake.connection)
    with new_objects(run, ledger) as batch:
        lake.put("2.csv", "id\n9\n")
        lake.put("4.csv", "id\n4\n")
        lake.spark.catalog.clearCache()  # as if it were lost with its executor
        taken = sorted(row["object"].rpartition("/")[2] for row in batch.frame.collect())
    assert taken == ["3.csv", "4.csv"]


@pytest.mark.light
def test_what_is_too_much_for_the_driver_spark_holds(lake, monkeypatch):
    monkeypatch.setattr(frames, "FEW", 1)
    lake.external = {"on_overwrite": "replace", "max_objects_per_run": 2}
    for name in ("1.csv", "2.csv", "3.csv"):
        lake.put(name, "id\n1\n")
    assert (report := lake.ingest()).objects == 2
    assert report.waiting_objects == 1
    lake.put("1.csv", "id\n9\n")
    assert lake.ingest().rows == 2
    assert lake.rows("id") == [("1.csv", 1, "9"), ("2.csv", 1, "1"), ("3.csv", 1, "1")]


def test_create_only_makes_the_relations_and_reads_no_rows(lake):
    lake.put("1.csv", "id\n1\n")
    assert lake.ingest(create_only=True).objects == 0
    assert lake.rows("id") == []
    assert lake.ingest().objects == 1


@pytest.mark.light
@pytest.mark.parametrize("step", STEPS)
def test_a_run_that_dies_at_a_step_is_made_good_by_the_next(lake, step):
    lake.put("1.csv", "id\n1\n2\n")
    lake.put("2.csv", "id\n3\n")
    with pytest.raises(Died):
        lake.ingest(on_step=dying_at(step))
    lake.put("0.csv", "id\n4\n")
    lake.ingest()
    expected = [("0.csv", 1, "4"), ("1.csv", 1, "1"), ("1.csv", 2, "2"), ("2.csv", 1, "3")]
    assert lake.rows("id") == expected
    assert {state for state, *_ in lake.states().values()} == {"fetched"}
    assert lake.ingest().objects == 0


@pytest.mark.light
def test_what_a_dead_run_planned_is_listed_anew(lake):
    lake.put("1.csv", "id\n1\n")
    lake.put("2.csv", "id\n2\n")
    with pytest.raises(Died):
        lake.ingest(on_step=dying_at("end plan"))
    lake.remove("1.csv")
    lake.put("2.csv", "id\n22\n")
    assert lake.ingest().rows == 1
    assert lake.rows("id") == [("2.csv", 1, "22")]


def test_an_object_that_a_dead_run_planned_is_left_out_once_the_pattern_does(lake):
    lake.put("1.csv", "id\n1\n")
    lake.put("1.bak", "id\n9\n")
    with pytest.raises(Died):
        lake.ingest(on_step=dying_at("end plan"))
    lake.external = {"pattern": "*.csv"}
    assert lake.ingest().objects == 1
    assert lake.rows("id") == [("1.csv", 1, "1")]


@pytest.mark.light
def test_a_dead_run_whose_commit_arrives_late_doubles_nothing(lake):
    lake.put("1.csv", "id\n1\n")
    with pytest.raises(Died):
        lake.ingest(on_step=dying_at("end fetch"))
    ledger = Ledger(lake.spark, lake.relations)
    (dead,) = ledger.epochs()
    assert lake.ingest().rows == 1
    late = ledger.plan(dead).selectExpr("*", "1 AS rows", "0 AS rejects", "NULL AS error")
    with pytest.raises(SourceError, match="another run took the source over"):
        ledger.write_commit(dead, late)
    assert lake.rows("id") == [("1.csv", 1, "1")]
    assert lake.ingest().objects == 0


@pytest.mark.light
def test_ingesting_afresh_takes_everything_again_and_drops_nothing_it_cannot_replace(lake):
    lake.put("1.csv", "id\n1\n")
    lake.ingest()
    lake.put("1.csv", "id,note\n1,a\n")
    assert lake.ingest(afresh=True).rows == 1
    assert lake.rows("id", "note") == [("1.csv", 1, "1", "a")]
    lake.remove("1.csv")
    with pytest.raises(SourceError, match="has a header to learn the columns from"):
        lake.ingest(afresh=True)
    assert lake.rows("id", "note") == [("1.csv", 1, "1", "a")]
