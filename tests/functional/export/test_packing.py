"""Columns that Spark sends packed are in the files as they were."""

from __future__ import annotations

import datetime as dt
import itertools
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as T

from dbt.adapters.mzs3.arrow.packed import PackedColumn, unpacked
from dbt.adapters.mzs3.rows.packing import packed_columns, unpacked_columns

pytestmark = pytest.mark.spark

# Extremes, what is beside zero, and NULL, of every type that is packed.
VALUES: dict[T.DataType, list[Any]] = {
    T.BooleanType(): [True, False],
    T.ByteType(): [-128, -1, 0, 1, 127],
    T.ShortType(): [-(2**15), -1, 0, 1, 2**15 - 1],
    T.IntegerType(): [-(2**31), -1, 0, 1, 2**31 - 1],
    T.DateType(): [dt.date.min, dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date.max],
    T.DecimalType(12, 2): [Decimal("-9999999999.99"), Decimal("-0.01"), Decimal("0.29")],
    T.DecimalType(15, 0): [Decimal(10**15 - 1), Decimal(1 - 10**15), Decimal(0)],
    T.DecimalType(15, 15): [Decimal("0.999999999999999"), Decimal("0.000000000000001")],
    T.DecimalType(16, 2): [Decimal("99999999999999.99"), Decimal("-99999999999999.98")],
    T.LongType(): [-(2**63), 2**63 - 1],
    T.StringType(): ["", "text"],
}
SCHEMA = T.StructType([T.StructField(f"c{i}", kind) for i, kind in enumerate([*VALUES] * 2)])


def rows() -> list[tuple[Any, ...]]:
    """Each extreme at least once, beside NULL and others."""
    chosen = random.Random(7)
    ways = [[None, *VALUES[field.dataType]] for field in SCHEMA]
    drawn = [tuple(chosen.choice(way) for way in ways) for _ in range(200)]
    return [*itertools.zip_longest(*ways), *drawn]


def test_values_come_back_as_they_were(spark: Any) -> None:
    frame = spark.createDataFrame(rows(), SCHEMA)
    sent, packed = packed_columns(frame.schema)
    assert len(sent) < len(SCHEMA)
    [expected] = frame.toArrow().combine_chunks().to_batches()
    [found] = frame.selectExpr(*sent).toArrow().combine_chunks().to_batches()
    back = unpacked(found, packed, 0)
    for field, mine, original in zip(SCHEMA, back.columns, expected.columns, strict=True):
        assert mine.equals(original), field


def test_decimals_of_as_many_digits_as_a_double_keeps_come_back(spark: Any) -> None:
    chosen = random.Random(15)
    for scale in range(16):
        schema = T.StructType([T.StructField("c0", T.DecimalType(15, scale))])
        drawn = [10 ** chosen.randint(0, 15) for _ in range(2000)]
        digits = [chosen.randint(-number + 1, number - 1) for number in drawn]
        values = [(Decimal(number).scaleb(-scale),) for number in digits]
        frame = spark.createDataFrame(values, schema)
        sent, packed = packed_columns(schema)
        found = frame.selectExpr(*sent).toArrow().combine_chunks().to_batches()
        assert found[0].schema.types == [pa.float64()]
        assert [unpacked(batch, packed, 0).column(0).to_pylist() for batch in found] == [
            [value for (value,) in values]
        ]


def test_a_narrow_column_without_another_is_sent_as_it_is() -> None:
    schema = T.StructType([T.StructField("c0", T.IntegerType())])
    assert packed_columns(schema) == (["c0"], (PackedColumn(0),))


def test_spark_undoes_it_too(spark: Any) -> None:
    frame = spark.createDataFrame(rows(), SCHEMA)
    sent, _ = packed_columns(SCHEMA)
    found = frame.selectExpr(*sent).selectExpr(*unpacked_columns(SCHEMA))
    assert found.schema == SCHEMA
    assert found.toArrow().equals(frame.toArrow())
