"""Counting the records of CSV, without reading their fields."""

from __future__ import annotations

import re

from dbt.adapters.mzs3.formats.dialect import CsvDialect

# Cutting a block at its quotes takes many times its size if it is all quotes and newlines.
BLOCK_BYTES = 256 << 10


class RecordCounter:
    """Counts the newlines outside of quotes, as PostgreSQL tells them, in text fed in pieces.

    Exact for what exports write: a quote opens a field or is in quotes. `is_inside` says whether
    the text so far ends within quotes. Memory: a block.
    """

    def __init__(self, dialect: CsvDialect) -> None:
        self.records = 0
        self._quote = dialect.quote.encode()
        self._escape = dialect.escape.encode()
        self.is_inside = False
        self._held = b""
        self._others = bytes(byte for byte in range(256) if byte not in self._quote + b"\n")
        # Then an escape in front of a quote may be one that ends a field or a record.
        self._ambiguous = dialect.escape in (dialect.delimiter, "\n")
        quote, escape = re.escape(self._quote), re.escape(self._escape)
        inner = b"[^%b%b]*" % (quote, escape)
        # From a quote to what ends the stretch: a quote, or the text, which may cut an escape off.
        self._stretch = re.compile(
            b"%b%b(?:%b.%b)*(%b|%b?\\Z)" % (quote, inner, escape, inner, quote, escape), re.DOTALL
        )

    def feed(self, text: bytes) -> None:
        """Count the records that end in this piece, of BLOCK_BYTES at most."""
        if self._escape == self._quote:
            self._count(text)
        elif self._ambiguous:
            self._cut(text)
        else:
            self._count(self._unescaped(text))

    def _count(self, block: bytes) -> None:
        """The newlines of every second stretch between quotes."""
        if self._quote not in block:
            self.records += 0 if self.is_inside else block.count(b"\n")
            return
        # Two quotes without a newline between them change nothing, and are most of them.
        marks = block.translate(None, self._others).replace(self._quote * 2, b"")
        stretches = marks.split(self._quote)
        self.records += b"".join(stretches[int(self.is_inside) :: 2]).count(b"\n")
        self.is_inside ^= len(stretches) % 2 == 0

    def _unescaped(self, block: bytes) -> bytes:
        """The block without escaped characters.

        Outside of quotes an escape means nothing, and is never in front of a quote; so removing
        them there too changes no record. A run of escapes at the end waits for what follows.
        """
        text = self._held + block
        if self._escape not in text:
            return text
        run = len(text) - len(text.rstrip(self._escape))
        self._held = self._escape * (run % 2)
        if run:
            text = text[:-run]
        return text.replace(self._escape * 2, b"").replace(self._escape + self._quote, b"")

    def _cut(self, block: bytes) -> None:
        """The newlines between quoted stretches, for dialects in which nothing less will do."""
        pieces = self._stretch.split(self._quote * self.is_inside + self._held + block)
        self.records += b"".join(pieces[::2]).count(b"\n")
        end = pieces[-2] if len(pieces) > 1 else self._quote
        self.is_inside = end != self._quote
        self._held = end if self.is_inside else b""
