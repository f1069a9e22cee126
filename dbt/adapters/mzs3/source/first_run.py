"""What is said of a header by which objects are read, and of a first run that would take nothing.

The header of the first object is what all others are compared with. If that object is none of the
source's, such as a README, all others are wrong by it: so an error names it, and a first run that
leaves out nearly all that there is does not pin it.
"""

from __future__ import annotations

from dbt.adapters.mzs3.formats.read.format import JSONL
from dbt.adapters.mzs3.source.executor.fetch import FetchSpec
from dbt.adapters.mzs3.source.report import objects_hint, reset_hint
from dbt.adapters.mzs3.text import counted

FIRST_OBJECTS = 3
"""Of two objects that differ, nobody could say which is wrong; of one alone, not even that one
is."""


def header_hint(spec: FetchSpec, wrong: str | None = None) -> str:
    """Where the header comes from that the object `wrong` was compared with, and how to get
    another one, to be put behind the error."""
    where = spec.header_from
    if not where.is_found:
        return ""  # it was declared
    if where.is_first and where.origin == wrong and wrong is not None:
        # Of JSON lines, a record was compared with the first one of its object.
        return ". The header that it was compared with is that of the object's first record"
    if where.is_first and where.origin is not None:
        hint = objects_hint("skip_s3_objects", spec.source, [where.origin])
        return (
            f". The header that it was compared with is that of {where.origin}, and is not pinned "
            f"before something is committed: if that object is wrong, leave it out with: {hint}"
        )
    origin = f" is that of {where.origin}" if where.origin else " was found in an earlier object"
    return (
        f". The pinned header{origin}: to pin another one, start with: {reset_hint(spec.source)}"
    )


def least_objects(spec: FetchSpec) -> int:
    """How many objects a run with these takes at least, so that `refusal` can tell."""
    where = spec.header_from
    return FIRST_OBJECTS if where.is_first and where.is_found and spec.reading.skips else 1


def refusal(
    spec: FetchSpec, *, objects: int, read: int, skipped: int, rows: int, rejected: int
) -> str | None:
    """Why a first run is not to be committed that has fetched so many `objects`, of which `read`
    have any record, has `skipped` others, and comes to so many rows; None if it is.

    So is one in which the header of one object lets through no other, and one of rejects alone.
    """
    where, source = spec.header_from, spec.source
    if not where.is_first:
        return None
    if skipped and (read <= 1 if where.is_found else objects == 0):
        text = (
            f"{source}: this first run would skip {counted(skipped, 'object')}, and take "
            f"{read or 'none'} with any record; nothing of it is committed, and nothing pinned. "
        )
        if where.origin is None:
            return text + (
                "No object has the header that is declared. Correct `header`, or the objects, "
                "then run again"
            )
        hint = objects_hint("skip_s3_objects", source, [where.origin])
        return text + (
            f"The header that they were compared with is that of {where.origin}. If that object "
            f"is wrong, leave it out with: {hint}. Or list the names as `header: [name, ...]`, "
            "or narrow `pattern`, then run again"
        )
    # Of JSON lines the first record is what others are compared with.
    by_one = where.is_found and spec.format == JSONL and rows == 1 and rejected > 1
    if rejected and (rows == 0 or by_one):
        return (
            f"{source}: this first run would reject {counted(rejected, 'record')}, and take "
            f"{rows or 'none'}; nothing of it is committed, and nothing pinned"
        )
    return None
