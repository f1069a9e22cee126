"""The table of Spark's types: their counterparts in Arrow, Materialize, Redshift and others."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import pyarrow as pa

MAX_DIGITS = 38
"""The most digits of a decimal, before and after the point together."""


@dataclass(frozen=True)
class SparkType:
    """A row of the table: a type of Spark's, `name`, whose other names are `spellings`.

    `materialize` is the type's name in Materialize and PostgreSQL, and in the extension names of
    Parquet files; `redshift` is its name in manifests. `sent` is the Arrow type in which
    Spark sends values to workers, `in_files` the one in files of Materialize's form. They are None
    if they depend on parameters or inner types, or if values are converted before they are sent.

    A packed value takes `bits`, 0 for types that are not packed. `is_declared`: sources' columns
    can have the type. `names_folders`: each value has one text, which can name a folder.
    """

    name: str
    materialize: str
    redshift: str
    sent: pa.DataType | None = None
    in_files: pa.DataType | None = None
    spellings: tuple[str, ...] = ()
    bits: int = 0
    is_declared: bool = False
    names_folders: bool = False

    @property
    def shard(self) -> str:
        """The type's name in shards, which have one-byte integers, while Materialize has none."""
        return "tinyint" if self.name == "tinyint" else self.materialize


_TEXT, _BYTES, _VARYING = pa.large_string(), pa.large_binary(), "character varying"
_LOCAL, _INSTANT = pa.timestamp("us"), pa.timestamp("us", "UTC")
_OTHER_UTC = pa.timestamp("us", "+00:00")

# The types of sources' columns, in the order in which errors list them.
_DECLARED = (
    SparkType("string", "text", _VARYING, pa.string(), _TEXT),
    SparkType("boolean", "boolean", "boolean", pa.bool_(), pa.bool_(), bits=1),
    SparkType("tinyint", "smallint", "smallint", pa.int8(), pa.int16(), ("byte",), 8),
    SparkType("smallint", "smallint", "smallint", pa.int16(), pa.int16(), ("short",), 16),
    SparkType("int", "integer", "integer", pa.int32(), pa.int32(), ("integer",), 32),
    SparkType("bigint", "bigint", "bigint", pa.int64(), pa.int64(), ("long",)),
    SparkType("float", "real", "real", pa.float32(), pa.float32(), ("real",)),
    SparkType("double", "double", "double precision", pa.float64(), pa.float64()),
    SparkType("decimal", "numeric", "numeric", spellings=("dec", "numeric")),
    SparkType("date", "date", "date", pa.date32(), pa.date32(), bits=32),
    SparkType(
        *("timestamp", "timestamptz", "timestamp with time zone"),
        *(_INSTANT, _OTHER_UTC, ("timestamp_ltz",)),
    ),
    SparkType("timestamp_ntz", "timestamp", "timestamp without time zone", _LOCAL, _LOCAL),
    SparkType("binary", "bytea", "binary varying", pa.binary(), _BYTES),
)
_NO_FOLDERS = ("float", "double", "binary")
TYPES = (
    *(
        replace(row, is_declared=True, names_folders=row.name not in _NO_FOLDERS)
        for row in _DECLARED
    ),
    SparkType("char", "text", _VARYING, pa.string(), _TEXT, names_folders=True),
    SparkType("varchar", "text", _VARYING, pa.string(), _TEXT, names_folders=True),
    SparkType("void", "text", _VARYING, pa.null(), _TEXT),
    SparkType("time", "time", "time without time zone", pa.time64("ns"), pa.time64("us")),
    SparkType("variant", "jsonb", _VARYING, in_files=_TEXT),
    SparkType(
        *("interval", "interval", _VARYING),
        in_files=_TEXT,
        spellings=("daytimeinterval", "yearmonthinterval"),
    ),
    SparkType("array", "list", _VARYING),
    SparkType("map", "map", _VARYING),
    SparkType("struct", "record", _VARYING),
)
SPARK_TYPE_OF_PYTHON = {"str": "string", "int": "bigint", "float": "double", "bool": "boolean"}
"""Spark's types of columns, by the name of a dataclass field's type in Python."""

_BY_NAME = {name: row for row in TYPES for name in (row.name, *row.spellings)}
_BY_SENT = {row.sent: row for row in reversed(TYPES) if row.sent is not None}
_BY_SENT |= {_TEXT: _BY_NAME["string"], _BYTES: _BY_NAME["binary"]}
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?")


def type_named(name: str) -> SparkType | None:
    """The row of a type by its name in SQL or PySpark's `typeName`, without parameters."""
    return _BY_NAME.get(name)


def row_of(name: str) -> SparkType:
    """The row of a type by its name. Raises KeyError if the table lacks the type."""
    return _BY_NAME[name]


def type_sent_as(kind: pa.DataType) -> SparkType | None:
    """The row of the type that Spark sends as this Arrow type; None for nested types."""
    if pa.types.is_decimal128(kind):
        return _BY_NAME["decimal"]
    if pa.types.is_timestamp(kind):
        return _BY_NAME["timestamp_ntz" if kind.tz is None else "timestamp"]
    if pa.types.is_time64(kind):
        return _BY_NAME["time"]
    return _BY_SENT.get(kind)


def sql_of(kind: pa.DataType) -> str:
    """The type's name in SQL; its meaning does not depend on `spark.sql.timestampType`."""
    row = type_sent_as(kind)
    assert row is not None, kind
    return "timestamp_ltz" if row.name == "timestamp" else row.name


def decimal_parameters(text: str) -> tuple[int, int] | None:
    """Precision and scale in a decimal's DDL, with Spark's defaults; None for another type."""
    matched = _DECIMAL.fullmatch(text)
    return (int(matched[1] or 10), int(matched[2] or 0)) if matched else None


def arrow_type(data_type: str) -> pa.DataType:
    """The Arrow type in which Spark sends values of a type in DDL, which is not nested."""
    parameters = decimal_parameters(data_type)
    return pa.decimal128(*parameters) if parameters else _BY_NAME[data_type].sent


def fits_bigint(value: int) -> bool:
    """Whether a whole number has at most 64 bits, its sign included."""
    return -(2**63) <= value < 2**63
