"""Puts quotes around the values of a text column that need them.

All arrays are `large_string`, whose 64-bit offsets fit any batch. One `memchr` over a column's
data buffer finds whether the column contains a special byte. Only then are the values checked one
by one, and only those with such a byte are rewritten.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

# C's isspace: PostgreSQL quotes values inside arrays and records that contain one of these.
WHITESPACE = " \t\n\v\f\r"
# An index past the end of every text.
_PAST_END = 1 << 62


def text_scalar(text: str) -> pa.Scalar:
    """`text` as `large_string`; Arrow's functions do not accept mixed string types."""
    return pa.scalar(text, pa.large_string())


def concat(*parts: pa.Array | str) -> pa.Array:
    """The parts joined row by row; NULL where a part is NULL."""
    texts = [text_scalar(part) if isinstance(part, str) else part for part in parts]
    return pc.binary_join_element_wise(*texts, text_scalar(""))


def append(values: pa.Array, ending: str) -> pa.Array:
    """Each text followed by `ending`; four times as fast as `concat`. NULL stays NULL."""
    return pc.binary_replace_slice(values, _PAST_END, _PAST_END, ending)


def fill_nulls(values: pa.Array, text: str) -> pa.Array:
    """The values, with `text` in place of NULL."""
    if values.null_count == 0:
        return values
    if text == "" and values.offset == 0:
        # Usually a NULL has no bytes: without the validity bitmap it is an empty text.
        _, offsets, data = values.buffers()
        bare = pa.Array.from_buffers(values.type, len(values), [None, offsets, data])
        all_bytes, bytes_of_texts = (
            pc.sum(pc.binary_length(each), min_count=0) for each in (bare, values)
        )
        if all_bytes == bytes_of_texts:
            return bare
    return pc.fill_null(values, text_scalar(text))


class TextBytes:
    """The bytes of a `large_string` or `large_binary` array, to check all values at once, fast.

    `values` is the array, with buffers that start at its first value; `data` is the text of all
    values, concatenated.
    """

    def __init__(self, values: pa.Array) -> None:
        self.values = _starting_at_zero(values)
        self.data = b""
        buffer = self.values.buffers()[2]
        if len(values) and buffer is not None:
            self.data = bytes(buffer.slice(0, _offset(self.values, len(values))).to_pybytes())

    def mask_where(self, *, contains: str, equals: Sequence[str] = ()) -> pa.Array | None:
        """A mask of the values that contain one of the one-byte characters in `contains`, or equal
        one of the texts in `equals`; None if no value does."""
        masks = [self._containing(contains), *map(self._equal_to, equals)]
        needed = [mask for mask in masks if mask is not None]
        return reduce(pc.or_, needed) if needed else None

    def _containing(self, characters: str) -> pa.Array | None:
        """A mask of the values that contain one of the characters, or None. Maps their bytes to 1,
        others to 0: a mapped value is greater than a long run of zeros exactly if it contains a 1.
        So there is one comparison per value, for any number of characters."""
        present = [c for c in characters.encode() if bytes((c,)) in self.data]
        if not present:
            return None
        flags = self.data.translate(bytes(byte in present for byte in range(256)))
        validity, offsets, _ = self.values.buffers()
        mapped = pa.Array.from_buffers(
            pa.large_binary(), len(self.values), [validity, offsets, pa.py_buffer(flags)]
        )
        longest = pc.max(pc.binary_length(mapped)).as_py() or 0
        return pc.greater(mapped, pa.scalar(bytes(longest), pa.large_binary()))

    def _equal_to(self, text: str) -> pa.Array | None:
        if text == "":
            lengths = pc.binary_length(self.values)
            return pc.equal(lengths, 0) if pc.min(lengths).as_py() == 0 else None
        has_text = text.encode() in self.data
        return pc.equal(self.values, text_scalar(text)) if has_text else None


def quote_values(
    values: pa.Array, mask: pa.Array | None, quote: str, replacements: Mapping[str, str]
) -> pa.Array:
    """Puts quotes around the values under `mask`, after all `replacements` in them, in order.

    Other values, NULLs included, stay as they are. `mask` is None if no value needs quotes.
    """
    if mask is None:
        return values
    mask = pc.fill_null(mask, False)
    # If most values need quotes, it is faster to quote all of them and select afterwards.
    is_majority = 2 * mask.true_count > len(values)
    inner = values if is_majority else values.filter(mask)
    data = TextBytes(inner).data
    for special, replacement in replacements.items():
        if special.encode() in data:
            inner = pc.replace_substring(inner, special, replacement)
    in_quotes = pc.binary_replace_slice(append(inner, quote), 0, 0, quote)
    if is_majority:
        return pc.if_else(mask, in_quotes, values)
    return pc.replace_with_mask(values, mask, in_quotes)


def escapes(quote: str, escape: str) -> dict[str, str]:
    """The replacements that put `escape` before each quote and each escape."""
    # The escape first: the escapes before quotes must not be doubled.
    return {escape: escape + escape, quote: escape + quote}


def _starting_at_zero(values: pa.Array) -> pa.Array:
    """The same values, copied to buffers of their own if `values` is part of a larger array.

    Some of Arrow's functions, such as `ascii_upper`, return wrong text if an array's first offset
    is not 0, as in casts of slices.
    """
    if len(values) == 0 or (values.offset == 0 and _offset(values, 0) == 0):
        return values
    return pa.concat_arrays([values.slice(0, 0), values])


def _offset(values: pa.Array, index: int) -> int:
    return int(struct.unpack_from("<q", values.buffers()[1], 8 * index)[0])
