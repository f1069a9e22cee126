"""A store is opened once for tasks and runs that follow each other."""

from __future__ import annotations

from typing import Any

import pytest

from dbt.adapters.mzs3.store import opened
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.store.opened import borrow_store, shared_store

KEYS = {"access_key_id": "a", "secret_access_key": "b"}
LOCATION = S3Location("b", "x/")


def test_a_store_is_kept_for_an_equal_connection_and_not_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 1000.0
    monkeypatch.setattr(opened.time, "monotonic", lambda: now)
    connection = AwsConnection(region="eu-west-1", **KEYS)
    first = shared_store(connection, LOCATION)
    now += 59
    assert shared_store(AwsConnection(region="eu-west-1", **KEYS), LOCATION) is first
    now += 2
    second = shared_store(connection, LOCATION)
    assert second is not first
    assert shared_store(AwsConnection(region="eu-west-2", **KEYS), LOCATION) is not second


def test_stores_of_two_buckets_are_both_kept() -> None:
    connection = AwsConnection(region="eu-west-1", **KEYS)
    first = shared_store(connection, LOCATION)
    assert shared_store(connection, S3Location("other", "x/")) is not first
    assert shared_store(connection, LOCATION) is first


def test_a_store_is_lent_to_one_at_a_time_and_not_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 1000.0
    monkeypatch.setattr(opened.time, "monotonic", lambda: now)
    monkeypatch.setattr(opened, "_idle", [])
    connection = AwsConnection(region="eu-west-1", **KEYS)
    first, second = borrow_store(connection, LOCATION), borrow_store(connection, LOCATION)
    assert first.store is not second.store
    first.give_back()
    assert (
        borrow_store(AwsConnection(region="eu-west-2", **KEYS), LOCATION).store is not first.store
    )
    with monkeypatch.context() as other:
        other.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
        assert borrow_store(connection, LOCATION).store is not first.store
    now += 59
    assert borrow_store(AwsConnection(region="eu-west-1", **KEYS), LOCATION) is first
    first.give_back()
    now += 2
    assert borrow_store(connection, LOCATION) is not first


@pytest.mark.parametrize("open_", [shared_store, lambda *place: borrow_store(*place).store])
def test_a_fork_does_not_share_connections(monkeypatch: pytest.MonkeyPatch, open_: Any) -> None:
    """As the requests of the two would mix in one connection."""
    place = AwsConnection(region="eu-west-1", **KEYS), LOCATION
    monkeypatch.setattr(opened, "_idle", [])
    borrow_store(*place).give_back()
    first = open_(*place)
    lent = borrow_store(*place)
    lent.give_back()
    monkeypatch.setattr(opened.os, "getpid", lambda: -1)
    assert open_(*place) not in (first, lent.store)
