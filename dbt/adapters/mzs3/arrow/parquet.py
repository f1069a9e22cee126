"""Parquet read with bounded memory, however large rows are; runs on executors."""

from __future__ import annotations

import pyarrow.parquet as pq

# A batch has this many rows, fewer where they are so wide that this many bytes are in fewer.
BATCH_ROWS = 8 * 1024
BATCH_BYTES = 8 * 1024 * 1024


def batch_rows(group: pq.RowGroupMetaData) -> int:
    """How many rows of a row group are read at once; batches of several groups are not bounded."""
    row_bytes: int = group.total_byte_size // max(1, group.num_rows)
    return max(1, min(BATCH_ROWS, BATCH_BYTES // max(1, row_bytes)))
