"""How a run ends when S3 and other runs get in its way. Spark has no part."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from support.s3.opened import bucket_of, state_of
from support.shard.states import batch, column

from dbt.adapters.mzs3.errors import S3Error, ShardError
from dbt.adapters.mzs3.events import Committed
from dbt.adapters.mzs3.shard.state.state import ShardBatch, new_shard
from dbt.adapters.mzs3.shard.state.store import UnknownWriteError
from dbt.adapters.mzs3.shard.write import job
from dbt.adapters.mzs3.shard.write.batch import BatchWriter
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.failures import RoleError
from dbt.adapters.mzs3.store.location import parse_location

LOCATION = parse_location("s3://acme/orders")


class Frame:
    schema = None


@pytest.fixture
def client(client: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name, fake in {
        "open_store": lambda _, at: bucket_of(client, at.bucket),
        "pause": lambda _: None,
        "checked_frame": lambda *_: Frame,
        "type_problems": lambda *_: {},
    }.items():
        monkeypatch.setattr(job, name, fake)
    monkeypatch.setattr(job, "evolve_shard", lambda _, before: before)
    monkeypatch.setattr(job, "write_batch", written)
    store = state_of(client, LOCATION)
    store.require_conditions()
    store.write(None, new_shard([column(0, "a")]))
    return client


def written(writer: BatchWriter, empty: ShardBatch, *_: Any) -> ShardBatch:
    name = f"batches/{empty.moment}"
    writer.prefix.write(name, b"")
    return batch(empty.lower, empty.upper, name)


def run(**how: Any) -> Committed:
    spark: Any = SimpleNamespace(interruptAll=lambda: None)
    return job.persist_shard(
        spark,
        "select 1",
        node="model.a.orders",
        connections={"default": AwsConnection()},
        **{"as_of": 10, "options": {"location": "s3://acme/orders"}, **how},
    )


def files(client: Any) -> list[str]:
    found = client.list_objects_v2(Bucket="acme", Prefix="orders/batches/")
    return [one["Key"] for one in found.get("Contents", [])]


def names(client: Any) -> frozenset[str]:
    found = state_of(client, LOCATION).read()
    assert found is not None
    return found.state.file_names


class Others:
    """Other runs that change the shard while this one writes, so many times."""

    def __init__(self, client: Any, times: int) -> None:
        self.store, self.times = state_of(client, LOCATION), times

    def __call__(self, writer: BatchWriter, empty: ShardBatch, *_: Any) -> ShardBatch:
        made = written(writer, empty)
        if self.times:
            self.times -= 1
            self.store.change(lambda state: state.after_sweep([]))
        return made


def test_compactions_at_the_same_time_leave_a_run_attempts(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "write_batch", Others(client, 6))
    assert run().as_of == 10
    assert names(client) == {"batches/10"}


def test_races_that_never_end_are_an_error(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "write_batch", Others(client, 99))
    with pytest.raises(ShardError, match=r"model\.a\.orders: 8 times another run changed"):
        run()
    assert files(client) == []


def test_a_race_is_run_again_though_nothing_can_be_removed(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def throttled(**_: Any) -> Any:
        raise ClientError({"Error": {"Code": "SlowDown", "Message": "No."}}, "DeleteObject")

    client.delete_object = throttled
    monkeypatch.setattr(job, "write_batch", Others(client, 1))
    assert run().rows == 5


def test_files_that_may_be_named_yet_stay(client: Any) -> None:
    put = client.put_object

    def unclear(**request: Any) -> Any:
        if not request["Key"].endswith("_shard.json"):
            return put(**request)
        said: Any = {
            "Error": {"Code": "InternalError", "Message": "No."},
            "ResponseMetadata": {"HTTPStatusCode": 500},
        }
        raise ClientError(said, "PutObject")

    client.put_object = unclear
    with pytest.raises(UnknownWriteError, match=r"written nevertheless.*describe_shard --args"):
        run()
    assert files(client) == ["orders/batches/10"]


def test_files_of_a_write_that_was_refused_go(client: Any) -> None:
    put = client.put_object

    def refused(**request: Any) -> Any:
        if not request["Key"].endswith("_shard.json"):
            return put(**request)
        said: Any = {
            "Error": {"Code": "AccessDenied", "Message": "No."},
            "ResponseMetadata": {"HTTPStatusCode": 403},
        }
        raise ClientError(said, "PutObject")

    client.put_object = refused
    with pytest.raises(Exception, match="needs s3:PutObject"):
        run()
    assert files(client) == []


def test_files_stay_where_keys_are_missing_as_an_attempt_may_have_been_sent_before(
    client: Any,
) -> None:
    """boto3 signs each attempt of a request anew, and does not tell of which one keys lack."""
    put = client.put_object

    def without_keys(**request: Any) -> Any:
        if not request["Key"].endswith("_shard.json"):
            return put(**request)
        raise RoleError("no such role")

    client.put_object = without_keys
    with pytest.raises(S3Error, match="no such role"):
        run()
    assert files(client) == ["orders/batches/10"]


def test_a_clock_ahead_is_told_once(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    get, told = client.get_object, []

    def dated(**request: Any) -> Any:
        answer = get(**request)
        answer["ResponseMetadata"]["HTTPHeaders"]["date"] = "Sat, 01 Jan 2022 00:00:00 GMT"
        return answer

    client.get_object = dated
    monkeypatch.setattr(job, "write_batch", Others(client, 2))
    run(as_of=1_640_995_200_000 + 3_600_000, tell=told.append)
    [event] = told
    assert event.level == "warn"
    assert "the clock of this host is 60 minutes ahead of S3's" in event.message
    run(as_of=1_640_995_200_000, tell=told.append)
    assert "the last batch of the shard is of a time 60 minutes ahead" in told[1].message


@pytest.mark.parametrize(("mode", "twice"), [("append", True), ("diff", False)])
def test_a_run_that_is_cancelled_while_it_writes_tells_what_is_in_the_shard(
    client: Any, mode: str, twice: bool
) -> None:
    put, cancelled, told = client.put_object, threading.Event(), []

    def stopped(**request: Any) -> Any:
        if request["Key"].endswith("_shard.json"):
            cancelled.set()
        return put(**request)

    client.put_object = stopped
    options = {"location": "s3://acme/orders", "mode": mode}
    run(cancelled=cancelled, tell=told.append, options=options)
    [event] = told
    assert event.level == "warn"
    assert "cancelled too late: its batch is part of the shard, and stays: 5 c" in event.message
    assert ("to run it again adds its rows twice" in event.message) == twice
    assert names(client) == {"batches/10"}


def test_a_run_that_nobody_cancels_tells_nothing(client: Any) -> None:
    told: list[Any] = []
    run(cancelled=threading.Event(), tell=told.append)
    assert told == []
