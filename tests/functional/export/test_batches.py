"""Rows reach Python in batches of bounded size, whatever their width."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from support.spark.equal_hashes import partner
from support.spark.native import IS_NATIVE, not_native

from dbt.adapters.mzs3.events import CopyEvent
from dbt.adapters.mzs3.export.export import CopyResult
from dbt.adapters.mzs3.export.monitor import RunContext
from dbt.adapters.mzs3.formats.write import FORMATS
from dbt.adapters.mzs3.formats.write.format import PART_COLUMN
from dbt.adapters.mzs3.rows.batches import WIDE_ROW, WIDEST, Assumptions, batches_for
from dbt.adapters.mzs3.rows.plan import MAX_PARTS, in_parts, sorted_parts, with_keys
from dbt.adapters.mzs3.spark.failure import executor_error

pytestmark = pytest.mark.spark
Copy = Callable[..., CopyResult]
BEGINS_AGAIN = "mzs3.copy.begins_again"
NARROW = Assumptions(narrow_rows=True)
BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
PARTS = {"/part-0000-0001.csv", "/part-0001-0001.csv"}
WIDE = "select id, id % 3 as third, repeat('x', if(id = 7, 40000, 10)) as text from range(100)"


def sizes(rows: Any) -> list[int]:
    """How many rows each batch has that Python gets."""

    def measure(found: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in found:
            yield pa.RecordBatch.from_pydict({"rows": [batch.num_rows]})

    return [row.rows for row in rows.mapInArrow(measure, "rows bigint").collect()]


def files(s3: Any, bucket: str, folder: str) -> dict[str, bytes]:
    """The exported files below the folder."""
    listed = s3.list_objects_v2(Bucket=bucket, Prefix=f"{folder}/part-")["Contents"]
    return {
        entry["Key"].removeprefix(folder): s3.get_object(Bucket=bucket, Key=entry["Key"])[
            "Body"
        ].read()
        for entry in listed
    }


@pytest.mark.parametrize("parts", [1, 2, 7, 64])
def test_each_part_is_the_partition_of_its_number(spark: Any, parts: int) -> None:
    numbered = spark.range(2 * parts).selectExpr(f"pmod(id, {parts}) as {PART_COLUMN}", "id")
    rows = sorted_parts(numbered, parts, ["-id"]).collect()
    expected = [(part, row) for part in range(parts) for row in (part + parts, part)]
    assert [tuple(row) for row in rows] == expected


def test_spark_hashes_the_key_of_every_part_to_it(spark: Any) -> None:
    keyed = with_keys(spark.range(MAX_PARTS).selectExpr(f"id as {PART_COLUMN}", "id"))
    assert keyed.where(f"hash({PART_COLUMN}) <> id").count() == 0


@not_native
def test_an_order_inside_of_the_query_is_dropped(spark: Any) -> None:
    rows = spark.sql("select id as c0 from (select id from range(9) order by id desc)")
    plan = in_parts(rows, 2)._jdf.queryExecution().optimizedPlan().toString()
    assert re.findall("Sort .*(true|false)", plan) == ["false"]  # by the parts' order alone


def test_narrow_rows_come_in_small_batches(spark: Any) -> None:
    rows = spark.range(5000).select(F.repeat(F.lit("x"), F.lit(1000)).alias("c0"))
    with batches_for(spark, NARROW):
        found = sizes(in_parts(rows, 1, assumed=NARROW))
    assert found == [4096, 904]


@pytest.mark.parametrize("kind", ["string", "binary"])
def test_a_wide_row_is_seen_before_any_row_reaches_python(
    spark: Any, tmp_path: Path, kind: str
) -> None:
    def rows(count: int) -> Any:
        # A row of two columns has 32 bytes beside its text.
        length = F.when(F.col("id") < 4999, WIDEST - 32).otherwise(WIDEST - 31)
        text = F.repeat(F.lit("x"), F.when(F.col("id") < 4990, 1).otherwise(length)).cast(kind)
        nothing = F.lit(None).cast("string")
        return spark.range(count).select(text.alias("c0"), nothing.alias("c1"))

    seen = tmp_path / "seen"

    def note(found: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in found:
            seen.touch()
            yield batch.select([0])

    narrow = in_parts(rows(4999), 1, assumed=NARROW)
    assert narrow.mapInArrow(note, "part int").count() == 4999
    seen.unlink()
    with pytest.raises(PySparkException) as raised:
        in_parts(rows(5000), 1, assumed=NARROW).mapInArrow(note, "part int").collect()
    error = executor_error(raised.value)
    assert error is not None
    assert error.cause == WIDE_ROW
    assert not seen.exists()


@pytest.mark.parametrize(
    "options", [*({"format": name} for name in FORMATS), {"partition_by": "third"}], ids=str
)
def test_wide_rows_are_exported_as_any(
    copy: Copy, spark: Any, s3: Any, bucket: str, options: dict[str, str]
) -> None:
    before = spark.conf.get(BYTES, None)
    result = copy(WIDE, f"s3://{bucket}/wide", parts=2, **options)
    assert result.rows == 100
    manifest = s3.get_object(Bucket=bucket, Key="wide/_manifest.json")["Body"].read()
    assert json.loads(manifest)["meta"]["record_count"] == 100
    if options == {"format": "csv"}:
        assert result.bytes == 40_000 + 99 * 10 + sum(len(f"{i},0,\n") for i in range(100))
    assert spark.conf.get(BYTES, None) == before
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)


@not_native
def test_it_is_told_that_an_export_begins_again(copy: Copy, bucket: str) -> None:
    told: list[CopyEvent] = []
    copy(WIDE, f"s3://{bucket}/wide", context=RunContext(tell=told.append))
    [again] = [event for event in told if event.name == BEGINS_AGAIN]
    assert (again.fields["reason"], again.fields["limit"]) == ("wide rows", WIDEST)
    assert again.message.endswith(
        "begins again, with batches for wide rows: one has more than 16 kB"
    )


def test_rows_are_told_apart_by_where_they_have_null_and_by_the_signs_of_zeros(
    copy: Copy, bucket: str
) -> None:
    query = (
        "select a, b, cast(z as double) as z "
        "from values (1, null), (null, 1), (null, null) as ab(a, b), "
        "values ('0'), ('-0'), ('NaN'), (null) as zeros(z), range(2)"
    )
    told: list[CopyEvent] = []
    assert copy(query, f"s3://{bucket}/apart", context=RunContext(tell=told.append)).rows == 24
    assert not [event for event in told if event.name == BEGINS_AGAIN]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [*({"format": name} for name in FORMATS), {"on_existing": "resume"}], ids=str
)
def test_two_rows_of_one_hash_are_sorted_by_all_columns(
    copy: Copy, spark: Any, s3: Any, bucket: str, options: dict[str, str]
) -> None:
    rows = [(1, 2), (3, partner(1, 2, 3))]
    values = ", ".join(f"({a}L, {b}L)" for a, b in rows)
    # Each twice, beside others; and one of them too wide to be taken for narrow.
    query = (
        f"select a, b, repeat('x', int(c)) as c from values {values} as ab(a, b), "
        "values (1), (20000) as widths(c) union all select id, id, '' from range(100)"
    )
    hashes = spark.sql(f"select distinct xxhash64(a, b) from values {values} as ab(a, b)")
    assert hashes.count() == 1
    found = []
    for name, text in (
        ("one", query),
        ("two", f"select * from ({query}) order by a, c limit 999"),
    ):
        if "on_existing" in options:  # an interrupted run left one upload for each part
            for file in PARTS:
                key = f"{name}{file}"
                s3.create_multipart_upload(Bucket=bucket, Key=key, ContentType="text/csv")
        told: list[CopyEvent] = []
        location = f"s3://{bucket}/{name}"
        assert copy(text, location, parts=2, context=RunContext(tell=told.append), **options).rows
        again = [event.fields["reason"] for event in told if event.name == BEGINS_AGAIN]
        # With Comet, no row is taken for narrow.
        assert again == [*([] if IS_NATIVE else ["wide rows"]), "equal hashes"]
        found.append(files(s3, bucket, name))
    assert found[0] == found[1]
    if "on_existing" in options:
        assert set(found[0]) == PARTS  # whose uploads were there
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)
