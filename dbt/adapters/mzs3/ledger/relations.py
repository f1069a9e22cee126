"""The names of a source's relations in Spark."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass, replace

from dbt.adapters.mzs3.spark.sql import PARQUET, qualified_name

# Not `_mz_epoch`: metastores can't filter partitions by a column whose name starts with `_`.
EPOCH_COLUMN = "mz_epoch"
SUFFIXES = ("", "__objects", "__rejects", "__ledger", "__rows", "__lock")
"""The suffixes of the names of a source's relations."""
_MARK = "__drop_"


@dataclass(eq=False)
class SourceRelations:
    """The names of a source's relations, quoted for SQL; `display_name` is one for messages.

    `file_format` is the format of the tables of rows and of the ledger. In a format with
    transactions, the names of these tables end with the `generation`, which changes with each
    reset: what a run writes late, after a reset, finds no table. Views have the plain names.
    The table of rows has its own `rows_generation` once it was recreated without the ledger.
    """

    schema: str
    identifier: str
    file_format: str = PARQUET
    generation: str = ""
    rows_generation: str = ""

    def __post_init__(self) -> None:
        self.source = self._name()
        """The view of the committed rows, which users select from."""
        self.objects = self._name("__objects")
        """The view of the latest state of every object."""
        self.rejects = self._name("__rejects")
        """The view of the rejected records."""
        self.ledger = self.table("__ledger")
        """The table of what happened to objects, epoch by epoch."""
        self.rows = self.table("__rows")
        """The table of rows, including the rows of epochs that are not committed."""
        self.lock = self._name("__lock")
        """The table that exists while a run changes this source."""

    @property
    def has_transactions(self) -> bool:
        """Whether a write to a table of this format takes effect in one step."""
        return self.file_format != PARQUET

    def stored_as(
        self, file_format: str, generation: str, rows_generation: str = ""
    ) -> SourceRelations:
        """The relations with tables in this format, of these generations."""
        return replace(
            self,
            file_format=file_format,
            generation=generation,
            rows_generation=rows_generation,
        )

    def new_generation(self, file_format: str) -> SourceRelations:
        """The relations with tables in this format, of a new generation."""
        return self.stored_as(file_format, _new_generation(file_format))

    def with_new_rows(self) -> SourceRelations:
        """The relations with the same ledger and a new table of rows."""
        return replace(self, rows_generation=_new_generation(self.file_format))

    def has_generation(self, table: str) -> bool:
        """Whether `table` is the name of a table of this source with a generation."""
        name = re.escape(self.identifier) + "__(ledger|rows)_[0-9a-f]{8}"
        return re.fullmatch(name, table, re.IGNORECASE) is not None

    def table(self, suffix: str) -> str:
        """The name of the table with this suffix, and with its generation if there is one."""
        recreated = self.rows_generation if suffix == "__rows" else ""
        return self._name(suffix + (recreated or self.generation))

    def renewals(self, token: str) -> str:
        """The table with which the run whose lock has this token renews its lease."""
        return self._name(f"__lock_{token}")

    def mark(self, token: str) -> str:
        """The table that exists while the run whose lock has this token drops tables that another
        run may create again."""
        return self._name(f"{_MARK}{token}")

    def token_of_mark(self, table: str) -> str | None:
        """The token in the name of a table from `mark`; None for any other table."""
        name = re.escape(f"{self.identifier}{_MARK}") + "([0-9a-f]{32})"
        matched = re.fullmatch(name, table, re.IGNORECASE)
        return matched and matched[1]

    def display_name(self, suffix: str = "") -> str:
        """The relation's name for messages, such as `raw.orders__ledger`."""
        return f"{self.schema}.{self.identifier}{suffix}"

    def _name(self, suffix: str = "") -> str:
        return qualified_name(self.schema, self.identifier + suffix)


def _new_generation(file_format: str) -> str:
    return "" if file_format == PARQUET else f"_{uuid.uuid4().hex[:8]}"
