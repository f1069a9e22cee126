"""Opens the store of a location, or reuses one that was opened less than a minute ago.

In a worker, tasks share the stores of `shared_store`. On the driver, each caller of `borrow_store`
has a store for itself until it gives it back.
"""

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


def shared_store(connection: AwsConnection, location: S3Location) -> Store:
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


class PooledStore(NamedTuple):
    """A store that only the caller of `borrow_store` uses until it is given back."""

    store: Store
    identity: tuple[object, ...]
    opened_at: float

    def give_back(self) -> None:
        """Lets others use the store; optional."""
        with _lock:
            _idle[:] = [*_recently_opened(), self]


_lock = threading.Lock()
_idle: list[PooledStore] = []


def _recently_opened() -> list[PooledStore]:
    return [pooled for pooled in _idle if time.monotonic() - pooled.opened_at < _RECENT_S]


def borrow_store(connection: AwsConnection, location: S3Location) -> PooledStore:
    """Returns a store that was given back, and was opened less than a minute ago for an equal
    connection, bucket and AWS_* environment, else opens one. A store that was given back
    already has open connections and, if its connection assumes a role, that role's credentials.
    Thread-safe."""
    settings = ((key, value) for key, value in os.environ.items() if key.startswith("AWS_"))
    identity = (*_identity(connection, location), frozenset(settings))
    with _lock:
        _idle[:] = _recently_opened()
        for index, pooled in enumerate(_idle):
            if pooled.identity == identity:
                return _idle.pop(index)
    return PooledStore(open_store(connection, location), identity, time.monotonic())
