"""What is taken for granted of rows."""

from __future__ import annotations

import pytest
from pyspark.sql import types as T

from dbt.adapters.mzs3.rows.batches import NOTHING, Granted, granted

FLAT = T.StructType().add("a", "string")
ALL = Granted(narrow_rows=True, distinct_hashes=True)


def test_of_flat_rows_it_is_all() -> None:
    assert granted(FLAT, ()) == ALL


def test_folders_need_more_than_a_hash() -> None:
    assert granted(FLAT, [0]) == Granted(narrow_rows=True)


@pytest.mark.parametrize(
    "kind",
    [
        T.ArrayType(T.IntegerType()),
        T.StructType().add("x", T.IntegerType()),
        T.MapType(T.StringType(), T.IntegerType()),
    ],
    ids=str,
)
def test_of_nested_values_it_is_nothing(kind: T.DataType) -> None:
    assert granted(T.StructType([*FLAT.fields, T.StructField("b", kind)]), ()) == NOTHING


def test_what_a_row_refutes_is_taken_no_more() -> None:
    assert ALL.but_for("wide rows") == Granted(distinct_hashes=True)
    assert ALL.but_for("equal hashes") == Granted(narrow_rows=True)
    assert ALL.but_for("equal hashes").but_for("wide rows") == NOTHING
