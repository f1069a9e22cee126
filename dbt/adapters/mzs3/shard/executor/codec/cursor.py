"""Many messages read at once: a position in each, moved over the same fields in all of them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.arrow.buffers import data_of
from dbt.adapters.mzs3.arrow.lists import running_total

_MORE = 0x80  # another byte of the number follows
_MOST_BYTES = 5  # of a length below 2 ** 31


class DamagedError(ValueError):
    """Bytes that no codec of ours has written."""


class Cursor:
    """Positions in `binary` values without NULLs, from their starts; moved value by value alike.

    Every method raises DamagedError if a value does not go on as it says.
    """

    def __init__(self, values: pa.Array) -> None:
        self._data = data_of(values)
        self._bytes = pa.Array.from_buffers(pa.uint8(), self._data.size, [None, self._data])
        ends = running_total(pc.binary_length(values))
        self._at = ends.slice(0, len(values))
        self._ends = ends.slice(1)

    def expect(self, key: bytes) -> None:
        """Pass these bytes, which every value has here."""
        for byte in key:
            if not pc.all(pc.equal(self._byte(), byte), min_count=0).as_py():
                raise DamagedError("a field is not where the codec puts it")

    def varint(self) -> pa.Array:
        """Pass a number, `int32`."""
        byte = self._byte()
        more = pc.greater_equal(byte, _MORE)
        number = pc.bit_wise_and(byte, 0x7F)
        for place in range(1, _MOST_BYTES):
            if not pc.any(more).as_py():
                return self._number(number)
            byte = pc.if_else(more, self._peek(more), 0)
            self._at = pc.add(self._at, more.cast(pa.int32()))
            part = pc.shift_left(pc.bit_wise_and(byte, 0x7F), pa.scalar(7 * place, pa.int64()))
            number = pc.bit_wise_or(number, part)
            more = pc.greater_equal(byte, _MORE)
        if pc.any(more).as_py():
            raise DamagedError("a length has no end")
        return self._number(number)

    def take(self, sizes: pa.Array) -> pa.Array:
        """Pass so many bytes of each value, which come as `binary`."""
        start = self._at
        self.skip(sizes)
        return self._between(start, self._at)

    def skip(self, sizes: pa.Array) -> None:
        """Pass so many bytes of each value."""
        moved = pc.add(self._at, sizes)
        if not pc.all(pc.less_equal(moved, self._ends), min_count=0).as_py():
            raise DamagedError("a field ends behind its message")
        self._at = moved

    def rest(self) -> pa.Array:
        """What is left of each value, as `binary`."""
        start, self._at = self._at, self._ends
        return self._between(start, self._ends)

    def finish(self) -> None:
        """Every value is passed to its end."""
        if not self._at.equals(self._ends):
            raise DamagedError("a message is longer than its fields")

    def _byte(self) -> pa.Array:
        """The next byte of each value, `int64`."""
        byte = self._peek(None)
        self._at = pc.add(self._at, pa.scalar(1, pa.int32()))
        return byte

    def _peek(self, where: pa.Array | None) -> pa.Array:
        """The byte at each position, of those that matter."""
        inside = pc.less(self._at, self._ends)
        needed = inside if where is None else pc.or_(inside, pc.invert(where))
        if not pc.all(needed, min_count=0).as_py():
            raise DamagedError("a message ends within a field")
        if not self._bytes:
            return pa.array([], pa.int64())
        at = self._at if where is None else pc.if_else(where, self._at, 0)
        return self._bytes.take(at).cast(pa.int64())

    def _number(self, number: pa.Array) -> pa.Array:
        if not pc.all(pc.less(number, 1 << 31), min_count=0).as_py():
            raise DamagedError("a length is larger than any message")
        return number.cast(pa.int32())

    def _between(self, starts: pa.Array, ends: pa.Array) -> pa.Array:
        """The bytes between the two: of pieces that touch, every second one."""
        length = len(starts)
        if not length:
            return pa.array([], pa.binary())
        high = pc.shift_left(ends.cast(pa.int64()), pa.scalar(32, pa.int64()))
        both = pc.bit_wise_or(high, starts.cast(pa.int64()))
        pieces = pa.Array.from_buffers(
            pa.binary(), 2 * length - 1, [None, both.buffers()[1], self._data]
        )
        every_second = pa.py_buffer(b"\x55" * (length // 4 + 1))
        mask = pa.Array.from_buffers(pa.bool_(), 2 * length - 1, [None, every_second])
        return pieces.filter(mask)
