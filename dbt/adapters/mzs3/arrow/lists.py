"""Lists of any kind, taken apart."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def list_offsets(lists: pa.Array) -> pa.Array:
    """Where each list begins in what `flatten` gives; NULL for a NULL list, and then the end.

    As `from_arrays` of lists and maps takes it: n + 1 numbers of 32 bits.
    """
    ends = list_ends(lists)
    starts = pc.if_else(lists.is_valid(), ends.slice(0, len(lists)), pa.scalar(None, pa.int32()))
    return pa.concat_arrays([starts, ends.slice(len(lists))])


def list_ends(lists: pa.Array) -> pa.Array:
    """0, and where each list ends in what `flatten` gives: n + 1 numbers without NULLs."""
    lengths = pc.fill_null(pc.cast(pc.list_value_length(lists), pa.int32()), 0)
    return running_total(lengths)


def running_total(lengths: pa.Array) -> pa.Array:
    """0, and the sum of the first one, two, … of n numbers: offsets, in the numbers' own type.

    Raises ArrowInvalid if they pass the type's range.
    """
    zero = pa.array([0], lengths.type)
    return pa.concat_arrays([zero, pc.cumulative_sum_checked(lengths)])


def empty_records(mask: pa.Array) -> pa.Array:
    """Structs without fields, NULL where the mask is true."""
    empty = pa.array([{}, None], pa.struct([]))
    return empty.take(pc.if_else(mask, 1, 0))
