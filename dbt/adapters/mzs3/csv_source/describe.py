"""What is pinned of a source, or would be if it were ingested now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt.adapters.mzs3.csv_source.cancel import Cancellation
from dbt.adapters.mzs3.csv_source.ingest import purify_now
from dbt.adapters.mzs3.csv_source.operation import reading, relations_of
from dbt.adapters.mzs3.csv_source.purify import PinnedDefinition, contradictions
from dbt.adapters.mzs3.csv_source.queue.inbox import open_inbox
from dbt.adapters.mzs3.csv_source.relations import read_pinned
from dbt.adapters.mzs3.csv_source.show import Purified
from dbt.adapters.mzs3.csv_source.voice import SILENT
from dbt.adapters.mzs3.errors import S3Error, SourceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dbt.adapters.mzs3.aws.connection import AwsConnection
    from dbt.adapters.mzs3.csv_source.definition import SourceDefinition


def read_purified(
    spark: SparkSession, definition: SourceDefinition, connection: AwsConnection
) -> Purified:
    """The purified definition; nothing is made or changed. Raises an Mzs3Error.

    Messages of the source's queue that it looks at stay in the queue.
    """
    name = definition.name
    with reading(spark, name):
        stored = read_pinned(spark, relations_of(definition), name)
    if stored is not None:
        pinned = PinnedDefinition.from_json(stored)
        return Purified(definition, pinned, True, tuple(contradictions(pinned, definition)))
    stop = Cancellation(name)
    try:
        with open_inbox(definition, connection, stop, SILENT) as inbox:
            found = purify_now(definition, connection, stop, inbox)
    except S3Error as exc:
        raise SourceError(f"{name}: {exc}") from exc
    return Purified(definition, found, False)
