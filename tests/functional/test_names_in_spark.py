"""Spark takes for one name what `names` says it does, whatever the letters."""

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import types as T

from dbt.adapters.mzs3.names import folded
from dbt.adapters.mzs3.spark.session import isolated_session
from dbt.adapters.mzs3.spark.sql import quote_identifier

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def spark(spark_parameters):
    return isolated_session(spark_parameters)


def letters_with_a_case(spark):
    """All that differ from another in case alone, by whatever rule Python has.

    Without those that Java does not know yet: they are one name to us alone.
    """
    every = map(chr, (*range(0xD800), *range(0xE000, 0x110000)))
    cased = [c for c in every if c != c.lower() or c != c.upper() or c != c.casefold()]
    known = spark._jvm.java.lang.Character.isDefined
    return [letter for letter in cased if known(ord(letter))]


def test_a_field_is_found_by_each_spelling_of_its_name_and_by_no_other(spark):
    letters = letters_with_a_case(spark)
    names = sorted({folded(letter) for letter in letters})
    fields = [T.StructField(name, T.IntegerType(), True, {"is": name}) for name in names]
    frame = spark.createDataFrame([], T.StructType([T.StructField("s", T.StructType(fields))]))
    found = frame.selectExpr(*(f"s.{quote_identifier(letter)}" for letter in letters)).schema
    assert [field.metadata["is"] for field in found] == [folded(letter) for letter in letters]
    assert len(letters) > 2800


@pytest.mark.parametrize("other", ["id", "\u0131d", "\u0130d", "\u0131D"])
def test_no_view_of_two_names_that_are_one_can_be_read(spark, other):
    spark.sql("CREATE SCHEMA IF NOT EXISTS names")
    view = f"names.of_{ord(other[0])}_{other.isupper()}"
    with pytest.raises(AnalysisException):
        spark.sql(f"CREATE OR REPLACE VIEW {view} AS SELECT 1 AS `Id`, 2 AS `{other}`")
        spark.table(view).collect()


def test_no_table_can_have_two_names_whose_small_letters_are_the_same(spark):
    spark.sql("CREATE SCHEMA IF NOT EXISTS names")
    with pytest.raises(AnalysisException, match="COLUMN_ALREADY_EXISTS"):
        spark.sql("CREATE TABLE names.dots (`\u0130d` int, `i\u0307d` int) USING parquet")
