"""Whether an answer has the bytes that were asked for, by its headers."""

from __future__ import annotations

import pytest

from dbt.adapters.mzs3.store.s3 import begins_at


@pytest.mark.parametrize(
    ("content_range", "length", "position", "whole", "expected"),
    [
        (None, 1000, 0, True, True),
        (None, 1000, 0, False, True),  # of which as much is read as was asked for
        (None, 700, 300, False, False),
        ("bytes 300-999/1000", 700, 300, False, True),
        ("bytes 300-599/1000", 300, 300, False, True),
        ("Bytes 300-999/*", 700, 300, False, True),
        ("bytes 300-999/1000", None, 300, False, True),
        ("bytes 300-999/1000", 1000, 300, False, False),
        ("bytes 299-999/1000", 701, 300, False, False),
        ("bytes 300-599/1000", 300, 0, False, False),
        ("bytes 0-999/1000", 1000, 0, True, True),
        ("bytes 0-299/1000", 300, 0, True, False),
        ("bytes 0-999/*", 1000, 0, True, False),
        ("bytes 300-", 700, 300, False, False),
        ("bytes */1000", 700, 300, False, False),
    ],
)
def test_it_begins_where_content_range_and_length_say(
    content_range: str | None, length: int | None, position: int, whole: bool, expected: bool
) -> None:
    answer = {"ContentRange": content_range, "ContentLength": length}
    assert begins_at(answer, position, whole=whole) is expected
