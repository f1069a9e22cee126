"""The least that reading many objects costs: boto3's `get_object` in a loop, and nothing else."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import boto3
from botocore.config import Config
from session import BUCKET

from dbt.adapters.mzs3.store.connection import AwsConnection

THREADS = 16  # per core


class PlainGets:
    """A process for each core, as threads of one process share one core; all have their client."""

    def __init__(self, connection: AwsConnection, pool: ProcessPoolExecutor, cores: int) -> None:
        self._connection = connection
        self._pool = pool
        self._cores = cores

    def read(self, keys: Sequence[str]) -> int:
        """Get all objects; how many bytes they have."""
        shares = [keys[core :: self._cores] for core in range(self._cores)]
        connections = [self._connection] * self._cores
        return sum(self._pool.map(_read, connections, shares))


@contextlib.contextmanager
def plain_gets(connection: AwsConnection, keys: Sequence[str]) -> Iterator[PlainGets]:
    """Processes that have each read some of the keys already, for as long as the context lasts."""
    cores = len(os.sched_getaffinity(0))
    spawning = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(cores, mp_context=spawning) as pool:
        gets = PlainGets(connection, pool, cores)
        gets.read(keys[: cores * THREADS])
        yield gets


def plain_client(connection: AwsConnection) -> Any:
    """A client as boto3 makes it."""
    return boto3.client(
        "s3",
        endpoint_url=connection.endpoint,
        region_name=connection.region,
        aws_access_key_id=connection.access_key_id,
        aws_secret_access_key=connection.secret_access_key,
        config=Config(s3={"addressing_style": "path"}, max_pool_connections=THREADS),
    )


def _read(connection: AwsConnection, keys: Sequence[str]) -> int:
    client = plain_client(connection)

    def length(key: str) -> int:
        return len(client.get_object(Bucket=BUCKET, Key=key)["Body"].read())

    with ThreadPoolExecutor(THREADS) as threads:
        return sum(threads.map(length, keys))
