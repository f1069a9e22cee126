"""What the code under test takes for a store, of a client of boto3 or a fake of one."""

from __future__ import annotations

from typing import Any

from dbt.adapters.mzs3.shard.state.store import StateStore
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.store.prefix import Prefix
from dbt.adapters.mzs3.store.s3 import S3Store


def bucket_of(client: Any, bucket: str = "b") -> S3Store:
    return S3Store(client, bucket)


def prefix_of(client: Any, location: S3Location) -> Prefix:
    return Prefix(S3Store(client, location.bucket), location)


def state_of(client: Any, location: S3Location) -> StateStore:
    return StateStore(S3Store(client, location.bucket), location)
