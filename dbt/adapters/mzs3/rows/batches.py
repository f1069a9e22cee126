"""The size of the batches of rows that Spark sends to Python.

To limit a batch in bytes, Spark measures all of its columns after every row, which takes longer
than sending the batch. If all rows are narrow, a limit on the number of rows is enough. The query
itself checks this before the shuffle, and thus before any row is sent.

Comet, a plugin of Spark with an engine of its own, sends its own batches as they are, of a number
of rows. It does not know the check, so that workers measure these batches. Jobs whose rows it does
not send run without it: Spark alone compares rows that were lost with those that it computes anew.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from dbt.adapters.mzs3.errors import ExecutorError
from dbt.adapters.mzs3.spark.engine import is_remote
from dbt.adapters.mzs3.spark.settings import settings
from dbt.adapters.mzs3.spark.sql import quote_literal

WIDEST = 16 * 1024  # the most bytes of a narrow row
WIDE_ROW = "wide row"
"""The cause of the ExecutorError that Spark raises for a row that is not narrow."""

MAX_BYTES = 64 << 20  # Spark's own limit
# With _ROWS rows, a batch of narrow rows has at most MAX_BYTES.
_MAX_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_ROWS = 4096
_MAX_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_NOT_MEASURED = str(2**31 - 1)  # the only value with which Spark does not measure
_VARIABLE = (T.StringType, T.CharType, T.VarcharType, T.BinaryType)
# Of Comet: its version, which it sets itself; whether it is on, and sends batches to Python.
_COMET = "spark.comet.version"
_IS_ON = "spark.comet.enabled"
_SENDS_BATCHES = "spark.comet.exec.pyarrowUDF.enabled"
_COLUMN_BYTES = 16  # the most bytes of a fixed-width value, or of a variable-width value's offset

RestartReason = Literal["wide rows", "doubtful batches", "equal hashes", "rows computed anew"]
_NESTED = (T.ArrayType, T.StructType, T.MapType)


def only_if_narrow(value: str, schema: T.StructType) -> str:
    """SQL that returns `value`, or for a wide row fails the job with an ExecutorError, WIDE_ROW.

    The columns have names that need no quotes.
    """
    texts = [field.name for field in schema.fields if isinstance(field.dataType, _VARIABLE)]
    widths = [f"{_COLUMN_BYTES * len(schema.fields)}L"]
    widths += [f"coalesce(octet_length({text}), 0)" for text in texts]
    error = ExecutorError(f"a row has more than {WIDEST} bytes; the export begins again", WIDE_ROW)
    failure = f"raise_error({quote_literal(str(error))})"
    return f"if({' + '.join(widths)} > {WIDEST}, {failure}, {value})"


def sends_native_batches(spark: SparkSession) -> bool:
    """Whether Comet runs the session's queries, and sends its batches to Python.

    False over Spark Connect, where nothing would tell if rows that Comet has shuffled were lost,
    and computed anew.
    """
    is_on = spark.conf.get(_SENDS_BATCHES, "false") == "true" and has_comet(spark)
    return is_on and not is_remote(spark)


def has_comet(spark: SparkSession) -> bool:
    """Whether Comet runs what it can of the session's queries."""
    return bool(spark.conf.get(_COMET, "")) and spark.conf.get(_IS_ON, "true") == "true"


@contextlib.contextmanager
def batches_for(spark: SparkSession, assumed: Assumptions) -> Iterator[None]:
    """In this context, Spark sends Python batches of at most MAX_BYTES, as the assumptions allow:
    those of Comet, or of narrow rows at most _ROWS, whose bytes it does not measure.

    A lower limit of the session stays in force, as do settings that can't be changed.
    """
    changed = {}
    if assumed.narrow_rows:
        rows = int(spark.conf.get(_MAX_ROWS, None) or 0)
        limit = str(min(rows, _ROWS) if rows > 0 else _ROWS)
        changed = {_MAX_ROWS: limit, _MAX_BYTES: _NOT_MEASURED}
    if not assumed.native and has_comet(spark):
        changed[_IS_ON] = "false"
    with settings(spark, changed):
        yield


@dataclass(frozen=True)
class Assumptions:
    """Whether we assume that all rows are narrow, and that different rows have distinct hashes.

    If rows are `native`, Comet sends them, and workers find out whether a batch is too large, or
    has values that Comet may have read in another way than Spark.
    """

    narrow_rows: bool = False
    distinct_hashes: bool = False
    native: bool = False

    def without(self, reason: RestartReason) -> Assumptions:
        """The assumptions for the next attempt, after this reason has ended the last one."""
        return Assumptions(
            narrow_rows=self.narrow_rows and reason != "wide rows",
            distinct_hashes=self.distinct_hashes and reason != "equal hashes",
            native=self.native and reason != "doubtful batches",
        )


NO_ASSUMPTIONS = Assumptions()


def assumptions_for(
    schema: T.StructType, partition_by: Sequence[int], *, native: bool = False
) -> Assumptions:
    """All assumptions that are possible for rows of this schema, in a session that
    `sends_native_batches` or not.

    Nested values allow no assumption: their width is expensive to compute, and `[[1, 2], []]` and
    `[[1], [2]]` have the same hash. With `partition_by`, rows are not sorted by hash alone.
    """
    if any(isinstance(column.dataType, _NESTED) for column in schema.fields):
        return Assumptions(native=native)
    narrow = not native and _COLUMN_BYTES * len(schema.fields) <= WIDEST
    return Assumptions(narrow_rows=narrow, distinct_hashes=not partition_by, native=native)
