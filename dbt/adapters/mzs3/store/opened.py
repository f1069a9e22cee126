"""Opens the store of a location, or reuses one that was opened less than a minute ago."""

from __future__ import annotations

import os
import threading
import time
from typing import NamedTuple

from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.location import STORES, S3Location
from dbt.adapters.mzs3.store.store import Store
from dbt.adapters.mzs3.worker import worker_state

# Older stores are not reused, as only new clients get new credentials from boto3's chain.
_RECENT_S = 60.0


def open_store(connection: AwsConnection, location: S3Location) -> Store:
    """Opens the bucket of a location, for one task and all its threads. Raises S3Error, which
    names the connection, for an AWS profile, region or endpoint that does not exist."""
    return STORES[location.scheme](connection, location.bucket)


def _identity(connection: AwsConnection, location: S3Location) -> tuple[object, ...]:
    # With the process id, as a forked process must not use the connections of its parent.
    return os.getpid(), connection, location.scheme, location.bucket


def recent_store(connection: AwsConnection, location: S3Location) -> Store:
    """Returns a store that this process opened less than a minute ago for an equal connection and
    bucket, else opens one. Opening takes as long as all the requests of a small task."""
    identity, now = _identity(connection, location), time.monotonic()
    stores = {
        key: (opened, store)
        for key, (opened, store) in worker_state().get("stores", {}).items()
        if now - opened < _RECENT_S
    }
    if identity not in stores:
        stores[identity] = now, open_store(connection, location)
        worker_state()["stores"] = stores
    found: Store = stores[identity][1]
    return found


class LentStore(NamedTuple):
    """A store that only the caller of `lent_store` uses until it is given back."""

    store: Store
    identity: tuple[object, ...]
    opened_at: float

    def give_back(self) -> None:
        """Lets others use the store; optional."""
        with _lock:
            _idle[:] = [*_recent(), self]


_lock = threading.Lock()
_idle: list[LentStore] = []


def _recent() -> list[LentStore]:
    return [lent for lent in _idle if time.monotonic() - lent.opened_at < _RECENT_S]


def lent_store(connection: AwsConnection, location: S3Location) -> LentStore:
    """Returns a store that was given back, and was opened less than a minute ago for an equal
    connection, bucket and AWS_* environment, else opens one. A store that was given back has open
    connections, and the credentials of its role. Thread-safe."""
    settings = ((key, value) for key, value in os.environ.items() if key.startswith("AWS_"))
    identity = (*_identity(connection, location), frozenset(settings))
    with _lock:
        _idle[:] = _recent()
        for index, lent in enumerate(_idle):
            if lent.identity == identity:
                return _idle.pop(index)
    return LentStore(open_store(connection, location), identity, time.monotonic())
