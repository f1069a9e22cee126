"""The CSV dialect that exports write and sources read: PostgreSQL's, with its defaults."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.mzs3.options.option import option
from dbt.adapters.mzs3.options.values import text


@dataclass(frozen=True)
class CsvDialect:
    """Delimiter, quote, escape and NULL text; each character one byte, as in PostgreSQL."""

    delimiter: str = option(text, ",", formats=("csv",), pinned=True)
    """What separates fields: one one-byte character; of a source, also several characters."""
    quote: str = option(text, '"', formats=("csv",), pinned=True)
    """What encloses fields: one one-byte character. Of a source, `''`: nothing does, and [each
    line is a record](s3-csv-source/reading.md#without-quotes)."""
    escape: str = option(text, '"', like="quote", formats=("csv",))
    """What is before a quote inside: one one-byte character. Without it, `quote`."""
    null: str = option(text, "", formats=("csv",), pinned=True)
    """The unquoted text that stands for NULL; an export quotes a value that equals it."""

    def problems(self, _: object = None, *, of_source: bool = False) -> list[str]:
        """The reasons why PostgreSQL's COPY would refuse the dialect, in similar words.

        Of a source, the delimiter may be longer and the quote empty. An escape that equals the
        quote is not checked again.
        """
        names = [] if of_source and len(self.delimiter) > 1 else ["delimiter"]
        names += ["quote"] if self.quote or not of_source else []
        names += ["escape"] if self.escape != self.quote else []
        problems = [
            f"{name} must be a single one-byte character"
            for name in names
            if len(getattr(self, name).encode()) != 1
        ]
        # PostgreSQL's texts can't contain a NUL byte, and sources reject it.
        problems += [
            f"{name} cannot hold a NUL byte"
            for name in ("delimiter", "quote", "escape", "null")
            if "\0" in getattr(self, name)
        ]
        newlines = {"\n", "\r"}
        marks = {"delimiter": self.delimiter, "quote": self.quote}
        if self.quote and self.delimiter == self.quote:
            problems.append("delimiter and quote must be different")
        problems += [
            f"{name} cannot be newline or carriage return"
            for name, mark in marks.items()
            if newlines & set(mark)
        ]
        if newlines & set(self.null):
            problems.append("null representation cannot use newline or carriage return")
        problems += [
            f"{name} must not appear in the null specification"
            for name, mark in marks.items()
            if mark and mark in self.null
        ]
        return problems
