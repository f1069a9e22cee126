"""Whether an answer to a GET of S3 has the bytes that were asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_CONTENT_RANGE = re.compile(r"\s*bytes\s+(\d+)-(\d+)/(\d+|\*)\s*", re.IGNORECASE)


def begins_at(answer: Mapping[str, Any], position: int, *, whole: bool) -> bool:
    """Whether the body begins at that byte of the object, and is as long as the answer says.

    If `whole`, for a request without a range, it also has to end where the object does. A store
    or a proxy may leave the range of a request out of account. What counts is Content-Range, not
    the status: there are stores that send a part with 200 instead of 206.
    """
    content_range, length = answer.get("ContentRange"), answer.get("ContentLength")
    if content_range is None:
        return position == 0
    found = _CONTENT_RANGE.fullmatch(content_range)
    if found is None:
        return False
    first, last = int(found[1]), int(found[2])
    if whole and found[3] != str(last + 1):
        return False
    return first == position and length in (None, last - first + 1)
