"""Whether S3's answer to a GET is the part of the object that was asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dbt.adapters.mzs3.csv_source.executor.problem import GONE, NOT_READ, CsvProblem

_CONTENT_RANGE = re.compile(r"\s*bytes\s+(\d+)-(\d+)/(\d+|\*)\s*", re.IGNORECASE)


def entity_tag(answer: Mapping[str, Any]) -> str:
    """The answer's ETag without its quotes."""
    tag: str = answer["ETag"]
    return tag.strip('"')


def replaced(etag: str | None) -> CsvProblem:
    """What is wrong where the object is not the one that was listed."""
    return CsvProblem(
        f"it was replaced after it was listed: its ETag is no longer {etag}",
        "Do not overwrite objects while they are ingested; run again to list it anew",
        cause=GONE,
    )


def require_answer(
    answer: Mapping[str, Any], position: int, etag: str | None, *, whole: bool
) -> None:
    """Raise CsvProblem unless the answer is the object with that ETag, from that byte on.

    `whole` if no range was asked for. A store or a proxy may leave out of account the conditions
    and the range of a request.
    """
    if etag is not None and entity_tag(answer) != etag:
        raise replaced(etag)
    content_range, length = answer.get("ContentRange"), answer.get("ContentLength")
    # Not by the status: there are stores that send a part with 200 instead of 206.
    if content_range is None:
        is_as_asked = position == 0
    else:
        is_as_asked = _is_part(content_range, position, length, whole=whole)
    if not is_as_asked:
        status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode")
        raise CsvProblem(
            f"asked for it from byte {position} on, the store sent another part (HTTP {status}, "
            f"Content-Range {content_range}, Content-Length {length})",
            "Have the store, or the proxy before it, honour Range; nothing of the object was "
            "kept; run again",
            cause=NOT_READ,
        )


def _is_part(content_range: str, position: int, length: int | None, *, whole: bool) -> bool:
    """Whether Content-Range says that the body begins at `position`, and its length agrees.

    If `whole`, it also has to end where the object does. A body without a length is taken.
    """
    found = _CONTENT_RANGE.fullmatch(content_range)
    if found is None:
        return False
    first, last = int(found[1]), int(found[2])
    if whole and found[3] != str(last + 1):
        return False
    return first == position and length in (None, last - first + 1)
