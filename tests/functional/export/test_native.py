"""What Comet sends is written as what Spark sends: the same objects, byte by byte."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import urlopen
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.export.onlooker import without_run_id
from support.s3.real_stores import keys_in
from support.spark.native import native

from dbt.adapters.mzs3.errors import CopyError
from dbt.adapters.mzs3.events import CopyEvent
from dbt.adapters.mzs3.export.export import CopyResult
from dbt.adapters.mzs3.export.monitor import RunContext
from dbt.adapters.mzs3.formats.write.format import PART_COLUMN
from dbt.adapters.mzs3.rows import plan
from dbt.adapters.mzs3.upload.job import plan_rows

pytestmark = [pytest.mark.spark, native]
Copy = Callable[..., CopyResult]

# Of each type the ends of its range as Spark and Comet read them alike, what is odd, and NULL.
COLUMNS = {
    "boolean": ["true", "false"],
    "tinyint": ["-128", "127"],
    "smallint": ["-32768", "32767"],
    "int": ["-2147483648", "2147483647"],
    "bigint": ["-9223372036854775808", "9223372036854775807"],
    "float": ["'-0'", "'0'", "'NaN'", "'-Infinity'", "'1.4e-45'", "'3.4028235e38'"],
    "double": ["'-0'", "'0'", "'NaN'", "'Infinity'", "'4.9e-324'", "'1e22'"],
    "decimal(12,2)": ["-9999999999.99", "0.01", "9999999999.99"],
    "decimal(38,10)": ["-9999999999999999999999999999.9999999999", "0.0000000001"],
    "date": ["'1582-10-15'", "'9999-12-31'"],
    "timestamp": ["'1900-01-01 00:00:00Z'", "'9999-12-31 23:59:59.999999Z'"],
    "timestamp_ntz": ["'0001-01-01 00:00:00'", "'9999-12-31 23:59:59.999999'"],
    "string": ["''", "'é, \"quoted\"'", "repeat('x', 5000)", "'NULL'"],
    "char(3)": ["'a'", "'abc'"],
    "varchar(3)": ["''", "'abc'"],
    "binary": ["X''", "X'00ff22'"],
    "interval year to month": ["'-178956970-8'", "'1-2'"],
    "interval day to second": ["'-1 02:03:04.5'", "'0 00:00:00'"],
    "array<double>": ["array()", "array(cast('-0' as double), 0d, null)", "array(double('NaN'))"],
    "struct<a:int,b:string>": [
        "named_struct('a', 1, 'b', '')",
        "named_struct('a', null, 'b', null)",
    ],
    "map<string,int>": ["map('b', 1, 'a', null)", "map()"],
    "variant": ['parse_json(\'{"b": [1.50, null], "a": -0.0}\')', "parse_json('null')"],
}
SPARKS = ("interval", "variant")  # which Comet leaves to Spark
# Values that files of Spark 2 have in another calendar, which only Spark knows.
OLD = {
    "date": ["'0001-01-01'", "'1582-10-04'"],
    "timestamp": ["'0001-01-01 00:00:00Z'", "'1582-10-10 01:02:03.000001Z'"],
    "array<date>": ["array(date'0001-01-01')"],
    "map<string,date>": ["map('a', date'0001-01-01')"],
}
ROOT = Path(__file__).parents[3]
TOLD = ("mzs3.copy.native", "mzs3.copy.begins_again")
FLAT = [kind for kind in COLUMNS if "<" not in kind and not kind.startswith(SPARKS)]


def stored(spark: Any, folder: Any, kinds: list[str], values_of: Any = COLUMNS) -> str:
    """A query of a Parquet table in which every value of a column meets some of every other."""
    columns = []
    for place, kind in enumerate(kinds):
        values = [
            *(f"cast({value} as {kind})" for value in values_of[kind]),
            f"cast(null as {kind})",
        ]
        choice = " ".join(f"when {i} then {value}" for i, value in enumerate(values))
        columns.append(f"case (id div {place + 1}) % {len(values)} {choice} end as c{place}")
    path = str(folder / "rows")
    rows = spark.range(0, 3000, 1, 3).selectExpr(*columns)
    rows.write.parquet(path)
    return f"select * from parquet.`{path}`"


@pytest.fixture
def same(copy: Copy, spark: Any, bucket: str, objects: Any) -> Any:
    """Exports a query with Comet and without; returns what the log tells of Comet."""

    def check(query: str, **options: Any) -> str:
        written, told = [], list[CopyEvent]()
        for is_on in ("true", "false"):
            spark.conf.set("spark.comet.enabled", is_on)
            try:
                context = RunContext(tell=told.append)
                copy(query, f"s3://{bucket}/{is_on}", context=context, **options)
            finally:
                spark.conf.unset("spark.comet.enabled")
            prefix = f"{is_on}/"
            location = f"s3://{bucket}/{is_on}".encode()
            written.append(
                {
                    key.removeprefix(prefix): without_run_id(body.replace(location, b""))
                    for key, body in objects(bucket).items()
                    if key.startswith(prefix)
                }
            )
        assert written[0].keys() == written[1].keys()
        assert [key for key, body in written[0].items() if body != written[1][key]] == []
        return "; ".join(event.message for event in told if event.name in TOLD)

    return check


def test_the_newest_comet_is_the_one_that_is_tested() -> None:
    """If it is not, or there is one for a later Spark: try that, and say so in native.md."""
    versions = ElementTree.fromstring(maven("comet-spark-spark4.1_2.13/maven-metadata.xml"))
    newest = versions.findtext("versioning/release")
    assert f"comet-spark-spark4.1_2.13-{newest}.jar" in (ROOT / "Makefile").read_text()
    for later in ("4.2", "4.3"):
        with pytest.raises(HTTPError, match="404"):
            maven(f"comet-spark-spark{later}_2.13/maven-metadata.xml")


def maven(path: str) -> bytes:
    """A file of Comet's on Maven Central; the test is skipped where that can't be reached."""
    try:
        with urlopen(f"https://repo1.maven.org/maven2/org/apache/datafusion/{path}") as answer:
            return bytes(answer.read())
    except HTTPError:
        raise
    except URLError as exc:
        pytest.skip(f"Maven Central can't be reached: {exc.reason}")


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_a_column_of_every_type(
    same: Any, spark: Any, tmp_path: Any, kind: str, file_format: str
) -> None:
    told = same(stored(spark, tmp_path, [kind]), format=file_format, parts=3)
    assert ("was native" in told) is not kind.startswith(SPARKS)


@pytest.mark.parametrize("kinds", [*([kind] for kind in OLD), ["date", "date"]], ids=str)
@pytest.mark.parametrize("mode", ["LEGACY", "CORRECTED"])
def test_days_and_times_of_another_calendar_are_read_by_spark(
    same: Any, spark: Any, tmp_path: Any, kinds: list[str], mode: str
) -> None:
    """Two dates come as bits of one number."""
    spark.conf.set("spark.sql.parquet.datetimeRebaseModeInWrite", mode)
    try:
        query = stored(spark, tmp_path, kinds, OLD)
    finally:
        spark.conf.unset("spark.sql.parquet.datetimeRebaseModeInWrite")
    told = same(query, parts=3)
    assert "begins again, without Comet" in told
    assert "native" not in told


def test_what_spark_does_not_write_itself_and_what_comet_does_not_know(
    same: Any, spark: Any, tmp_path: Any
) -> None:
    bits = range(0x7FF1, 0x8000)  # of a signalling or a quiet NaN
    nans = [struct.unpack("<d", struct.pack("<Q", each << 48))[0] for each in bits]
    columns = {"id": range(len(nans)), "nan": nans, "narrow": pa.array(nans, pa.float32())}
    unsigned = pa.array(range(256 - len(nans), 256), pa.uint8())
    rows = pa.table({**columns, "unsigned": unsigned})
    pq.write_table(rows, tmp_path / "rows.parquet")
    query = f"from parquet.`{tmp_path / 'rows.parquet'}`"
    assert "was native" in same(f"select * {query}", parts=2)
    same(
        f"select *, null as nothing, make_interval(0, 1, 0, id) as apart {query}",
        format="csv",
        on_existing="overwrite",
    )


def test_the_plan_is_native_from_the_scan_to_python(spark: Any, tmp_path: Any) -> None:
    rows = plan_rows(spark.sql(stored(spark, tmp_path, FLAT)), 3).ordered
    written = rows.mapInArrow(lambda batches: batches, rows.schema)
    written.collect()
    plan = written._jdf.queryExecution().executedPlan().toString().split("Initial Plan")[0]
    assert "CometNativeShuffle" in plan
    operators = re.findall(r"^[ :+*()\d-]*([A-Z]\w+)", plan, re.MULTILINE)
    native = [name for name in operators if name.startswith("Comet")]
    assert (native[0], native[-1]) == ("CometMapInBatch", "CometNativeScan")
    assert set(operators) - set(native) <= {"AdaptiveSparkPlan", "ShuffleQueryStage"}
    assert not {name for name in native if "ToRow" in name or "Columnar" in name}


@pytest.mark.parametrize(
    "options",
    [
        {"format": "csv", "header": True},
        {"format": "parquet", "compression": "zstd"},
        {"format": "csv", "partition_by": ["c0", "c9"]},
        {"format": "csv", "parts": 101},
    ],
    ids=str,
)
def test_rows_of_all_types(same: Any, spark: Any, tmp_path: Any, options: dict[str, Any]) -> None:
    told = same(stored(spark, tmp_path, FLAT), **{"parts": 3, **options})
    assert told.endswith("was native: Comet has sent its rows")


def test_it_is_told_what_is_not_native_and_why(same: Any, spark: Any, tmp_path: Any) -> None:
    query = stored(spark, tmp_path, ["string"])
    told = same(query.replace("*", "collate(c0, 'utf8_lcase') as c0"), parts=3)
    assert "was not native, as Comet did not run Project (collate is not supported)" in told


def test_many_parts_of_rows_that_spark_reads(same: Any, spark: Any, tmp_path: Any) -> None:
    """Which it hands to Comet's shuffle, one by one."""
    told = same(stored(spark, tmp_path, ["interval day to second"]), parts=201)
    assert "was not native" in told


def test_texts_that_are_no_utf8_are_refused(
    copy: Copy, spark: Any, tmp_path: Any, s3: Any, bucket: str
) -> None:
    path = str(tmp_path / "rows")
    rows = spark.range(100).selectExpr("id", "cast(X'61ff62' as string) as text")
    rows.write.parquet(path)
    with pytest.raises(CopyError, match="UTF-8"):
        copy(f"select * from parquet.`{path}`", f"s3://{bucket}/x", format="parquet", parts=2)
    assert keys_in(s3, bucket) == []


def test_texts_that_comet_has_mended_are_refused_as_sparks(
    copy: Copy, spark: Any, tmp_path: Any, s3: Any, bucket: str
) -> None:
    path = str(tmp_path / "rows")
    spark.range(100).selectExpr("id", "X'61ff62' as bytes").write.parquet(path)
    with pytest.raises(CopyError, match="UTF-8"):
        copy(f"select id, cast(bytes as string) as text from parquet.`{path}`", f"s3://{bucket}/x")
    assert keys_in(s3, bucket) == []


def test_batches_that_are_too_large_are_sent_by_spark(
    same: Any, spark: Any, tmp_path: Any
) -> None:
    path = str(tmp_path / "rows")
    spark.range(9000).selectExpr("id", "repeat('x', 9000) as text").write.parquet(path)
    told = same(f"select * from parquet.`{path}`", parts=1)
    assert "begins again, without Comet: a batch has more than 64 MB" in told
    assert "native" not in told


def test_rows_of_constants_are_in_the_part_of_their_hash(
    same: Any, spark: Any, tmp_path: Any
) -> None:
    """Comet shuffles rows without columns to the first partition."""
    query = stored(spark, tmp_path, ["int"])
    for value in range(3):
        same(query.replace("*", f"{value} as a, 'x' as b"), parts=7, on_existing="overwrite")
        same(f"select {value} as a", parts=7, on_existing="overwrite")


def test_ten_thousand_parts_are_in_their_partitions(spark: Any, tmp_path: Any) -> None:
    path = str(tmp_path / "rows")
    parts = plan.MAX_PARTS
    spark.range(0, 3 * parts, 1, 2).selectExpr(f"id % {parts} as part").write.parquet(path)
    rows = spark.read.parquet(path).selectExpr(f"part as {PART_COLUMN}", "part")
    placed = plan.sorted_parts(rows, parts, ["part"])
    assert "CometNativeShuffle" in placed._jdf.queryExecution().executedPlan().toString()
    assert placed.where(f"part = {PART_COLUMN}").count() == 3 * parts


def test_no_rows(same: Any, spark: Any, tmp_path: Any) -> None:
    same(f"{stored(spark, tmp_path, FLAT)} where c4 = 1", parts=2)
