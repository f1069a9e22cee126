"""What the ledger knows decides what a run takes: overwritten objects, throttles, decisions."""

from __future__ import annotations

import re

import pytest
from support.s3.real_stores import STORE

from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.ledger.partitions import location_of
from dbt.adapters.mzs3.source import pinning
from dbt.adapters.mzs3.source.freshness import Freshness, read_ingested_freshness
from dbt.adapters.mzs3.source.operations.object_actions import ObjectAction, act
from dbt.adapters.mzs3.source.operations.status import IN_ERROR, NEVER, OK, WAITING, read_status
from dbt.adapters.mzs3.source.reset import reset_source
from dbt.adapters.mzs3.source.run import SourceRun

pytestmark = [pytest.mark.spark, pytest.mark.light]


def acted(lake, action, *names):
    return act(lake.spark, lake.definition(), action, names)


def status(lake):
    return read_status(lake.spark, lake.definition())


def states(lake):
    return {name: state for name, (state, *_) in lake.states().items()}


def overwritten(lake, mode):
    """A source whose 1.csv was ingested, and then overwritten."""
    lake.external = {"on_overwrite": mode}
    lake.put("1.csv", "id\n1\n2\n")
    lake.put("2.csv", "id\n5\n")
    lake.ingest()
    lake.put("1.csv", "id\n9\n")


def test_an_overwritten_object_is_ignored_and_noted_once(lake):
    overwritten(lake, "ignore")
    assert lake.ingest().objects == 0
    assert lake.rows("id") == [("1.csv", 1, "1"), ("1.csv", 2, "2"), ("2.csv", 1, "5")]
    state, _, reason = lake.states()["1.csv"]
    assert state == "ignored"
    assert re.fullmatch(
        r"it was overwritten: its ETag was \w+ and is \w+; on_overwrite: ignore keeps the rows "
        r"there are",
        reason,
    )
    before = Ledger(lake.spark, lake.relations).epochs()
    assert lake.ingest().objects == 0
    assert Ledger(lake.spark, lake.relations).epochs() == before


def test_the_rows_of_an_overwritten_object_are_appended(lake):
    overwritten(lake, "append")
    assert (lake.ingest().objects, lake.ingest().objects) == (1, 0)
    of_1 = sorted(row[1:] for row in lake.rows("id") if row[0] == "1.csv")
    assert of_1 == [(1, "1"), (1, "9"), (2, "2")]


def test_the_rows_of_an_overwritten_object_replace_the_old_ones(lake):
    overwritten(lake, "replace")
    assert (lake.ingest().rows, lake.ingest().rows) == (1, 0)
    assert lake.rows("id") == [("1.csv", 1, "9"), ("2.csv", 1, "5")]
    # Nobody is replaced by an object that is read in vain.
    lake.put("1.csv", "id\n1,2\n")
    with pytest.raises(SourceError):
        lake.ingest()
    assert lake.rows("id") == [("1.csv", 1, "9"), ("2.csv", 1, "5")]
    lake.put("1.csv", "id\n")
    assert lake.ingest().objects == 1
    assert lake.rows("id") == [("2.csv", 1, "5")]
    # However many rows there are, they are not shuffled, and those of void epochs not opened.
    [(plan,)] = lake.spark.sql(f"EXPLAIN SELECT * FROM {lake.relations.source}").collect()
    assert "dynamicpruning" in plan
    assert "SortMergeJoin" not in plan


def test_an_overwritten_object_in_error_is_kept_or_taken_as_the_user_says(lake):
    overwritten(lake, "fail")
    for _ in range(2):
        with pytest.raises(SourceError) as raised:
            lake.ingest()
    uri = f"s3://{lake.bucket}/orders/1.csv"
    assert str(raised.value).startswith(f"lake.orders: object {uri} was overwritten after it was")
    assert "the source stays in error until you put the earlier object back" in str(raised.value)
    command = f"--args '{{source: lake.orders, objects: [\"{uri}\"]}}'"
    assert f"dbt run-operation retry_s3_objects {command}" in str(raised.value)
    assert f"dbt run-operation skip_s3_objects {command}" in str(raised.value)
    assert status(lake).state == IN_ERROR
    assert "it was overwritten after it was ingested" in status(lake).last_error
    # The second run said the same, and wrote nothing.
    failed = [e for e, p in Ledger(lake.spark, lake.relations).epochs().items() if "failed" in p]
    assert len(failed) == 1

    assert acted(lake, ObjectAction.SKIP, uri).objects == 1
    assert lake.ingest().objects == 0
    assert lake.rows("id") == [("1.csv", 1, "1"), ("1.csv", 2, "2"), ("2.csv", 1, "5")]
    assert acted(lake, ObjectAction.RETRY, uri).objects == 1
    assert status(lake).state == WAITING
    assert lake.ingest().objects == 1
    assert lake.rows("id") == [("1.csv", 1, "9"), ("2.csv", 1, "5")]
    assert status(lake).state == OK


def test_an_object_that_is_put_back_or_removed_leaves_no_error_behind(lake):
    overwritten(lake, "fail")
    with pytest.raises(SourceError):
        lake.ingest()
    lake.put("1.csv", "id\n1\n2\n")
    lake.put("3.csv", "id\n1,2\n")
    with pytest.raises(SourceError, match=r"orders/3\.csv, line 2"):
        lake.ingest()
    assert states(lake) == {"1.csv": "fetched", "2.csv": "fetched", "3.csv": "failed"}
    lake.remove("3.csv")
    assert lake.ingest().objects == 0
    assert states(lake) == {"1.csv": "fetched", "2.csv": "fetched", "3.csv": "removed"}
    assert lake.states()["1.csv"][1] == 2
    gone = (
        "it was no longer listed when its turn came: it was removed, or the pattern leaves it out"
    )
    assert lake.states()["3.csv"][2] == gone
    assert status(lake).state == OK


def test_what_is_left_by_a_limit_is_taken_first_next_time_in_order_of_keys(lake):
    for name in "bdfh":
        lake.put(f"{name}.csv", f"id\n{name}\n")
    lake.external = {"max_objects_per_run": 2}
    report = lake.ingest()
    assert (report.objects, report.waiting_objects, report.waiting_bytes) == (2, 2, 10)
    assert report.line().endswith("; 2 objects (10 B) wait for the next run")
    now = status(lake)
    assert (now.state, now.objects, now.waiting, now.waiting_bytes) == (WAITING, 2, 2, 10)
    assert now.lag is not None
    assert states(lake)["f.csv"] == states(lake)["h.csv"] == "listed"
    lake.put("a.csv", "id\na\n")
    lake.external = {"max_objects_per_run": 3}
    assert lake.ingest().objects == 3
    lake.put("0.csv", "id\n0\n")
    lake.put("i.csv", "id\ni\n")
    lake.external = {"max_objects_per_run": 1}
    lake.ingest()
    assert [row[0] for row in lake.rows()] == [f"{n}.csv" for n in "0abdfh"]
    lake.external = {}
    assert (lake.ingest().objects, lake.ingest().objects) == (1, 0)
    assert status(lake).waiting == 0


def test_a_limit_of_bytes_takes_what_fits_and_always_one(lake):
    lake.put("1.csv", "id\n" + "1\n" * 50)
    lake.put("2.csv", "id\n2\n")
    lake.put("3.csv", "id\n3\n")
    lake.external = {"max_bytes_per_run": 9}
    assert lake.ingest().line().endswith("; 2 objects (10 B) wait: about 2 more runs")
    assert [lake.ingest().objects for _ in range(3)] == [1, 1, 0]
    assert len(lake.rows()) == 52


def test_what_waits_and_fails_goes_before_what_waits_behind_it(lake):
    for name in ("1", "2", "3"):
        lake.put(f"{name}.csv", f"id\n{name}\n")
    lake.put("2.csv", "id\n2,2\n")
    lake.external = {"max_objects_per_run": 1}
    lake.ingest()
    for _ in range(2):
        with pytest.raises(SourceError, match=r"orders/2\.csv, line 2"):
            lake.ingest()
    lake.put("2.csv", "id\n22\n")
    assert (lake.ingest().objects, lake.ingest().objects) == (1, 1)
    assert lake.rows("id") == [("1.csv", 1, "1"), ("2.csv", 1, "22"), ("3.csv", 1, "3")]


def test_an_object_in_error_is_skipped_until_it_is_another(lake):
    lake.put("1.csv", "id\n1,2\n")
    lake.put("2.csv", "id\n2\n")
    with pytest.raises(SourceError) as raised:
        lake.ingest()
    uri = f"s3://{lake.bucket}/orders/1.csv"
    assert str(raised.value).endswith(
        "; or go on without it after: dbt run-operation skip_s3_objects --args "
        f"'{{source: lake.orders, objects: [\"{uri}\"]}}'"
    )
    acted(lake, ObjectAction.SKIP, "1.csv")
    assert lake.ingest().objects == 1
    state, _, error = lake.states()["1.csv"]
    assert state == "skipped"
    assert "expected 1 column" in error
    lake.put("1.csv", "id\n1\n")
    assert lake.ingest().objects == 1
    assert lake.rows("id") == [("1.csv", 1, "1"), ("2.csv", 1, "2")]


def test_retracted_rows_are_out_at_once_and_back_if_asked_for(lake):
    for name in ("a/1", "a/2", "b/1"):
        lake.put(f"{name}.csv", "id\n1\n2\n")
    lake.ingest()
    done = acted(lake, ObjectAction.RETRACT, "a/*.csv")
    assert (done.objects, done.rows) == (2, 4)
    assert {row[0] for row in lake.rows()} == {"b/1.csv"}
    assert lake.ingest().objects == 0
    acted(lake, ObjectAction.RETRY, "orders/a/2.csv")
    assert lake.ingest().objects == 1
    assert {row[0] for row in lake.rows()} == {"a/2.csv", "b/1.csv"}
    lake.put("a/1.csv", "id\n9\n")
    assert lake.ingest().objects == 1
    assert len(lake.rows()) == 5


def test_objects_that_are_not_there_or_for_which_it_makes_no_sense(lake):
    lake.put("2024.csv", "id\n1\n")
    lake.put("2025.csv", "id\n1\n")
    lake.ingest()
    before = Ledger(lake.spark, lake.relations).epochs()
    with pytest.raises(SourceError) as raised:
        acted(lake, ObjectAction.RETRY, "2023.csv", "*.gz", "2025.csv")
    uris = [f"s3://{lake.bucket}/orders/{year}.csv" for year in (2024, 2025)]
    assert str(raised.value).splitlines() == [
        f"lake.orders: 2023.csv is no object of the ledger; near are {', '.join(uris)}",
        "lake.orders: *.gz matches no object of the ledger",
    ]
    with pytest.raises(SourceError) as raised:
        acted(lake, ObjectAction.SKIP, "2024.csv")
    assert str(raised.value) == (
        f"lake.orders: {uris[0]} is fetched: neither has it failed nor does it wait; "
        "retract_s3_objects takes its rows out"
    )
    acted(lake, ObjectAction.RETRACT, "2024.csv")
    with pytest.raises(SourceError) as raised:
        acted(lake, ObjectAction.RETRACT, "2024.*")
    assert str(raised.value) == (
        "lake.orders: there is nothing to do for any of these objects: "
        f"{uris[0]} is retracted and has no rows to take out"
    )
    assert len(Ledger(lake.spark, lake.relations).epochs()) == len(before) + 1


def test_an_object_that_is_gone_before_it_is_taken_again_stays_fetched(lake):
    lake.put("1.csv", "id\n1\n")
    lake.ingest()
    columns = ("etag", "state", "rows", "rejects", "at")
    [before] = lake.spark.table(lake.relations.objects).select(*columns).collect()
    acted(lake, ObjectAction.RETRY, "1.csv")
    lake.remove("1.csv")
    assert lake.ingest().objects == 0
    [after] = lake.spark.table(lake.relations.objects).select(*columns).collect()
    assert (after, after["rejects"]) == (before, 0)
    lake.put("1.csv", "id\n1\n")
    assert lake.ingest().objects == 0


def test_a_reset_leaves_a_table_alone_that_is_only_named_like_the_sources(lake):
    lake.put("a.csv", "id\n1\n")
    lake.ingest()
    somebodys = lake.relations.table("__rows_0123abcd")
    lake.spark.sql(f"CREATE TABLE {somebodys} AS SELECT 1 AS id")
    reset_source(lake.spark, lake.definition())
    assert lake.spark.table(somebodys).collect() == [(1,)]


def test_a_reset_drops_what_is_the_sources_own_and_nothing_else(lake):
    with pytest.raises(SourceError, match="it was never ingested; there is nothing to change"):
        acted(lake, ObjectAction.RETRY, "1.csv")
    assert status(lake).state == NEVER
    lake.put("1.csv", "id\n1\n")
    lake.ingest(create_only=True)
    with pytest.raises(SourceError, match=r"1\.csv is no object of the ledger, which has none"):
        acted(lake, ObjectAction.RETRY, "1.csv")
    lake.ingest()
    reset_source(lake.spark, lake.definition())
    left = lake.spark.sql(f"SHOW TABLES IN `{lake.schema}`").collect()
    assert [row["tableName"] for row in left] == []
    lake.spark.sql(f"CREATE TABLE {lake.relations.source} USING parquet AS SELECT 7 AS id")
    lake.spark.sql(f"CREATE TABLE {lake.relations.rows} USING parquet AS SELECT 7 AS id")
    with pytest.raises(SourceError) as raised:
        reset_source(lake.spark, lake.definition())
    assert str(raised.value) == (
        f"lake.orders: {lake.schema}.orders, {lake.schema}.orders__rows was not made by this "
        "source; nothing is dropped. Give the source another schema or identifier"
    )
    assert lake.spark.table(lake.relations.source).count() == 1


def test_a_folder_that_a_late_run_has_left_is_named(lake):
    lake.put("1.csv", "id\n1\n")
    lake.ingest()
    folder = location_of(lake.spark, lake.relations.rows)
    reset_source(lake.spark, lake.definition())
    lake.spark.range(1).write.parquet(f"{folder}/mz_epoch-1")
    with pytest.raises(SourceError) as caught:
        lake.ingest()
    assert str(caught.value) == (
        f"lake.orders: {lake.schema}.orders__rows can't be made, as its folder {folder} is not "
        "empty. Either a run that went on after the source was reset, or its table made anew, "
        "has written there: once no run is at work on the source, remove the folder. Or the "
        "metastore does not know the table any more: then the folder has its rows, and the "
        "metastore is to be restored"
    )


def test_a_table_that_a_late_run_made_of_an_old_definition_takes_no_rows(lake, monkeypatch):
    lake.external = {"header": ["id", "old"]}
    stale = SourceRun(lake.spark, lake.definition(), lake.connection)
    lake.external = {"header": ["id", "new"]}
    lake.put("1.csv", "id,new\n1,2\n")
    purify = pinning.purify_now

    def late(*given):
        monkeypatch.setattr(pinning, "purify_now", purify)
        pinning.make_relations(stale.spark, stale.definition, purify(stale, None), None)
        return purify(*given)

    monkeypatch.setattr(pinning, "purify_now", late)
    with pytest.raises(SourceError) as raised:
        lake.ingest()
    assert str(raised.value) == (
        f"lake.orders: another run made or dropped {lake.schema}.orders__rows while this one was "
        "to make it; nothing was ingested. Run again"
    )
    assert lake.rows("old") == []
    lake.ingest()  # nothing was committed, so nothing is pinned
    assert lake.rows("new") == [("1.csv", 1, "2")]


def test_a_view_of_somebody_else_is_neither_dropped_nor_taken_for_the_sources_own(lake):
    lake.put("1.csv", "id\n1\n")
    lake.ingest()
    for name in (lake.relations.source, lake.relations.objects):
        lake.spark.sql(f"CREATE OR REPLACE VIEW {name} AS SELECT 7 AS id")
    foreign = rf"^lake\.orders: {lake.schema}\.orders, {lake.schema}\.orders__objects was not made"
    for afresh in (False, True):
        with pytest.raises(SourceError, match=foreign):
            lake.ingest(afresh=afresh)
    with pytest.raises(SourceError, match=rf"{foreign} by this source; nothing is dropped"):
        reset_source(lake.spark, lake.definition())
    for name in (lake.relations.source, lake.relations.objects):
        assert [row["id"] for row in lake.spark.table(name).collect()] == [7]
        lake.spark.sql(f"DROP VIEW {name}")
    assert lake.ingest().objects == 0
    assert lake.rows("id") == [("1.csv", 1, "1")]


@pytest.mark.skipif(STORE == "minio", reason="it deletes whatever is there, and is refused")
def test_rows_of_objects_that_were_deleted_are_not_dropped_for_good(lake):
    lake.external = {"after_commit": "delete", "header": ["id"]}
    lake.ingest()
    assert lake.ingest(afresh=True).objects == 0  # there is nothing to lose yet
    lake.put("1.csv", "id\n1\n")
    lake.ingest()
    refused = "^lake.orders: with after_commit: delete, objects are no longer in the location"
    with pytest.raises(SourceError, match=refused):
        lake.ingest(afresh=True)
    with pytest.raises(SourceError, match=f"{refused}.* and declare after_commit: keep until"):
        reset_source(lake.spark, lake.definition())
    assert lake.rows("id") == [("1.csv", 1, "1")]
    lake.external["after_commit"] = "keep"
    assert lake.ingest(afresh=True).objects == 0


def test_what_is_ingested_is_as_fresh_as_the_objects_whose_rows_are_visible(lake):
    def fresh():
        return read_ingested_freshness(lake.spark, lake.definition())

    assert fresh() == Freshness(None, 0, 0)
    overwritten(lake, "ignore")
    [listed] = lake.client.list_objects_v2(Bucket=lake.bucket, Prefix="orders/2.csv")["Contents"]
    lake.ingest()
    assert states(lake) == {"1.csv": "ignored", "2.csv": "fetched"}
    assert (fresh().newest, fresh().objects, fresh().bytes) == (listed["LastModified"], 2, 12)
    acted(lake, ObjectAction.RETRACT, "2.csv")
    assert (fresh().objects, fresh().bytes) == (1, 7)
    lake.spark.sql(f"DROP TABLE {lake.relations.ledger}")
    with pytest.raises(
        SourceError, match=r"^lake\.orders: raw_\d+\.orders__ledger does not exist"
    ):
        fresh()
