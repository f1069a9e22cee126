"""A bucket for each test, and an S3 server that can be made to refuse."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.s3.faulty import FaultyS3, connection_to
from support.s3.real_stores import keys_in, objects_in

from dbt.adapters.mzs3.export.export import CopyResult
from dbt.adapters.mzs3.export.job import copy_to_s3
from dbt.adapters.mzs3.export.monitor import RunContext
from dbt.adapters.mzs3.spark.session import get_or_create

_numbers = itertools.count()

# 30 MB in one part: six upload parts of 5 MB.
EXPORT = """
{{{{ config(
    materialized='copy_to_s3', location='s3://{bucket}/x', parts=1, part_size='5MB'
) }}}}
select id, repeat('x', 1000) as filler from range(30000)
"""


@pytest.fixture(scope="session")
def spark(spark_parameters: dict[str, str]) -> Any:
    """The process's one Spark, without dbt around it."""
    return get_or_create(spark_parameters)


@pytest.fixture
def bucket(s3: Any) -> str:
    """A new, empty bucket."""
    name = f"exports-{next(_numbers)}"
    s3.create_bucket(Bucket=name)
    return name


@pytest.fixture(scope="session")
def proxy(s3_endpoint: str) -> Iterator[FaultyS3]:
    with FaultyS3(s3_endpoint) as server:
        yield server


@pytest.fixture
def faulty(proxy: FaultyS3) -> FaultyS3:
    """An S3 server that can be made to refuse; it refuses nothing yet."""
    proxy.reset()
    return proxy


@pytest.fixture
def copy(spark: Any, faulty: FaultyS3) -> Callable[..., CopyResult]:
    """`copy(query, location, **options)` through the server that can be made to refuse."""

    def run(
        query: str,
        location: str,
        *,
        full_refresh: bool = False,
        context: RunContext = RunContext(),  # noqa: B008 - frozen
        endpoint: str = faulty.endpoint,
        **options: Any,
    ) -> CopyResult:
        return copy_to_s3(
            spark,
            query,
            node="model.test.export",
            options={"location": location, **options},
            connections={"default": connection_to(endpoint)},
            as_of=1700000000000,
            full_refresh=full_refresh,
            context=context,
        )

    return run


@pytest.fixture
def nothing_left(s3: Any) -> Callable[[str], None]:
    """Asserts that a bucket has no object and no open upload."""

    def check(bucket: str) -> None:
        assert keys_in(s3, bucket) == []
        assert s3.list_multipart_uploads(Bucket=bucket).get("Uploads", []) == []

    return check


@pytest.fixture
def objects(s3: Any) -> Callable[[str], dict[str, bytes]]:
    """Every object of a bucket, by key."""
    return partial(objects_in, s3)


@pytest.fixture
def project_folder(
    tmp_path: Path,
    faulty: FaultyS3,
    bucket: str,
    spark_parameters: dict[str, str],
    aws_connection: dict[str, str],
) -> Path:
    """A dbt project with one export, and a profile with secrets in it."""
    events = tmp_path / "events"
    events.mkdir()
    parameters = {
        **spark_parameters,
        "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",  # to be searched
        "spark.eventLog.dir": str(events),
    }
    output = {
        "type": "mzs3",
        "method": "session",
        "schema": "analytics",
        "threads": 2,
        "server_side_parameters": parameters,
        "aws_connections": {"default": {**aws_connection, "endpoint": faulty.endpoint}},
    }
    profile = {"acme": {"target": "dev", "outputs": {"dev": output}}}
    project = {"name": "acme", "version": "1.0", "profile": "acme", "config-version": 2}
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "export.sql").write_text(EXPORT.format(bucket=bucket))
    (tmp_path / "dbt_project.yml").write_text(yaml.safe_dump(project))
    (tmp_path / "profiles.yml").write_text(yaml.safe_dump(profile))
    return tmp_path
