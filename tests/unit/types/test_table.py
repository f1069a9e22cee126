"""The table of Spark's types has a row for each of them, and no cell is missing."""

from __future__ import annotations

import inspect

import pyarrow as pa
import pytest
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_type

from dbt.adapters.mzs3.formats.write.csv.scalars import scalar_formatter
from dbt.adapters.mzs3.formats.write.format import PLAIN
from dbt.adapters.mzs3.formats.write.parquet import file_field
from dbt.adapters.mzs3.shard.state.columns import kind_of
from dbt.adapters.mzs3.shard.types import CONTAINERS, SCALARS
from dbt.adapters.mzs3.types.table import (
    TYPES,
    SparkType,
    arrow_type,
    decimal_parameters,
    fits_bigint,
    sql_of,
    type_named,
    type_sent_as,
)

NESTED = {"array", "map", "struct"}
# Sent as text and as a struct, which `rows.columns` makes of them.
REWRITTEN = {"variant", "interval"}
# No values of their own, or no columns that are exported.
ABSTRACT = {
    *("data", "atomic", "numeric", "integral", "fractional", "datetime", "anytime"),
    *("ansiinterval", "spatial", "geometry", "geography"),
}


def test_each_of_pysparks_types_has_one_row() -> None:
    classes = [
        one
        for _, one in inspect.getmembers(T, inspect.isclass)
        if issubclass(one, T.DataType) and one not in (T.UserDefinedType, T.StructField)
    ]
    names = {one.typeName() for one in classes} - ABSTRACT
    assert {name for name in names if type_named(name) is None} == set()
    rows = [type_named(name) for name in names]
    assert {row.name for row in rows if row} == {row.name for row in TYPES}
    spellings = [name for row in TYPES for name in (row.name, *row.spellings)]
    assert len(set(spellings)) == len(spellings)


@pytest.mark.parametrize("row", TYPES, ids=lambda row: row.name)
def test_no_cell_is_missing(row: SparkType) -> None:
    assert row.redshift
    assert row.shard in SCALARS or row.shard in CONTAINERS or row.shard == "numeric"
    if row.name in NESTED:
        assert row.sent is row.in_files is None
        return
    if row.name in REWRITTEN:
        assert row.sent is None
        assert row.in_files == pa.large_string()
        return
    sent = arrow_type(row.name)
    assert type_sent_as(sent) in [row for row in TYPES if row.sent in (sent, None)]
    assert scalar_formatter(sent) is not None
    field = file_field("c", sent, PLAIN)
    assert field.metadata == {
        b"ARROW:extension:name": f"materialize.v1.{row.materialize}".encode()
    }
    assert row.name == "decimal" or field.type == row.in_files
    width = 1 if sent == pa.bool_() else getattr(sent, "bit_width", 0) if row.bits else 0
    assert row.bits == width


@pytest.mark.parametrize(
    "row", [row for row in TYPES if row.is_declared], ids=lambda row: row.name
)
def test_types_of_sources_are_types_of_shards_too(row: SparkType) -> None:
    assert kind_of(from_arrow_type(arrow_type(row.name), True)).name == row.shard
    if row.sent is not None:
        assert sql_of(row.sent).removesuffix("_ltz") == row.name


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        *(("decimal", (10, 0)), ("dec( 5 )", (5, 0)), ("numeric(12, 2)", (12, 2))),
        *(("bigint", None), ("decimal()", None), ("decimal(1,2,3)", None), ("decimals", None)),
    ],
)
def test_parameters_of_decimals(text: str, parameters: tuple[int, int] | None) -> None:
    assert decimal_parameters(text) == parameters


def test_a_bigint_has_64_bits() -> None:
    assert [fits_bigint(n) for n in (-(2**63) - 1, -(2**63), 2**63 - 1, 2**63)] == [
        *(False, True, True, False),
    ]
