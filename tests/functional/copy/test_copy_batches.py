"""Rows reach Python in batches of bounded size, whatever their width."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from dbt.adapters.mzs3.copy.result import CopyResult
from dbt.adapters.mzs3.copy.rows.batches import WIDE_ROW, WIDEST, batches
from dbt.adapters.mzs3.copy.rows.plan import in_parts

pytestmark = pytest.mark.spark
Copy = Callable[..., CopyResult]
BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"


def sizes(rows: Any) -> list[tuple[int, int]]:
    """Of the batches that Python gets: rows, bytes."""

    def measure(found: Any) -> Any:
        for batch in found:
            one = {"rows": [batch.num_rows], "bytes": [batch.nbytes]}
            yield pa.RecordBatch.from_pydict(one)

    return [tuple(row) for row in rows.mapInArrow(measure, "rows bigint, bytes bigint").collect()]


def test_narrow_rows_come_in_small_batches(spark: Any) -> None:
    rows = spark.range(5000).select(F.repeat(F.lit("x"), F.lit(1000)).alias("c0"))
    with batches(spark, measured=False):
        found = sizes(in_parts(rows, 1, only_narrow=True))
    assert max(count for count, _ in found) == 2048
    assert sum(count for count, _ in found) == 5000


def test_a_wide_row_is_seen_before_any_row_reaches_python(spark: Any, tmp_path: Any) -> None:
    text = F.repeat(F.lit("x"), F.when(F.col("id") == 4999, WIDEST + 1).otherwise(1))
    rows = spark.range(5000).select(text.alias("c0"))
    seen = str(tmp_path / "seen")

    def note(found: Any) -> Any:
        Path(seen).touch()
        yield from found

    with pytest.raises(Exception, match=WIDE_ROW):
        in_parts(rows, 1, only_narrow=True).mapInArrow(note, "p int, c0 string").collect()
    assert not (tmp_path / "seen").exists()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_wide_rows_are_exported_as_any(
    copy: Copy, spark: Any, s3: Any, bucket: str, kind: str
) -> None:
    before = spark.conf.get(BYTES, None)
    query = "select id, repeat('x', if(id = 7, 40000, 10)) as text from range(100)"
    result = copy(query, f"s3://{bucket}/wide", parts=2, format=kind)
    assert result.rows == 100
    manifest = s3.get_object(Bucket=bucket, Key="wide/_manifest.json")["Body"].read()
    assert json.loads(manifest)["meta"]["record_count"] == 100
    if kind == "csv":
        assert result.bytes == 40_000 + 99 * 10 + sum(len(f"{i},\n") for i in range(100))
    assert spark.conf.get(BYTES, None) == before
    assert "uploads" not in s3.list_multipart_uploads(Bucket=bucket)
