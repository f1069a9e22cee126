"""Files that no batch names go, and no other ones."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError
from support.s3.opened import prefix_of
from support.shard.states import batch, column

from dbt.adapters.mzs3.errors import ShardError
from dbt.adapters.mzs3.shard import compact
from dbt.adapters.mzs3.shard.compact import sweep
from dbt.adapters.mzs3.shard.state.state import BatchFile, new_shard
from dbt.adapters.mzs3.shard.state.store import LostRaceError, StateStore
from dbt.adapters.mzs3.shard.write.batch import committing
from dbt.adapters.mzs3.store.location import parse_location
from dbt.adapters.mzs3.store.prefix import Prefix

HOUR_MS = 3_600_000
LOCATION = parse_location("s3://acme/orders")


@pytest.fixture
def prefix(client: Any) -> Prefix:
    for name in ("batches/one", "batches/two", "batches/new", "batches/crashed", "other"):
        client.put_object(Bucket="acme", Key=f"orders/{name}")
    return prefix_of(client, LOCATION)


@pytest.fixture
def store(prefix: Prefix) -> StateStore:
    store = StateStore(prefix.store, LOCATION)
    state = new_shard([column(0, "a")]).appended(batch(0, 10, "batches/one"))
    state = state.appended(batch(10, 20, "batches/two"))
    now = prefix.now()
    store.write(None, state.compacted(state.batches[:1], batch(0, 10, "batches/new"), now))
    return store


def names(prefix: Prefix) -> set[str]:
    return {one.key.removeprefix("orders/") for one in prefix.objects()} - {"_shard.json"}


def later(monkeypatch: pytest.MonkeyPatch, hours: int) -> None:
    now = Prefix.now
    monkeypatch.setattr(Prefix, "now", lambda prefix: now(prefix) + hours * HOUR_MS)


def test_nothing_goes_and_nothing_changes_before_its_time(
    prefix: Prefix, store: StateStore
) -> None:
    before = store.read()
    _, removed = sweep(store, 24 * HOUR_MS)
    assert (len(removed), store.read()) == (0, before)
    assert len(names(prefix)) == 5


def test_what_no_batch_names_goes(
    prefix: Prefix, store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    later(monkeypatch, 25)
    state, removed = sweep(store, 24 * HOUR_MS)
    assert len(removed) == 2
    assert names(prefix) == {"batches/two", "batches/new", "other"}
    assert (state.retired, state.sweeps) == ((), 1)


def test_a_file_that_was_compacted_stays_for_readers_however_old_it_is(
    prefix: Prefix, store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    later(monkeypatch, 25)
    before = store.read()
    assert before is not None
    retired_late = before.state.after_sweep([file.name for file in before.state.retired])
    now = prefix.now() + 20 * HOUR_MS
    state = retired_late.compacted(retired_late.batches[:1], batch(0, 10, "batches/one"), now)
    store.write(before, state)
    assert len(sweep(store, 24 * HOUR_MS)[1]) == 1
    assert names(prefix) == {"batches/one", "batches/two", "batches/new", "other"}


def test_a_run_that_began_before_can_not_name_what_goes(prefix: Prefix, store: StateStore) -> None:
    read = store.read()
    assert read is not None
    sweep(store, 0)
    with pytest.raises(LostRaceError):
        store.write(read, read.state.appended(batch(20, 30, "batches/crashed")))


def test_a_run_that_commits_while_files_go_can_not_name_them(
    prefix: Prefix, store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, delete_many = store.read(), compact.delete_many
    assert read is not None

    def commit_first(*given: Any) -> Any:
        with pytest.raises(LostRaceError):
            store.write(read, read.state.appended(batch(20, 30, "batches/crashed")))
        return delete_many(*given)

    monkeypatch.setattr(compact, "delete_many", commit_first)
    assert len(sweep(store, 0)[1]) == 2


def test_what_was_named_meanwhile_stays(
    prefix: Prefix, store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = StateStore.change

    def after_a_run(self: StateStore, how: Any) -> Any:
        monkeypatch.undo()
        store.change(lambda state: state.appended(batch(20, 30, "batches/crashed")))
        return change(self, how)

    monkeypatch.setattr(StateStore, "change", after_a_run)
    assert len(sweep(store, 0)[1]) == 1
    assert names(prefix) == {"batches/two", "batches/new", "batches/crashed", "other"}


def test_a_shard_is_needed(prefix: Prefix) -> None:
    with pytest.raises(ShardError, match="there is no shard at s3://acme/orders/"):
        sweep(StateStore(prefix.store, LOCATION), 0)


def commit_that_loses(prefix: Prefix, store: StateStore, name: str) -> None:
    with committing(store, [BatchFile(name, 0, "", 0)]):
        raise LostRaceError("another run was faster")


@pytest.mark.parametrize("name", ["batches/two", "batches/one"])
def test_a_batch_that_others_have_gone_on_from_is_part_of_the_shard(
    prefix: Prefix, store: StateStore, name: str
) -> None:
    commit_that_loses(prefix, store, name)
    assert name in names(prefix)


def test_files_of_a_batch_that_lost_a_race_go(prefix: Prefix, store: StateStore) -> None:
    with pytest.raises(LostRaceError):
        commit_that_loses(prefix, store, "batches/crashed")
    assert "batches/crashed" not in names(prefix)


def test_what_can_not_be_removed_hides_no_other_error(prefix: Prefix, store: StateStore) -> None:
    def throttled(**_: Any) -> Any:
        raise ClientError({"Error": {"Code": "SlowDown", "Message": "No."}}, "DeleteObject")

    prefix.store._client.delete_object = throttled
    with pytest.raises(LostRaceError):
        commit_that_loses(prefix, store, "batches/crashed")
    assert "batches/crashed" in names(prefix)
