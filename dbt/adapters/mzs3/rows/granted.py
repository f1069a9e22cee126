"""What an export takes for granted of its rows to be fast, until a row shows otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import types as T

from dbt.adapters.mzs3.rows.batches import can_be_narrow

Reason = Literal["wide rows", "equal hashes", "rows computed anew"]
_NESTED = (T.ArrayType, T.StructType, T.MapType)


@dataclass(frozen=True)
class Granted:
    """That no row is wide, and that no two different rows have one hash."""

    narrow_rows: bool = False
    distinct_hashes: bool = False

    def but_for(self, reason: Reason) -> Granted:
        """What is left of it once a row was wide, or two rows had one hash; else all of it."""
        return Granted(
            narrow_rows=self.narrow_rows and reason != "wide rows",
            distinct_hashes=self.distinct_hashes and reason != "equal hashes",
        )


NOTHING = Granted()


def granted(schema: T.StructType, partition_by: Sequence[int]) -> Granted:
    """All that rows of this schema may be taken for.

    How wide a nested value is, is not cheap to tell; and a hash takes `[[1, 2], []]` and
    `[[1], [2]]` for the same. Folders need a sort by more than a hash.
    """
    if any(isinstance(column.dataType, _NESTED) for column in schema.fields):
        return NOTHING
    return Granted(narrow_rows=can_be_narrow(schema), distinct_hashes=not partition_by)
