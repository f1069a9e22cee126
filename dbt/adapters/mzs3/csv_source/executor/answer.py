"""Whether S3's answer to a GET is the part of the object that was asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dbt.adapters.mzs3.csv_source.executor.problem import GONE, NOT_READ, CsvProblem

_CONTENT_RANGE = re.compile(r"\s*bytes\s+(\d+)-(\d+)/.*", re.IGNORECASE)


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


def require_answer(answer: Mapping[str, Any], position: int, etag: str | None) -> None:
    """Raise CsvProblem unless the answer is the object with that ETag, from that byte on.

    A store or a proxy may leave out of account the conditions and the range of a request.
    """
    if etag is not None and entity_tag(answer) != etag:
        raise replaced(etag)
    if position == 0:
        return
    content_range = answer.get("ContentRange")
    # Not the status: there are stores that send a part with 200 instead of 206.
    if not _is_part(content_range, position, answer.get("ContentLength")):
        status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode")
        raise CsvProblem(
            f"reading on from byte {position}, where the connection broke, failed: the store did "
            f"not honour the Range of the request (HTTP {status}, Content-Range {content_range})",
            "Have the store, or the proxy before it, honour Range; nothing of the object was "
            "kept; run again",
            cause=NOT_READ,
        )


def _is_part(content_range: str | None, position: int, length: int | None) -> bool:
    """Whether a body of this length, of which `Content-Range` says so, begins at `position`."""
    found = _CONTENT_RANGE.fullmatch(content_range or "")
    if found is None:
        return False
    first, last = int(found[1]), int(found[2])
    return first == position and length == last - first + 1
