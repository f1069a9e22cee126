"""How many rows Spark hands to Python at a time.

Spark bounds a batch in bytes by measuring all of its columns anew after every row, which costs
more than to send them. Rows that are known to be narrow need no measuring: few of them at a time
are bound enough. Whether they are is seen on their way into the shuffle, before any is sent.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

WIDEST = 32 * 1024  # bytes of text and binary in a narrow row
WIDE_ROW = f"dbt-mzs3: a row has more than {WIDEST} bytes; the export begins again, for wide rows"

# So a batch of narrow rows has at most 64 MiB of text, as Spark's own bound has it.
_UNMEASURED = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2048",
    # The one value at which Spark leaves the measuring out.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
}
_VARIABLE = (T.StringType, T.CharType, T.VarcharType, T.BinaryType)
_NESTED = (T.ArrayType, T.StructType, T.MapType)


def can_be_narrow(schema: T.StructType) -> bool:
    """Whether `narrow` can tell for rows of this schema."""
    return not any(isinstance(column.dataType, _NESTED) for column in schema.fields)


def narrow(value: Column, schema: T.StructType) -> Column:
    """`value`, once the row is known to be narrow; a row that isn't fails the job: WIDE_ROW."""
    widths = [
        F.coalesce(F.octet_length(F.col(column.name)), F.lit(0)).cast("long")
        for column in schema.fields
        if isinstance(column.dataType, _VARIABLE)
    ]
    if not widths:
        return value
    width = sum(widths[1:], start=widths[0])
    return F.when(width > WIDEST, F.raise_error(F.lit(WIDE_ROW))).otherwise(value)


@contextmanager
def batches(spark: SparkSession, *, measured: bool) -> Iterator[None]:
    """Spark's batches for as long as the context lasts: few rows, not measured; or as they were.

    The settings are the session's, which other exports share. While any of them needs measured
    batches, all have them: that is slower, and never wrong.
    """
    with _LOCK:
        users = _USERS.setdefault(id(spark), _Users(spark))
        users.count(measured, 1)
    try:
        yield
    finally:
        with _LOCK:
            users.count(measured, -1)
            if not any(users.running.values()):
                del _USERS[id(spark)]


@dataclass
class _Users:
    """The exports that run in one session, and the settings it had before them."""

    spark: SparkSession
    running: dict[bool, int] = field(default_factory=lambda: {True: 0, False: 0})
    theirs: dict[str, str | None] = field(default_factory=dict)

    def count(self, measured: bool, change: int) -> None:
        self.running[measured] += change
        if self.running[False] and not self.running[True]:
            self._leave_measuring_out()
        else:
            self._restore()

    def _leave_measuring_out(self) -> None:
        if self.theirs or not all(self.spark.conf.isModifiable(name) for name in _UNMEASURED):
            return
        self.theirs = {name: self.spark.conf.get(name, None) for name in _UNMEASURED}
        for name, value in _UNMEASURED.items():
            self.spark.conf.set(name, value)

    def _restore(self) -> None:
        for name, value in self.theirs.items():
            if value is None:
                self.spark.conf.unset(name)
            else:
                self.spark.conf.set(name, value)
        self.theirs = {}


_LOCK = threading.Lock()
_USERS: dict[int, _Users] = {}
