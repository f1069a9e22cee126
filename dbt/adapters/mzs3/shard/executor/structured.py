"""The structured encoding: Arrow arrays that other readers of Parquet understand.

Scalars whose stored form is none of Arrow's own are big-endian, so that bytes sort as values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.arrow.arrays import (
    big_endian,
    data_of,
    empty_records,
    fixed_width,
    from_big_endian,
    from_raw,
    joined,
    list_offsets,
    null_where,
    raw_bytes,
    with_one_nan,
)
from dbt.adapters.mzs3.shard.executor.codec.decode import values_of_datums
from dbt.adapters.mzs3.shard.executor.codec.encode import datums
from dbt.adapters.mzs3.shard.types import (
    DIGITS,
    INTERVAL_PARTS,
    LISTS,
    NUMERIC_STORAGE,
    RECORDS,
    Type,
    storage_type,
    wire_type,
)

_SECOND = 1_000_000_000  # nanoseconds
_SIGN = 1 << 63
_LOW = (1 << 32) - 1
_SIGN_OF_32 = 1 << 31

_EXACT_DIGITS = 15  # a double holds every integer of so many
# The first byte of a number that is not negative and has no digits before the point.
_ZERO = 0x80
# After the last digit of a negative number: of two that begin alike, the shorter one is larger.
_END = pa.scalar(b"\xff", pa.binary())

_HEADS = pa.array([bytes([_ZERO + digits]) for digits in range(DIGITS + 1)], pa.binary())
# By the first byte of a number without its sign; what is none of them is no number.
_EXPONENTS = pa.array(
    [b"E%d" % (head - _ZERO) if _ZERO <= head <= _ZERO + DIGITS else b"?" for head in range(256)],
    pa.binary(),
)


def stored(values: pa.Array, kind: Type) -> pa.Array:
    """Values in wire form as files have them; ValueError for one that the type does not have."""
    if kind.name in LISTS:
        elements = stored(values.flatten(), kind.children[0])
        return pa.ListArray.from_arrays(list_offsets(values), elements, type=storage_type(kind))
    if kind.name == "map":
        keys, items = _each(stored, values.flatten().flatten(), kind)
        return pa.MapArray.from_arrays(list_offsets(values), keys, items, type=storage_type(kind))
    if kind.name in RECORDS:
        if not kind.children:
            return pc.if_else(values.is_valid(), pa.scalar(True), pa.scalar(None, pa.bool_()))
        return pa.StructArray.from_arrays(
            _each(stored, values.flatten(), kind),
            fields=list(storage_type(kind)),
            mask=values.is_null(),
        )
    match kind.name:
        case "numeric":
            return stored_numeric(values)
        case "interval":
            return stored_interval(values)
        case "time":
            return stored_time(values)
        case "jsonb":
            return datums(values, kind)
        case "uuid":
            return fixed_width(values, 16)
        case "real" | "double":
            return with_one_nan(values)
    return values.cast(storage_type(kind))


def unstored(values: pa.Array, kind: Type) -> pa.Array:
    """The inverse of `stored`; raises ValueError for bytes that it can't have made."""
    data_type = wire_type(kind)
    if kind.name in LISTS:
        elements = unstored(values.flatten(), kind.children[0])
        return pa.ListArray.from_arrays(list_offsets(values), elements, type=data_type)
    if kind.name == "map":
        lists = values.cast(pa.list_(pa.struct([values.type.key_field, values.type.item_field])))
        entries = pa.StructArray.from_arrays(
            _each(unstored, lists.flatten().flatten(), kind), fields=list(data_type.value_type)
        )
        return pa.ListArray.from_arrays(list_offsets(lists), entries, type=data_type)
    if kind.name in RECORDS:
        if not kind.children:
            return empty_records(values.is_null())
        return pa.StructArray.from_arrays(
            _each(unstored, values.flatten(), kind), fields=list(data_type), mask=values.is_null()
        )
    match kind.name:
        case "numeric":
            return numeric_of(values, data_type)
        case "interval":
            return interval_of(values)
        case "time":
            return time_of(values)
        case "jsonb":
            return values_of_datums(values, kind)
    return values.cast(data_type)


def _each(
    convert: Callable[[pa.Array, Type], pa.Array], children: Sequence[pa.Array], kind: Type
) -> list[pa.Array]:
    return [convert(child, inner) for child, inner in zip(children, kind.children, strict=True)]


def stored_time(times: pa.Array) -> pa.Array:
    """Nanoseconds as seconds and nanoseconds."""
    seconds = pc.divide(times, _SECOND)
    rest = pc.subtract(times, pc.multiply(seconds, _SECOND))
    return fixed_width(
        big_endian(_two_of_32(seconds.cast(pa.uint64()), rest.cast(pa.uint64()))), 8
    )


def time_of(stored: pa.Array) -> pa.Array:
    """The inverse of `stored_time`."""
    seconds, rest = _halves(from_big_endian(stored))
    return pc.add(pc.multiply(seconds, _SECOND), rest)


def stored_interval(intervals: pa.Array) -> pa.Array:
    """Structs of months, days and microseconds, in the order of the three."""
    months, days, micros = intervals.flatten()
    high = _two_of_32(_flipped_32(months), _flipped_32(days))
    low = _flipped_64(micros.view(pa.uint64()))
    stored = fixed_width(joined(big_endian(high), big_endian(low)), 16)
    return null_where(stored, intervals)


def interval_of(stored: pa.Array) -> pa.Array:
    """The inverse of `stored_interval`."""
    high = from_big_endian(pc.binary_slice(stored, 0, 8))
    low = from_big_endian(pc.binary_slice(stored, 8, 16))
    months, days = (pc.subtract(half, _SIGN_OF_32).cast(pa.int32()) for half in _halves(high))
    micros = _flipped_64(low).view(pa.int64())
    return pa.StructArray.from_arrays(
        [months, days, micros], fields=list(INTERVAL_PARTS), mask=stored.is_null()
    )


def _two_of_32(high: pa.Array, low: pa.Array) -> pa.Array:
    """Two `int64` below 2 ** 32 as the halves of one `uint64`."""
    return pc.bit_wise_or(pc.shift_left(high, 32), low).cast(pa.uint64(), safe=False)


def _halves(words: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The upper and the lower 32 bits, as `int64`."""
    high = pc.shift_right(words, pa.scalar(32, pa.uint64()))
    low = pc.bit_wise_and(words, pa.scalar(_LOW, pa.uint64()))
    return high.cast(pa.int64()), low.cast(pa.int64())


def _flipped_32(values: pa.Array) -> pa.Array:
    return pc.add(values.cast(pa.int64()), _SIGN_OF_32)


def _flipped_64(words: pa.Array) -> pa.Array:
    return pc.bit_wise_xor(words, pa.scalar(_SIGN, pa.uint64()))


def stored_numeric(numbers: pa.Array) -> pa.Array:
    """Decimals as the nearest double, and as bytes that are exact.

    The bytes of a number that is not negative: 128 plus the number of its digits before the point,
    these digits in ASCII without leading zeros, and those after the point without trailing zeros.
    Of a negative one: the complement of its opposite's bytes, and 255. So bytes are equal, and
    sort, as the numbers do, whatever their precision and scale.
    """
    opposites = pc.fill_null(pc.less(numbers, pa.scalar(0, numbers.type)), False)
    actual = _digits(pc.abs(numbers))
    if opposites.true_count:
        negative = joined(_turned_over(actual.filter(opposites)), _END)
        actual = pc.replace_with_mask(actual, opposites, negative)
    return pa.StructArray.from_arrays(
        [nearest_doubles(numbers), actual], fields=list(NUMERIC_STORAGE), mask=numbers.is_null()
    )


def numeric_of(stored: pa.Array, data_type: pa.DataType) -> pa.Array:
    """The inverse of `stored_numeric`, as a decimal type.

    Raises ValueError for bytes that it can't have made, or a number that the type does not hold.
    """
    _, actual = stored.flatten()
    opposites = pc.fill_null(pc.less(actual, _HEADS[0]), False)
    if opposites.true_count:
        negative = _turned_over(actual.filter(opposites))
        _require(pc.ends_with(negative, b"\0"))
        negative = pc.binary_slice(negative, 0, -1)
        _require(pc.not_equal(negative, _HEADS[0]))  # there is no negative zero
        actual = pc.replace_with_mask(actual, opposites, negative)
    heads = fixed_width(pc.binary_slice(actual, 0, 1), 1).view(pa.uint8())
    # Without an end, `binary_slice` of pyarrow 26 fails.
    digits = pc.binary_slice(actual, 1, 2 + DIGITS)
    whole = pc.subtract(heads.cast(pa.int32()), _ZERO)
    count = pc.binary_length(digits)
    _require(pc.less_equal(whole, count))
    _require(pc.less_equal(count, DIGITS))
    _require(pc.or_(pc.equal(whole, 0), pc.invert(pc.starts_with(digits, b"0"))))
    _require(pc.or_(pc.equal(whole, count), pc.invert(pc.ends_with(digits, b"0"))))
    signs = pc.if_else(opposites, b"-0.", b"0.")
    texts = joined(signs, digits, _EXPONENTS.take(heads))
    return texts.cast(pa.string()).cast(data_type)


def nearest_doubles(numbers: pa.Array) -> pa.Array:
    """The nearest double of each decimal; a larger decimal never has a smaller one."""
    data_type = numbers.type
    if data_type.precision > _EXACT_DIGITS:
        return numbers.cast(pa.string()).cast(pa.float64())
    # Both are exact as doubles, so their quotient is rounded once.
    unscaled = numbers.view(pa.decimal128(data_type.precision, 0))
    return pc.divide(unscaled.cast(pa.int64()).cast(pa.float64()), 10.0**data_type.scale)


def _digits(numbers: pa.Array) -> pa.Array:
    """The bytes of numbers that are not negative."""
    precision, scale = numbers.type.precision, numbers.type.scale
    unscaled = numbers.view(pa.decimal128(precision, 0)).cast(pa.string())
    padded = pc.ascii_lpad(unscaled, scale, "0")
    whole = pc.ascii_ltrim(pc.utf8_slice_codeunits(padded, 0, -scale) if scale else padded, "0")
    heads = _HEADS.take(pc.binary_length(whole))
    if not scale:
        return joined(heads, whole.cast(pa.binary()))
    after = pc.ascii_rtrim(pc.utf8_slice_codeunits(padded, -scale), "0")
    return joined(heads, whole.cast(pa.binary()), after.cast(pa.binary()))


def _require(holds: pa.Array) -> None:
    """Raise ValueError for bytes that are not the canonical ones of their number."""
    if not pc.all(holds, min_count=0).as_py():
        raise ValueError("a value has not the bytes of a numeric")


def _turned_over(values: pa.Array) -> pa.Array:
    """The complement of `binary` values, at least one and without NULLs."""
    data = data_of(values)
    bits = pc.bit_wise_not(from_raw(pa.uint8(), data, data.size))
    offsets = from_raw(pa.int32(), values.buffers()[1].slice(4 * values.offset), len(values) + 1)
    offsets = pc.subtract(offsets, offsets[0])
    buffers = [None, raw_bytes(offsets, 4), raw_bytes(bits, 1)]
    return pa.Array.from_buffers(pa.binary(), len(values), buffers)
