"""The bytes of a shard's columns: how many are in its files, and how many a read fetched."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from dbt.adapters.mzs3.errors import ShardError, SparkJobError
from dbt.adapters.mzs3.shard.batch.footer import MESSAGES, OTHERS, Tally, sizes
from dbt.adapters.mzs3.shard.batch.read import REPORT, open_file
from dbt.adapters.mzs3.shard.state.state import BatchFile, ShardState
from dbt.adapters.mzs3.shard.types import Column
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES
from dbt.adapters.mzs3.spark.frames import observed
from dbt.adapters.mzs3.store.prefix import Prefix, map_concurrently
from dbt.adapters.mzs3.store.store import ListedObject
from dbt.adapters.mzs3.text import bytes_text, count_noun

# In brackets, to differ from a column called `messages`.
_NO_COLUMNS = {MESSAGES: "(messages)", OTHERS: "(others)"}
_LISTED = 8
_WAIT_S = 5.0
# Each footer is a request for 64 kB, and a shard may have tens of thousands of files.
MOST_FOOTERS = 1000


@dataclass(frozen=True)
class ColumnBytes:
    """Bytes by column name, in `files` with `groups` row groups, of which `skipped` were not read.

    Bytes that belong to no column have a name in brackets.
    """

    files: int = 0
    groups: int = 0
    skipped: int = 0
    bytes: Mapping[str, int] = field(default_factory=dict)

    @property
    def listed(self) -> str:
        """The largest columns with their bytes, and the bytes of all others, as a text."""
        by_size = sorted(self.bytes.items(), key=lambda item: -item[1])
        shown = [f"{name} {bytes_text(size)}" for name, size in by_size[:_LISTED]]
        if others := [size for _, size in by_size[_LISTED:]]:
            shown.append(f"{count_noun(len(others), 'other')} {bytes_text(sum(others))}")
        return ", ".join(shown)

    @property
    def text(self) -> str:
        """A description of what was fetched."""
        total = bytes_text(sum(self.bytes.values()))
        text = f"fetched {total} of {count_noun(self.files, 'file')}"
        if self.skipped:
            text += f", without {self.skipped} of {count_noun(self.groups, 'row group')}"
        return f"{text}: {self.listed}" if self.bytes else text


def _named(tally: Tally, columns: Sequence[Column]) -> ColumnBytes:
    names = {**{column.tag: column.name for column in columns}, **_NO_COLUMNS}
    found = {names.get(tag, f"(tag {tag})"): size for tag, size in sorted(tally.bytes.items())}
    return ColumnBytes(tally.files, tally.groups, tally.skipped, found)


class Fetching:
    """Counts the bytes that tasks fetch while they read a shard."""

    def __init__(self) -> None:
        self._observed: Observation | None = None
        self._columns: Sequence[Column] = ()

    def counted(self, changes: DataFrame, columns: Sequence[Column]) -> DataFrame:
        """Returns the changes without the tasks' reports, which Spark collects while it runs."""
        self._observed, self._columns = Observation(), columns
        # There are few reports: one for each task.
        reports = F.collect_list(REPORT).alias(REPORT)
        return changes.observe(self._observed, reports).where(F.col(REPORT).isNull()).drop(REPORT)

    def found(self) -> ColumnBytes | None:
        """What was fetched, once the rows were read; None if Spark does not report it.

        Spark may lose an Observation, and drops it if the plan turns out to be empty. As users are
        only informed of the bytes, a missing report is no error, and the wait for it is short.
        """
        tally = Tally()
        if self._observed is not None:
            try:
                reports = observed(self._observed, _WAIT_S).get(REPORT)
            except (SparkJobError, *SPARK_FAILURES):
                return None
            if reports is None:
                return None
            for report in reports:
                tally.add(report)
        return _named(tally, self._columns)


def bytes_in_files(prefix: Prefix, state: ShardState) -> ColumnBytes:
    """The bytes of each column, read from the footers of the newest MOST_FOOTERS files.

    Raises Mzs3Error.
    """

    def footer(file: BatchFile) -> Counter[int]:
        listed = ListedObject(prefix.key(file.name), file.etag, file.size)
        source = open_file(prefix.store, prefix.location, listed)
        try:
            with pq.ParquetFile(source) as opened:
                groups = [opened.metadata.row_group(n) for n in range(opened.num_row_groups)]
        except (pa.ArrowException, OSError) as error:
            raise ShardError(f"{prefix.uri_of(listed.key)} can't be read: {error}") from error
        counts: Counter[int] = sum(map(sizes, groups), Counter())
        counts[OTHERS] += file.size - counts.total()
        return counts

    newest = (file for batch in reversed(state.batches) for file in batch.files)
    files = list(itertools.islice(newest, MOST_FOOTERS))
    total: Counter[int] = sum(map_concurrently(files, footer), Counter())
    return _named(Tally(files=len(files), bytes=total), state.schema.columns)
