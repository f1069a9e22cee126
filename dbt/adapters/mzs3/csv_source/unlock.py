"""Taking a source's lock away from whoever has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt.adapters.mzs3.csv_source.lock import UNKNOWN, holder_of, take_away
from dbt.adapters.mzs3.csv_source.lock_table import LockTable
from dbt.adapters.mzs3.csv_source.operation import reading, relations_of
from dbt.adapters.mzs3.errors import SourceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dbt.adapters.mzs3.csv_source.definition import SourceDefinition
    from dbt.adapters.mzs3.csv_source.owner import Owner


def unlock(spark: SparkSession, definition: SourceDefinition) -> Owner | None:
    """Nobody has the source's lock; the process that had, or None. It commits nothing more.

    Raises SourceError for what is no lock.
    """
    name, relations = definition.name, relations_of(definition)
    table = LockTable(spark, relations)
    with reading(spark, name):
        holder = holder_of(table)
        if holder is None:
            return None
        if holder == UNKNOWN:
            raise SourceError(
                f"{name}: {relations.shown('__lock')} is no lock that a run has taken. Drop it, "
                "or give the source another schema or identifier"
            )
        take_away(table, holder.token)
    return holder.owner
