"""How fresh a source is, from S3's own timestamps; Spark has no part in it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from dbt.adapters.mzs3.aws.client import s3_client
from dbt.adapters.mzs3.csv_source.executor.listing import iter_pages

if TYPE_CHECKING:
    from dbt.adapters.mzs3.aws.connection import AwsConnection
    from dbt.adapters.mzs3.csv_source.definition import SourceDefinition


@dataclass(frozen=True)
class Freshness:
    """The newest LastModified among matching objects, None without any; their number and bytes."""

    newest: datetime | None
    objects: int
    bytes: int


def read_freshness(definition: SourceDefinition, connection: AwsConnection) -> Freshness:
    """Lists the source's objects, one page in memory at a time. Raises S3Error."""
    newest: datetime | None = None
    objects = size = 0
    pages = iter_pages(s3_client(connection), definition.location, definition.pattern)
    for page in pages:
        latest = max(one.last_modified for one in page)
        newest = latest if newest is None else max(newest, latest)
        objects += len(page)
        size += sum(one.size for one in page)
    return Freshness(newest, objects, size)
