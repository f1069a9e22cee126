"""The header of an object, checked against the pinned one."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

from dbt.adapters.mzs3.formats.read.chunks import Chunk
from dbt.adapters.mzs3.formats.read.columns import RecordLayout
from dbt.adapters.mzs3.formats.read.format import EXACT, SUBSET, Reading
from dbt.adapters.mzs3.formats.read.object_error import HEADER, HeaderProblem, shown
from dbt.adapters.mzs3.formats.read.records import MalformedRecord, first_record
from dbt.adapters.mzs3.formats.write.csv.dialect import CsvDialect

FIX_HEADER = (
    "Correct the object or remove it, or narrow `pattern` so that it is left out, then run again"
)


def split_header(
    chunk: Chunk, dialect: CsvDialect, encoding: str
) -> tuple[tuple[str, ...], Chunk]:
    """The names in a chunk's first record, and the chunk behind it. Raises HeaderProblem."""
    try:
        names, end = first_record(chunk.data, dialect, encoding)
    except MalformedRecord as malformed:
        raise malformed_header(str(malformed), chunk.line, chunk.byte) from malformed
    return names, chunk.after(end)


def without_header(
    chunk: Chunk, pinned: Sequence[str], dialect: CsvDialect, reading: Reading
) -> tuple[RecordLayout, Chunk]:
    """The layout of the records, and the first chunk without the header.

    Raises HeaderProblem, also for a malformed one.
    """
    found, rest = split_header(chunk, dialect, reading.encoding)
    return layout_of(found, pinned, reading.header_match, chunk), rest


def layout_of(
    found: Sequence[str], pinned: Sequence[str], match: str, chunk: Chunk | None = None
) -> RecordLayout:
    """Where the columns are in records with this header: one field for each pinned name.

    Case and spaces count. Raises HeaderProblem, for where the chunk is, if they do not match.
    """
    if match == EXACT:
        difference = header_difference(found, pinned)
    else:
        difference = any_order_difference(found, pinned, match)
    if difference is not None:
        line, byte = (chunk.line, chunk.byte) if chunk else (None, None)
        raise HeaderProblem(difference, FIX_HEADER, line=line, byte=byte, cause=HEADER)
    if match == EXACT:
        return RecordLayout.in_order(len(pinned))
    positions = {name: position for position, name in enumerate(found)}
    return RecordLayout(len(found), tuple(positions[name] for name in pinned))


def malformed_header(problem: str, line: int | None, byte: int | None) -> HeaderProblem:
    """The problem of an object whose first record can't be read."""
    return HeaderProblem(f"the header is malformed: {problem}", FIX_HEADER, line=line, byte=byte)


def header_difference(found: Sequence[str], pinned: Sequence[str]) -> str | None:
    """How a header differs from the pinned one, and first where; None if it does not."""
    for number, names in enumerate(itertools.zip_longest(found, pinned), 1):
        if names[0] != names[1]:
            here, there = ("nothing" if name is None else shown(name) for name in names)
            return (
                f"header is {_line(found)} but the source's header is {_line(pinned)}: first "
                f"difference at column {number}, {here} instead of {there}"
            )
    return None


def any_order_difference(found: Sequence[str], pinned: Sequence[str], match: str) -> str | None:
    """How the names of a header, in any order, differ from the pinned ones; None if they do not.

    A subset's header may have others beside the pinned names, even twice.
    """
    difference = name_difference(found, pinned, match)
    if difference is None:
        return None
    return (
        f"header is {_line(found)} but the names of the source's header are {_line(pinned)}, in "
        f"any order: {difference}"
    )


def name_difference(found: Sequence[str], pinned: Sequence[str], match: str) -> str | None:
    """What is missing, doubled or too many among names in any order; None if nothing is."""
    counts = Counter(found)
    wanted = set(counts if match == SUBSET else pinned)
    kinds = [
        [f"{shown(name)} is missing" for name in pinned if name not in counts],
        [f"{shown(name)} is there {counts[name]} times" for name in pinned if counts[name] > 1],
        [f"{shown(name)} is not one of them" for name in counts if name not in wanted],
    ]
    told = [kind[0] for kind in kinds if kind]
    if not told:
        return None
    more = sum(map(len, kinds)) - len(told)
    return ", ".join(told) + (f" ({more} more)" if more else "")


def _line(names: Sequence[str]) -> str:
    return shown(",".join(names), quoted=False)
