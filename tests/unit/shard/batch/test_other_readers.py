"""What readers that know nothing of shards see in a batch's files."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from support.shard.files import rows_of, tagged, written
from support.shard.values import list_of, map_of, record_of

from dbt.adapters.mzs3.shard.batch.write import BatchLayout
from dbt.adapters.mzs3.shard.types import (
    ACL_ITEM,
    INT2VECTOR,
    MZ_ACL_ITEM,
    Type,
    array_of,
    range_of,
)

INTEGER, TEXT = Type("integer"), Type("text")
UUID = bytes(range(16))
DAY = (dt.date(2024, 2, 29) - dt.date(1970, 1, 1)).days

CASES: list[tuple[Type, Any, str, Any]] = [
    (Type("boolean"), True, "BOOLEAN", True),
    (Type("tinyint"), -1, "TINYINT", -1),
    (INTEGER, 7, "INTEGER", 7),
    (Type("bigint"), 2**40, "BIGINT", 2**40),
    (Type("uint4"), 2**32 - 1, "UINTEGER", 2**32 - 1),
    (Type("uint8"), Decimal(2**64 - 1), "UBIGINT", 2**64 - 1),
    (Type("double"), 0.5, "DOUBLE", 0.5),
    (TEXT, "é", "VARCHAR", "é"),
    (Type("bytea"), b"\x00\xff", "BLOB", b"\x00\xff"),
    (Type("date"), DAY, "INTEGER", DAY),
    (Type("timestamp"), 5, "BIGINT", 5),
    (Type("timestamptz"), -5, "BIGINT", -5),
    (Type("time"), 1_000_000_001, "BLOB", bytes([0, 0, 0, 1, 0, 0, 0, 1])),
    (
        Type("interval"),
        {"months": 1, "days": 2, "micros": 3},
        "BLOB",
        b"\x80\0\0\x01\x80\0\0\x02\x80\0\0\0\0\0\0\x03",
    ),
    (Type("jsonb"), "{}", "BLOB", b"\x72\x02{}"),
    (Type("uuid"), UUID, "BLOB", UUID),
    (Type("mz_timestamp"), Decimal(1), "UBIGINT", 1),
    (list_of(INTEGER), [1, None], "INTEGER[]", [1, None]),
    (INT2VECTOR, [1], "SMALLINT[]", [1]),
    (
        record_of(INTEGER, TEXT),
        {"0": 1, "1": "a"},
        'STRUCT("0" INTEGER, "1" VARCHAR)',
        {"0": 1, "1": "a"},
    ),
    (record_of(), {}, "BOOLEAN", True),
    (map_of(TEXT, INTEGER), [{"0": "k", "1": 1}], "MAP(VARCHAR, INTEGER)", {"k": 1}),
    (
        array_of(INTEGER),
        {"0": [1, 2], "1": [{"0": 1, "1": Decimal(2)}]},
        "STRUCT(elements INTEGER[], dimensions STRUCT(lower_bound BIGINT, length UBIGINT)[])",
        {"elements": [1, 2], "dimensions": [{"lower_bound": 1, "length": 2}]},
    ),
    (
        range_of(INTEGER),
        {"0": {"0": True, "1": 1}, "1": {"0": False, "1": None}},
        'STRUCT("lower" STRUCT(inclusive BOOLEAN, bound INTEGER), '
        '"upper" STRUCT(inclusive BOOLEAN, bound INTEGER))',
        {
            "lower": {"inclusive": True, "bound": 1},
            "upper": {"inclusive": False, "bound": None},
        },
    ),
    (
        ACL_ITEM,
        {"0": 1, "1": 2, "2": Decimal(3)},
        "STRUCT(grantee UINTEGER, grantor UINTEGER, acl_mode UBIGINT)",
        {"grantee": 1, "grantor": 2, "acl_mode": 3},
    ),
    (
        MZ_ACL_ITEM,
        {"0": "u1", "1": "u2", "2": Decimal(3)},
        "STRUCT(grantee VARCHAR, grantor VARCHAR, acl_mode UBIGINT)",
        {"grantee": "u1", "grantor": "u2", "acl_mode": 3},
    ),
]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    kinds = [kind for kind, *_ in CASES]
    columns = [[value, None] for _, value, *_ in CASES]
    path: Path = tmp_path_factory.mktemp("shard") / "batch.parquet"
    path.write_bytes(written(BatchLayout(tagged(*kinds)), [rows_of(kinds, columns)])[0])
    return path


@pytest.mark.parametrize("place", range(len(CASES)), ids=[str(kind) for kind, *_ in CASES])
def test_duckdb_sees_storage_types(file: Path, place: int) -> None:
    _, _, data_type, value = CASES[place]
    query = f'select typeof(k_s."{place}"), k_s."{place}", t, d from \'{file}\''
    (first_type, first, *_), (_, second, *changes) = duckdb.sql(query).fetchall()
    assert first_type.replace('"', "") == data_type.replace('"', "")
    assert (first, second) == (value, None)
    assert changes == [5, -1]


def test_a_numeric_is_a_double_and_bytes_to_duckdb(tmp_path: Path) -> None:
    kind = Type("numeric", precision=5, scale=2)
    values = [Decimal("-1.25"), Decimal("1.25"), None]
    path = tmp_path / "n.parquet"
    path.write_bytes(written(BatchLayout(tagged(kind)), [rows_of([kind], [values])])[0])
    query = f'select k_s."0".lossy from \'{path}\' order by k_s."0".actual nulls last'
    assert duckdb.sql(query).fetchall() == [(-1.25,), (1.25,), (None,)]


def test_pyarrow_sees_storage_types(file: Path) -> None:
    structure = pq.read_table(file).column("k_s").combine_chunks()
    for place, (kind, _, _, value) in enumerate(CASES):
        first, second = structure.field(place).to_pylist()
        found = dict(first) if kind.name == "map" else first
        assert (found, second) == (value, None), kind
