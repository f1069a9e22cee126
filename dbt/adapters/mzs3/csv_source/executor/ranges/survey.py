"""What has to be known of a range of an object before its records can be told apart.

A newline ends a record if the number of quotes before it is even. Whether that number is even
where a range begins depends on all ranges before it, which other tasks read at the same time. So
a range is surveyed for both cases, and the driver knows afterwards which of them is the case
(the parity method; Ge et al., SIGMOD 2019, call the two passes pessimistic).
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate

NEWLINE = b"\n"


@dataclass(frozen=True)
class Ends:
    """The ends of records in a range, for one of the two cases.

    `first` is the offset behind the first of them, relative to the range; None if there is none.
    `first_line` counts the newlines before that offset, those inside quotes included.
    """

    count: int = 0
    first: int | None = None
    first_line: int = 0


@dataclass(frozen=True)
class Survey:
    """A range: its size in bytes, its quotes and newlines, and its ends of records.

    `outside` holds if the range begins outside quotes, `inside` if it begins inside.
    """

    size: int = 0
    quotes: int = 0
    newlines: int = 0
    outside: Ends = field(default_factory=Ends)
    inside: Ends = field(default_factory=Ends)

    def ends(self, *, inside: bool) -> Ends:
        """The ends of records, given where the range begins."""
        return self.inside if inside else self.outside

    def extended(self, data: bytes, quote: bytes) -> Survey:
        """The survey of a range that goes on with `data`; a few passes in C, none over quotes."""
        pieces = data.split(quote)
        # Every second piece is inside quotes if the data begins outside, and the others if not.
        even, odd = b"".join(pieces[::2]), b"".join(pieces[1::2])
        swapped = self.quotes % 2
        outside = _Found(self.outside, 1 if swapped else 0, odd if swapped else even)
        inside = _Found(self.inside, 0 if swapped else 1, even if swapped else odd)
        return Survey(
            size=self.size + len(data),
            quotes=self.quotes + len(pieces) - 1,
            newlines=self.newlines + data.count(NEWLINE),
            outside=self._and(outside, pieces, data),
            inside=self._and(inside, pieces, data),
        )

    def _and(self, found: _Found, pieces: list[bytes], data: bytes) -> Ends:
        before, more = found.before, found.text.count(NEWLINE)
        if before.first is not None or not more:
            return Ends(before.count + more, before.first, before.first_line)
        behind = _offset(pieces, found.first_piece, found.text.find(NEWLINE)) + 1
        line = self.newlines + data.count(NEWLINE, 0, behind)
        return Ends(before.count + more, self.size + behind, line)


@dataclass(frozen=True)
class _Found:
    """The ends so far, and the text whose newlines are more of them: every second piece."""

    before: Ends
    first_piece: int
    text: bytes


def _offset(pieces: list[bytes], first: int, position: int) -> int:
    """Where in all pieces, with a quote between any two, a position in every second one is."""
    lengths = list(accumulate(map(len, pieces[first::2])))
    index = bisect_right(lengths, position)
    within = position - (lengths[index - 1] if index else 0)
    piece = first + 2 * index
    return sum(map(len, pieces[:piece])) + piece + within
