"""The CSV dialect that exports write and sources read: PostgreSQL's, with its defaults."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CsvDialect:
    """Delimiter, quote, escape and NULL text; each character one byte, as in PostgreSQL."""

    delimiter: str = ","
    quote: str = '"'
    escape: str = '"'
    null: str = ""

    def problems(self) -> list[str]:
        """All that PostgreSQL's COPY would refuse, in words like its own; none if it is usable."""
        found = [
            f"{name} must be a single one-byte character"
            for name in ("delimiter", "quote", "escape")
            if len(getattr(self, name).encode()) != 1
        ]
        newlines = {"\n", "\r"}
        marks = {"delimiter": self.delimiter, "quote": self.quote}
        if self.delimiter == self.quote:
            found.append("delimiter and quote must be different")
        found += [
            f"{name} cannot be newline or carriage return"
            for name, mark in marks.items()
            if mark in newlines
        ]
        if newlines & set(self.null):
            found.append("null representation cannot use newline or carriage return")
        found += [
            f"{name} must not appear in the null specification"
            for name, mark in marks.items()
            if mark and mark in self.null
        ]
        return found
