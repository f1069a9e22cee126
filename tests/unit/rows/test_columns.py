"""What is said of a query's columns before anything runs."""

from types import SimpleNamespace

import pytest
from pyspark.errors import AnalysisException, PySparkValueError
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import types as T

from dbt.adapters.mzs3.errors import ConfigError, SparkJobError
from dbt.adapters.mzs3.formats.write.csv.format import CsvFormat
from dbt.adapters.mzs3.formats.write.format import PLAIN, ExportedColumn, LogicalType
from dbt.adapters.mzs3.formats.write.parquet import ParquetFormat
from dbt.adapters.mzs3.names import ONE_NAME
from dbt.adapters.mzs3.rows.columns import (
    SIGNED,
    column_problems,
    exported_columns,
    queried_rows,
    view_problems,
)

LONG, TEXT = T.LongType(), T.StringType()
PLACE = T.GeographyType(4326)


def columns(**kinds):
    return T.StructType([T.StructField(name, kind) for name, kind in kinds.items()])


@pytest.mark.parametrize(
    ("kind", "logical_type"),
    [
        (LONG, PLAIN),
        (T.NullType(), PLAIN),
        (T.StringType("UTF8_LCASE"), PLAIN),
        (T.VariantType(), LogicalType("variant")),
        (T.CalendarIntervalType(), LogicalType("interval")),
        (T.YearMonthIntervalType(), LogicalType("interval")),
        (T.DayTimeIntervalType(), LogicalType("interval")),
        (T.ArrayType(T.ArrayType(LONG)), LogicalType("list", (LogicalType("list", (PLAIN,)),))),
        (T.MapType(TEXT, T.VariantType()), LogicalType("map", (PLAIN, LogicalType("variant")))),
        (
            columns(a=LONG, b=columns(c=T.DayTimeIntervalType())),
            LogicalType("struct", (PLAIN, LogicalType("struct", (LogicalType("interval"),)))),
        ),
        (columns(), LogicalType("struct")),
    ],
)
def test_shape_of_a_type(kind, logical_type):
    assert exported_columns(columns(x=kind)) == (ExportedColumn("x", logical_type),)
    assert column_problems(columns(x=kind)) == []


def test_columns_of_one_name_are_columns():
    schema = T.StructType([T.StructField("a", LONG), T.StructField("a", TEXT)])
    assert exported_columns(schema) == (ExportedColumn("a"), ExportedColumn("a"))
    assert column_problems(schema) == []


def test_a_query_without_columns_is_a_problem():
    assert column_problems(columns()) == ["the query has no columns"]


def test_every_problem_is_listed_with_its_place():
    schema = columns(
        fine=LONG,
        here=PLACE,
        list=T.ArrayType(PLACE),
        deep=columns(b=T.ArrayType(columns(c=PLACE, fine=LONG))),
        map=T.MapType(TEXT, T.GeometryType(0)),
    )
    assert column_problems(schema, CsvFormat("none", force_quote=("fine", "x", "y", "*"))) == [
        *(
            f"column {path} has the type {kind}, which an export can't write; "
            "select it as another type, such as string or binary"
            for path, kind in [
                ("here", "geography(4326)"),
                ("list[]", "geography(4326)"),
                ("deep.b[].c", "geography(4326)"),
                ("map.value", "geometry(0)"),
            ]
        ),
        "force_quote names x, y, but the columns are fine, here, list, deep, map",
    ]


def test_a_column_with_a_dot_in_its_name_is_no_field_of_another():
    schema = columns(**{"a.b": PLACE, "c-d": columns(**{"e.f": PLACE}), "": columns()})
    told = [problem.split(" has ")[0] for problem in column_problems(schema)]
    assert told == ["column `a.b`", "column `c-d`.`e.f`"]
    *_, problem = column_problems(schema, ParquetFormat("snappy"))
    assert problem.startswith("column `` is a struct without fields")


def test_times_with_more_digits_than_postgresqls_are_told_wherever_they_are():
    time = T.TimeType(7)
    schema = columns(
        fine=T.TimeType(6),
        here=T.TimeType(9),
        list=T.ArrayType(time),
        deep=columns(b=T.ArrayType(columns(c=time))),
        map=T.MapType(time, T.MapType(TEXT, time)),
    )
    assert column_problems(schema) == [
        f"column {path} has the type {kind}, of which an export can't write the digits behind the "
        "microsecond; select it as a string, or as time(6)"
        for path, kind in [
            ("here", "time(9)"),
            ("list[]", "time(7)"),
            ("deep.b[].c", "time(7)"),
            ("map.key", "time(7)"),
            ("map.value.value", "time(7)"),
        ]
    ]


def test_fields_of_a_struct_must_have_names_of_their_own():
    names = ("a", "A", "b", "ss", "\u017fs", "b")
    twice = T.StructType([T.StructField(name, LONG) for name in names])
    assert column_problems(columns(s=T.ArrayType(twice))) == [
        f"column s[] is a struct with fields {both}, which are {ONE_NAME}; rename one"
        for both in ("a and A", "ss and \u017fs")
    ] + ["column s[] is a struct with two fields named b; rename one"]


def test_columns_of_which_spark_makes_a_view_that_it_cant_read():
    assert view_problems(columns(a=LONG, A=LONG, b=LONG)) == []
    both = T.StructType([T.StructField("a", LONG), T.StructField("a", LONG)])
    assert view_problems(both) == [
        "the query has two columns named a, so that the model's view can't be read; rename one"
    ]
    assert view_problems(columns(**dict.fromkeys(("ss", "b", "\u017fs", "SS"), LONG))) == [
        f"the query has columns ss and \u017fs, which are {ONE_NAME}, so that the model's "
        "view can't be read; rename one"
    ]


def test_what_a_change_does_not_concern_stays_the_reference_it_is():
    column = object()
    for kind in (LONG, TEXT, T.ArrayType(LONG), columns(a=LONG, b=T.ArrayType(TEXT))):
        assert SIGNED.of(column, kind) is column


def of_no_python_type():
    return PySparkValueError(
        errorClass="CANNOT_PARSE_DATATYPE", messageParameters={"msg": "timestamp_ntz(9)"}
    )


def of_no_protocol_type():
    """As a Spark Connect server answers; its client has no parameters for the text."""
    text = "[UNSUPPORTED_OPERATION] data type timestamp_ntz_nanos is not supported"
    return AnalysisException(text, errorClass="UNSUPPORTED_OPERATION")


def asking(failure, described):
    """A Spark whose queries have no schema, and what it is asked."""
    asked = []

    class Frame:
        @property
        def schema(self):
            raise failure()

        def collect(self):
            if isinstance(described, Exception):
                raise described
            return described

    return SimpleNamespace(sql=lambda text: asked.append(text) or Frame()), asked


@pytest.mark.parametrize("failure", [of_no_python_type, of_no_protocol_type])
def test_timestamps_of_more_digits_than_python_knows_are_told_by_their_columns(failure):
    described = [
        ("id", "bigint", None),
        ("at", "timestamp_ntz(9)", None),
        ("in order", "array<struct<b:timestamp(7)>>", None),
    ]
    spark, asked = asking(failure, described)
    with pytest.raises(ConfigError) as caught:
        queried_rows(spark, "model.shop.orders", "select 1")
    assert asked == ["select 1", "DESCRIBE QUERY select 1"]
    assert [problem.split(",")[0] for problem in caught.value.problems] == [
        "column at has the type timestamp_ntz(9)",
        "column `in order` has the type array<struct<b:timestamp(7)>>",
    ]


@pytest.mark.parametrize("failure", [of_no_python_type, of_no_protocol_type])
@pytest.mark.parametrize("described", [[("id", "bigint", None)], PySparkException("no DESCRIBE")])
def test_what_spark_said_first_is_told_where_no_column_is_to_blame(failure, described):
    spark, _ = asking(failure, described)
    with pytest.raises(SparkJobError, match=r"timestamp_ntz"):
        queried_rows(spark, "model.shop.orders", "select 1")
