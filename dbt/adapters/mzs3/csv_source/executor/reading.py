"""How strictly objects are read: what becomes of headers and records that are not as declared."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.mzs3.csv_source.executor.encoding import UTF_8

EXACT, REORDER, SUBSET = "exact", "reorder", "subset"
HEADER_MATCHES = (EXACT, REORDER, SUBSET)
FAIL, SKIP_OBJECT, REJECT = "fail", "skip_object", "reject"
ON_HEADER_MISMATCH = (FAIL, SKIP_OBJECT)
ON_BAD_ROW = (FAIL, REJECT)


@dataclass(frozen=True)
class Reading:
    """How objects are read, and what is done with those that are not as declared.

    `max_rejects` is for one run, None for any number. `encoding` is a name as Python's `codecs`
    spells it.
    """

    header_match: str = EXACT
    on_header_mismatch: str = FAIL
    on_bad_row: str = FAIL
    max_rejects: int | None = None
    encoding: str = UTF_8

    @property
    def skips(self) -> bool:
        """Whether an object with another header is left out."""
        return self.on_header_mismatch == SKIP_OBJECT

    @property
    def rejects(self) -> bool:
        """Whether a record that is not right is set aside."""
        return self.on_bad_row == REJECT


def too_many_rejects(source: str, limit: int, first: str) -> str:
    """The error of a run that would reject more records than `limit`; `first` describes one."""
    noun = "record was" if limit == 0 else "records were"
    more_than = "a" if limit == 0 else f"more than {limit}"
    return (
        f"{source}: {more_than} {noun} rejected, and max_rejects is {limit}; nothing of this run "
        f"is committed. The first: {first}. Correct or remove the objects, or raise max_rejects, "
        "then run again"
    )
