"""Cuts a chunk into its records where something in it is wrong, in passes over its bytes in C.

The rule for quotes in the wrong place: a record with one ends with the line on which it is, and
the next line starts a record; a quoted field that is never closed takes in all that follows.
Anything else that is wrong leaves the end of a record where it is.
"""

from __future__ import annotations

import itertools
import operator
import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate

from dbt.adapters.mzs3.csv_source.executor.encoding import invalid_utf8

# Where a quote is wrong, the next is perhaps near.
WINDOW_BYTES = 4 * 1024


@dataclass
class Cut:
    """Where the records of a chunk start, up to `end`; the numbers, from 0, of malformed ones.

    A record is malformed for what `records` says so of, and a blank line where `blank` is wrong.
    """

    starts: list[int] = field(default_factory=list)
    end: int = 0
    malformed: set[int] = field(default_factory=set)

    def record(self, data: bytes, number: int) -> bytes:
        """The bytes of a record, its line end included."""
        following = self.starts[number + 1] if number + 1 < len(self.starts) else self.end
        return data[self.starts[number] : following]

    def _mark(self, places: Iterable[int]) -> None:
        self.malformed.update(bisect_right(self.starts, place) - 1 for place in places)


def cut_records(
    data: bytes, delimiter: bytes, quote: bytes, *, last: bool, blank_is_wrong: bool
) -> Cut:
    """The records of data that starts with one.

    Unless it is the `last` of its object, a record whose end is not there is left, behind
    `Cut.end`.
    """
    scan = _Scan(data, delimiter, quote, last, blank_is_wrong)
    cut = scan.run()
    if b"\0" in data:
        scan.found += [match.start() for match in re.finditer(b"\0", data)]
    places = [*scan.found, *invalid_utf8(data)]
    cut._mark(place for place in places if place < cut.end)
    return cut


class _Scan:
    """Goes over the data once, in one piece until a quote is wrong, then in small ones."""

    def __init__(
        self, data: bytes, delimiter: bytes, quote: bytes, last: bool, blank_is_wrong: bool
    ) -> None:
        self._data = data
        self._delimiter = delimiter
        self._quote = quote
        self._last = last
        self._blank_is_wrong = blank_is_wrong
        # Behind text, or before it: a pattern that starts with a literal is searched for fastest.
        # No field begins behind a carriage return; one may end before it, that of a line's end.
        self._stray = re.compile(
            b"%b(?:(?<=[^\n%b]%b)|(?=[^\r\n%b]))"
            % (re.escape(quote), re.escape(delimiter + quote), re.escape(quote),
               re.escape(delimiter + quote))
        )  # fmt: skip
        self._cut = Cut()
        self.found: list[int] = []

    def run(self) -> Cut:
        """The records, without what is wrong inside them: that is `found`."""
        window = len(self._data)
        while self._cut.end < len(self._data):
            start = self._cut.end
            masked = mask(self._data[start : start + window], self._delimiter, self._quote)
            stray = self._stray.search(masked)
            end = masked.rfind(b"\n", 0, stray.start() if stray else len(masked)) + 1
            self._take(masked[:end])
            if stray is not None:
                if not self._take_malformed(start + stray.start()):
                    break
                window = WINDOW_BYTES
            elif start + window >= len(self._data):
                if end < len(masked) and self._last:
                    self._take_tail(masked[end:])
                break
            else:
                window *= 2
        return self._cut

    def _take(self, masked: bytes) -> None:
        """Whole records that begin at the end of the cut."""
        if not masked:
            return
        cut = self._cut
        # In C throughout: the line ends, one byte each, are added by counting.
        lengths = list(map(len, masked.split(b"\n")))[:-1]
        ends = accumulate(lengths[:-1], initial=cut.end)
        starts = list(map(operator.add, ends, itertools.count()))
        if self._blank_is_wrong and (0 in lengths or 1 in lengths):
            lines = zip(starts, lengths, strict=True)
            self.found += [at for at, length in lines if length < 2 and self._is_blank(at)]
        self._find_lone_returns(masked)
        cut.starts += starts
        cut.end += len(masked)

    def _is_blank(self, at: int) -> bool:
        return self._data.startswith((b"\n", b"\r\n"), at)

    def _find_lone_returns(self, masked: bytes) -> None:
        if b"\r" in masked and masked.count(b"\r") != masked.count(b"\r\n"):
            places = re.finditer(rb"\r(?!\n)", masked)
            self.found += [self._cut.end + place.start() for place in places]

    def _take_malformed(self, wrong: int) -> bool:
        """The record with a quote that is wrong; False if its end is not there."""
        newline = self._data.find(b"\n", wrong)
        if newline < 0 and not self._last:
            return False
        self._cut.malformed.add(len(self._cut.starts))
        self._cut.starts.append(self._cut.end)
        self._cut.end = len(self._data) if newline < 0 else newline + 1
        return True

    def _take_tail(self, masked: bytes) -> None:
        """The last record of the object, without a newline; perhaps a quote is not closed."""
        cut = self._cut
        self._find_lone_returns(masked)
        if self._data.count(self._quote, cut.end) % 2:
            cut.malformed.add(len(cut.starts))
        cut.starts.append(cut.end)
        cut.end = len(self._data)


def mask(data: bytes, delimiter: bytes, quote: bytes) -> bytes:
    """The data, as long as it is, with nothing but delimiters inside quotes."""
    if quote not in data:
        return data
    pieces = data.split(quote)
    pieces[1::2] = [delimiter * len(piece) for piece in pieces[1::2]]
    return quote.join(pieces)
