"""Every type of Spark as CSV: through the plan that hashes, sorts and sends it, and exported."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame

from dbt.adapters.mzs3.export.export import CopyResult
from dbt.adapters.mzs3.formats.dialect import CsvDialect
from dbt.adapters.mzs3.formats.write.csv.format import CsvEncoder
from dbt.adapters.mzs3.rows.columns import canonical_columns, exported_columns
from dbt.adapters.mzs3.rows.plan import in_parts
from dbt.adapters.mzs3.spark.job import ship_executor_code

pytestmark = pytest.mark.spark

# What Spark is asked for, and what is written with the delimiter `|`.
CASES = {
    # Without parts.
    "true": "t",
    "1Y": "1",
    "1.50": "1.50",
    "-0.0D": "-0",
    "1e20D": "1e+20",
    "'a b'": "a b",
    "''": '""',
    "'é' collate utf8_lcase": "é",
    "X'00ff'": "\\x00ff",
    "date'2020-01-02'": "2020-01-02",
    "time'10:20:30.5'": "10:20:30.5",
    "timestamp_ntz'2020-01-02 03:04:05.5'": "2020-01-02 03:04:05.5",
    "timestamp'2020-01-02 03:04:05.5+01:00'": "2020-01-02 02:04:05.5+00",
    "null": "",
    # Intervals.
    "interval '1-2' year to month": "1 year 2 mons",
    "interval '-1-2' year to month": "-1 years -2 mons",
    "interval 3 year": "3 years",
    "interval '-178956970-8' year to month": "-178956970 years -8 mons",
    "interval '1 02:03:04.5' day to second": "1 day 02:03:04.5",
    "interval '-1 02:03:04.5' day to second": "-1 days -02:03:04.5",
    "interval '-106751991 04:00:54.775808' day to second": "-106751991 days -04:00:54.775808",
    "interval '36' hour": "36:00:00",
    "interval '-36:30' hour to minute": "-36:30:00",
    "interval '-0.000001' second": "-00:00:00.000001",
    "interval 2 day": "2 days",
    "cast(null as interval month)": "",
    "cast(null as interval hour)": "",
    "timestamp'2020-01-03 01:00:00Z' - timestamp'2020-01-01 00:00:00Z'": "2 days 01:00:00",
    "make_interval(1, -2, 3, 4, -5, 6, -7.000001)": "10 mons 25 days -04:54:07.000001",
    "make_interval(0, 0, 0, 1, 30)": "1 day 30:00:00",
    "make_interval(-1, 0, 0, 2)": "-1 years +2 days",
    "make_interval()": "00:00:00",
    "cast('-178956970 years -8 months -2147483648 days' as interval)": (
        "-178956970 years -8 mons -2147483648 days"
    ),
    "cast('-2562047788 hours -54.775808 seconds' as interval)": "-2562047788:00:54.775808",
    "cast(null as interval)": "",
    # Variants: keys are sorted, numbers are Spark's.
    """parse_json('{"b": 1, "a": [1.50, 1e3, "x y", null, true]}')""": (
        '"{""a"":[1.5,1000.0,""x y"",null,true],""b"":1}"'
    ),
    "parse_json('null')": "null",
    "cast(null as variant)": "",
    "cast(timestamp'2020-01-02 03:04:05.5Z' as variant)": '"""2020-01-02 03:04:05.5+00:00"""',
    "cast(X'00ff' as variant)": '"""AP8="""',
    # Structs.
    "named_struct('a', 1, 'b', 'x y', 'c', cast(null as string), 'd', '')": (
        '"(1,""x y"",,"""")"'
    ),
    "named_struct('a', 'q\"', 'b', '\\\\')": '"(""q"""""",""\\\\"")"',
    "named_struct('a', time'10:20:30.5', 'b', date'2020-01-02', 'c', X'00')": (
        '"(10:20:30.5,2020-01-02,""\\\\x00"")"'
    ),
    "named_struct('a', null)": "()",
    "named_struct()": "()",
    "cast(null as struct<a: int>)": "",
    "cast(null as struct<a: interval>)": "",
    "named_struct('x.y', 1, 'q`r', make_interval(1))": '"(1,""1 year"")"',
    "named_struct('', 1.5D, 'it\\'s', make_interval(1))": '"(1.5,""1 year"")"',
    "named_struct('s', named_struct('s', cast(null as struct<v: variant>)))": '"(""()"")"',
    "named_struct('z', -0.0D, 'y', 0.0F)": "(-0,0)",
    # Maps.
    "map('b', 1, 'a', null)": "{a=>NULL,b=>1}",
    "map('b c', '', 'null', '1=2')": '"{""b c""=>"""",""null""=>""1=2""}"',
    "map()": "{}",
    "cast(null as map<string, int>)": "",
    "map(interval 2 day, 1, interval 1 day, 2)": '"{""1 day""=>2,""2 days""=>1}"',
    "map(2, map('a', array(1, 2)), 1, null)": "{1=>NULL,2=>{a=>{1,2}}}",
    "map('é' collate utf8_lcase, 'A' collate utf8_lcase)": "{é=>A}",
    "map(named_struct('k', 1), named_struct('v', 2.0D))": "{(1)=>(2)}",
    # Arrays of all these.
    "array(named_struct('a', 1, 'b', 2), null)": '"{""(1,2)"",NULL}"',
    "array(named_struct('v', parse_json('[1]')), named_struct('v', null))": "{([1]),()}",
    "array(interval 1 day, interval 0 day)": '"{""1 day"",00:00:00}"',
    "array(map('a', 1), map('b', 2))": "{{a=>1},{b=>2}}",
    "array(make_interval(1), null)": '"{""1 year"",NULL}"',
    "array(parse_json('1'), null)": "{1,NULL}",
    "array(null)": "{NULL}",
    "array()": "{}",
    "transform(array(1, 2), x -> named_struct('i', x, 'm', map('k', x)))": (
        '"{""(1,{k=>1})"",""(2,{k=>2})""}"'
    ),
}
QUERY = "select " + ", ".join(f"{expression} as c{i}" for i, expression in enumerate(CASES))
# Rows that Spark's own order takes for the same.
ZEROS = """
select
  named_struct('a', array({0}), 'b', cast({1} as float)) as s,
  map('k', named_struct('v', {0})) as m,
  array(map({1}, {1})) as l,
  cast({0} as variant) as v
from range(50)
"""


def encoding(frame: DataFrame) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a worker does with batches of the frame's rows: their lines, as the file has them."""
    logical_types = tuple(column.logical_type for column in exported_columns(frame.schema))

    def encode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = batch.select(range(1, batch.num_columns))  # the part comes first
            encoder = CsvEncoder(
                rows.schema, CsvDialect(delimiter="|"), logical_types=logical_types
            )
            yield pa.record_batch([encoder.encode(rows).cast(pa.string())], names=["line"])

    return encode


def lines(frame: DataFrame) -> list[str]:
    """The lines of an export in one part."""
    ship_executor_code()
    encoded = in_parts(canonical_columns(frame), 1).mapInArrow(encoding(frame), "line string")
    return [row[0].removesuffix("\n") for row in encoded.collect()]


def by_expression(line: str) -> dict[str, str]:
    return dict(zip(CASES, line.split("|"), strict=True))


def test_every_type_is_written_whatever_the_zone_of_the_session(spark: Any) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    (line,) = lines(session.sql(QUERY))
    assert by_expression(line) == CASES


def test_every_type_is_exported(copy: Callable[..., CopyResult], s3: Any, bucket: str) -> None:
    copy(QUERY, f"s3://{bucket}/e", parts=1, delimiter="|")
    (key,) = [
        entry["Key"]
        for entry in s3.list_objects_v2(Bucket=bucket)["Contents"]
        if entry["Key"].endswith(".csv")
    ]
    body = s3.get_object(Bucket=bucket, Key=key)["Body"].read().decode()
    assert by_expression(body.removesuffix("\n")) == CASES


def test_an_export_without_rows_has_every_type(
    copy: Callable[..., CopyResult], bucket: str
) -> None:
    assert copy(f"select * from ({QUERY}) where false", f"s3://{bucket}/e").rows == 0


def test_values_of_rows_are_not_mixed_up(spark: Any) -> None:
    query = """
    select
      id,
      case when id % 3 > 0 then named_struct('a', id, 'i', make_interval(0, 0, 0, id)) end as s,
      case when id % 5 > 0 then map(id, parse_json(string(id)), -id, null) end as m,
      array_repeat(interval '1' second * id, int(id % 4)) as l
    from range(200)
    """

    def expected(i: int) -> str:
        struct = "" if i % 3 == 0 else f'"({i},""{i} day{"" if i == 1 else "s"}"")"'
        entries = f"{{-{i}=>NULL,{i}=>{i}}}" if i % 5 else ""
        time = f"{i // 3600:02d}:{i // 60 % 60:02d}:{i % 60:02d}"
        return f"{i}|{struct}|{entries}|{{{','.join([time] * (i % 4))}}}"

    found = lines(spark.sql(query).repartition(3))
    assert sorted(found) == sorted(expected(i) for i in range(200))


def test_both_zeros_have_one_order_in_nested_values(spark: Any) -> None:
    pairs = [("0D", "0D"), ("0D", "-0D"), ("-0D", "0D"), ("-0D", "-0D")]
    queries = [ZEROS.format(*pair) for pair in pairs]
    one = lines(spark.sql(" union all ".join(queries)))
    two = lines(spark.sql(" union all ".join(reversed(queries))))
    assert one == two
    assert one.count("({-0},0)|{k=>(-0)}|{{0=>0}}|-0.0") == 50


def test_both_zeros_have_one_order_as_keys(spark: Any, tmp_path: Path) -> None:
    # Spark makes no such maps, but reads them.
    maps = [[(0.0, "a"), (-0.0, "b")], [(-0.0, "b"), (0.0, "a")]]
    pq.write_table(
        pa.table({"m": pa.array(maps, pa.map_(pa.float64(), pa.string()))}), tmp_path / "m.parquet"
    )
    assert lines(spark.read.parquet(str(tmp_path / "m.parquet"))) == ["{0=>a,-0=>b}"] * 2
