"""The export job on a real Spark and a real S3 server: what is in the bucket afterwards."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from py4j.java_gateway import GatewayClient  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from support.s3.faulty import FaultyS3, connection_to
from support.s3.real_stores import objects_in

from dbt.adapters.mzs3.errors import (
    ConfigError,
    CopyError,
    LocationError,
    Mzs3Error,
    S3Error,
    SparkJobError,
)
from dbt.adapters.mzs3.export import job
from dbt.adapters.mzs3.export.commit.preflight import Preflight, prepare
from dbt.adapters.mzs3.export.export import CopyResult
from dbt.adapters.mzs3.export.job import copy_to_s3
from dbt.adapters.mzs3.upload.job import PlannedRows, plan_rows

pytestmark = pytest.mark.spark
Copy = Callable[..., CopyResult]


def test_rows_manifest_and_result_agree(copy: Copy, s3: Any, bucket: str) -> None:
    query = "select id, cast(id as string) as text from range(1000)"
    result = copy(query, f"s3://{bucket}/orders", parts=4, header=True)
    found = objects_in(s3, bucket)
    manifest = json.loads(found.pop("orders/_manifest.json"))
    assert sorted(found) == [f"orders/part-000{part}-0001.csv" for part in range(4)]
    lines = [line for body in found.values() for line in body.decode().splitlines()]
    assert sorted(lines) == sorted(["id,text"] * 4 + [f"{i},{i}" for i in range(1000)])
    assert result == CopyResult(
        rows=1000,
        location=f"s3://{bucket}/orders/",
        manifest=f"s3://{bucket}/orders/_manifest.json",
        files=4,
        bytes=sum(len(body) for body in found.values()),
        as_of=1700000000000,
    )
    assert manifest["meta"] == {"content_length": result.bytes, "record_count": 1000}
    assert [entry["url"] for entry in manifest["entries"]] == [
        f"s3://{bucket}/{key}" for key in sorted(found)
    ]
    assert manifest["as_of"] == 1700000000000
    assert manifest["options"]["parts"] == 4
    assert manifest["schema"]["elements"][0] == {
        "name": "id",
        "type": {"base": "bigint"},
        "spark_type": "bigint",
    }


def test_an_export_asks_no_other_connection_than_its_own(
    spark: Any, faulty: FaultyS3, s3_endpoint: str, s3: Any, bucket: str
) -> None:
    with FaultyS3(s3_endpoint) as other:
        copy_to_s3(
            spark,
            "select id from range(1000)",
            node="model.test.export",
            options={"location": f"s3://{bucket}/x", "parts": 2, "aws_connection": "lake"},
            connections={
                "default": connection_to(other.endpoint),
                "lake": connection_to(faulty.endpoint),
            },
            as_of=1700000000000,
        )
        assert other.seen == []
    # Of the driver, and of the tasks.
    assert {"PutObject", "UploadPart"} <= {one.action for one in faulty.seen}
    assert "x/_manifest.json" in objects_in(s3, bucket)


def test_location_is_a_sql_expression_with_mz_now(copy: Copy, bucket: str) -> None:
    result = copy("select 1 as a", f"'s3://{bucket}/' || mz_now()")
    assert result.location == f"s3://{bucket}/1700000000000/"


def test_an_empty_result_writes_one_file(copy: Copy, s3: Any, bucket: str) -> None:
    copy("select 1 as a where false", f"s3://{bucket}/bare")
    result = copy("select 1 as a where false", f"s3://{bucket}/headed", header=True)
    found = objects_in(s3, bucket)
    assert found["bare/part-0000-0001.csv"] == b""
    assert found["headed/part-0000-0001.csv"] == b"a\n"
    assert (result.rows, result.files, result.bytes) == (0, 1, 2)


def test_files_are_within_the_limit(copy: Copy, s3: Any, bucket: str) -> None:
    query = "select id, repeat('x', 90) as filler from range(3000)"
    result = copy(query, f"s3://{bucket}/e", parts=2, max_file_size="64kB")
    sizes = {
        key: len(body) for key, body in objects_in(s3, bucket).items() if key.endswith(".csv")
    }
    assert result.files == len(sizes) > 4
    assert max(sizes.values()) <= 64 * 1024
    assert "e/part-0001-0002.csv" in sizes


def test_each_object_is_weighed_and_the_next_row_would_not_have_fitted(
    copy: Copy, s3: Any, bucket: str
) -> None:
    limit = 64 * 1024
    # Rows of 9 to 4000 bytes, and one that is larger than the limit.
    width = "if(id = 77, 70000, pmod(hash(id), 4000))"
    query = f"select id + 100000 as id, repeat('x', {width}) as filler from range(600)"
    result = copy(query, f"s3://{bucket}/e", parts=3, max_file_size="64kB")
    found = objects_in(s3, bucket)
    entries = json.loads(found.pop("e/_manifest.json"))["entries"]
    sizes = {entry["url"]: entry["meta"]["content_length"] for entry in entries}
    assert sizes == {f"s3://{bucket}/{key}": len(body) for key, body in found.items()}
    assert (result.files, result.bytes) == (len(sizes), sum(sizes.values()))
    [large] = [body for body in found.values() if len(body) > limit]
    assert large.startswith(b"100077,xxx") and large.count(b"\n") == 1
    parts = [[body for key, body in sorted(found.items()) if f"part-000{n}" in key] for n in "012"]
    assert min(map(len, parts)) > 4
    for part in parts:
        for body, following in pairwise(part):
            assert len(body) + len(following.splitlines(keepends=True)[0]) > limit


def test_collations_do_not_merge_or_reorder(copy: Copy, s3: Any, bucket: str) -> None:
    values = "(values ('a'), ('A'), ('a'), ('A')) t(x)"
    query = f"select x collate utf8_lcase as x from {values}"
    copy(query, f"s3://{bucket}/one", parts=1)
    copy(query.replace("('a'), ('A')", "('A'), ('a')"), f"s3://{bucket}/two", parts=1)
    found = objects_in(s3, bucket)
    assert found["one/part-0000-0001.csv"] == found["two/part-0000-0001.csv"]


def test_a_sibling_with_a_longer_name_is_not_in_the_way(copy: Copy, s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="orders2/a.csv", Body=b"x")
    assert copy("select 1 as a", f"s3://{bucket}/orders").rows == 1


def test_a_location_that_is_not_empty_is_refused(copy: Copy, s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="orders/a.csv", Body=b"x")
    with pytest.raises(LocationError) as failure:
        copy("select 1 as a", f"s3://{bucket}/orders")
    assert str(failure.value) == (
        f"s3://{bucket}/orders/ is not empty: it holds 1 object, such as "
        f"s3://{bucket}/orders/a.csv. Remove what is there, or export to a new location for "
        "each run, such as "
        f"'s3://{bucket}/orders/' || mz_now()"
    )
    assert list(objects_in(s3, bucket)) == ["orders/a.csv"]


def test_a_missing_bucket_is_named(copy: Copy) -> None:
    with pytest.raises(S3Error, match="listing s3://no-such-bucket/x/ failed: NoSuchBucket"):
        copy("select 1 as a", "s3://no-such-bucket/x")


POINT = "st_geogfromwkb(X'0101000000000000000000F03F0000000000000040')"


def test_every_unsupported_column_is_listed(
    copy: Copy, spark: Any, bucket: str, nothing_left: Callable[[str], None]
) -> None:
    spark.conf.set("spark.sql.geospatial.enabled", "true")  # which it is not by itself in 4.1
    seven_digits = "time'01:02:03.1234567'"
    kind = spark.sql(f"select {seven_digits}").dtypes[0][1]  # 4.1 has six
    with pytest.raises(ConfigError) as failure:
        copy(
            f"select 1 as a, {POINT} as g, struct(1 as b, 2 as B) as s, 1.5D as d, "
            f"{seven_digits} as t order by 1",
            f"s3://{bucket}/x",
            force_quote=["b"],
            partition_by=["d", "e"],
        )
    listed = [problem.split(",")[0] for problem in failure.value.problems]
    assert listed == [
        "column g has the type geography(4326)",
        "column s is a struct with fields b and B",
        *(["column t has the type time(7)"] if kind == "time(7)" else []),
        "force_quote names b",
        "partition_by names e",
        "partition_by names d",
        "the query ends in ORDER BY",
    ]
    nothing_left(bucket)


def test_timestamps_of_nanoseconds_are_named(copy: Copy, spark: Any, bucket: str) -> None:
    nanoseconds = "spark.sql.timestampNanosTypes.enabled"
    query = "select 1 as id, cast('2024-01-01' as timestamp_ntz(9)) as at"
    try:
        spark.conf.set(nanoseconds, "true")
        spark.sql("select 1 where cast('2024-01-01' as timestamp_ntz(9)) is null")
    except PySparkException:
        pytest.skip("this Spark has none")
    try:
        assert spark.sql(f"describe query {query}").collect()[1][1] == "timestamp_ntz(9)"
        with pytest.raises(ConfigError) as failure:
            copy(query, f"s3://{bucket}/x")
    finally:
        spark.conf.unset(nanoseconds)
    [problem] = failure.value.problems
    assert problem.startswith("column at has the type timestamp_ntz(9), of which")
    with pytest.raises(SparkJobError, match=r"^\[FEATURE_NOT_ENABLED\]"):
        copy(query, f"s3://{bucket}/x")


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("1 + 1", "location '1 + 1' evaluates to 2, which is no text"),
        ("cast(null as string)", "evaluates to NULL"),
        ("'gs://bucket/x'", "location must start with s3://, not 'gs://bucket/x'"),
        ("s3://", "location names no bucket"),
        ("s3://bucket/a//b", "has an empty folder name in it"),
        ("nonsense(", "that Spark can evaluate: [PARSE_SYNTAX_ERROR]"),
        ("explode(array('s3://b/x', 's3://b/y'))", "evaluates to several rows; it has to be one"),
        ("stack(2, 's3://b/x', 's3://b/y')", "evaluates to several rows"),
        ("explode(cast(array() as array<string>))", "evaluates to no row; it has to be one text"),
        (
            "(select * from values ('s3://b/x'), ('s3://b/y'))",
            "that Spark can evaluate: [SCALAR_SUBQUERY_TOO_MANY_ROWS]",
        ),
        ("'s3://b/x\\n'", "location ends in a newline"),
        ("concat('s3://b', '/../x')", "location has a folder '..'"),
    ],
)
def test_a_location_that_is_none(copy: Copy, location: str, reason: str) -> None:
    with pytest.raises(ConfigError) as failure:
        copy("select 1 as a", location)
    assert reason in str(failure.value)


@pytest.mark.parametrize(
    ("query", "ordered"),
    [
        ("select 1 as a order by a", True),
        ("with x as (select 1 as a) select * from x order by a", True),
        ("select 1 as a union all select 2 order by a", True),
        ("select 1 as a order by a limit 3", False),
        ("select * from (select 1 as a order by a)", False),
        ("with x as (select 1 as a order by a) select * from x", False),
        ("select 1 as a sort by a", False),
    ],
)
def test_order_by_at_the_top_is_refused(
    copy: Copy, bucket: str, query: str, ordered: bool
) -> None:
    if ordered:
        with pytest.raises(ConfigError, match="the query ends in ORDER BY"):
            copy(query, f"s3://{bucket}/x")
    else:
        assert copy(query, f"s3://{bucket}/x").rows == 1


def test_a_failing_query_says_why_and_leaves_nothing(
    copy: Copy, bucket: str, nothing_left: Callable[[str], None]
) -> None:
    with pytest.raises(Mzs3Error) as failure:
        copy("select raise_error('no good') as a from range(9)", f"s3://{bucket}/x")
    text = str(failure.value)
    assert text.startswith(
        f"model.test.export: the export to s3://{bucket}/x/ failed: [USER_RAISED"
    )
    assert "no good" in text
    assert text.endswith("Nothing of this export is visible, and no upload is left open")
    assert "\tat " not in text
    nothing_left(bucket)


def test_s3_is_asked_while_the_query_is_planned(
    copy: Copy, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned, asked = threading.Event(), threading.Event()

    def planning(*arguments: Any) -> PlannedRows:
        assert asked.wait(60)
        rows = plan_rows(*arguments)
        planned.set()
        return rows

    def asking(*arguments: Any) -> Preflight:
        asked.set()
        assert planned.wait(60)
        return prepare(*arguments)

    monkeypatch.setattr(job, "plan_rows", planning)
    monkeypatch.setattr(job, "prepare", asking)
    assert copy("select 1 as a", f"s3://{bucket}/e").rows == 1


def test_a_query_that_can_not_be_planned_is_told_as_any_failure(
    copy: Copy, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def planning(*arguments: Any) -> PlannedRows:
        raise PySparkException("[NO_PLAN] there is none")

    monkeypatch.setattr(job, "plan_rows", planning)
    with pytest.raises(CopyError) as failure:
        copy("select 1 as a", f"s3://{bucket}/e")
    text = str(failure.value)
    assert text.startswith(f"model.test.export: the export to s3://{bucket}/e/ failed: [NO_PLAN]")
    assert text.endswith("Nothing of this export is visible, and no upload is left open")


def test_a_query_is_planned_by_few_calls_into_the_jvm(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes as long as to export hundreds of rows."""
    columns = [f"id AS a{n}, id / 3 AS b{n}, string(id) AS c{n}" for n in range(4)]
    frame = spark.sql(f"select {', '.join(columns)} from range(9)")
    calls = []
    send = GatewayClient.send_command

    def counted(*arguments: Any, **options: Any) -> Any:
        calls.append(arguments[1])
        return send(*arguments, **options)

    monkeypatch.setattr(GatewayClient, "send_command", counted)
    plan_rows(frame, 2)
    assert len(calls) < 16 * len(frame.columns)
