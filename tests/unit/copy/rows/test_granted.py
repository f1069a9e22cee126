"""What is taken for granted of rows, and what refutes it."""

from __future__ import annotations

import pytest
from pyspark.sql import types as T

from dbt.adapters.mzs3.copy.executor.ties import TIED_ROWS
from dbt.adapters.mzs3.copy.rows.batches import WIDE_ROW
from dbt.adapters.mzs3.copy.rows.granted import NOTHING, Granted, Reason, granted

FLAT = T.StructType().add("a", "string")
ALL = Granted(narrow_rows=True, distinct_hashes=True)


def test_folders_need_more_than_a_hash() -> None:
    assert granted(FLAT, ()) == ALL
    assert granted(FLAT, [0]) == Granted(narrow_rows=True)


def test_nested_values_may_be_wide() -> None:
    nested = T.StructType().add("a", T.ArrayType(T.IntegerType()))
    assert granted(nested, ()) == Granted(distinct_hashes=True)


@pytest.mark.parametrize(
    ("text", "reason", "rest"),
    [
        (WIDE_ROW, "wide rows", Granted(distinct_hashes=True)),
        (TIED_ROWS, "equal hashes", Granted(narrow_rows=True)),
    ],
)
def test_a_failure_says_what_does_not_hold(text: str, reason: Reason, rest: Granted) -> None:
    failure = RuntimeError(f"Job aborted: {text}\n\tat org.apache.spark")
    assert ALL.refuted_by(failure) == reason
    assert ALL.but_for(reason) == rest
    assert rest.refuted_by(failure) is None  # as it is not what the attempt has relied on


def test_other_failures_refute_nothing() -> None:
    assert ALL.refuted_by(RuntimeError("no space left")) is None
    assert NOTHING.refuted_by(RuntimeError(WIDE_ROW + TIED_ROWS)) is None
