"""What an export takes for granted of its rows to be fast, until a row shows otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pyspark.sql import types as T

from dbt.adapters.mzs3.copy.executor.ties import TIED_ROWS
from dbt.adapters.mzs3.copy.rows.batches import WIDE_ROW, can_be_narrow

Reason = Literal["wide rows", "equal hashes"]


@dataclass(frozen=True)
class Granted:
    """That no row is wide, and that no two different rows have one hash."""

    narrow_rows: bool = False
    distinct_hashes: bool = False

    def refuted_by(self, failure: Exception) -> Reason | None:
        """What of this does not hold, if the failure of an attempt is about that."""
        text = str(failure)
        if self.narrow_rows and WIDE_ROW in text:
            return "wide rows"
        return "equal hashes" if self.distinct_hashes and TIED_ROWS in text else None

    def but_for(self, reason: Reason) -> Granted:
        """The rest."""
        if reason == "wide rows":
            return replace(self, narrow_rows=False)
        return replace(self, distinct_hashes=False)


NOTHING = Granted()


def granted(schema: T.StructType, partition_by: Sequence[int]) -> Granted:
    """All that rows of this schema may be taken for; folders need a sort by more than a hash."""
    return Granted(narrow_rows=can_be_narrow(schema), distinct_hashes=not partition_by)
