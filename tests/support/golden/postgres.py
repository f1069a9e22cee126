"""A real PostgreSQL, loaded in its binary format, which shares no code with our encoder."""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import zip_longest
from typing import Any

import psycopg
import pyarrow as pa
from psycopg import sql
from psycopg.types.numeric import DecimalBinaryDumper

from dbt.adapters.mzs3.formats.dialect import CsvDialect
from dbt.adapters.mzs3.formats.write.csv.format import CsvEncoder

POSTGRES_EPOCH_DAYS = 10_957  # 2000-01-01, in days since 1970-01-01
SIGNATURE = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
Pack = Callable[[Any], bytes]


@dataclass(frozen=True)
class SqlType:
    """A type in PostgreSQL, in Arrow, and how a Python value becomes PostgreSQL's binary form."""

    sql: str
    oid: int
    arrow: pa.DataType
    pack: Pack


def _numeric(value: Decimal) -> bytes:
    return bytes(DecimalBinaryDumper(Decimal).dump(value) or b"")


def _timestamp(micros: int) -> bytes:
    return struct.pack(">q", micros - POSTGRES_EPOCH_DAYS * 86_400_000_000)


def _date(days: int) -> bytes:
    return struct.pack(">i", days - POSTGRES_EPOCH_DAYS)


def decimal_type(precision: int, scale: int) -> SqlType:
    return SqlType(
        f"numeric({precision},{scale})", 1700, pa.decimal128(precision, scale), _numeric
    )


def _interval(value: dict[str, int]) -> bytes:
    return struct.pack(">qii", value["micros"], value["days"], value["months"])


BOOLEAN = SqlType("boolean", 16, pa.bool_(), lambda v: bytes((v,)))
BYTEA = SqlType("bytea", 17, pa.binary(), bytes)
BIGINT = SqlType("bigint", 20, pa.int64(), lambda v: struct.pack(">q", v))
SMALLINT = SqlType("smallint", 21, pa.int16(), lambda v: struct.pack(">h", v))
INTEGER = SqlType("integer", 23, pa.int32(), lambda v: struct.pack(">i", v))
TEXT = SqlType("text", 25, pa.string(), str.encode)
JSON = SqlType("json", 114, pa.string(), str.encode)
REAL = SqlType("real", 700, pa.float32(), lambda v: struct.pack(">f", v))
DOUBLE = SqlType("double precision", 701, pa.float64(), lambda v: struct.pack(">d", v))
DATE = SqlType("date", 1082, pa.date32(), _date)
TIME = SqlType("time", 1083, pa.time64("ns"), lambda v: struct.pack(">q", v // 1000))
TIMESTAMP = SqlType("timestamp", 1114, pa.timestamp("us"), _timestamp)
TIMESTAMPTZ = SqlType("timestamptz", 1184, pa.timestamp("us", "Asia/Kolkata"), _timestamp)
INTERVAL_PARTS = [("months", pa.int32()), ("days", pa.int32()), ("micros", pa.int64())]
INTERVAL = SqlType("interval", 1186, pa.struct(INTERVAL_PARTS), _interval)


def array_of(element: SqlType) -> SqlType:
    def pack(value: list[Any]) -> bytes:
        logical_type = _logical_type(value)
        leaves = value
        for _ in logical_type[1:]:
            leaves = [leaf for inner in leaves for leaf in inner]
        if not leaves:
            return struct.pack(">iiI", 0, 0, element.oid)
        dimensions = b"".join(struct.pack(">ii", length, 1) for length in logical_type)
        head = struct.pack(">iiI", len(logical_type), None in leaves, element.oid)
        return head + dimensions + b"".join(_field(leaf, element.pack) for leaf in leaves)

    return SqlType(f"{element.sql}[]", 0, pa.list_(element.arrow), pack)


def nested_array_of(element: SqlType) -> SqlType:
    flat = array_of(element)
    return SqlType(flat.sql, 0, pa.list_(flat.arrow), flat.pack)


def arrow_array(kind: SqlType, values: Sequence[Any]) -> pa.Array:
    """The values, days and microseconds since 1970 included, as the Arrow type."""
    return pa.array(values, _stored(kind.arrow)).cast(kind.arrow)


def _stored(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_list(data_type):
        return pa.list_(_stored(data_type.value_type))
    if pa.types.is_struct(data_type):
        return pa.struct([field.with_type(_stored(field.type)) for field in data_type])
    if pa.types.is_date32(data_type):
        return pa.int32()
    return pa.int64() if pa.types.is_temporal(data_type) else data_type


def _logical_type(value: list[Any]) -> list[int]:
    inner = value[0] if value else None
    return [len(value), *(_logical_type(inner) if isinstance(inner, list) else [])]


def _field(value: Any, pack: Pack) -> bytes:
    if value is None:
        return struct.pack(">i", -1)
    packed = pack(value)
    return struct.pack(">i", len(packed)) + packed


class Postgres:
    """One connection; every question is answered by a table of its own."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self.names: sql.Composable = sql.SQL("")

    def load(self, names: Sequence[str], types: Sequence[SqlType], rows: Sequence[Any]) -> None:
        """Makes the table `t` of these rows, and numbers them: tables have no order."""
        columns = sql.SQL(", ").join(
            sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(kind.sql))
            for name, kind in zip(names, types, strict=True)
        )
        self.connection.execute("drop table if exists t")
        self.connection.execute(
            sql.SQL("create temp table t (ordinal integer, {})").format(columns)
        )
        self.names = sql.SQL(", ").join(map(sql.Identifier, names))
        packed = bytearray(SIGNATURE)
        for ordinal, row in enumerate(rows):
            packed += struct.pack(">hii", len(row) + 1, 4, ordinal)
            for value, kind in zip(row, types, strict=True):
                packed += _field(value, kind.pack)
        packed += struct.pack(">h", -1)
        with (
            self.connection.cursor() as cursor,
            cursor.copy("copy t from stdin (format binary)") as copy,
        ):
            copy.write(packed)

    def composite(self, name: str, fields: Mapping[str, SqlType]) -> SqlType:
        """A new composite type; its values are dictionaries."""
        listed = sql.SQL(", ").join(
            sql.SQL("{} {}").format(sql.Identifier(field), sql.SQL(kind.sql))
            for field, kind in fields.items()
        )
        self.connection.execute(
            sql.SQL("drop type if exists {} cascade").format(sql.Identifier(name))
        )
        self.connection.execute(
            sql.SQL("create type {} as ({})").format(sql.Identifier(name), listed)
        )
        oids = {field: self._oid(kind.sql) for field, kind in fields.items()}

        def pack(value: dict[str, Any]) -> bytes:
            return struct.pack(">i", len(fields)) + b"".join(
                struct.pack(">I", oids[field]) + _field(value[field], kind.pack)
                for field, kind in fields.items()
            )

        arrow = pa.struct([(field, kind.arrow) for field, kind in fields.items()])
        return SqlType(name, self._oid(name), arrow, pack)

    def _oid(self, type_name: str) -> int:
        row = self.connection.execute("select %s::regtype::oid", (type_name,)).fetchone()
        assert row is not None
        return int(row[0])

    def csv(self, options: Sequence[sql.Composable] = ()) -> bytes:
        """What COPY writes of the table `t`, in the order in which it was loaded."""
        clause = sql.SQL(", ").join([sql.SQL("format csv"), *options])
        statement = sql.SQL("copy (select {} from t order by ordinal) to stdout ({})").format(
            self.names, clause
        )
        with self.connection.cursor() as cursor, cursor.copy(statement) as copy:
            return b"".join(bytes(block) for block in copy)

    def read_back(self, text: bytes, dialect: CsvDialect, *columns: str) -> bytes:
        """The binary form of a table like `t` into which COPY has read `text`.

        Rows are numbered as they come if `ordinal` is not among the columns of the text.
        """
        self.connection.execute("drop table if exists back")
        self.connection.execute("drop sequence if exists next_ordinal")
        self.connection.execute("create temp sequence next_ordinal minvalue 0")
        self.connection.execute("create temp table back (like t)")
        self.connection.execute(
            "alter table back alter ordinal set default nextval('next_ordinal')"
        )
        names = sql.SQL(", ").join(map(sql.Identifier, columns))
        target = sql.SQL("back ({})").format(names) if columns else sql.SQL("back")
        options = sql.SQL(", ").join([sql.SQL("format csv"), *dialect_options(dialect)])
        statement = sql.SQL("copy {} from stdin ({})").format(target, options)
        with self.connection.cursor() as cursor, cursor.copy(statement) as copy:
            copy.write(text)
        return self.binary("back")

    def binary(self, table: str) -> bytes:
        """PostgreSQL's own binary form of a table, in order: equal for equal tables only."""
        statement = sql.SQL(
            "copy (select * from {} order by ordinal) to stdout (format binary)"
        ).format(sql.Identifier(table))
        with self.connection.cursor() as cursor, cursor.copy(statement) as copy:
            return b"".join(bytes(block) for block in copy)


def dialect_options(dialect: CsvDialect) -> list[sql.Composable]:
    return [
        sql.SQL("{} {}").format(sql.SQL(name), sql.Literal(getattr(dialect, name)))
        for name in ("delimiter", "quote", "escape", "null")
    ]


def encoded(encoder: CsvEncoder, batch: pa.RecordBatch) -> bytes:
    """The bytes that the encoder's array holds."""
    return b"".join(line.as_buffer().to_pybytes() for line in encoder.encode(batch))


def assert_same(ours: bytes, theirs: bytes) -> None:
    """Equal bytes, or a failure that shows the first differences and not megabytes."""
    if ours != theirs:
        pairs = zip_longest(ours.split(b"\n"), theirs.split(b"\n"))
        different = [pair for pair in pairs if pair[0] != pair[1]]
        raise AssertionError(f"{len(different)} lines differ, (ours, theirs): {different[:10]}")
