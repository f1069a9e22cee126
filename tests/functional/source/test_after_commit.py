"""What becomes of objects once their rows are committed, and never before."""

from __future__ import annotations

import re

import pytest
from support.queue.announcing import Died, dying_at

from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.source import after_commit
from dbt.adapters.mzs3.source import ingest as ingest_module
from dbt.adapters.mzs3.source.operations.object_actions import ObjectAction, act
from dbt.adapters.mzs3.store import client as client_module
from dbt.adapters.mzs3.store import conditions
from dbt.adapters.mzs3.store.s3 import S3Store

pytestmark = pytest.mark.spark


def test_moved_objects_are_gone_from_the_location_and_their_rows_are_not(post, lake):
    lake.external["after_commit"] = {"move": f"s3://{lake.bucket}/done/"}
    lake.put("x/1.csv", "id\n1\n")
    lake.put("y/1.csv", "id\n2\n")
    post.ingest()
    found = lake.client.list_objects_v2(Bucket=lake.bucket)["Contents"]
    assert [one["Key"] for one in found] == ["done/x/1.csv", "done/y/1.csv"]
    post.ingest()
    assert lake.rows("id") == [("x/1.csv", 1, "1"), ("y/1.csv", 1, "2")]
    done = lake.spark.table(lake.relations.ledger).where("phase = 'done'")
    assert [row["state"] for row in done.collect()] == ["moved", "moved"]


@pytest.mark.light
def test_what_a_dead_run_left_is_put_away_by_the_next_but_not_what_was_kept_before(post, lake):
    lake.external["discover"] = ["bucket_scan"]
    lake.put("0.csv", "id\n0\n")
    post.ingest()
    lake.external["after_commit"] = "delete"
    lake.put("1.csv", "id\n1\n")
    lake.put("2.csv", "id\n2\n")
    with pytest.raises(Died):
        post.ingest(on_step=dying_at("begin after commit"))
    lake.put("2.csv", "id\n22\n")  # no longer the one that was ingested
    with pytest.raises(SourceError, match="was overwritten after it was ingested"):
        post.ingest()
    lake.put("2.csv", "id\n2\n")
    post.ingest()
    found = lake.client.list_objects_v2(Bucket=lake.bucket, Prefix="orders/")["Contents"]
    assert [one["Key"] for one in found] == ["orders/0.csv"]
    assert post.warned == []
    assert [row[2] for row in lake.rows("id")] == ["0", "1", "2"]


@pytest.mark.light
def test_what_can_not_be_put_away_is_a_warning_and_tried_again(post, lake, monkeypatch):
    lake.external |= {"discover": ["bucket_scan"], "after_commit": {"move": "s3://no-such/x/"}}
    lake.put("1.csv", "id\n1\n")
    for _ in range(2):
        post.ingest()
    assert len(post.warned) == 2
    assert re.fullmatch(
        r"lake\.orders: after_commit: move failed for 1 object, whose rows are committed: .+\. "
        r"The next run tries again",
        post.warned[0],
    )

    def broken(*_):
        raise ingest_module.SPARK_FAILURES[0]("Spark is out of sorts")

    monkeypatch.setattr(ingest_module, "act_on_committed", broken)
    post.ingest()
    assert post.warned[2] == (
        "lake.orders: after_commit failed, and the rows are committed: Spark is out of sorts. "
        "The next run tries again"
    )
    monkeypatch.undo()
    lake.external["after_commit"] = "tag"
    post.ingest()
    tags = lake.client.get_object_tagging(Bucket=lake.bucket, Key="orders/1.csv")["TagSet"]
    epoch = lake.spark.table(lake.relations.ledger).where("phase = 'commit'").first()["epoch"]
    assert tags == [{"Key": "mzs3-ingested", "Value": epoch}]
    assert lake.rows("id") == [("1.csv", 1, "1")]


@pytest.mark.light
def test_what_is_replaced_while_it_is_ingested_is_never_put_away(post, lake):
    lake.external |= {"discover": ["bucket_scan"], "after_commit": "delete"}
    lake.put("1.csv", "id\n1\n")

    def content():
        return lake.client.get_object(Bucket=lake.bucket, Key="orders/1.csv")["Body"].read()

    def replacing(step, content):
        return lambda name: lake.put("1.csv", content) if name == step else None

    with pytest.raises(SourceError, match="it was replaced after it was listed") as raised:
        post.ingest(on_step=replacing("begin fetch", "id\n2\n"))
    assert "skip_s3_objects" not in str(raised.value)
    assert content() == b"id\n2\n"
    post.ingest(on_step=replacing("begin after commit", "id\n3\n"))
    (warning,) = post.warned
    assert warning.startswith(
        "lake.orders: after_commit: delete left 1 object alone, whose rows are committed: "
        f"s3://{lake.bucket}/orders/1.csv: it was overwritten after it was ingested"
    )
    assert content() == b"id\n3\n"
    assert lake.rows("id") == [("1.csv", 1, "2")]
    lake.external["on_overwrite"] = "replace"
    post.ingest()
    assert lake.rows("id") == [("1.csv", 1, "3")]
    assert "Contents" not in lake.client.list_objects_v2(Bucket=lake.bucket, Prefix="orders/")


@pytest.mark.light
def test_what_is_to_be_taken_again_is_not_put_away_before(post, lake):
    lake.external |= {"discover": ["bucket_scan"], "after_commit": "delete"}
    for name in ("1.csv", "2.csv"):
        lake.put(name, "id\n1\n")
    with pytest.raises(Died):
        post.ingest(on_step=dying_at("begin after commit"))
    act(lake.spark, lake.definition(), ObjectAction.RETRY, ["1.csv", "2.csv"])
    lake.external["max_objects_per_run"] = 1
    assert post.ingest().objects == 1
    found = lake.client.list_objects_v2(Bucket=lake.bucket, Prefix="orders/")["Contents"]
    assert [one["Key"] for one in found] == ["orders/2.csv"]
    assert post.ingest().objects == 1
    assert "Contents" not in lake.client.list_objects_v2(Bucket=lake.bucket, Prefix="orders/")


@pytest.fixture
def heedless(monkeypatch):
    """The driver's store deletes whatever is there; true of MinIO."""

    def forget(params, **_):
        params["headers"].pop("If-Match", None)

    def store(connection, location):
        made = client_module.s3_client(connection)
        made.meta.events.register("before-call.s3.DeleteObject", forget)
        return S3Store(made, location.bucket)

    monkeypatch.setattr(conditions, "_known", {})
    monkeypatch.setattr(after_commit, "open_store", store)


@pytest.mark.light
@pytest.mark.parametrize("action", ["delete", "move"])
def test_a_store_that_would_destroy_what_was_not_ingested_is_refused(action, post, lake, heedless):
    lake.external["after_commit"] = (
        "delete" if action == "delete" else {"move": f"s3://{lake.bucket}/done/"}
    )
    lake.external["header"] = ["id"]
    assert post.ingest(create_only=True).objects == 0
    assert post.ingest().objects == 0  # there is nothing to put away
    lake.put("1.csv", "id\n1\n")
    with pytest.raises(SourceError) as raised:
        post.ingest()
    assert str(raised.value) == (
        f"lake.orders: the store of s3://{lake.bucket}/orders/ does not compare an object's ETag "
        f"before it deletes it (If-Match), without which after_commit: {action} could destroy "
        "what was put there after it was ingested; nothing was ingested. Declare after_commit: "
        "tag or keep, or use a store that does, such as Amazon S3"
    )
    assert lake.rows("_mz_object") == []
    assert post.left == (2, 0)  # its message waits, and that of what the store was tried with
    lake.external["after_commit"] = "tag"
    assert post.ingest().objects == 1
    found = lake.client.list_objects_v2(Bucket=lake.bucket)["Contents"]
    assert [one["Key"] for one in found] == ["orders/1.csv"]
    assert (post.left, post.warned) == ((0, 0), [])


@pytest.mark.light
def test_nor_is_what_a_dead_run_left_put_away_there(post, lake, heedless, monkeypatch):
    lake.external |= {"discover": ["bucket_scan"], "after_commit": "tag"}
    lake.put("1.csv", "id\n1\n")
    with pytest.raises(Died):
        post.ingest(on_step=dying_at("begin after commit"))
    lake.external["after_commit"] = "delete"
    with pytest.raises(SourceError, match="does not compare an object's ETag before it deletes"):
        post.ingest()
    monkeypatch.undo()
    monkeypatch.setattr(conditions, "_known", {})
    assert post.ingest().objects == 0
    assert "Contents" not in lake.client.list_objects_v2(Bucket=lake.bucket, Prefix="orders/")
