"""Avro's object container files as a format of objects: the schema is the header."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from dbt.adapters.mzs3.csv_source.executor.columns import MAX_PRECISION, Column
from dbt.adapters.mzs3.csv_source.executor.formats.container import (
    FIX_AVRO,
    AvroContainer,
    invalid,
)
from dbt.adapters.mzs3.csv_source.executor.formats.format import RecordField, Records, StoredObject
from dbt.adapters.mzs3.csv_source.executor.formats.typed import WIDE_PRECISION, TypedColumns
from dbt.adapters.mzs3.csv_source.executor.object_error import ObjectError
from dbt.adapters.mzs3.csv_source.executor.reading import Reading

# A batch ends with whichever of these is reached first.
BATCH_RECORDS = 4096
BATCH_BYTES = 8 * 1024 * 1024

_PRIMITIVE = {
    "null": (pa.null(), "void"),
    "boolean": (pa.bool_(), "boolean"),
    "int": (pa.int32(), "int"),
    "long": (pa.int64(), "bigint"),
    "float": (pa.float32(), "float"),
    "double": (pa.float64(), "double"),
    "bytes": (pa.binary(), "binary"),
    "string": (pa.string(), "string"),
}
_OF_THE_SAME_VALUES = {"enum": "string", "fixed": "bytes"}
# By the type they stand on; of others the specification says to ignore the logical type.
_LOGICAL = {
    ("int", "date"): (pa.date32(), "date"),
    ("long", "timestamp-millis"): (pa.timestamp("ms", tz="UTC"), "timestamp"),
    ("long", "timestamp-micros"): (pa.timestamp("us", tz="UTC"), "timestamp"),
    ("long", "timestamp-nanos"): (pa.timestamp("ns", tz="UTC"), "timestamp"),
    ("long", "local-timestamp-millis"): (pa.timestamp("ms"), "timestamp_ntz"),
    ("long", "local-timestamp-micros"): (pa.timestamp("us"), "timestamp_ntz"),
    ("long", "local-timestamp-nanos"): (pa.timestamp("ns"), "timestamp_ntz"),
}
# Their numbers alone would be values of another meaning.
_TIMES = (("int", "time-millis"), ("long", "time-micros"), ("fixed", "duration"))
_NAMED = frozenset({"record", "error", "enum", "fixed"})
_WORDS = frozenset({*_PRIMITIVE, *_NAMED, "array", "map"})


@dataclass(frozen=True)
class AvroFormat:
    """Avro files of records with fields that are not nested."""

    reading: Reading

    def fields(self, stored: StoredObject) -> tuple[RecordField, ...] | None:
        """The fields of the file's schema. Raises ObjectError."""
        if stored.size == 0:
            return None
        with contextlib.closing(stored.open()) as reader:
            fields, _ = read_schema(AvroContainer(reader.read).schema)
        return tuple(one.field for one in fields)

    def decoder(self, header: tuple[str, ...] | None, columns: Sequence[Column]) -> AvroRecords:
        """See `ObjectFormat`; there is always a header."""
        assert header is not None
        return AvroRecords(TypedColumns(header, tuple(columns), self.reading.header_match))


@dataclass(frozen=True)
class AvroRecords:
    """Reads Avro objects of one source, some records at a time; needs `fastavro`.

    Slower than the other formats, as each record is an object of Python's for a while.
    """

    columns: TypedColumns

    def records(self, stored: StoredObject) -> Generator[Records, None, None]:
        """See `ObjectDecoder`. Holds one block of the file beside the records."""
        if stored.size == 0:
            return
        with contextlib.closing(stored.open()) as reader:
            container = AvroContainer(reader.read)
            known, physical = read_schema(container.schema)
            layout = self.columns.layout([one.field for one in known])
            wanted = [known[position] for position in layout.fields]
            fields = [one.field for one in wanted]
            done = 0
            for batch in _batches(_records(container, physical)):
                values = [_values(batch, one, done) for one in wanted]
                yield self.columns.records(values, fields, done)
                done += len(batch)


def _records(container: AvroContainer, schema: Any) -> Iterator[tuple[dict[str, Any], int]]:
    """Every record, with its fields' values as they are in the file, and how many bytes it has.

    Raises ObjectError.
    """
    try:
        import fastavro
    except ImportError:
        raise ObjectError(
            "it is Avro, which the Python of this worker can't read without the package fastavro",
            "Install fastavro where the executors run, as with pip install 'dbt-mzs3[avro]' for "
            "a Spark on this machine, then run again",
        ) from None
    try:
        parsed = fastavro.parse_schema(schema)
    except (ValueError, TypeError, LookupError, fastavro.schema.SchemaParseException) as exc:
        raise invalid(exc) from exc
    number = 0
    for count, data in container.blocks():
        block = io.BytesIO(data)
        end = 0
        for _ in range(count):
            number += 1
            try:
                record = fastavro.schemaless_reader(block, parsed, None)
            # Of a count that is wrong, a list may be made for which no memory is enough.
            except (
                EOFError,
                LookupError,
                ValueError,
                TypeError,
                OverflowError,
                MemoryError,
            ) as exc:
                raise ObjectError(
                    f"the record is not valid Avro ({exc})", FIX_AVRO, record=number
                ) from exc
            start, end = end, block.tell()
            yield record, end - start  # type: ignore[misc]
        if end < len(data):
            raise invalid("a block has bytes behind its last record")


def _batches(records: Iterator[tuple[dict[str, Any], int]]) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    held = 0
    for record, size in records:
        batch.append(record)
        held += size
        if len(batch) == BATCH_RECORDS or held >= BATCH_BYTES:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch


def _values(batch: list[dict[str, Any]], wanted: AvroField, before: int) -> pa.Array:
    """One field's values. Raises ObjectError for a number that no decimal has."""
    name = wanted.field.name
    values = [record[name] for record in batch]
    try:
        if wanted.scale is not None:
            values = [None if raw is None else _decimal(raw, wanted.scale) for raw in values]
        return pa.array(values, wanted.arrow)
    except (ValueError, OverflowError) as exc:
        number = f"from record {before + 1} on"
        raise invalid(f"field {name!r}, {number}: {exc}") from exc


def _decimal(raw: bytes, scale: int) -> Decimal:
    number = int.from_bytes(raw, "big", signed=True)
    # Made of digits, as by reckoning it would be rounded to the precision of Python's context.
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))


@dataclass(frozen=True)
class AvroField:
    """A field of a file's records; `arrow` is None where no column can have its values.

    A decimal comes as `bytes`, of an integer that is 10**`scale` times as large.
    """

    field: RecordField
    arrow: pa.DataType | None
    scale: int | None = None


def read_schema(schema: Any) -> tuple[tuple[AvroField, ...], Any]:
    """The fields of a file's records, and the schema without logical types, to read with.

    Without them, numbers come as they are in the file. Raises ObjectError for what is not the
    schema of records.
    """
    try:
        if not isinstance(schema, dict) or schema.get("type") != "record":
            raise invalid("its schema is not that of a record")
        types = _Types(schema)
        fields = tuple(_field(str(f["name"]), types.resolve(f["type"])) for f in schema["fields"])
        physical = _physical(schema)
    except (KeyError, TypeError, AttributeError, RecursionError) as exc:
        raise invalid("its schema is not one of Avro") from exc
    if len({one.field.name for one in fields}) < len(fields):
        raise invalid("its schema has two fields of the same name")
    return fields, physical


class _Types:
    """The types of a schema, some of which are given by the name that another place gave them."""

    def __init__(self, record: dict[str, Any]) -> None:
        self._named: dict[str, dict[str, Any]] = {}
        full = _full_name(record["name"], record.get("namespace", ""))
        self._namespace = full.rpartition(".")[0]
        self._learn(record, "")

    def _learn(self, schema: Any, namespace: str, inside: tuple[str, ...] = ()) -> None:
        """Raises ObjectError for a type inside of itself: its values may be nested without end."""
        if isinstance(schema, list):
            for one in schema:
                self._learn(one, namespace, inside)
        names = {schema, _full_name(schema, namespace)} if isinstance(schema, str) else set()
        if not names.isdisjoint(inside) and schema not in _WORDS:
            raise invalid("a type that contains itself")
        if not isinstance(schema, dict):
            return
        if isinstance(schema["type"], str) and schema["type"] in _NAMED:
            full = _full_name(schema["name"], schema.get("namespace", namespace))
            self._named[full] = schema
            namespace = full.rpartition(".")[0]
            inside = (*inside, full)
        for inner in ("type", "items", "values"):
            self._learn(schema.get(inner), namespace, inside)
        for one in schema.get("fields", ()):
            self._learn(one["type"], namespace, inside)

    def resolve(self, kind: Any) -> dict[str, Any]:
        """The type with its attributes, without the NULL of a union of it and NULL."""
        if isinstance(kind, list):
            others = [one for one in kind if one not in ("null", {"type": "null"})]
            if len(others) == 1:
                return self.resolve(others[0])
            return {"type": "null"} if kind and not others else {"type": "union"}
        if isinstance(kind, dict):
            if kind["type"] not in _WORDS:
                raise KeyError(kind["type"])
            return kind
        if kind in _WORDS:
            return {"type": kind}
        full = _full_name(kind, self._namespace)
        return self._named[full] if full in self._named else self._named[kind]


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _field(name: str, kind: dict[str, Any]) -> AvroField:
    base, logical = str(kind["type"]), str(kind.get("logicalType"))
    words = f"{base} ({logical})"
    if (base, logical) in _TIMES:
        return AvroField(RecordField(name, words, None), None)
    if (base, logical) in _LOGICAL:
        arrow, own = _LOGICAL[base, logical]
        return AvroField(RecordField(name, words, own), arrow)
    if logical == "decimal" and base in ("bytes", "fixed"):
        return _decimal_field(name, base, kind.get("precision"), kind.get("scale", 0))
    physical = _OF_THE_SAME_VALUES.get(base, base)
    if physical not in _PRIMITIVE:
        return AvroField(RecordField(name, base, None), None)
    arrow, own = _PRIMITIVE[physical]
    return AvroField(RecordField(name, base, own), arrow)


def _decimal_field(name: str, base: str, precision: Any, scale: Any) -> AvroField:
    words = f"{base} (decimal({precision},{scale}))"
    are_whole = type(precision) is type(scale) is int
    if not are_whole or precision < 1 or not 0 <= scale <= precision:
        # The specification says to ignore such a logical type.
        return AvroField(RecordField(name, base, "binary"), pa.binary())
    if precision > MAX_PRECISION:
        return AvroField(RecordField(name, words, None), None)
    own = f"decimal({precision},{scale})"
    return AvroField(RecordField(name, words, own), pa.decimal256(WIDE_PRECISION, scale), scale)


def _physical(schema: Any) -> Any:
    """The schema with no more in it than is needed to read what was written by it."""
    if isinstance(schema, list):
        return [_physical(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    left_out = ("logicalType", "default", "doc", "aliases")
    return {key: _physical(value) for key, value in schema.items() if key not in left_out}
