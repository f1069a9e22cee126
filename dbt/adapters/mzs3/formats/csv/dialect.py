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
        if self.delimiter == self.quote:
            found.append("delimiter and quote must be different")
        if self.delimiter in ("\n", "\r"):
            found.append("delimiter cannot be newline or carriage return")
        if self.quote in ("\n", "\r"):
            found.append("quote cannot be newline or carriage return")
        if "\n" in self.null or "\r" in self.null:
            found.append("null representation cannot use newline or carriage return")
        if self.delimiter and self.delimiter in self.null:
            found.append("delimiter must not appear in the null specification")
        if self.quote and self.quote in self.null:
            found.append("quote must not appear in the null specification")
        return found
