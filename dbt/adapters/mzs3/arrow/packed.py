"""Columns as Spark sends them to workers: several in one, or in a type that it sends faster.

Spark makes Arrow of rows value by value, so each column costs, whatever its width. `rows.packing`
is what packs them, in SQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.types.table import TYPES

BITS = {row.sent: row.bits for row in TYPES if row.bits}
"""Types that are sent in the bits of a `bigint`, and how many their values take."""
LANE_BITS = 63  # without the sign
MAX_DOUBLE_DIGITS = 15
"""Decimals of one type and of so many digits are apart as `double` too."""


@dataclass(frozen=True)
class PackedColumn:
    """Which of the sent columns has a column's values, and how.

    Without a `data_type` it is the column itself. A decimal is sent as `double`. Another type is
    bits of a `bigint`: from `shift` on, one that is 1 unless the value is NULL, then the value's.
    """

    sent: int
    data_type: pa.DataType | None = None
    shift: int = 0

    def values(self, sent: Sequence[pa.Array]) -> pa.Array:
        """The column's values, exactly as they were packed."""
        values = sent[self.sent]
        if self.data_type is None:
            return values
        if pa.types.is_decimal(self.data_type):
            return _decimals(values, self.data_type)
        return _from_bits(values, self.data_type, self.shift)


def unpacked(
    batch: pa.RecordBatch, columns: Sequence[PackedColumn], before: int
) -> pa.RecordBatch:
    """The batch with the columns c0, c1, … after its first `before` columns, which stay."""
    kept, sent = batch.columns[:before], batch.columns[before:]
    names = [*batch.schema.names[:before], *(f"c{place}" for place in range(len(columns)))]
    return pa.RecordBatch.from_arrays([*kept, *(c.values(sent) for c in columns)], names)


def _decimals(values: pa.Array, data_type: pa.Decimal128Type) -> pa.Array:
    # At most 10 ** 15, the product is less than a quarter off.
    digits = pc.round(pc.multiply(values, float(10**data_type.scale)))
    whole = pc.cast(pc.cast(digits, pa.int64()), pa.decimal128(19, 0))
    return pa.Array.from_buffers(data_type, len(whole), whole.buffers(), whole.null_count)


def _from_bits(lane: pa.Array, data_type: pa.DataType, shift: int) -> pa.Array:
    known, values = _bit(lane, shift), _bit(lane, shift + 1)
    if data_type != pa.bool_():
        unused = 64 - BITS[data_type]
        # To the left end and back, which gives the sign to all bits above.
        bits = pc.shift_right(pc.shift_left(lane, unused - shift - 1), unused)
        integers = pa.int32() if data_type == pa.date32() else data_type
        values = pc.cast(bits, integers).view(data_type)
    if pc.all(known, min_count=0).as_py():
        return values
    return pc.if_else(known, values, pa.scalar(None, data_type))


def _bit(lane: pa.Array, place: int) -> pa.Array:
    return pc.not_equal(pc.bit_wise_and(lane, pa.scalar(1 << place)), pa.scalar(0))
