"""Unpacks columns that Spark sends to workers combined into one, or in a faster type.

Spark converts rows to Arrow value by value, so each column takes time, whatever its width.
`rows.packing` packs the columns, in SQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.types.table import TYPES

BITS = {row.sent: row.bits for row in TYPES if row.bits}
"""The types that are sent as bits of a `bigint`, and how many bits their values take."""
LANE_BITS = 63  # of a `bigint`, without the sign
MAX_DOUBLE_DIGITS = 15
"""Different decimals of one type with at most this many digits are different as `double`."""


@dataclass(frozen=True)
class PackedColumn:
    """Where a column's values are: in the sent column with the index `sent`.

    Without a `data_type`, they are unchanged. Decimals are sent as `double`, other types as bits
    of a `bigint`: the bit at `shift` is 0 for NULL, else 1; the value's bits are above it.
    """

    sent: int
    data_type: pa.DataType | None = None
    shift: int = 0

    def values(self, sent: Sequence[pa.Array]) -> pa.Array:
        """The column's values, exactly as they were before packing."""
        values = sent[self.sent]
        if self.data_type is None:
            return values
        if pa.types.is_decimal(self.data_type):
            return _decimals(values, self.data_type)
        return _from_bits(values, self.data_type, self.shift)


def unpacked(
    batch: pa.RecordBatch, columns: Sequence[PackedColumn], before: int
) -> pa.RecordBatch:
    """The batch: its first `before` columns as they are, then the unpacked columns c0, c1, …"""
    kept, sent = batch.columns[:before], batch.columns[before:]
    names = [*batch.schema.names[:before], *(f"c{place}" for place in range(len(columns)))]
    return pa.RecordBatch.from_arrays([*kept, *(c.values(sent) for c in columns)], names)


def _decimals(values: pa.Array, data_type: pa.Decimal128Type) -> pa.Array:
    # The product is at most 10 ** 15, and its error below 1/4, so rounding is exact.
    digits = pc.round(pc.multiply(values, float(10**data_type.scale)))
    whole = pc.cast(pc.cast(digits, pa.int64()), pa.decimal128(19, 0))
    return pa.Array.from_buffers(data_type, len(whole), whole.buffers(), whole.null_count)


def _from_bits(lane: pa.Array, data_type: pa.DataType, shift: int) -> pa.Array:
    are_valid, values = _bit(lane, shift), _bit(lane, shift + 1)
    if data_type != pa.bool_():
        unused = 64 - BITS[data_type]
        # Shifting to the left end and back extends the sign to all higher bits.
        bits = pc.shift_right(pc.shift_left(lane, unused - shift - 1), unused)
        integers = pa.int32() if data_type == pa.date32() else data_type
        values = pc.cast(bits, integers).view(data_type)
    if pc.all(are_valid, min_count=0).as_py():
        return values
    return pc.if_else(are_valid, values, pa.scalar(None, data_type))


def _bit(lane: pa.Array, place: int) -> pa.Array:
    return pc.not_equal(pc.bit_wise_and(lane, pa.scalar(1 << place)), pa.scalar(0))
