"""Which types of Spark's stand for those that it lacks."""

from __future__ import annotations

import pytest
from pyspark.sql import types as T

from dbt.adapters.mzs3.shard.state.columns import fits
from dbt.adapters.mzs3.shard.types import parse_type


@pytest.mark.parametrize("name", ["uint4", "uint8", "mz_timestamp"])
@pytest.mark.parametrize(
    ("data_type", "expected"),
    [
        (T.ByteType(), True),
        (T.LongType(), True),
        (T.DecimalType(38, 0), True),
        (T.DecimalType(10, 2), False),  # 1.50 is no whole number
        (T.DoubleType(), False),
        (T.StringType(), False),
    ],
)
def test_unsigned_numbers_are_whole_ones(name: str, data_type: T.DataType, expected: bool) -> None:
    assert fits(data_type, parse_type(name)) is expected
    assert fits(T.ArrayType(data_type), parse_type(f"list<{name}>")) is expected
