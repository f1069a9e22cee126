"""Rows that are sorted by their hash alone: the check that this was enough."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc


class TiedRowsError(Exception):
    """Two rows that are not alike have one hash: it is not enough to sort by."""


_HASH = 1  # index of the column; the part is before it


def without_hash(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches without their second column, the hash, by which each part is sorted.

    Nothing in them is nested. Rows of one hash are alike bit by bit, but for the bits of a NaN,
    so any order of them is the same; raises TiedRowsError if two are not. Memory beside the batch:
    twice its rows of one hash.
    """
    before: pa.RecordBatch | None = None
    for batch in batches:
        if batch.num_rows == 0:
            continue
        if before is not None:
            _require_alike(before, batch.slice(0, 1))
        hashes = batch.column(_HASH)
        same = pc.equal(hashes.slice(0, batch.num_rows - 1), hashes.slice(1))
        if pc.any(same).as_py():
            first = pc.indices_nonzero(same)
            _require_alike(batch.take(first), batch.take(pc.add(first, 1)))
        before = batch.take(pa.array([batch.num_rows - 1]))  # lets go of the rest
        yield batch.select([i for i in range(batch.num_columns) if i != _HASH])


def _require_alike(left: pa.RecordBatch, right: pa.RecordBatch) -> None:
    """Raises if a row on the left has the hash of the one on the right, and is another."""
    if left.column(_HASH).equals(right.column(_HASH)) and not _all_alike(left, right):
        raise TiedRowsError


def _all_alike(left: pa.RecordBatch, right: pa.RecordBatch) -> bool:
    return all(
        _bits(mine).equals(_bits(other))
        for mine, other in zip(left.columns, right.columns, strict=True)
    )


def _bits(column: pa.Array) -> pa.Array:
    """Floats as what is stored of them: 0.0 is unlike -0.0. All NaNs are alike, as in files."""
    if not pa.types.is_floating(column.type):
        return column
    one_nan = pc.if_else(pc.is_nan(column), pa.scalar(math.nan, column.type), column)
    return one_nan.view(pa.int64() if pa.types.is_float64(column.type) else pa.int32())
