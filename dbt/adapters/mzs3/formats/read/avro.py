"""Avro's object container files as a format of objects: the schema is the header."""

from __future__ import annotations

import contextlib
import io
import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa

from dbt.adapters.mzs3.formats.read.compression import DECOMPRESSORS, as_file, streams_reader
from dbt.adapters.mzs3.formats.read.convert import WIDE_DIGITS
from dbt.adapters.mzs3.formats.read.encoding import RAW_READ_BYTES, ReadBytes
from dbt.adapters.mzs3.formats.read.format import RecordField, StoredObject
from dbt.adapters.mzs3.formats.read.object_error import ObjectError, excerpt
from dbt.adapters.mzs3.formats.read.signatures import LOOK_BYTES, kind_in
from dbt.adapters.mzs3.formats.read.typed import (
    FIX_FILE,
    TypedFile,
    invalid_file,
    other_file,
    own_type,
    unreadable_file,
)
from dbt.adapters.mzs3.types.table import MAX_DIGITS

try:
    import lzma
except ImportError:  # Python may have been built without it
    lzma = None  # type: ignore[assignment]

# A batch ends at whichever of these comes first.
BATCH_RECORDS = 4096
BATCH_BYTES = 8 * 1024 * 1024

MAGIC = b"Obj\x01"
SYNC_BYTES = 16
# The limit for a block, both in the file and decompressed, and for a value in the header; and of
# xz's memory, as libzstd has it for a window.
MAX_BLOCK_BYTES = 128 * 1024 * 1024
# The limit for records that take no bytes, as all of their fields are NULL.
_MOST_EMPTY_RECORDS = 1 << 20
_LONGEST_NUMBER = 10
# MemoryError too: with a wrong count, a list of any length may be allocated.
_UNREADABLE = (EOFError, LookupError, ValueError, TypeError, OverflowError, MemoryError)

_ARROW_TYPES = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    **dict.fromkeys(("bytes", "fixed"), pa.binary()),
    **dict.fromkeys(("string", "enum"), pa.string()),
}
# By base and logical type. On another base type, the specification ignores the logical type.
_LOGICAL = {
    ("int", "date"): pa.date32(),
    ("long", "timestamp-millis"): pa.timestamp("ms", tz="UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", tz="UTC"),
    ("long", "timestamp-nanos"): pa.timestamp("ns", tz="UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("long", "local-timestamp-nanos"): pa.timestamp("ns"),
    # No column type has these meanings, and the numbers alone would have another.
    ("int", "time-millis"): None,
    ("long", "time-micros"): None,
    ("fixed", "duration"): None,
}
invalid = partial(invalid_file, "Avro")
unreadable = partial(unreadable_file, "Avro")
_NAMED = frozenset({"record", "error", "enum", "fixed"})
_WORDS = frozenset({*_ARROW_TYPES, *_NAMED, "array", "map"})


@contextlib.contextmanager
def avro_file(stored: StoredObject) -> Iterator[TypedFile]:
    """Opens an Avro file of records without nested fields; reading them needs `fastavro`.

    Slower than the other formats, as each record becomes a Python object. Holds one block of the
    file besides the records.
    """
    with contextlib.closing(stored.open()) as reader:
        container = AvroContainer(reader.read)
        fields, schema = read_schema(container.schema)

        def batches(positions: Sequence[int]) -> Iterator[list[pa.Array]]:
            done = 0
            for batch in _records(container, schema):
                yield [_values(batch, fields[position], done) for position in positions]
                done += len(batch)

        yield fields, batches


def _records(container: AvroContainer, schema: Any) -> Iterator[list[dict[str, Any]]]:
    """Batches of records, with the values as stored. Raises ObjectError."""
    read_record = _record_reader(schema)
    batch: list[dict[str, Any]] = []
    number = held = 0
    for count, data in container.blocks():
        block = io.BytesIO(data)
        for _ in range(count):
            number += 1
            start = block.tell()
            try:
                batch.append(read_record(block))
            except _UNREADABLE as exc:
                problem = f"the record is not valid Avro ({exc})"
                raise ObjectError(problem, FIX_FILE, record=number) from exc
            held += block.tell() - start
            if len(batch) == BATCH_RECORDS or held >= BATCH_BYTES:
                yield batch
                batch, held = [], 0
        if block.tell() < len(data):
            raise invalid("a block has bytes behind its last record")
    if batch:
        yield batch


def _record_reader(schema: Any) -> Callable[[io.BytesIO], Any]:
    """Returns a function that reads one record. Raises ObjectError without `fastavro`."""
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
    return lambda block: fastavro.schemaless_reader(block, parsed, None)


def _values(batch: list[dict[str, Any]], field: AvroField, before: int) -> pa.Array:
    """One field's values. Raises ObjectError for a number that no decimal can hold."""
    values = [record[field.name] for record in batch]
    try:
        if field.scale is not None:
            values = [None if raw is None else _decimal(raw, field.scale) for raw in values]
        return pa.array(values, field.arrow)
    except (ValueError, OverflowError) as exc:
        raise invalid(f"field {field.name!r}, from record {before + 1} on: {exc}") from exc


def _decimal(raw: bytes, scale: int) -> Decimal:
    number = int.from_bytes(raw, "big", signed=True)
    # Built from digits: arithmetic would round to the precision of Python's context.
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))


@dataclass(frozen=True)
class AvroField(RecordField):
    """A field and the Arrow type to read it as; None if no column can hold its values.

    A decimal is stored as the `bytes` of an integer, 10**`scale` times as large.
    """

    arrow: pa.DataType | None
    scale: int | None = None


def read_schema(schema: Any) -> tuple[tuple[AvroField, ...], Any]:
    """The fields of a file's records, and the schema without logical types, for reading.

    Without logical types, fastavro returns the numbers as stored. Raises ObjectError for anything
    but a schema of records.
    """
    try:
        if not isinstance(schema, dict) or schema.get("type") != "record":
            raise _no_records(schema)
        types = _Types(schema)
        fields = tuple(_field(str(f["name"]), types.resolve(f["type"])) for f in schema["fields"])
        physical = _physical(schema)
    except (KeyError, TypeError, AttributeError, RecursionError) as exc:
        raise invalid("its schema is not one of Avro") from exc
    if len({field.name for field in fields}) < len(fields):
        raise invalid("its schema has two fields of the same name")
    return fields, physical


def _no_records(schema: Any) -> ObjectError:
    kind = schema.get("type") if isinstance(schema, dict) else schema
    if isinstance(kind, list):
        kind = "union"
    elif not isinstance(kind, str) or kind not in _WORDS:
        return invalid("its schema is not one of Avro")
    return unreadable(
        f"its schema is of type {kind}, not record",
        "Have the objects written as records, whose fields are the columns, or narrow `pattern` "
        "so that it is left out, then run again",
    )


class _Types:
    """The types of a schema, which may refer to named types by their names."""

    def __init__(self, record: dict[str, Any]) -> None:
        self._named: dict[str, dict[str, Any]] = {}
        full = _full_name(record["name"], record.get("namespace", ""))
        self._namespace = full.rpartition(".")[0]
        self._learn(record, "")

    def _learn(self, schema: Any, namespace: str, inside: tuple[str, ...] = ()) -> None:
        """Records all named types. Raises ObjectError for a type that contains itself."""
        if isinstance(schema, list):
            for one in schema:
                self._learn(one, namespace, inside)
        names = {schema, _full_name(schema, namespace)} if isinstance(schema, str) else set()
        if not names.isdisjoint(inside) and schema not in _WORDS:
            raise unreadable("a type that contains itself")
        if not isinstance(schema, dict):
            return
        if isinstance(schema["type"], str) and schema["type"] in _NAMED:
            full = _full_name(schema["name"], schema.get("namespace", namespace))
            self._named[full] = schema
            namespace = full.rpartition(".")[0]
            inside = (*inside, full)
        parts = [schema.get(inner) for inner in ("type", "items", "values")]
        parts += [one["type"] for one in schema.get("fields", ())]
        self._learn(parts, namespace, inside)

    def resolve(self, kind: Any) -> dict[str, Any]:
        """The type with its attributes; for a union with NULL, that of the other type."""
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
        return self._named.get(full) or self._named[kind]


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _field(name: str, kind: dict[str, Any]) -> AvroField:
    base, logical = str(kind["type"]), str(kind.get("logicalType"))
    if logical == "decimal" and base in ("bytes", "fixed"):
        return _decimal_field(name, base, kind.get("precision"), kind.get("scale", 0))
    words = f"{base} ({logical})" if (base, logical) in _LOGICAL else base
    arrow = _LOGICAL.get((base, logical), _ARROW_TYPES.get(base))
    return AvroField(name, words, None if arrow is None else own_type(arrow), arrow)


def _decimal_field(name: str, base: str, precision: Any, scale: Any) -> AvroField:
    are_whole = type(precision) is type(scale) is int
    if not are_whole or precision < 1 or not 0 <= scale <= precision:
        # The specification says to ignore such a logical type.
        return AvroField(name, base, "binary", pa.binary())
    own = f"decimal({precision},{scale})"
    words = f"{base} ({own})"
    if precision > MAX_DIGITS:
        return AvroField(name, words, None, None)
    return AvroField(name, words, own, pa.decimal256(WIDE_DIGITS, scale), scale)


def _physical(schema: Any) -> Any:
    """The schema with only the attributes that reading needs."""
    if isinstance(schema, list):
        return [_physical(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    left_out = ("logicalType", "default", "doc", "aliases")
    return {key: _physical(value) for key, value in schema.items() if key not in left_out}


class AvroContainer:
    """One container file, read from front to back; `schema` is the JSON in its header.

    (Apache Avro's specification, section Object Container Files.) Read without a library, so that
    a file that was cut off, except between two blocks, is an error. Holds one block. Raises
    ObjectError for an invalid file.
    """

    def __init__(self, read: ReadBytes) -> None:
        self._input = as_file(read)
        metadata = self._header()
        codec = metadata.get("avro.codec", b"null").decode("utf-8", "replace")
        if codec not in _CODECS:
            problem = f"its codec is {excerpt(codec)}, which is not one of {', '.join(_CODECS)}"
            raise ObjectError(problem, "Have the objects written with one of those")
        self._decompress = _CODECS[codec]
        try:
            self.schema: Any = json.loads(metadata["avro.schema"])
        except (KeyError, ValueError, RecursionError) as exc:
            raise invalid("its header has no schema") from exc

    def blocks(self) -> Iterator[tuple[int, bytes]]:
        """The number of records in each block, and their bytes."""
        while self._input.peek(1):
            count, size = self._number(), self._size()
            if count < 0:
                raise invalid("a block of less than no records")
            raw = self._take(size)
            if self._take(SYNC_BYTES) != self._sync:
                raise invalid("a block does not end in the file's sync marker")
            data = self._decompress(raw)
            if count > max(len(data), _MOST_EMPTY_RECORDS):
                raise invalid(f"a block of {count} records in {len(data)} bytes")
            yield count, data

    def _header(self) -> dict[str, bytes]:
        kind = kind_in(self._input.peek(LOOK_BYTES))
        if self._take(len(MAGIC)) != MAGIC:
            unknown = invalid("it does not begin as an object container file")
            raise other_file("Avro", kind) if kind else unknown
        metadata = {}
        while count := self._number():
            if count < 0:
                self._number()  # their size in bytes
            for _ in range(abs(count)):
                key = self._take(self._size()).decode("utf-8", "replace")
                metadata[key] = self._take(self._size())
        self._sync = self._take(SYNC_BYTES)
        return metadata

    def _size(self) -> int:
        size = self._number()
        if size < 0:
            raise invalid(f"a length of {size} bytes")
        if size > MAX_BLOCK_BYTES:
            raise too_large(size)
        return size

    def _number(self) -> int:
        """A variable-length zigzag number, the lowest seven bits first."""
        value = 0
        for position in range(_LONGEST_NUMBER):
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << 7 * position
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
        raise invalid("a number of more than 64 bits")

    def _take(self, size: int) -> bytes:
        data = self._input.read(size)
        if len(data) < size:
            raise ObjectError("its Avro file ends early", FIX_FILE)
        return data


def too_large(size: int) -> ObjectError:
    """The error for an object with a block or a value of this size."""
    return unreadable(f"a length of {size} bytes, where {MAX_BLOCK_BYTES} is the most")


def _inflate(raw: bytes) -> bytes:
    stream = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        data = stream.decompress(raw, MAX_BLOCK_BYTES + 1)
    except zlib.error as exc:
        raise invalid(exc) from exc
    _require_fits(len(data))
    # More bytes may follow: some writers leave a part of zlib's checksum there.
    if not stream.eof:
        raise invalid(_NOT_WHOLE)
    return data


def _unstream(opened: Callable[[ReadBytes], ReadBytes], raw: bytes) -> bytes:
    """Decompresses in parts: of a block that is too large, little more than fits is held."""
    data = io.BytesIO()
    try:
        read = opened(io.BytesIO(raw).read)
        while part := read(RAW_READ_BYTES):
            data.write(part)
            _require_fits(data.tell())
    except _DAMAGED as exc:
        # The libraries have no exception classes for this, only messages.
        if "memory" in str(exc).lower():
            raise unreadable("a block that takes more than 128 MB to decompress") from exc
        raise invalid(str(exc) or _NOT_WHOLE) from exc
    if not raw:
        raise invalid(_NOT_WHOLE)
    return data.getvalue()


def _require_fits(size: int) -> None:
    if size > MAX_BLOCK_BYTES:
        raise unreadable(f"a block that decompresses to more than {MAX_BLOCK_BYTES} bytes")


def _unsnap(raw: bytes) -> bytes:
    """Decompresses Snappy data, which a checksum of the decompressed bytes follows."""
    size = 0
    for position, byte in enumerate(raw[:5]):
        size |= (byte & 0x7F) << 7 * position
        if byte < 0x80:
            break
    if size > MAX_BLOCK_BYTES:
        raise too_large(size)
    try:
        body, crc = raw[:-4], raw[-4:]
        data: bytes = pa.decompress(body, size, codec="snappy", asbytes=True)
    except (pa.ArrowException, OSError) as exc:
        raise invalid(exc) from exc
    if zlib.crc32(data) != int.from_bytes(crc, "big"):
        raise invalid("a block whose checksum is another")
    return data


_NOT_WHOLE = "a block that does not decompress as a whole"
_DAMAGED = (EOFError, OSError, *([lzma.LZMAError] if lzma else []))
_XZ = partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, MAX_BLOCK_BYTES) if lzma else None
_CODECS: dict[str, Callable[[bytes], bytes]] = {
    "null": lambda raw: raw,
    "deflate": _inflate,
    "snappy": _unsnap,
    "zstandard": partial(_unstream, DECOMPRESSORS["zstd"]),
    "bzip2": partial(_unstream, DECOMPRESSORS["bzip2"]),
    **({"xz": partial(_unstream, partial(streams_reader, _XZ))} if _XZ else {}),
}
