"""Files of shards without us: Spark, DuckDB and pyarrow read what models have written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from dbt.adapters.mzs3.aws.location import parse_location
from dbt.adapters.mzs3.errors import ConfigError, ShardError
from dbt.adapters.mzs3.shard.state.store import StateStore

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
        found = StateStore(s3, place).read()
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
    assert "column_types has uuid for n, whose values, int, can't be taken for it" in str(
        caught.value
    )
    assert "column_types has o, which the query lacks; it has n, s" in str(caught.value)
    with pytest.raises(ShardError, match="'0011' is no UUID"):
        persist("select '0011' as u", 10, column_types={"u": "uuid"})
    with pytest.raises(ShardError, match="column n holds a value that is none of its type"):
        persist("select -1 as n", 10, column_types={"n": "uint4"})


def _texts(frame: Any) -> list[str]:
    """Nested values as JSON, others as Spark writes them."""
    nested = ("map", "array", "struct")
    return [
        f"to_json(struct({name}))" if kind.startswith(nested) else f"cast({name} as string)"
        for name, kind in frame.dtypes
    ]
