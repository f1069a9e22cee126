"""Whether S3's answer to a GET is the part of the object that was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt.adapters.mzs3.csv_source.executor.problem import GONE, NOT_READ, CsvProblem
from dbt.adapters.mzs3.objects.content_range import begins_at


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
    if not begins_at(answer, position, whole=whole):
        status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode")
        content_range, length = answer.get("ContentRange"), answer.get("ContentLength")
        raise CsvProblem(
            f"asked for it from byte {position} on, the store sent another part (HTTP {status}, "
            f"Content-Range {content_range}, Content-Length {length})",
            "Have the store, or the proxy before it, send the part that is asked for; nothing of "
            "the object was kept; run again",
            cause=NOT_READ,
        )
