"""The settings by which Spark cuts rows into batches, and which rows may come unmeasured."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import PySparkRuntimeError

from dbt.adapters.mzs3.rows.batches import (
    NO_ASSUMPTIONS,
    Assumptions,
    batches_for,
    sends_native_batches,
)

ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
NARROW = Assumptions(narrow_rows=True)
SENDS = "spark.comet.exec.pyarrowUDF.enabled"
IS_ON = "spark.comet.enabled"
COMET = {"spark.comet.version": "1.2.0", SENDS: "true"}


class Conf:
    """As a session's, with one setting of the user's."""

    def __init__(self, rows: str, modifiable: bool = True) -> None:
        self.values = {ROWS: rows}
        self.modifiable = modifiable
        self.ended = False

    def get(self, name: str, default: str | None) -> str | None:
        return self.values.get(name, default)

    def set(self, name: str, value: str) -> None:
        if self.ended:
            raise PySparkRuntimeError("the session has ended", messageParameters={})
        if not self.modifiable:
            raise PySparkRuntimeError("the setting is static", messageParameters={})
        self.values[name] = value

    def unset(self, name: str) -> None:
        del self.values[name]

    def isModifiable(self, _: str) -> bool:
        return self.modifiable


class Session:
    def __init__(self, rows: str = "10000", *, modifiable: bool = True) -> None:
        self.conf = Conf(rows, modifiable)


@pytest.fixture
def spark() -> Any:
    return Session()


def test_batches_are_small_and_the_settings_come_back(spark: Any) -> None:
    with batches_for(spark, NARROW):
        assert spark.conf.values == {ROWS: "4096", BYTES: "2147483647"}
    assert spark.conf.values == {ROWS: "10000"}


def test_they_come_back_after_a_failure(spark: Any) -> None:
    with pytest.raises(ValueError, match="oops"), batches_for(spark, NARROW):
        raise ValueError("oops")
    assert spark.conf.values == {ROWS: "10000"}


def test_a_session_that_has_ended_does_not_hide_why(spark: Any) -> None:
    with pytest.raises(ValueError, match="why"), batches_for(spark, NARROW):
        spark.conf.ended = True
        raise ValueError("why")


@pytest.mark.parametrize(("theirs", "ours"), [("500", "500"), ("0", "4096"), ("-1", "4096")])
def test_a_lower_limit_of_the_users_stays(theirs: str, ours: str) -> None:
    spark: Any = Session(theirs)
    with batches_for(spark, NARROW):
        assert spark.conf.values[ROWS] == ours
    assert spark.conf.values == {ROWS: theirs}


def test_a_session_that_allows_no_change_is_left_alone() -> None:
    spark: Any = Session(modifiable=False)
    with batches_for(spark, NARROW):
        assert spark.conf.values == {ROWS: "10000"}


def test_without_an_assumption_nothing_is_set(spark: Any) -> None:
    with batches_for(spark, NO_ASSUMPTIONS):
        assert spark.conf.values == {ROWS: "10000"}


@pytest.mark.parametrize("sends", ["true", "false"])
def test_comet_has_no_part_in_a_job_whose_rows_are_not_native(spark: Any, sends: str) -> None:
    before = {**spark.conf.values, **COMET, SENDS: sends}
    spark.conf.values = dict(before)
    with batches_for(spark, NO_ASSUMPTIONS):
        assert spark.conf.values == {**before, IS_ON: "false"}
    with batches_for(spark, Assumptions(native=True)):
        assert spark.conf.values == before
    assert spark.conf.values == before


@pytest.mark.parametrize(
    "values",
    [{}, {SENDS: "true"}, {**COMET, SENDS: "false"}, {**COMET, IS_ON: "false"}],
)
def test_a_session_without_comet_or_with_a_part_of_it_is_sparks(spark: Any, values: Any) -> None:
    spark.conf.values |= values
    assert not sends_native_batches(spark)


def test_a_session_with_comet_sends_its_batches(spark: Any) -> None:
    spark.conf.values |= COMET
    assert sends_native_batches(spark)


def test_a_server_with_comet_sends_rows_of_sparks(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing there would tell of rows that Comet's shuffle has lost."""
    monkeypatch.setattr(Session, "__module__", "pyspark.sql.connect.session")
    spark.conf.values |= COMET
    assert not sends_native_batches(spark)
