"""The structured encoding: Arrow arrays that other readers of Parquet understand.

Scalars that Arrow lacks are stored as big-endian bytes, which sort in the order of the values.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.arrow.arrays import (
    big_endian,
    concat_binary,
    concatenated_bytes,
    empty_records,
    fixed_width,
    from_big_endian,
    from_raw,
    list_offsets,
    null_where,
    raw_bytes,
    with_one_nan,
)
from dbt.adapters.mzs3.shard.codec.decode import values_of_datums
from dbt.adapters.mzs3.shard.codec.encode import datums
from dbt.adapters.mzs3.shard.types import (
    INTERVAL_PARTS,
    NUMERIC_STORAGE,
    RECORDS,
    SCALARS,
    Type,
    storage_type,
    wire_type,
)
from dbt.adapters.mzs3.types.table import MAX_DIGITS

_SECOND = 1_000_000_000  # nanoseconds
# The months, days and microseconds of an interval, by their offsets.
_INTERVAL_WORDS = {0: pa.uint32(), 4: pa.uint32(), 8: pa.uint64()}

_EXACT_DIGITS = 15  # a double can hold every integer with this many digits
# The first byte of a number >= 0 without digits before the point.
_ZERO = 0x80
# Ends a negative number: if one is the beginning of another, the shorter one sorts last.
_END = pa.scalar(b"\xff", pa.binary())

_HEADS = pa.array([bytes([_ZERO + digits]) for digits in range(MAX_DIGITS + 1)], pa.binary())
# Exponents by the first byte of an absolute value; `?` for invalid first bytes.
_EXPONENTS = pa.array(
    [
        b"E%d" % (head - _ZERO) if _ZERO <= head <= _ZERO + MAX_DIGITS else b"?"
        for head in range(256)
    ],
    pa.binary(),
)


def to_storage(values: pa.Array, kind: Type) -> pa.Array:
    """Converts values from wire form to the files' form. Raises ValueError for invalid values."""
    data_type = storage_type(kind)
    match kind.name:
        case "record" if not kind.children:
            return null_where(pa.repeat(True, len(values)), values)
        case "numeric":
            return numeric_to_storage(values)
        case "interval":
            words = zip(values.flatten(), _INTERVAL_WORDS.values(), strict=True)
            parts = [big_endian(_flip_sign(part.view(word))) for part, word in words]
            return fixed_width(concat_binary(*parts), 16)
        case "time":
            seconds = pc.divide(values, _SECOND)
            nanos = pc.subtract(values, pc.multiply(seconds, _SECOND))
            halves = pc.bit_wise_or(pc.shift_left(seconds, 32), nanos)
            return fixed_width(big_endian(halves.cast(pa.uint64())), 8)
        case "jsonb":
            return datums(values, kind)
        case "uuid":
            return fixed_width(values, 16)
        case "real" | "double":
            return with_one_nan(values)
    if kind.name in SCALARS:
        return values.cast(data_type)
    return _of_each_child(to_storage, values, kind, data_type)


def from_storage(values: pa.Array, kind: Type) -> pa.Array:
    """The inverse of `to_storage`. Raises ValueError for bytes that it can't have written."""
    data_type = wire_type(kind)
    match kind.name:
        case "record" if not kind.children:
            return empty_records(values.is_null())
        case "map":
            entry = pa.struct([values.type.key_field, values.type.item_field])
            values = values.cast(pa.list_(entry))
        case "numeric":
            return numeric_from_storage(values, data_type)
        case "interval":
            parts = []
            for (start, word), field in zip(_INTERVAL_WORDS.items(), INTERVAL_PARTS, strict=True):
                data = pc.binary_slice(values, start, start + word.bit_width // 8)
                parts.append(_flip_sign(from_big_endian(data, word)).view(field.type))
            return pa.StructArray.from_arrays(parts, fields=list(data_type), mask=values.is_null())
        case "time":
            halves = from_big_endian(values, pa.uint64())
            seconds = pc.shift_right(halves, pa.scalar(32, pa.uint64())).cast(data_type)
            nanos = pc.bit_wise_and(halves, pa.scalar((1 << 32) - 1, pa.uint64())).cast(data_type)
            return pc.add(pc.multiply(seconds, _SECOND), nanos)
        case "jsonb":
            return values_of_datums(values, kind)
    if kind.name in SCALARS:
        return values.cast(data_type)
    return _of_each_child(from_storage, values, kind, data_type)


def _of_each_child(
    convert: Callable[[pa.Array, Type], pa.Array],
    values: pa.Array,
    kind: Type,
    data_type: pa.DataType,
) -> pa.Array:
    """Converts the values inside lists and records. The values of maps are lists of records."""
    if kind.name in RECORDS:
        pairs = zip(values.flatten(), kind.children, strict=True)
        children = [convert(part, inner) for part, inner in pairs]
        mask = values.is_null()
        return pa.StructArray.from_arrays(children, fields=list(data_type), mask=mask)
    elements = convert(values.flatten(), kind.element)
    if pa.types.is_map(data_type):
        entries = elements.flatten()
        return pa.MapArray.from_arrays(list_offsets(values), *entries, type=data_type)
    return pa.ListArray.from_arrays(list_offsets(values), elements, type=data_type)


def _flip_sign(words: pa.Array) -> pa.Array:
    return pc.bit_wise_xor(words, pa.scalar(1 << (words.type.bit_width - 1), words.type))


def numeric_to_storage(numbers: pa.Array) -> pa.Array:
    """Decimals as the nearest double, and as exact bytes.

    The bytes of a number >= 0 are 128 plus the number of digits before the point, these digits in
    ASCII without leading zeros, and the digits after the point without trailing zeros. The bytes
    of a negative number are the complement of its absolute value's bytes, and 255. Thus bytes
    compare like the numbers, whatever their precision and scale.
    """
    are_negative = pc.fill_null(pc.less(numbers, pa.scalar(0, numbers.type)), False)
    actual = _digits(pc.abs(numbers))
    if are_negative.true_count:
        negative = concat_binary(_complement(actual.filter(are_negative)), _END)
        actual = pc.replace_with_mask(actual, are_negative, negative)
    return pa.StructArray.from_arrays(
        [nearest_doubles(numbers), actual], fields=list(NUMERIC_STORAGE), mask=numbers.is_null()
    )


def numeric_from_storage(stored: pa.Array, data_type: pa.DataType) -> pa.Array:
    """The inverse of `numeric_to_storage`, with the decimal type `data_type`.

    Raises ValueError for bytes that it can't have written, or a number too large for the type.
    """
    _, actual = stored.flatten()
    are_negative = pc.fill_null(pc.less(actual, _HEADS[0]), False)
    if are_negative.true_count:
        negative = _complement(actual.filter(are_negative))
        _require(pc.ends_with(negative, b"\0"))
        negative = pc.binary_slice(negative, 0, -1)
        _require(pc.not_equal(negative, _HEADS[0]))  # there is no negative zero
        actual = pc.replace_with_mask(actual, are_negative, negative)
    heads = fixed_width(pc.binary_slice(actual, 0, 1), 1).view(pa.uint8())
    # With an end, as `binary_slice` of pyarrow 26 fails without one.
    digits = pc.binary_slice(actual, 1, 2 + MAX_DIGITS)
    whole = pc.subtract(heads.cast(pa.int32()), _ZERO)
    count = pc.binary_length(digits)
    _require(pc.less_equal(whole, count))
    _require(pc.less_equal(count, MAX_DIGITS))
    _require(pc.or_(pc.equal(whole, 0), pc.invert(pc.starts_with(digits, b"0"))))
    _require(pc.or_(pc.equal(whole, count), pc.invert(pc.ends_with(digits, b"0"))))
    signs = pc.if_else(are_negative, b"-0.", b"0.")
    texts = concat_binary(signs, digits, _EXPONENTS.take(heads))
    return texts.cast(pa.string()).cast(data_type)


def nearest_doubles(numbers: pa.Array) -> pa.Array:
    """The nearest double of each decimal; keeps the order, but may make different values equal."""
    data_type = numbers.type
    if data_type.precision > _EXACT_DIGITS:
        return numbers.cast(pa.string()).cast(pa.float64())
    # Both are exact as doubles, so their quotient is rounded once.
    unscaled = numbers.view(pa.decimal128(data_type.precision, 0))
    return pc.divide(unscaled.cast(pa.int64()).cast(pa.float64()), 10.0**data_type.scale)


def _digits(numbers: pa.Array) -> pa.Array:
    """The exact bytes of numbers that are not negative."""
    precision, scale = numbers.type.precision, numbers.type.scale
    unscaled = numbers.view(pa.decimal128(precision, 0)).cast(pa.string())
    padded = pc.ascii_lpad(unscaled, scale, "0")
    whole = pc.ascii_ltrim(pc.utf8_slice_codeunits(padded, 0, -scale) if scale else padded, "0")
    heads = _HEADS.take(pc.binary_length(whole))
    if not scale:
        return concat_binary(heads, whole.cast(pa.binary()))
    after = pc.ascii_rtrim(pc.utf8_slice_codeunits(padded, -scale), "0")
    return concat_binary(heads, whole.cast(pa.binary()), after.cast(pa.binary()))


def _require(holds: pa.Array) -> None:
    """Raises ValueError unless `holds` is true for all numbers: other bytes are not canonical."""
    if not pc.all(holds, min_count=0).as_py():
        raise ValueError("a value has not the bytes of a numeric")


def _complement(values: pa.Array) -> pa.Array:
    """The bitwise complement of `binary` values. Needs at least one value, and no NULLs."""
    data = concatenated_bytes(values)
    bits = pc.bit_wise_not(from_raw(pa.uint8(), data, data.size))
    offsets = from_raw(pa.int32(), values.buffers()[1].slice(4 * values.offset), len(values) + 1)
    offsets = pc.subtract(offsets, offsets[0])
    buffers = [None, raw_bytes(offsets, 4), raw_bytes(bits, 1)]
    return pa.Array.from_buffers(pa.binary(), len(values), buffers)
