"""Files of shards without us: Spark, DuckDB and pyarrow read what models have written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from support.s3.faulty import FaultyS3
from support.s3.opened import state_of
from support.spark.values import EVERY_TYPE

from dbt.adapters.mzs3.errors import ConfigError, ShardError
from dbt.adapters.mzs3.shard.read.rows import read_shard
from dbt.adapters.mzs3.shard.write.job import persist_shard
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.location import parse_location

pytestmark = pytest.mark.spark

# Types that Spark has no type for, and values of its own types that stand for theirs.
GIVEN = """
select '00112233-4455-6677-8899-AABBCCDDEEFF' as u,
  named_struct('from', named_struct('inclusive', true, 'bound', 1.5BD),
    'to', named_struct('inclusive', false, 'bound', cast(null as decimal(2, 1)))) as r,
  named_struct('elements', array(1, 2, 3, null), 'dimensions',
    array(named_struct('low', 0L, 'n', 2), named_struct('low', 1L, 'n', 2))) as a,
  array(1s, -2s) as v, named_struct('a', 1L, 'b', 4294967295L, 'c', 7) as g,
  named_struct('a', 'u1', 'b', 's1', 'c', 18446744073709551615BD) as m, 1700000000000 as t,
  map('x', 'ffffffff-ffff-ffff-ffff-ffffffffffff', 'y', null) as p
union all select null, null, null, null, null, null, null, null
"""
TYPES = {
    "u": "uuid",
    "r": "range<numeric(2,1)>",
    "a": "array<integer>",
    "v": "int2vector",
    "g": "acl_item",
    "m": "mz_acl_item",
    "t": "mz_timestamp",
    "p": "map<text, uuid>",
}
EXTENSIONS = ["uuid", "range", "array", "int2vector", "acl_item", "mz_acl_item", "mz_timestamp"]


@pytest.fixture
def file(s3: Any, location: str, tmp_path: Path) -> Callable[[], Path]:
    """The one file of the newest batch, on disk."""

    def download() -> Path:
        place = parse_location(location)
        found = state_of(s3, place).read()
        assert found is not None
        [one] = found.state.batches[-1].files
        path = tmp_path / "part.parquet"
        s3.download_file(place.bucket, place.key(one.name), str(path))
        return path

    return download


def test_spark_duckdb_and_pyarrow_see_the_same_rows(
    spark: Any, persist: Callable[..., Any], file: Callable[[], Path]
) -> None:
    query = "select cast(id as int) as n, concat('a', id) as s, id * 1.5BD as x from range(3)"
    persist(query, 10, parts=1)
    path = file()
    expected = [(10, 1, 0, "a0", 0.0), (10, 1, 1, "a1", 1.5), (10, 1, 2, "a2", 3.0)]
    columns = "t, d, k_s.`0`, k_s.`1`, k_s.`2`.lossy"
    found = spark.read.parquet(str(path)).selectExpr(*columns.split(", ")).collect()
    assert sorted(map(tuple, found)) == expected
    query = f"select {columns.replace('`', chr(34))} from '{path}' order by 3"
    assert duckdb.sql(query).fetchall() == expected
    rows = pq.read_table(path).to_pylist()
    changes = [(row["t"], row["d"], *row["k_s"].values()) for row in rows]
    assert sorted((*head, x["lossy"]) for *head, x in changes) == expected


@pytest.mark.parametrize("encoding", ["dual", "codec"])
def test_types_that_spark_lacks_come_back(
    spark: Any,
    persist: Callable[..., Any],
    frame: Callable[..., Any],
    file: Callable[[], Path],
    encoding: str,
) -> None:
    assert persist(GIVEN, 10, column_types=TYPES, encoding=encoding, parts=1).rows == 2
    assert persist(GIVEN, 20, column_types=TYPES, encoding=encoding, parts=1).rows == 0
    found, given = frame(10, validate=True), spark.sql(GIVEN)
    assert found.dtypes == given.dtypes
    written = {tuple(row) for row in given.selectExpr(*_texts(given)).collect()}
    lower = {tuple(v.lower() if i == 0 and v else v for i, v in enumerate(r)) for r in written}
    assert {tuple(row) for row in found.selectExpr(*_texts(found)).collect()} == lower
    if encoding == "dual":
        stored = pq.read_schema(file_of_first(persist, file)).field("k_s").type
        names = [field.metadata[b"ARROW:extension:name"].decode() for field in stored]
        assert names == [f"materialize.persist.1.{name}" for name in (*EXTENSIONS, "map")]


def file_of_first(persist: Callable[..., Any], file: Callable[[], Path]) -> Path:
    """A batch without files is the newest one: have one with a file again."""
    persist(f"{GIVEN} limit 1", 30, column_types=TYPES, parts=1)
    return file()


def test_values_that_are_none_of_a_type_are_refused(persist: Callable[..., Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        persist("select 1 as n, 'x' as s", 10, column_types={"n": "uuid", "o": "uint4"})
    assert (
        "column_types has uuid for n, whose values, int, can't be taken for it; cast them"
        in str(caught.value)
    )
    assert "column_types has o, which the query lacks; it has n, s" in str(caught.value)
    with pytest.raises(ShardError, match="column u: '0011' is no UUID"):
        persist("select '0011' as u", 10, column_types={"u": "uuid"})
    with pytest.raises(
        ShardError, match="column n: -1 is no uint4, which is from 0 to 4294967295"
    ):
        persist("select -1 as n", 10, column_types={"n": "uint4"})
    with pytest.raises(ConfigError, match=r"has uint8 for n, whose values, decimal\(3,2\), can't"):
        persist("select 1.50BD as n", 10, column_types={"n": "uint8"})


def test_numbers_out_of_range_are_refused_without_ansi_too(
    spark: Any, persist: Callable[..., Any], rows: Callable[..., Any]
) -> None:
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        with pytest.raises(ShardError, match="5000000000 is no uint4"):
            persist("select array(1L, 5000000000L) as n", 10, column_types={"n": "list<uint4>"})
        with pytest.raises(ShardError, match="18446744073709551616 is no uint8"):
            persist("select 18446744073709551616BD as n", 10, column_types={"n": "uint8"})
        persist("select 18446744073709551615BD as n", 10, column_types={"n": "uint8"})
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    assert [int(row[0]) for row in rows()] == [18446744073709551615]


def test_a_wider_type_of_sparks_is_taken_over(
    persist: Callable[..., Any], rows: Callable[..., Any]
) -> None:
    types = {"column_types": {"n": "uint8"}}
    persist("select 1 as n, interval '5' day as i", 10, **types)
    persist("select 5000000000BD as n, interval '1 02' day to hour as i", 20, **types)
    found = [(int(n), str(i)) for n, i in rows()]
    assert found == [(5_000_000_000, "1 day, 2:00:00")]
    with pytest.raises(ConfigError, match="does not hold all of its values"):
        persist("select 1 as n, interval '5' month as i", 30, **types)


def test_all_options_that_name_columns_are_wrong_at_once(persist: Callable[..., Any]) -> None:
    persist("select 1 as id, named_struct('lat', 1d, 'lon', 2d) as at", 10)
    with pytest.raises(ConfigError) as caught:
        persist(
            "select 1 as id, named_struct('lon', 2d, 'lat', 1d) as at",
            20,
            column_types={"id": "uuid"},
            column_defaults={"x": 1, "at": "no_such_function()"},
            column_renames={"y": "z"},
            sort_by=["w"],
        )
    text = str(caught.value)
    for problem in (
        "column_types has uuid for id",
        "column_defaults has x, which the model lacks",
        "column_defaults has no_such_function() for at, which fails",
        "column_renames has y: z, but the shard has no column y",
        "column at has the fields lat, lon in the shard and lon, lat in the model",
        "sort_by has w, which the shard lacks; it has id, at",
    ):
        assert problem in text


def _texts(frame: Any) -> list[str]:
    """Nested values as JSON, others as Spark writes them."""
    nested = ("map", "array", "struct")
    return [
        f"to_json(struct({name}))" if kind.startswith(nested) else f"cast({name} as string)"
        for name, kind in frame.dtypes
    ]


def test_two_of_forty_columns_are_less_than_a_tenth_of_what_s3_sends(
    spark: Any,
    persist: Callable[..., Any],
    connection: AwsConnection,
    s3_endpoint: str,
    location: str,
) -> None:
    names = ", ".join(f"xxhash64(id, {number}) as c{number}" for number in range(40))
    persist(f"select {names} from range(20000)", 10)
    with FaultyS3(s3_endpoint) as proxy:
        there = replace(connection, endpoint=proxy.endpoint)

        def sent(names: list[str] | None) -> int:
            proxy.reset()
            frame = read_shard(spark, there, parse_location(location), names=names)
            frame.write.format("noop").mode("overwrite").save()
            return proxy.sent

        assert 20_000 * 2 * 8 < sent(["c7", "c31"]) < sent(None) / 10


def test_two_encodings_take_no_more_requests_than_one(
    spark: Any, connection: AwsConnection, s3_endpoint: str, location: str
) -> None:
    columns = ", ".join(f"xxhash64(id, {number}) as c{number}" for number in range(40))
    with FaultyS3(s3_endpoint) as proxy:
        there = replace(connection, endpoint=proxy.endpoint)

        def requests(encoding: str) -> dict[str, Counter[str]]:
            place = f"{location}/{encoding}"
            found = {}

            def count(what: str) -> None:
                # But for the trial of the store, of which there is one in a process.
                own = [one for one in proxy.seen if "/_mzs3_" not in f"{one.key} {one.query}"]
                found[what], proxy.seen = Counter(one.action for one in own), []

            persist_shard(
                spark,
                f"select {columns} from range(4000)",
                node="model.test.orders",
                options={"location": place, "parts": 2, "encoding": encoding},
                connections={"default": there},
                as_of=10,
            )
            count("write")
            for what, names in (("columns", ["c7", "c31"]), ("rows", None)):
                frame = read_shard(spark, there, parse_location(place), names=names)
                frame.write.format("noop").mode("overwrite").save()
                count(what)
            return found

        dual, structured, codec = map(requests, ("dual", "structured", "codec"))
    assert dual == structured
    # Of messages there is no column to be had alone.
    assert (dual["write"], dual["rows"]) == (codec["write"], codec["rows"])
    assert dual["columns"]["GETObject"] > 2


@pytest.mark.parametrize("own", [False, True])
def test_spark_reads_every_type_as_it_is_stored(
    spark: Any, persist: Callable[..., Any], file: Callable[[], Path], own: bool
) -> None:
    persist(EVERY_TYPE if own else GIVEN, 10, column_types={} if own else TYPES, parts=1)
    path = file()
    stored = pq.read_table(path).column("k_s").combine_chunks().flatten()
    frame = spark.read.parquet(str(path))
    fields = frame.schema["k_s"].dataType
    found = [
        [_plain(row[0]) for row in frame.select(f"k_s.`{field.name}`").collect()]
        for field in fields
    ]
    assert found == [[_plain(value.as_py()) for value in column] for column in stored]
    assert len(found) == len(spark.sql(EVERY_TYPE if own else GIVEN).columns)


def _plain(value: Any) -> Any:
    """What Spark and pyarrow give for a value, in one form."""
    if hasattr(value, "asDict"):
        value = value.asDict()
    if isinstance(value, list) and value and type(value[0]) is tuple:
        value = dict(value)  # pyarrow's maps
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, float):
        return repr(value)  # NaN is equal to none
    return int(value) if isinstance(value, Decimal) else value
