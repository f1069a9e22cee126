"""What holds the lock of a source in a catalog: tables without rows, which every catalog has.

Creating a table is atomic, and its properties say who created it. It is never changed, so a holder
that was only slow can't make it its own again: what renews the holder's lease is a second table,
of that holder alone, which is made once a run takes longer.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from dbt.adapters.mzs3.ledger.owner import Owner
from dbt.adapters.mzs3.ledger.relations import SourceRelations
from dbt.adapters.mzs3.spark.sql import quote_schema
from dbt.adapters.mzs3.spark.tables import decoded, encoded, properties_sql, read_properties

_PROPERTY = "mzs3.lock."
_BEAT = "beat"
# Not `token`: Spark shows no value of a property with such a name.
_TAKEN_AS = "taken_as"


@dataclass(frozen=True)
class Holder:
    """Who has the lock; `token` is of this one time, not of a later one of the same process."""

    token: str
    owner: Owner


UNKNOWN = Holder("", Owner(place="", boot="", pid=0, started="", host=""))


class LockTable:
    """The lock of one source, whoever has it."""

    def __init__(self, spark: SparkSession, relations: SourceRelations) -> None:
        self._spark = spark
        self._relations = relations
        self._has_beat = False

    def create(self, holder: Holder) -> None:
        """Takes the lock for this holder. Raises if somebody has it."""
        self._create(self._relations.lock, holder)

    def holder(self) -> Holder | None:
        """Who has the lock; None if nobody has, UNKNOWN for what is no lock of ours."""
        return self._holder(self._relations.lock)

    def mark(self, holder: Holder) -> None:
        """Shows to all that come that this holder drops what another one may make again."""
        self._create(self._relations.mark(holder.token), holder)

    def marks(self) -> list[Holder]:
        """Whoever has shown that, and has not come to its end."""
        tables = self._spark.sql(f"SHOW TABLES IN {quote_schema(self._relations.schema)}")
        tokens = (self._relations.marked(row["tableName"]) for row in tables.collect())
        found = [(token, self._holder(self._relations.mark(token))) for token in tokens if token]
        # The name has the token, whatever the properties say.
        return [replace(holder, token=token) for token, holder in found if holder is not None]

    def drop_mark(self, token: str) -> None:
        """Removes what `mark` made."""
        self._spark.sql(f"DROP TABLE IF EXISTS {self._relations.mark(token)}")

    def _create(self, table: str, holder: Holder) -> None:
        values = {_TAKEN_AS: holder.token, **asdict(holder.owner)}
        written = {key: encoded(str(value)) for key, value in values.items()}
        self._spark.sql(
            f"CREATE TABLE {table} (nothing string) USING parquet "
            f"TBLPROPERTIES {properties_sql(_PROPERTY, written)}"
        )

    def _holder(self, table: str) -> Holder | None:
        found = read_properties(self._spark, table, _PROPERTY)
        if found is None:
            return None
        try:
            values = {field.name: decoded(found[field.name]) for field in fields(Owner)}
            pid = int(values.pop("pid"))
            # Locks of earlier versions have no token.
            return Holder(decoded(found.get(_TAKEN_AS, "")), Owner(**values, pid=pid))
        except (KeyError, ValueError):
            return UNKNOWN

    def drop(self) -> None:
        """Frees the lock."""
        try:
            self._spark.sql(f"DROP TABLE IF EXISTS {self._relations.lock}")
        except AnalysisException:
            # Earlier versions made it a view.
            self._spark.sql(f"DROP VIEW IF EXISTS {self._relations.lock}")

    def take_away(self, token: str) -> None:
        """Frees the lock that was taken under this token, unless somebody else has it by now."""
        holder = self.holder()
        if holder is not None and holder.token == token:
            self.drop()
        self.drop_beat(token)

    def set_beat(self, token: str, number: int) -> None:
        """Renews the lease of the holder with this token, for so many times by now."""
        name, beat = self._relations.beat(token), properties_sql(_PROPERTY, {_BEAT: str(number)})
        if not self._has_beat:
            # One that failed before may have made it, or not.
            self._spark.sql(f"CREATE TABLE IF NOT EXISTS {name} (nothing string) USING parquet")
        self._spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES {beat}")
        self._has_beat = True

    def beat(self, token: str) -> str | None:
        """What changes whenever the holder with this token renews its lease."""
        found = read_properties(self._spark, self._relations.beat(token), _PROPERTY)
        return found.get(_BEAT) if found else None

    def drop_beat(self, token: str) -> None:
        """Removes what renewed the lease of this holder."""
        self._spark.sql(f"DROP TABLE IF EXISTS {self._relations.beat(token)}")
