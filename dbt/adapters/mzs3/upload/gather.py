"""Batches of rows that are worth a call for each of their columns."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

_ROWS = 8_192
_BYTES = 4 << 20


def gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in the same order; small batches are joined, large ones come as they are.

    Memory beside the batches that come: less than 8 MiB held back, and as much again while they
    are joined.
    """
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if batch.nbytes >= _BYTES:
            yield from _joined(held)
            yield batch
            rows = size = 0
            continue
        held.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= _ROWS or size >= _BYTES:
            yield from _joined(held)
            rows = size = 0
    yield from _joined(held)


def _joined(held: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """The batches that were held as one, or none; they are held no more."""
    if not held:
        return []
    joined: list[pa.RecordBatch] = pa.Table.from_batches(held).combine_chunks().to_batches()
    held.clear()
    return joined
