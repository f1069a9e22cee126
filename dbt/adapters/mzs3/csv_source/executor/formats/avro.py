"""Avro's object container files as a format of objects: the schema is the header."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from dbt.adapters.mzs3.csv_source.executor.columns import Column
from dbt.adapters.mzs3.csv_source.executor.formats.avro_schema import AvroField, read_schema
from dbt.adapters.mzs3.csv_source.executor.formats.container import FIX_AVRO, Container, invalid
from dbt.adapters.mzs3.csv_source.executor.formats.format import Field, Records, StoredObject
from dbt.adapters.mzs3.csv_source.executor.formats.typed import TypedColumns
from dbt.adapters.mzs3.csv_source.executor.problem import CsvProblem
from dbt.adapters.mzs3.csv_source.executor.reading import Reading

# A batch ends with whichever of these is reached first.
BATCH_RECORDS = 4096
BATCH_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True)
class AvroFormat:
    """Avro files of records with fields that are not nested."""

    reading: Reading

    def fields(self, stored: StoredObject) -> tuple[Field, ...] | None:
        """The fields of the file's schema. Raises CsvProblem."""
        if stored.size == 0:
            return None
        with contextlib.closing(stored.open()) as reader:
            fields, _ = read_schema(Container(reader.read).schema)
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
            container = Container(reader.read)
            known, physical = read_schema(container.schema)
            layout = self.columns.layout([one.field for one in known])
            wanted = [known[position] for position in layout.fields]
            fields = [one.field for one in wanted]
            done = 0
            for batch in _batches(_records(container, physical)):
                values = [_values(batch, one, done) for one in wanted]
                yield self.columns.records(values, fields, done)
                done += len(batch)


def _records(container: Container, schema: Any) -> Iterator[tuple[dict[str, Any], int]]:
    """Every record, with its fields' values as they are in the file, and how many bytes it has.

    Raises CsvProblem.
    """
    try:
        import fastavro
    except ImportError:
        raise CsvProblem(
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
                raise CsvProblem(
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
    """One field's values. Raises CsvProblem for a number that no decimal has."""
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
