"""Of writers at once one comes through, and no change is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.exceptions import ClientError, NoCredentialsError, ReadTimeoutError
from support.s3.opened import state_of
from support.shard.states import batch, column

from dbt.adapters.mzs3.errors import S3Error, ShardError
from dbt.adapters.mzs3.shard.state import store as state_store
from dbt.adapters.mzs3.shard.state.state import RECENT, ShardState, new_shard
from dbt.adapters.mzs3.shard.state.store import LostRaceError, StateStore, UnknownWriteError
from dbt.adapters.mzs3.store import prefix
from dbt.adapters.mzs3.store.failures import RoleError
from dbt.adapters.mzs3.store.location import parse_location

LOCATION = parse_location("s3://acme/shards/orders")
KEY = "shards/orders/_shard.json"


@pytest.fixture
def store(client: Any, monkeypatch: pytest.MonkeyPatch) -> StateStore:
    monkeypatch.setattr(state_store, "pause", lambda _: None)
    monkeypatch.setattr(prefix, "_PAUSE_S", 0)
    return state_of(client, LOCATION)


def with_batch(state: ShardState, name: str = "x") -> ShardState:
    return state.appended(batch(state.upper, state.upper + 1, name))


NEW = new_shard([column(0, "a")])


def test_a_state_is_read_as_it_was_written(store: StateStore) -> None:
    assert store.read() is None
    created = store.write(None, NEW)
    assert store.read() == created
    changed = store.write(created, with_batch(NEW))
    assert store.read() == changed
    assert changed.state.batches == with_batch(NEW).batches


def test_what_is_no_shard_is_an_error_that_says_what_to_do(store: StateStore, client: Any) -> None:
    with pytest.raises(
        state_store.NoShardError, match="run the model that writes it first, or correct the"
    ):
        store.existing()
    client.put_object(Bucket="acme", Key=KEY, Body=b'{"format": 2}')
    with pytest.raises(ShardError, match=r"can read: it is of format 2, not 1\. Use the version"):
        store.existing()


def test_a_shard_is_created_once(store: StateStore) -> None:
    created = store.write(None, NEW)
    with pytest.raises(LostRaceError):
        store.write(None, NEW)
    assert store.read() == created


def test_a_state_that_was_changed_since_is_not_replaced(store: StateStore) -> None:
    created = store.write(None, NEW)
    changed = store.write(created, with_batch(NEW))
    with pytest.raises(LostRaceError, match="changed by another run"):
        store.write(created, with_batch(NEW, "y"))
    assert store.read() == changed


def test_a_state_that_was_removed_is_not_replaced(store: StateStore, client: Any) -> None:
    created = store.write(None, NEW)
    client.delete_object(Bucket="acme", Key=KEY)
    with pytest.raises(LostRaceError):
        store.write(created, with_batch(NEW))


def test_a_reset_is_one_write_that_runs_notice(store: StateStore) -> None:
    read = store.write(None, with_batch(NEW))
    assert store.reset() == read.state
    after = store.existing()
    assert (after.state.is_unwritten, after.state.writes) == (True, 2)
    [retired] = after.state.retired
    assert (retired.name, retired.at > 10**12) == ("x", True)
    assert store.reset().is_unwritten
    assert store.existing() == after
    with pytest.raises(LostRaceError):
        store.write(read, with_batch(read.state, "late"))


def test_a_lost_race_is_run_again(store: StateStore) -> None:
    store.write(None, NEW)
    raced = []

    def change(state: ShardState) -> ShardState:
        if not raced:
            raced.append(store.change(lambda other: with_batch(other, "theirs")))
        return with_batch(state, "ours")

    found = store.change(change)
    names = [file.name for one in found.state.batches for file in one.files]
    assert names == ["theirs", "ours"]


def test_races_that_never_end_are_an_error(store: StateStore) -> None:
    store.write(None, NEW)

    def change(state: ShardState) -> ShardState:
        before = store.read()
        assert before is not None
        store.write(before, with_batch(before.state, "theirs"))
        return with_batch(state, "ours")

    with pytest.raises(LostRaceError, match="10 times"):
        store.change(change)


def test_writers_at_once_lose_nothing(client: Any) -> None:
    one_at_a_time = threading.Lock()

    def alone(ask: Callable[..., Any]) -> Callable[..., Any]:
        def answer(**request: Any) -> Any:
            # moto looks at the condition first and writes then, S3 at once; and it closes an
            # object that is replaced, even while it is read.
            with one_at_a_time:
                return ask(**request)

        return answer

    client.put_object, client.get_object = alone(client.put_object), alone(client.get_object)
    state_of(client, LOCATION).write(None, NEW)

    def write(number: int) -> None:
        state_of(client, LOCATION).change(lambda state: with_batch(state, f"n{number}"))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(8)))
    found = state_of(client, LOCATION).read()
    assert found is not None
    names = {file.name for one in found.state.batches for file in one.files}
    assert names == {f"n{number}" for number in range(8)}
    assert found.state.upper == 8


def test_no_change_is_no_write(store: StateStore) -> None:
    created = store.write(None, NEW)
    assert store.change(lambda state: state) == created


def test_a_change_without_a_shard_is_an_error(store: StateStore) -> None:
    with pytest.raises(ShardError, match="no shard at s3://acme/shards/orders/"):
        store.change(with_batch)


def test_an_answer_that_was_lost_is_no_lost_race(store: StateStore, client: Any) -> None:
    created = store.write(None, NEW)
    put = client.put_object

    def put_twice(**request: Any) -> Any:
        put(**request)
        return put(**request)  # as botocore does when the answer does not come

    client.put_object = put_twice
    changed = store.write(created, with_batch(NEW))
    assert store.read() == changed


def failing(code: str, status: int, retries: int = 0) -> ClientError:
    answer = {"HTTPStatusCode": status, "RetryAttempts": retries}
    said: Any = {"Error": {"Code": code, "Message": "No."}, "ResponseMetadata": answer}
    return ClientError(said, "PutObject")


UNCLEAR = [
    ReadTimeoutError(endpoint_url="https://s3"),
    failing("InternalError", 500, 9),
    failing("AccessDenied", 403, 1),  # of the second request; the first may have come through
]


@pytest.mark.parametrize("failure", UNCLEAR, ids=str)
def test_a_write_without_an_answer_is_looked_for(
    store: StateStore, client: Any, failure: Exception
) -> None:
    created = store.write(None, NEW)
    put = client.put_object

    def put_and_fail(**request: Any) -> Any:
        put(**request)
        raise failure

    client.put_object = put_and_fail
    changed = store.write(created, with_batch(NEW))
    assert store.read() == changed


@pytest.mark.parametrize(("others", "is_known"), [(RECENT - 1, True), (RECENT, False)])
@pytest.mark.parametrize("is_written", [True, False])
def test_a_write_is_known_again_after_others(
    store: StateStore, client: Any, others: int, *, is_known: bool, is_written: bool
) -> None:
    """Whatever became of its batch; and where they were too many, it is not taken for lost."""
    created = store.write(None, NEW)
    put = client.put_object

    def overtaken(**request: Any) -> Any:
        client.put_object = put
        if is_written:
            put(**request)
        for _ in range(others + (not is_written)):
            store.change(lambda state: state.after_sweep([]))
        raise UNCLEAR[0]

    client.put_object = overtaken
    if is_known and is_written:
        assert store.write(created, with_batch(NEW)) == store.read()
        return
    with pytest.raises(LostRaceError if is_known else UnknownWriteError):
        store.write(created, with_batch(NEW))


@pytest.mark.parametrize("failure", UNCLEAR, ids=str)
@pytest.mark.parametrize("can_read", [True, False])
def test_a_write_of_which_nothing_is_known_says_so(
    store: StateStore, client: Any, failure: Exception, can_read: bool
) -> None:
    created = store.write(None, NEW)

    def fail(**_: Any) -> Any:
        raise failure

    client.put_object = fail
    if not can_read:
        client.get_object = fail
    with pytest.raises(UnknownWriteError, match="may have been written nevertheless, or may be"):
        store.write(created, with_batch(NEW))


@pytest.mark.parametrize("failure", UNCLEAR, ids=str)
def test_a_write_that_can_not_come_through_any_more_is_a_lost_race(
    store: StateStore, client: Any, failure: Exception
) -> None:
    created = store.write(None, NEW)
    put = client.put_object

    def fail(**_: Any) -> Any:
        client.put_object = put
        store.write(created, with_batch(NEW, "theirs"))
        raise failure

    client.put_object = fail
    with pytest.raises(LostRaceError):
        store.write(created, with_batch(NEW))
    assert store.read() is not None


@pytest.mark.parametrize(("retries", "is_lost"), [(0, True), (1, False)])
def test_a_conflict_with_our_own_first_request_is_no_lost_race(
    store: StateStore, client: Any, retries: int, is_lost: bool
) -> None:
    """S3 gives it while a write of the same key is on its way."""
    created = store.write(None, NEW)

    def fail(**_: Any) -> Any:
        raise failing("ConditionalRequestConflict", 409, retries)

    client.put_object = fail
    with pytest.raises(LostRaceError if is_lost else UnknownWriteError):
        store.write(created, with_batch(NEW))


@pytest.mark.parametrize(
    ("failure", "is_unknown"),
    [
        (failing("AccessDenied", 403), False),
        (failing("AccessDenied", 403, 1), True),
        (NoCredentialsError(), True),
        (RoleError("no such role"), True),
    ],
    ids=str,
)
def test_only_an_answer_to_the_first_attempt_is_a_certain_refusal(
    store: StateStore, client: Any, failure: Exception, is_unknown: bool
) -> None:
    """Keys can be missing for a later attempt, after an earlier one was sent."""
    created = store.write(None, NEW)

    def fail(**_: Any) -> Any:
        raise failure

    client.put_object = fail
    client.get_object = fail
    with pytest.raises(S3Error) as caught:
        store.write(created, with_batch(NEW))
    assert isinstance(caught.value, UnknownWriteError) == is_unknown


def test_a_store_that_heeds_no_conditions_is_an_error(store: StateStore, client: Any) -> None:
    put = client.put_object

    def put_anyhow(**request: Any) -> Any:
        request.pop("IfMatch", None)
        request.pop("IfNoneMatch", None)
        return put(**request)

    client.put_object = put_anyhow
    with pytest.raises(ShardError, match="does not heed the conditions"):
        store.require_conditions()
    assert "Contents" not in client.list_objects_v2(Bucket="acme")


def test_what_is_no_state_is_an_error(store: StateStore, client: Any) -> None:
    client.put_object(Bucket="acme", Key=KEY, Body=b"{}")
    with pytest.raises(ShardError, match=r"s3://acme/shards/orders/_shard\.json is not a shard"):
        store.read()


@pytest.mark.parametrize(
    ("method", "permission"), [("get_object", "s3:GetObject"), ("put_object", "s3:PutObject")]
)
def test_a_refusal_names_the_permission(
    store: StateStore, client: Any, method: str, permission: str
) -> None:
    def refuse(**_: Any) -> Any:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "No."}}, method)

    setattr(client, method, refuse)
    with pytest.raises(S3Error, match=f"needs {permission}"):
        store.read()
        store.write(None, NEW)


def test_a_bucket_that_is_none_is_an_error(client: Any) -> None:
    with pytest.raises(S3Error, match="NoSuchBucket"):
        state_of(client, parse_location("s3://nobody/x")).read()
