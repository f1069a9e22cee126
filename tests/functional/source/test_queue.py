"""Objects that S3 announces on a queue: ingested once, and acknowledged after."""

from __future__ import annotations

import re
import threading
from dataclasses import replace

import pytest
from support.queue.announcing import Died, dying_at
from support.s3.faulty import FaultyS3

from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.source.freshness import read_ingested_freshness
from dbt.adapters.mzs3.source.operations.object_actions import ObjectAction, act

pytestmark = pytest.mark.spark


def test_what_the_queue_announces_is_ingested_once_and_the_rest_is_not(post, lake):
    lake.put("a+b c.csv", "id\n1\n")
    lake.put("2.csv", "id\n2\n")
    post.announce("2.csv")  # once more
    lake.client.put_object(Bucket=lake.bucket, Key="elsewhere/3.csv", Body=b"id\n3\n")
    assert post.ingest().objects == 2
    assert lake.rows("id") == [("2.csv", 1, "2"), ("a+b c.csv", 1, "1")]
    assert post.left == (1, 0)  # that of elsewhere/
    (warning,) = post.warned
    assert "1 of objects outside the location" in warning
    lake.put("4.csv", "id\n4\n")
    assert post.ingest().objects == 1
    assert post.ingest().objects == 0
    head = lake.client.head_object(Bucket=lake.bucket, Key="orders/4.csv")
    found = read_ingested_freshness(lake.spark, lake.definition())
    assert (found.newest, found.objects, found.bytes) == (head["LastModified"], 3, 15)


def test_a_queue_and_a_listing_are_one_source(post, lake):
    post.lake.external = {"discover": ["bucket_scan", {"sqs_notifications": post.url}]}
    lake.put("1.csv", "id\n1\n")
    post.lose()
    lake.put("2.csv", "id\n2\n")
    assert post.ingest().objects == 2
    post.announce("1.csv")  # a late one
    assert post.ingest().objects == 0
    assert lake.rows("id") == [("1.csv", 1, "1"), ("2.csv", 1, "2")]
    assert post.left == (0, 0)


def test_an_empty_queue_has_no_header_to_learn(post, lake):
    assert read_ingested_freshness(lake.spark, lake.definition()).newest is None
    with pytest.raises(SourceError) as raised:
        post.ingest()
    assert str(raised.value) == (
        f"lake.orders: the queue {post.name} is empty, so there is none to learn the columns "
        "from. Declare the names as `header: [name, ...]`; or run again once an object was "
        "announced. Messages that a killed run had received come back within 300 s"
    )
    lake.put("empty.csv", "")
    with pytest.raises(SourceError, match=f"queue {post.name} names no object that has a header"):
        post.ingest()
    lake.external["header"] = ["id"]
    assert post.ingest().objects == 1
    assert post.left == (0, 0)


def test_making_the_source_learns_its_header_and_takes_no_message(post, lake):
    lake.put("1.csv", "id\n1\n")
    assert post.ingest(create_only=True).objects == 0
    assert post.left == (1, 0)
    assert post.ingest().objects == 1


@pytest.mark.light
@pytest.mark.parametrize(
    ("step", "is_committed"),
    [
        pytest.param("end receive", False, marks=pytest.mark.long),
        pytest.param("end plan", False, marks=pytest.mark.long),
        ("end fetch", False),
        ("end commit", True),
        pytest.param("begin acknowledge", True, marks=pytest.mark.long),
    ],
)
def test_a_run_that_dies_gives_its_messages_back_and_nothing_is_doubled(
    post, lake, step, is_committed
):
    rows = [("1.csv", 1, "1"), ("1.csv", 2, "2")]
    lake.put("1.csv", "id\n1\n2\n")
    with pytest.raises(Died):
        post.ingest(on_step=dying_at(step))
    assert post.left == (1, 0)
    assert lake.rows("id") == (rows if is_committed else [])
    lake.put("2.csv", "id\n3\n")
    assert post.ingest().objects == (1 if is_committed else 2)
    assert lake.rows("id") == [*rows, ("2.csv", 1, "3")]
    assert post.left == (0, 0)
    assert post.ingest().objects == 0


def test_a_queue_alone_sends_no_listing(post, lake, s3_endpoint):
    with FaultyS3(s3_endpoint) as server:
        lake.connection = replace(lake.connection, endpoint=server.endpoint)
        for number in (1, 2):
            lake.put(f"{number}.csv", f"id\n{number}\n")
            assert post.ingest().objects == 1
        assert post.ingest().objects == 0
        asked = {one.action for one in server.seen if one.key.startswith(f"/{lake.bucket}")}
    assert asked == {"HEADObject", "GETObject"}


@pytest.mark.light
def test_an_object_in_error_keeps_its_message_and_so_do_the_others(post, lake):
    lake.put("1.csv", "id\n1\n")
    lake.put("2.csv", "id\n2,3\n")
    with pytest.raises(SourceError, match=re.escape("orders/2.csv, line 2")):
        post.ingest()
    assert post.left == (2, 0)
    lake.remove("2.csv")
    assert post.ingest().objects == 1
    assert lake.rows("id") == [("1.csv", 1, "1")]
    assert post.left == (0, 0)


@pytest.mark.light
def test_a_cancelled_run_gives_its_messages_back(post, lake):
    lake.put("1.csv", "id\n1\n")
    cancelled = threading.Event()

    def cancel_at_fetch(step):
        if step == "begin fetch":
            cancelled.set()

    with pytest.raises(SourceError, match="cancelled; nothing of this run is committed"):
        post.ingest(cancelled=cancelled, on_step=cancel_at_fetch)
    assert post.left == (1, 0)


@pytest.mark.light
def test_removals_are_noted_where_rows_stay_and_counted_where_there_are_none(post, lake):
    lake.put("1.csv", "id\n1\n")
    post.ingest()
    for name in ("1.csv", "never.csv"):
        lake.remove(name)
        post.announce(name, "ObjectRemoved:Delete")
    post.announce("gone.csv")
    for _ in range(2):
        assert post.ingest().objects == 0
        post.announce("1.csv", "ObjectRemoved:Delete")
    removed = (
        "it was removed from S3 (ObjectRemoved:Delete, now); rows that were ingested of it stay"
    )
    gone = (
        "it was announced, and was gone when it was looked for (ObjectCreated:Put, now); rows "
        "that were ingested of it stay"
    )
    assert lake.states() == {
        "1.csv": ("fetched", 1, removed),
        "gone.csv": ("removed", None, gone),
    }
    notes = lake.spark.table(lake.relations.ledger).where("phase = 'note'")
    assert notes.count() == 2
    assert post.said == ["lake.orders: the queue told of 1 removed object that was never ingested"]
    assert lake.rows("id") == [("1.csv", 1, "1")]
    # Its rows are known by its ETag still.
    lake.put("1.csv", "id\n1\n")
    assert post.ingest().objects == 0
    assert post.left == (0, 0)


@pytest.mark.light
def test_what_waits_is_in_the_ledger_and_no_longer_in_the_queue(post, lake):
    lake.external |= {"max_objects_per_run": 1, "header": ["id"]}
    for name in ("1.csv", "2.csv", "3.csv"):
        lake.put(name, "id\n1\n")
    assert post.ingest().objects == 1
    assert post.left == (0, 0)
    lake.remove("2.csv")
    post.announce("2.csv", "ObjectRemoved:Delete")
    assert post.ingest().objects == 1
    assert [name for name, *_ in lake.rows("id")] == ["1.csv", "3.csv"]
    assert lake.states()["2.csv"][0] == "removed"
    assert post.ingest().objects == 0


def test_a_queue_that_is_not_there_is_an_error_of_the_source(post, lake):
    lake.external = {"discover": [{"sqs_notifications": "evnts"}], "header": ["id"]}
    with pytest.raises(SourceError, match=r"^lake\.orders: looking up the queue evnts failed"):
        post.ingest()


@pytest.mark.light
def test_a_run_without_its_lock_deletes_no_message(post, lake):
    lake.put("1.csv", "id\n1\n")

    def drop_lock(step):
        if step == "begin acknowledge":
            lake.spark.sql(f"DROP TABLE {lake.relations.lock}")

    with pytest.raises(SourceError, match="what it committed stays, and its messages go back"):
        post.ingest(on_step=drop_lock)
    assert post.left == (1, 0)
    assert post.ingest().objects == 0
    assert lake.rows("id") == [("1.csv", 1, "1")]


@pytest.mark.light
def test_what_is_gone_can_not_be_retried_and_stops_nothing(post, lake):
    lake.external["header"] = ["id"]
    post.announce("gone.csv")
    lake.put("1.csv", "id\n1\n")
    post.ingest()
    with pytest.raises(SourceError, match=r"gone\.csv is removed and has no rows; the next run"):
        act(lake.spark, lake.definition(), ObjectAction.RETRY, ["gone.csv"])
    assert act(lake.spark, lake.definition(), ObjectAction.RETRY, ["*.csv"]).objects == 1
    assert post.ingest().objects == 1


@pytest.mark.light
def test_what_failed_is_not_forgotten_when_its_message_expires(post, lake):
    lake.put("1.csv", "id\n1\n")
    lake.put("2.csv", "id\n2,3\n")
    with pytest.raises(SourceError, match=re.escape("orders/2.csv, line 2")):
        post.ingest()
    post.sqs.purge_queue(QueueUrl=post.url)
    with pytest.raises(SourceError, match=re.escape("orders/2.csv, line 2")):
        post.ingest()
    act(lake.spark, lake.definition(), ObjectAction.SKIP, ["2.csv"])
    assert post.ingest().objects == 1
    assert lake.rows("id") == [("1.csv", 1, "1")]
    assert post.ingest().objects == 0


@pytest.mark.light
def test_what_came_with_an_overwritten_object_waits_for_longer_than_its_message(post, lake):
    lake.put("1.csv", "id\n1\n")
    post.ingest()
    lake.put("1.csv", "id\n9\n")
    lake.put("2.csv", "id\n2\n")
    for _ in range(2):
        with pytest.raises(SourceError, match="was overwritten after it was ingested"):
            post.ingest()
        if post.left[0]:
            post.sqs.purge_queue(QueueUrl=post.url)
    assert {name: state[0] for name, state in lake.states().items()} == {
        "1.csv": "failed",
        "2.csv": "listed",
    }
    notes = lake.spark.table(lake.relations.ledger).where("phase = 'note'")
    assert notes.count() == 1
    act(lake.spark, lake.definition(), ObjectAction.SKIP, ["1.csv"])
    assert post.ingest().objects == 1
    assert lake.rows("id") == [("1.csv", 1, "1"), ("2.csv", 1, "2")]


@pytest.mark.light
def test_a_removal_leaves_an_object_that_was_to_be_taken_again_as_it_was(post, lake):
    lake.put("1.csv", "id\n1\n")
    post.ingest()
    columns = ("etag", "state", "rows", "rejects", "at")
    [before] = lake.spark.table(lake.relations.objects).select(*columns).collect()
    act(lake.spark, lake.definition(), ObjectAction.RETRY, ["1.csv"])
    lake.remove("1.csv")
    post.announce("1.csv", "ObjectRemoved:Delete")
    assert post.ingest().objects == 0
    [after] = lake.spark.table(lake.relations.objects).select(*columns).collect()
    assert (after, after["rejects"]) == (before, 0)


@pytest.mark.light
def test_what_is_to_be_taken_again_is_taken_as_it_is_then_without_news_of_it(post, lake):
    for name in ("1.csv", "2.csv"):
        lake.put(name, "id\n1\n")
    post.ingest()
    lake.put("1.csv", "id\n9\n")
    post.lose()
    lake.remove("2.csv")
    act(lake.spark, lake.definition(), ObjectAction.RETRY, ["1.csv", "2.csv"])
    assert post.ingest().objects == 1
    assert lake.rows("id") == [("1.csv", 1, "9"), ("2.csv", 1, "1")]
    gone = (
        "it was gone when its turn came again, or the pattern leaves it out; rows that were "
        "ingested of it stay"
    )
    assert lake.states()["2.csv"] == ("fetched", 1, gone)
