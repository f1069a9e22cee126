"""Compares the header of an object with the pinned header."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from dbt.adapters.mzs3.formats.read.chunks import Chunk
from dbt.adapters.mzs3.formats.read.columns import RecordLayout
from dbt.adapters.mzs3.formats.read.dialect import SourceDialect, delimiter_option
from dbt.adapters.mzs3.formats.read.format import EXACT, REORDER, SUBSET
from dbt.adapters.mzs3.formats.read.object_error import HEADER, HeaderProblem, excerpt
from dbt.adapters.mzs3.formats.read.records import MalformedRecord, first_record

FIX_HEADER = (
    "Correct the object or remove it, or narrow `pattern` so that it is left out, then run again"
)
PREAMBLE = "; or set skip_lines, if other lines precede the header"


def split_header(
    chunk: Chunk, dialect: SourceDialect, encoding: str
) -> tuple[tuple[str, ...], Chunk]:
    """The names in a chunk's first record, and the rest of the chunk. Raises HeaderProblem."""
    try:
        names, end = first_record(chunk.data, dialect, encoding)
    except MalformedRecord as malformed:
        option = PREAMBLE + (f"; or set {malformed.option}" if malformed.option else "")
        raise malformed_header(str(malformed), chunk.line, chunk.byte, option) from malformed
    names = tuple(dialect.ends_swapped(name.encode()).decode() for name in names)
    return names, chunk.after(end)


def layout_of(
    found: Sequence[str],
    pinned: Sequence[str],
    match: str,
    chunk: Chunk | None = None,
    *,
    added: Collection[int] = (),
) -> RecordLayout:
    """The position of each pinned column in records whose header is `found`.

    Case and spaces matter. With `subset` the header may also have other names, and those may
    repeat; a pinned name must occur once, or may be missing if its place is among the `added`.
    Raises HeaderProblem, at the start of the chunk, for names that do not match.
    """
    missing = tuple(place for place in added if pinned[place] not in found)
    expected = [name for place, name in enumerate(pinned) if place not in missing]
    if match == EXACT:
        difference = header_difference(found, expected)
    elif difference := name_difference(found, expected, match):
        difference = (
            f"header is {_joined(found)} but the names of the source's header are "
            f"{_joined(expected)}, in any order: {difference}"
        )
    if difference is not None:
        line, byte = (chunk.line, chunk.byte) if chunk else (None, None)
        advice = FIX_HEADER + (PREAMBLE + _delimiter(found, len(pinned)) if chunk else "")
        if {*found} - {*expected} and _begins_with(found, expected, match):
            advice += "; or set on_new_columns: add"
        raise HeaderProblem(difference, advice, line=line, byte=byte, cause=HEADER)
    if match == EXACT:
        return replace(RecordLayout.in_order(len(expected)), missing=missing)
    positions = {name: position for position, name in enumerate(found)}
    return RecordLayout(len(found), tuple(positions[name] for name in expected), missing)


def _begins_with(found: Sequence[str], expected: Sequence[str], match: str) -> bool:
    """Whether all expected names are there once, in their places if the order matters."""
    if match == REORDER:
        return len(found) == len({*found}) and {*expected} <= {*found}
    return match == EXACT and [*found[: len(expected)]] == [*expected]


def malformed_header(
    problem: str, line: int | None, byte: int | None, option: str = ""
) -> HeaderProblem:
    """The error for an object whose first record can't be read."""
    text = f"the header is malformed: {problem}"
    return HeaderProblem(text, FIX_HEADER + option, line=line, byte=byte)


def _delimiter(found: Sequence[str], width: int) -> str:
    option = delimiter_option(found, width)
    return f"; or set {option}" if option else ""


def header_difference(found: Sequence[str], pinned: Sequence[str]) -> str | None:
    """How a header differs from the pinned one, with the first column that differs; or None."""
    for number, names in enumerate(itertools.zip_longest(found, pinned), 1):
        if names[0] != names[1]:
            found_name, pinned_name = (
                "nothing" if name is None else excerpt(name) for name in names
            )
            return (
                f"header is {_joined(found)} but the source's header is {_joined(pinned)}: first "
                f"difference at column {number}, {found_name} instead of {pinned_name}"
            )
    return None


def name_difference(found: Sequence[str], pinned: Sequence[str], match: str) -> str | None:
    """Which names are missing, duplicated or unexpected, whatever their order; None if none."""
    counts = Counter(found)
    allowed = set(counts if match == SUBSET else pinned)
    kinds = [
        [f"{excerpt(name)} is missing" for name in pinned if name not in counts],
        [f"{excerpt(name)} is there {counts[name]} times" for name in pinned if counts[name] > 1],
        [f"{excerpt(name)} is not one of them" for name in counts if name not in allowed],
    ]
    firsts = [kind[0] for kind in kinds if kind]
    if not firsts:
        return None
    more = sum(map(len, kinds)) - len(firsts)
    return ", ".join(firsts) + (f" ({more} more)" if more else "")


def _joined(names: Sequence[str]) -> str:
    return excerpt(",".join(names), quoted=False)
