"""Opens the store that a location is in, or gives out one that was opened a moment ago."""

from __future__ import annotations

import os
import threading
import time
from typing import NamedTuple

from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.store.registry import STORES
from dbt.adapters.mzs3.store.store import Store
from dbt.adapters.mzs3.worker import worker_state

# What credentials a chain gives, or a file has, is asked anew that often.
_RECENT_S = 60.0


def open_store(connection: AwsConnection, location: S3Location) -> Store:
    """The bucket of a location. Keep it for the length of a task; threads may share it.

    Raises S3Error, which names the connection, for a profile, region or endpoint that does not
    exist.
    """
    return STORES[location.scheme](connection, location.bucket)


def recent_store(connection: AwsConnection, location: S3Location) -> Store:
    """As `open_store`; or the last one that was opened here, less than a minute ago, for an equal
    connection: to open one takes a small task as long as all of its requests."""
    wanted = (connection, location.scheme, location.bucket)
    kept, now = worker_state().get("store"), time.monotonic()
    if kept is not None and kept[0] == wanted and now - kept[1] < _RECENT_S:
        recent: Store = kept[2]
        return recent
    store = open_store(connection, location)
    worker_state()["store"] = (wanted, now, store)
    return store


class LentStore(NamedTuple):
    """A store that nobody else has until it is given back."""

    store: Store
    made_for: tuple[object, ...]
    made: float

    def give_back(self) -> None:
        """Let others have it; to leave this out is no harm."""
        with _lock:
            _idle[:] = [*_recent(), self]


_lock = threading.Lock()
_idle: list[LentStore] = []


def _recent() -> list[LentStore]:
    return [one for one in _idle if time.monotonic() - one.made < _RECENT_S]


def lent_store(connection: AwsConnection, location: S3Location) -> LentStore:
    """As `open_store`; or one that was given back, and opened less than a minute ago, for an equal
    connection and the same settings of boto3 in the environment: which need not connect anew, nor
    assume a role. For any thread of the driver."""
    settings = ((key, value) for key, value in os.environ.items() if key.startswith("AWS_"))
    made_for = (connection, location.scheme, location.bucket, frozenset(settings))
    with _lock:
        _idle[:] = _recent()
        for index, one in enumerate(_idle):
            if one.made_for == made_for:
                return _idle.pop(index)
    return LentStore(open_store(connection, location), made_for, time.monotonic())
