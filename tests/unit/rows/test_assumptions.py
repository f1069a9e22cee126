"""What is taken for granted of rows."""

from __future__ import annotations

import pytest
from pyspark.sql import types as T

from dbt.adapters.mzs3.rows.batches import NO_ASSUMPTIONS, Assumptions, assumptions_for

FLAT = T.StructType().add("a", "string")
NESTED = T.StructType().add("a", T.ArrayType(T.LongType()))
ALL = Assumptions(narrow_rows=True, distinct_hashes=True)


def test_of_flat_rows_it_is_all() -> None:
    assert assumptions_for(FLAT, ()) == ALL


def test_folders_need_more_than_a_hash() -> None:
    assert assumptions_for(FLAT, [0]) == Assumptions(narrow_rows=True)


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
    assert (
        assumptions_for(T.StructType([*FLAT.fields, T.StructField("b", kind)]), ())
        == NO_ASSUMPTIONS
    )


def test_rows_of_many_columns_are_never_narrow() -> None:
    many = T.StructType([T.StructField(f"c{i}", T.LongType()) for i in range(1025)])
    assert assumptions_for(many, ()) == Assumptions(distinct_hashes=True)
    assert assumptions_for(T.StructType(many.fields[1:]), ()) == ALL


def test_what_a_row_refutes_is_taken_no_more() -> None:
    assert ALL.without("wide rows") == Assumptions(distinct_hashes=True)
    assert ALL.without("equal hashes") == Assumptions(narrow_rows=True)
    assert ALL.without("equal hashes").without("wide rows") == NO_ASSUMPTIONS


def test_of_native_rows_workers_find_out_whether_they_are_narrow() -> None:
    assumed = assumptions_for(FLAT, (), native=True)
    assert assumed == Assumptions(distinct_hashes=True, native=True)
    assert assumed.without("doubtful batches") == Assumptions(distinct_hashes=True)
    assert assumptions_for(NESTED, (), native=True) == Assumptions(native=True)
