"""What holds the lock of a source in a catalog: tables without rows, which every catalog has.

Creating a table is atomic, and its properties say who created it. It is never changed, so a holder
that was only slow can't make it its own again: what shows that the holder is at work is a second
table, of that holder alone, which is made once a run takes longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from dbt.adapters.mzs3.spark.table_properties import (
    decoded,
    encoded,
    properties_sql,
    read_properties,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dbt.adapters.mzs3.csv_source.relations import SourceRelations

_PROPERTY = "mzs3.lock."
_BEAT = "beat"


class LockTable:
    """The lock of one source, whoever has it."""

    def __init__(self, spark: SparkSession, relations: SourceRelations) -> None:
        self._spark = spark
        self._relations = relations
        self._has_beat = False

    def create(self, values: Mapping[str, str]) -> None:
        """The lock is taken, and says so of whom. Raises if it was."""
        written = properties_sql(_PROPERTY, {key: encoded(v) for key, v in values.items()})
        self._make(self._relations.lock, written)

    def read(self) -> dict[str, str] | None:
        """What the lock says of its holder; None if there is none."""
        found = read_properties(self._spark, self._relations.lock, _PROPERTY)
        if found is None:
            return None
        try:
            return {key: decoded(value) for key, value in found.items()}
        except ValueError:
            return {}

    def drop(self) -> None:
        """The lock is free."""
        try:
            self._spark.sql(f"DROP TABLE IF EXISTS {self._relations.lock}")
        except AnalysisException:
            # Earlier versions made it a view.
            self._spark.sql(f"DROP VIEW IF EXISTS {self._relations.lock}")

    def set_beat(self, token: str, number: int) -> None:
        """The holder with this token was at work, so many times by now."""
        name, beat = self._relations.beat(token), properties_sql(_PROPERTY, {_BEAT: str(number)})
        if not self._has_beat:
            # One that failed before may have made it, or not.
            self._spark.sql(f"CREATE TABLE IF NOT EXISTS {name} (nothing string) USING parquet")
        self._spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES {beat}")
        self._has_beat = True

    def beat(self, token: str) -> str | None:
        """What changes while the holder with this token is at work."""
        found = read_properties(self._spark, self._relations.beat(token), _PROPERTY)
        return None if found is None else found.get(_BEAT)

    def drop_beat(self, token: str) -> None:
        """Nothing is left of that holder's work."""
        self._spark.sql(f"DROP TABLE IF EXISTS {self._relations.beat(token)}")

    def _make(self, name: str, properties: str) -> None:
        self._spark.sql(
            f"CREATE TABLE {name} (nothing string) USING parquet TBLPROPERTIES {properties}"
        )
