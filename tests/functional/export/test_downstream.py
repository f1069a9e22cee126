"""What others make of an export, read as docs/downstream.md says: the table that was exported."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from support.export.downstream_rows import (
    COLUMNS,
    DUCKDB_TEXT_ARRAY,
    ROWS,
    comparable,
    spark_schema,
)
from support.export.exported_rows import READERS, csv_options, literal
from support.s3.faulty import connection_to

from dbt.adapters.mzs3.export.job import copy_to_s3
from dbt.adapters.mzs3.export.monitor import RunContext
from dbt.adapters.mzs3.formats.write import FORMATS

pytestmark = pytest.mark.spark

EXPORTS: dict[str, dict[str, Any]] = {
    "csv": {"header": True, "parts": 3},
    "gzip": {"header": True, "parts": 2, "compression": "gzip"},
    "zstd in folders": {
        "header": True, "parts": 2, "compression": "zstd", "partition_by": ["kind"],
    },
    "other dialect": {
        "delimiter": "|", "quote": "'", "escape": "\\", "null": "NULL", "force_quote": ["note"],
    },
}  # fmt: skip
CSV = [*(("extremes", name) for name in EXPORTS), ("seed 1", "csv"), ("seed 2", "gzip")]
OTHERS: list[tuple[str, str]] = []
for _name in [name for name in FORMATS if name not in EXPORTS]:
    _folders = f"{_name} in folders"
    EXPORTS[_name] = {"format": _name, "parts": 2}
    EXPORTS[_folders] = {**EXPORTS[_name], "partition_by": ["kind"]}
    OTHERS += [
        ("extremes", _name),
        ("extremes", _folders),
        ("seed 1", _name),
        ("seed 2", _folders),
    ]
PARQUET = [case for case in OTHERS if "parquet" in case[1]]
Exported = Callable[[str, str], Path]


@pytest.fixture(scope="module")
def session(spark: Any) -> Any:
    """A session with the type TIME, which Spark has turned off, and in UTC."""
    made = spark.newSession()
    made.conf.set("spark.sql.timeType.enabled", "true")
    made.conf.set("spark.sql.session.timeZone", "UTC")
    made.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    return made


@pytest.fixture(scope="module")
def exported(session: Any, s3: Any, s3_endpoint: str, tmp_path_factory: Any) -> Exported:
    """A folder with all objects of an export of these rows, as they are in S3."""
    s3.create_bucket(Bucket="downstream")

    @cache
    def run(rows: str, name: str) -> Path:
        schema = spark_schema()
        columns = ["id", "kind", *COLUMNS]
        values = [tuple(row[column] for column in columns) for row in ROWS[rows]]
        session.createDataFrame(values, schema).createOrReplaceTempView("everything")
        prefix = f"{rows}/{name}".replace(" ", "-")
        copy_to_s3(
            session,
            "select * from everything",
            node="model.test.export",
            options={"location": f"s3://downstream/{prefix}", **EXPORTS[name]},
            connections={"default": connection_to(s3_endpoint)},
            as_of=1700000000000,
        )
        folder: Path = tmp_path_factory.mktemp("export")
        for entry in s3.list_objects_v2(Bucket="downstream", Prefix=f"{prefix}/")["Contents"]:
            file = folder / entry["Key"].removeprefix(f"{prefix}/")
            file.parent.mkdir(parents=True, exist_ok=True)
            s3.download_file("downstream", entry["Key"], str(file))
        return folder

    return run


def manifest_files(folder: Path) -> list[Path]:
    """The files that the manifest names, in its order."""
    manifest = json.loads((folder / "_manifest.json").read_text())
    base = manifest["options"]["location"] + "/"
    return [folder / entry["url"].removeprefix(base) for entry in manifest["entries"]]


@pytest.mark.parametrize(("rows", "name"), [*CSV, *OTHERS])
def test_every_format_holds_the_values(
    session: Any, exported: Exported, rows: str, name: str
) -> None:
    options = EXPORTS[name]
    read = READERS[options.get("format", "csv")]
    found = read(session, exported(rows, name), options)
    # DuckDB's own intervals can't be read from PostgreSQL's text of them.
    assert comparable(found, without=["pause"]) == comparable(ROWS[rows], without=["pause"])


@pytest.mark.postgres
@pytest.mark.parametrize(("rows", "name"), [case for case in CSV if "folders" not in case[1]])
def test_postgres_copies_it(exported: Exported, postgres_uri: str, rows: str, name: str) -> None:
    columns = {"id": "bigint", "kind": "text"} | {n: c.postgres for n, c in COLUMNS.items()}
    definition = ", ".join(f"{column} {kind}" for column, kind in columns.items())
    options = ", ".join(
        f"{key} {literal(value)}" for key, value in csv_options(EXPORTS[name]).items()
    )
    header = str(EXPORTS[name].get("header", False)).lower()
    statement = f"copy t from stdin (format csv, header {header}, {options})"
    with psycopg.connect(postgres_uri, row_factory=psycopg.rows.dict_row) as connection:
        connection.execute("set timezone to 'UTC'")
        connection.execute(f"create temp table t ({definition})")
        for file in manifest_files(exported(rows, name)):
            text = file.read_bytes()
            text = gzip.decompress(text) if file.suffix == ".gz" else text
            with connection.cursor() as cursor, cursor.copy(statement) as into:
                into.write(text)
        found = connection.execute("select * from t").fetchall()
    assert comparable(found) == comparable(ROWS[rows])


def test_the_macro_for_duckdb_is_the_documented_one() -> None:
    text = Path(__file__).parents[3].joinpath("docs/downstream.md").read_text()
    assert " ".join(DUCKDB_TEXT_ARRAY.split()) in " ".join(text.split())


def pyarrow_table(folder: Path, column: str | None) -> pa.Table:
    """As docs/downstream.md reads it; the column, if any, is that of folders."""
    folders = column and ds.partitioning(pa.schema([(column, pa.string())]), flavor="hive")
    source: Any = folder
    if column and column.startswith(("_", ".")):
        with folder.joinpath("_manifest.json").open("rb") as stream:
            entries = json.load(stream)["entries"]
        source = [str(folder / entry["url"].split("/x/", 1)[1]) for entry in entries]
    return ds.dataset(source, format="parquet", partitioning=folders).to_table()


def put_what_others_leave(folder: Path) -> None:
    for name in ("_SUCCESS", ".DS_Store", "_mzs3_probe"):
        folder.joinpath(name).write_bytes(b"no rows")


@pytest.mark.parametrize(("rows", "name"), PARQUET)
def test_pyarrow_reads_parquet(exported: Exported, rows: str, name: str) -> None:
    folder = exported(rows, name)
    hive = "kind" if "partition_by" in EXPORTS[name] else None
    put_what_others_leave(folder)
    found = pyarrow_table(folder, hive).to_pylist()
    assert comparable(found, without=["pause"]) == comparable(ROWS[rows], without=["pause"])


@pytest.mark.parametrize(("rows", "name"), PARQUET)
def test_spark_reads_parquet(session: Any, exported: Exported, rows: str, name: str) -> None:
    found = session.read.parquet(str(exported(rows, name))).toArrow().to_pylist()
    assert comparable(found, without=["pause"]) == comparable(ROWS[rows], without=["pause"])


def test_spark_reads_csv(session: Any, exported: Exported) -> None:
    """Text alone: what it can't tell apart is in docs/downstream.md."""
    reader = session.read.options(
        header=True, multiLine=True, quote='"', escape='"', nullValue="", emptyValue=""
    )
    found = reader.csv(str(exported("seed 1", "csv"))).collect()
    notes = {int(row["id"]): row["note"] for row in found}
    plain = {
        row["id"]: row["note"] or None for row in ROWS["seed 1"] if "\r" not in (row["note"] or "")
    }
    assert {number: notes[number] or None for number in plain} == plain


ODD = ["_mine", ".mine", "a=b"]


@pytest.mark.parametrize("rows", [3, 0])
@pytest.mark.parametrize("name", ODD)
def test_folders_of_odd_names_and_of_no_rows_are_read_as_documented(
    session: Any, s3: Any, s3_endpoint: str, tmp_path: Path, name: str, rows: int
) -> None:
    told: list[str] = []
    bucket = f"downstream-odd-{ODD.index(name)}-{rows}"
    s3.create_bucket(Bucket=bucket)
    copy_to_s3(
        session,
        f"select id, 'v w' as `{name}` from range({rows})",
        node="model.test.export",
        options={"location": f"s3://{bucket}/x", "format": "parquet", "partition_by": [name]},
        connections={"default": connection_to(s3_endpoint)},
        as_of=1700000000000,
        context=RunContext(tell=lambda event: told.append(event.text)),
    )
    [warning] = [text for text in told if text.startswith("partition_by has")]
    assert f"partition_by has {name}: " in warning
    for entry in s3.list_objects_v2(Bucket=bucket, Prefix="x/")["Contents"]:
        file = tmp_path / entry["Key"].removeprefix("x/")
        file.parent.mkdir(parents=True, exist_ok=True)
        s3.download_file(bucket, entry["Key"], str(file))

    put_what_others_leave(tmp_path)
    table = pyarrow_table(tmp_path, name)
    assert (table.num_rows, table.column_names) == (rows, ["id", name])
    assert set(table[name].to_pylist()) == ({"v w"} if rows else set())
    shown = name.replace("=", "%3D")
    hive = f"hive_partitioning = true, hive_types = {{'{shown}': 'VARCHAR'}}"
    found = duckdb.sql(f"select * from read_parquet('{tmp_path}/**/*.parquet', {hive})")
    assert (len(found.fetchall()), found.columns) == (rows, ["id", shown])
    if not name.startswith("."):  # which Spark passes over
        read = session.read.schema(f"id bigint, `{name}` string").parquet(str(tmp_path))
        assert (read.count(), read.columns) == (rows, ["id", name])
