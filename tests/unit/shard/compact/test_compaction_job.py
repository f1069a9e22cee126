"""What becomes of a compaction's batch, whatever happens while Spark works. Spark has no part."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError
from support.s3.opened import bucket_of, state_of
from support.shard.states import batch, column

from dbt.adapters.mzs3.errors import S3Error, ShardError
from dbt.adapters.mzs3.shard import compact as shard_compact
from dbt.adapters.mzs3.shard.compact import Compacted, compact_shard
from dbt.adapters.mzs3.shard.options import CompactionRequest
from dbt.adapters.mzs3.shard.read.rows import ShardLocation
from dbt.adapters.mzs3.shard.state.state import Retired, new_shard
from dbt.adapters.mzs3.shard.state.store import UnknownWriteError
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.failures import PermissionDeniedError
from dbt.adapters.mzs3.store.location import parse_location
from dbt.adapters.mzs3.store.prefix import Prefix

CONNECTION = AwsConnection(access_key_id="a", secret_access_key="b", region="us-east-1")
LOCATION = parse_location("s3://acme/orders")
NEW = batch(0, 20, "batches/new")


@pytest.fixture
def client(client: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    client.put_object(Bucket="acme", Key="orders/batches/new")
    state = new_shard([column(0, "a")]).appended(batch(0, 10, "one"))
    store = state_of(client, LOCATION)
    store.require_conditions()
    store.write(None, state.appended(batch(10, 20, "two")))
    monkeypatch.setattr(shard_compact, "open_store", lambda _, at: bucket_of(client, at.bucket))
    monkeypatch.setattr(shard_compact, "write_batch", lambda *_: NEW)
    return client


def compacted() -> Compacted:
    return compact_shard(None, ShardLocation(CONNECTION, LOCATION), CompactionRequest("latest"))  # type: ignore[arg-type]


def files(client: Any) -> list[str]:
    found = client.list_objects_v2(Bucket="acme", Prefix="orders/batches/")
    return [one["Key"] for one in found.get("Contents", [])]


def test_files_are_kept_from_when_they_go_out_of_use(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1_000]

    def work(*_: Any) -> Any:
        clock[0] += 5 * 3_600_000
        return NEW

    monkeypatch.setattr(shard_compact, "write_batch", work)
    monkeypatch.setattr(Prefix, "now", lambda *_: clock[0])
    state = compacted().state
    assert state.batches == (NEW,)
    assert state.retired == (Retired("one", clock[0]), Retired("two", clock[0]))


def test_a_run_without_changes_meanwhile_is_no_other_compaction(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = state_of(client, LOCATION)
    store.change(lambda state: state.appended(batch(20, 30)))

    def work(*_: Any) -> Any:
        store.change(lambda state: state.appended(batch(30, 40)))
        return batch(0, 30, "batches/new")

    monkeypatch.setattr(shard_compact, "write_batch", work)
    state = compacted().state
    assert state.batches == (batch(0, 30, "batches/new"), batch(30, 40))


def test_what_was_reset_meanwhile_is_not_compacted(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even where times without changes, of both shards, could be taken for each other's."""
    store = state_of(client, LOCATION)
    store.write(store.existing(), new_shard([column(0, "a")]).appended(batch(0, 20)))
    get, read = client.get_object, []

    def reset_after_the_first(**request: Any) -> Any:
        answer = get(**request)
        read.append(request)
        if len(read) == 1:
            store.reset()
            other = [column(1, "b")]
            store.change(
                lambda state: state.with_columns(other, 20).appended(batch(20, 30, schema=2))
            )
        return answer

    client.get_object = reset_after_the_first
    with pytest.raises(ShardError, match="or the shard was reset; run it again"):
        compacted()
    assert store.existing().state.schema.columns == (column(1, "b"),)


def test_a_clock_that_can_not_be_asked_is_an_error(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> Any:
        raise PermissionDeniedError("AccessDenied: No.")

    monkeypatch.setattr(Prefix, "now", refused)
    with pytest.raises(S3Error, match=r"asking s3://acme/orders/ what time.*needs s3:ListBucket"):
        compacted()
    assert files(client) == []


def test_files_that_may_be_named_yet_stay(client: Any) -> None:
    def unclear(**_: Any) -> Any:
        raise ClientError(
            {
                "Error": {"Code": "InternalError", "Message": "No."},
                "ResponseMetadata": {"HTTPStatusCode": 500},
            },
            "PutObject",
        )

    client.put_object = unclear
    with pytest.raises(UnknownWriteError, match="the same rows either way: run it again"):
        compacted()
    assert files(client) == ["orders/batches/new"]
