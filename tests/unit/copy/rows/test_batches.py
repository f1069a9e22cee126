"""The settings that exports in one session share."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import types as T

from dbt.adapters.mzs3.copy.rows.batches import batches, can_be_narrow

ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"


class Conf:
    """As a session's, with one setting of the user's."""

    def __init__(self, modifiable: bool = True) -> None:
        self.values = {ROWS: "500"}
        self.modifiable = modifiable

    def get(self, name: str, default: str | None) -> str | None:
        return self.values.get(name, default)

    def set(self, name: str, value: str) -> None:
        self.values[name] = value

    def unset(self, name: str) -> None:
        del self.values[name]

    def isModifiable(self, _: str) -> bool:
        return self.modifiable


class Session:
    def __init__(self, modifiable: bool = True) -> None:
        self.conf = Conf(modifiable)


@pytest.fixture
def spark() -> Any:
    return Session()


def test_narrow_rows_are_not_measured_and_the_settings_come_back(spark: Any) -> None:
    with batches(spark, measured=False):
        assert spark.conf.values == {ROWS: "2048", BYTES: "2147483647"}
    assert spark.conf.values == {ROWS: "500"}


def test_they_come_back_after_a_failure(spark: Any) -> None:
    with pytest.raises(ValueError, match="oops"), batches(spark, measured=False):
        raise ValueError("oops")
    assert spark.conf.values == {ROWS: "500"}


def test_the_last_of_several_exports_brings_them_back(spark: Any) -> None:
    with batches(spark, measured=False):
        with batches(spark, measured=False):
            pass
        assert spark.conf.values[BYTES] == "2147483647"
    assert spark.conf.values == {ROWS: "500"}


def test_while_one_export_has_wide_rows_all_batches_are_measured(spark: Any) -> None:
    with batches(spark, measured=False):
        with batches(spark, measured=True):
            assert spark.conf.values == {ROWS: "500"}
            with batches(spark, measured=False):
                assert spark.conf.values == {ROWS: "500"}
        assert spark.conf.values == {ROWS: "2048", BYTES: "2147483647"}
    assert spark.conf.values == {ROWS: "500"}


def test_sessions_do_not_share(spark: Any) -> None:
    other: Any = Session()
    with batches(spark, measured=False), batches(other, measured=True):
        assert spark.conf.values[ROWS] == "2048"
        assert other.conf.values == {ROWS: "500"}


def test_a_session_that_allows_no_change_is_left_alone() -> None:
    spark: Any = Session(modifiable=False)
    with batches(spark, measured=False):
        assert spark.conf.values == {ROWS: "500"}


def test_nested_values_have_no_width_that_is_cheap_to_tell() -> None:
    flat = T.StructType().add("a", "string").add("b", "decimal(38,2)")
    assert can_be_narrow(flat)
    assert not can_be_narrow(T.StructType().add("a", T.ArrayType(T.IntegerType())))
