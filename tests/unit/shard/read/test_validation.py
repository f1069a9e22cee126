"""What people and the table are told of a comparison of encodings, batch by batch."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from dbt.adapters.mzs3.errors import ShardError
from dbt.adapters.mzs3.shard.read.validation import ValidatedBatch, Validation, validation_rows

SAME = ValidatedBatch(1_000, "dual", 2, 1_200, 0, "")
ALONE = ValidatedBatch(2_000, "codec", 1, 0, 0, "")
WRONG = ValidatedBatch(3_000, "dual", 1, 34, 3, "name (tag 1): 2, a (tag 7): 1")


def of(*batches: ValidatedBatch) -> Validation:
    return Validation("s3://acme/x/", 3_000, batches)


def test_a_line_says_how_much_was_compared() -> None:
    assert of(SAME, ALONE).summary == (
        "1,200 values were compared, in 1 of 2 batches, and are the same in both encodings"
    )
    assert of(ALONE).summary.startswith("no values were compared, as no file")
    of(SAME, ALONE).require_same()


def test_each_batch_has_a_line() -> None:
    assert list(of(SAME, ALONE, WRONG).lines()) == [
        "batch 1000 (1970-01-01 00:00:01.000), dual: 1,200 values compared, 0 differ",
        "batch 2000 (1970-01-01 00:00:02.000), codec: 0 values compared, 0 differ",
        "batch 3000 (1970-01-01 00:00:03.000), dual: 34 values compared, 3 differ: "
        "name (tag 1): 2, a (tag 7): 1",
    ]


def test_a_difference_is_an_error_that_names_batches_and_columns() -> None:
    with pytest.raises(ShardError) as raised:
        of(SAME, ALONE, WRONG).require_same()
    first, second, *more = str(raised.value).splitlines()
    assert first == "the two encodings of s3://acme/x/ differ in 3 of 1,234 values:"
    assert second == ("  - batch 3000 (1970-01-01 00:00:03.000): name (tag 1): 2, a (tag 7): 1")
    assert more[0].startswith("One of the two is wrong: if the objects are what was written")
    with pytest.raises(ShardError, match="and 2 more batches"):
        of(*[WRONG] * 12).require_same()


def test_the_table_has_a_row_for_each_batch() -> None:
    rows = validation_rows(
        "lake.orders", of(SAME, WRONG), "invocation", 1_700_000_000_123
    ).to_pylist()
    assert [row["batch"] for row in rows] == [1_000, 3_000]
    assert rows[1] == {
        "source": "lake.orders",
        "location": "s3://acme/x/",
        "as_of": 3_000,
        "validated": datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=timezone.utc),
        "batch": 3_000,
        "encoding": "dual",
        "files": 1,
        "compared": 34,
        "differences": 3,
        "differing": "name (tag 1): 2, a (tag 7): 1",
        "invocation_id": "invocation",
    }
