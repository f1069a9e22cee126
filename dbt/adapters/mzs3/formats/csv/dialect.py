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
        newlines, null = {"\n", "\r"}, set(self.null)
        refused = {
            "delimiter and quote must be different": self.delimiter == self.quote,
            "delimiter cannot be newline or carriage return": self.delimiter in newlines,
            "quote cannot be newline or carriage return": self.quote in newlines,
            "null representation cannot use newline or carriage return": newlines & null,
            "delimiter must not appear in the null specification": self.delimiter in null,
            "quote must not appear in the null specification": self.quote in null,
        }
        return found + [problem for problem, is_there in refused.items() if is_there]
