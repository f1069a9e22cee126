"""A bucket for each test, and shards written and read without dbt around them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dbt.adapters.mzs3.events import Committed
from dbt.adapters.mzs3.shard.compact import Compacted, compact_shard
from dbt.adapters.mzs3.shard.options import parse_compaction
from dbt.adapters.mzs3.shard.read.rows import ShardLocation, read_shard, readable_state
from dbt.adapters.mzs3.shard.read.validation import validate_shard
from dbt.adapters.mzs3.shard.write.job import persist_shard
from dbt.adapters.mzs3.spark.session import get_or_create
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.location import parse_location

_numbers = itertools.count()


@pytest.fixture(scope="session")
def spark(spark_parameters: dict[str, str]) -> Any:
    """The process's one Spark, without dbt around it."""
    return get_or_create(spark_parameters)


@pytest.fixture
def location(s3: Any) -> str:
    """A place in a new, empty bucket."""
    name = f"shards-{next(_numbers)}"
    s3.create_bucket(Bucket=name)
    return f"s3://{name}/orders"


@pytest.fixture(scope="session")
def connection(aws_connection: dict[str, str]) -> AwsConnection:
    return AwsConnection(**aws_connection)


@pytest.fixture
def persist(spark: Any, connection: AwsConnection, location: str) -> Callable[..., Committed]:
    """`persist(query, as_of, **options)`."""

    def run(query: str, as_of: int, **options: Any) -> Committed:
        return persist_shard(
            spark,
            query,
            node="model.test.orders",
            options={"location": location, "parts": 2, **options},
            connections={"default": connection},
            as_of=as_of,
        )

    return run


@pytest.fixture
def compact(spark: Any, connection: AwsConnection, location: str) -> Callable[..., Compacted]:
    """`compact(**arguments)`, those of the run-operation, `since` any time; into two parts."""

    def run(since: Any = None, **arguments: Any) -> Compacted:
        request = replace(parse_compaction({"parts": 2, **arguments}), since=since)
        return compact_shard(spark, ShardLocation(connection, parse_location(location)), request)

    return run


@pytest.fixture
def frame(spark: Any, connection: AwsConnection, location: str) -> Callable[..., Any]:
    """`frame(as_of, names=…)`: the shard's rows as a DataFrame; `validate` compares encodings."""

    def read(as_of: int | None = None, *, validate: bool = False, **how: Any) -> Any:
        place = parse_location(location)
        if validate:
            state = readable_state(connection, place)
            validate_shard(spark, ShardLocation(connection, place), state, as_of).require_same()
        return read_shard(spark, connection, place, as_of=as_of, **how)

    return read


@pytest.fixture
def rows(frame: Callable[..., Any]) -> Callable[..., list[Any]]:
    """`rows(as_of, names=…)`: sorted tuples."""

    def read(as_of: int | None = None, **how: Any) -> list[Any]:
        return sorted((tuple(row) for row in frame(as_of, **how).collect()), key=repr)

    return read
