"""With Comet, a shard's rows run natively from the shuffle of what was read to Python, and its
files are the same as without."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from support.s3.real_stores import objects_in
from support.spark.native import native

from dbt.adapters.mzs3.rows import batches
from dbt.adapters.mzs3.shard.options import LATEST
from dbt.adapters.mzs3.spark import engine
from dbt.adapters.mzs3.upload import job as upload_job

pytestmark = [pytest.mark.spark, native]

# Of each type what is odd about it, and NULL.
ODD = {
    "real": "array(double('-0'), 0d, double('NaN'), double('-Infinity'), -1d, null)",
    "narrow": "array(float('-0'), float(0), float('NaN'), float('1.4e-45'), null)",
    "amount": "array(-9999999999.99BD, 0.01BD, 1BD, 7BD, null)",
    "large": "array(99999999999999999999999999.99BD, 0.01BD, null)",
    "day": "array(date'1582-10-15', date'9999-12-31', null)",
    "at": "array(timestamp'1900-01-01 00:00:00Z', timestamp'9999-12-30 23:59:59.999999', null)",
    "text": "array('', 'é', repeat('x', 5000), null)",
    "bytes": "array(X'', X'00ff', null)",
    "flag": "array(true, false, null)",
}
OPERATOR = re.compile(r"^([ :|]*(?:\+- |:- )?)(?:\*\(\d+\) )?([A-Z]\w+)", re.MULTILINE)
# Operators of Spark that hand on what another has made.
FRAMES = {"AdaptiveSparkPlan", "ReusedExchange", "Subquery"}


@pytest.fixture
def rows(spark: Any, tmp_path: Any) -> Callable[[int], str]:
    """`rows(version)`: a query of a Parquet table; versions differ in few rows."""
    columns = [
        f"get({values}, int(id div {place + 1} % size({values}))) as {name}"
        for place, (name, values) in enumerate(ODD.items())
    ]
    path = str(tmp_path / "rows")
    spark.range(0, 3000, 1, 3).selectExpr("id", *columns).write.parquet(path)
    return lambda version: (
        f"select * except (id), if(id % 50 = 0, id + {version}, id) as id from parquet.`{path}` "
        f"where id % 97 <> {version}"
    )


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The final plan of each upload of rows from Comet."""
    found: list[str] = []
    rows_shuffled = engine.rows_shuffled

    def note(written: Any) -> int:
        plan = written._jdf.queryExecution().executedPlan().toString()
        found.append(plan.rpartition("\n+- == Initial Plan ==")[0] or plan)
        return rows_shuffled(written)

    monkeypatch.setattr(upload_job.engine, "rows_shuffled", note)
    return found


def of_spark(plan: str) -> set[str]:
    """Spark's own operators in a plan, but for those that make the rows of Comet's shuffles, which
    read nothing that Comet could."""
    found, read_at = set(), None
    for indent, name in OPERATOR.findall(plan):
        if read_at is not None and len(indent) > read_at:
            assert name != "CometNativeScan"
            continue
        read_at = len(indent) if name == "CometColumnarExchange" else None
        if not name.startswith("Comet") and not name.endswith("QueryStage"):
            found.add(name)
    return found - FRAMES


@pytest.mark.parametrize(
    "options",
    [
        {"sort_by": []},
        {"sort_by": ["real", "text"]},
        {"sort_by": ["narrow"], "parts": None, "encoding": "structured"},
    ],
    ids=str,
)
def test_files_are_the_same_and_plans_are_native(
    persist: Any,
    compact: Any,
    rows: Any,
    plans: list[str],
    spark: Any,
    location: str,
    s3: Any,
    options: dict[str, Any],
) -> None:
    def run(is_on: str) -> tuple[list[int], list[tuple[str, bytes]]]:
        spark.conf.set("spark.comet.enabled", is_on)
        try:
            changes = [persist(rows(version), version, **options).rows for version in (1, 2)]
            compact(since=LATEST, **{key: options[key] for key in options if key != "encoding"})
        finally:
            spark.conf.unset("spark.comet.enabled")
        found = objects_in(s3, bucket)
        for key in found:
            s3.delete_object(Bucket=bucket, Key=key)
        return changes, sorted(
            (re.sub("-[0-9a-f]{12}/", "/", key), body)
            for key, body in found.items()
            if "/batches/" in key
        )

    bucket = location.split("/")[2]
    comet = run("true")
    assert len(plans) == 3
    assert [of_spark(plan) for plan in plans] == [set()] * 3
    assert run("false") == comet
    assert len(plans) == 3
    assert comet[0][1] > 100


def test_a_row_of_constants_is_compared_with_what_is_stored(persist: Any) -> None:
    """Comet shuffles rows without columns to the first partition."""
    for time in range(0, 12, 2):
        query = f"select {time} as a, 'x' as b"
        assert persist(query, time).rows == (2 if time else 1)
        assert persist(query, time + 1).rows == 0


def test_a_batch_of_wide_rows_is_written_by_spark(
    persist: Any, plans: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload_job, "MAX_BYTES", 1000)
    assert batches.MAX_BYTES > 1000
    assert persist("select id, repeat('x', 100) as text from range(100)", 1).rows == 100
    assert plans == []


def test_days_of_another_calendar_are_those_that_spark_reads(
    persist: Any, frame: Any, spark: Any, plans: list[str], tmp_path: Any
) -> None:
    """Comet reads 1000-01-06 in such files."""
    path = str(tmp_path / "rows")
    spark.conf.set("spark.sql.parquet.datetimeRebaseModeInWrite", "LEGACY")
    try:
        spark.range(9).selectExpr("id", "date'1000-01-01' as day").write.parquet(path)
    finally:
        spark.conf.unset("spark.sql.parquet.datetimeRebaseModeInWrite")
    query = f"select * from parquet.`{path}`"
    assert [persist(query, time).rows for time in (1, 2)] == [9, 0]
    assert persist(f"select id + 1 as id, day from ({query})", 3).rows == 2
    assert plans == []
    assert frame().where("day = date'1000-01-01'").count() == 9
