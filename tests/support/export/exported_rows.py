"""The rows of an exported table, read by another library than the one that writes the files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb

from dbt.adapters.mzs3.formats.dialect import CsvDialect
from support.export.downstream_rows import COLUMNS, DUCKDB_TEXT_ARRAY, Row

Reader = Callable[[Any, Path, Mapping[str, Any]], list[Row]]
IN_FOLDERS = "hive_partitioning = true, hive_types = {kind: 'VARCHAR'}"


def csv_options(options: Mapping[str, Any]) -> dict[str, str]:
    """The dialect, under the names that PostgreSQL gives its parts."""
    dialect = vars(CsvDialect())
    return {key: options.get(key, default) for key, default in dialect.items()}


def csv_rows(_: Any, folder: Path, options: Mapping[str, Any]) -> list[Row]:
    in_folders = "partition_by" in options
    kinds = {"id": "BIGINT"} | ({} if in_folders else {"kind": "VARCHAR"})
    kinds |= {column: c.duckdb for column, c in COLUMNS.items()}
    dialect = csv_options(options)
    given = {
        "auto_detect": "false",
        "header": str(options.get("header", False)).lower(),
        "delim": literal(dialect["delimiter"]),
        "quote": literal(dialect["quote"]),
        "escape": literal(dialect["escape"]),
        "nullstr": literal(dialect["null"]),
        "allow_quoted_nulls": "false",
        "columns": "{" + ", ".join(f"{c}: '{kind}'" for c, kind in kinds.items()) + "}",
    }
    listed = ", ".join(f"{key} = {value}" for key, value in given.items())
    listed += f", {IN_FOLDERS}" if in_folders else ""
    values = ", ".join(f"{c.value.format(n)} as {n}" for n, c in COLUMNS.items())
    return _duckdb_rows(f"select id, kind, {values} from read_csv('{folder}/**/*.csv*', {listed})")


def parquet_rows(_: Any, folder: Path, options: Mapping[str, Any]) -> list[Row]:
    hive = f", {IN_FOLDERS}" if "partition_by" in options else ""
    return _duckdb_rows(f"select * from read_parquet('{folder}/**/*.parquet'{hive})")


READERS: Mapping[str, Reader] = {"csv": csv_rows, "parquet": parquet_rows}
"""By the name of the format; each takes a Spark session, a folder, and the export's options."""


def _duckdb_rows(query: str) -> list[Row]:
    with duckdb.connect() as connection:
        connection.execute("set TimeZone = 'UTC'")
        connection.execute(DUCKDB_TEXT_ARRAY)
        cursor = connection.execute(query)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def literal(text: str) -> str:
    """The text in SQL."""
    return "'" + text.replace("'", "''") + "'"
