"""Reading text as a source does, and writing it as PostgreSQL does, one field at a time."""

import io
from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa

from dbt.adapters.mzs3.errors import ConfigError, Mzs3Error
from dbt.adapters.mzs3.formats.read.chunks import BLOCK_BYTES, Chunk, Chunks
from dbt.adapters.mzs3.formats.read.columns import Column, RecordLayout
from dbt.adapters.mzs3.formats.read.csv import CsvFormat
from dbt.adapters.mzs3.formats.read.dialect import SourceDialect
from dbt.adapters.mzs3.formats.read.format import Reading, RecordField
from dbt.adapters.mzs3.formats.read.object_error import ObjectError
from dbt.adapters.mzs3.source.options import SourceDefinition, parse_definition
from dbt.adapters.mzs3.source.purify import PinnedDefinition, purify

DIALECT = SourceDialect()
LEAST = {"type": "s3_csv_source", "location": "s3://acme-raw/orders/"}


def parse(external=None, columns=(), **more) -> SourceDefinition:
    """The definition of `lake.orders` with these keys under `external`."""
    return parse_definition(
        name="lake.orders",
        schema="raw",
        identifier="orders",
        external={**LEAST, **(external or {}), **more},
        columns=columns,
        connections={"default", "lake"},
    )


def purify_names(definition: SourceDefinition, names: Sequence[str] | None) -> PinnedDefinition:
    """The definition with nothing left open, from a header of texts with these names."""
    found = None if names is None else [RecordField(name, "string", "string") for name in names]
    return purify(definition, found)


def columns(*types: str) -> tuple[Column, ...]:
    return tuple(Column(f"c{i}", data_type) for i, data_type in enumerate(types, 1))


def read(
    data: bytes,
    *types: str,
    dialect: SourceDialect = DIALECT,
    block_bytes: int = BLOCK_BYTES,
) -> list[tuple]:
    """The rows of an object without a header."""
    decode = decoder(*types, dialect=dialect)
    stream = Chunks(io.BytesIO(data).read, dialect, block_bytes=block_bytes)
    return [row for chunk in stream for row in rows(decode(chunk))]


def decoder(*types: str, dialect: SourceDialect = DIALECT) -> Callable[[Chunk], pa.RecordBatch]:
    """Decodes chunks with a field for each column, as one task does."""
    of_a_task = CsvFormat("none", Reading(), dialect).decoder(None, columns(*types))
    layout = RecordLayout.in_order(len(types))
    return lambda chunk: of_a_task.decode(chunk, layout).batch


def rows(batch: pa.RecordBatch) -> list[tuple]:
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def decode_one(data: bytes, data_type: str) -> pa.Array:
    """The single column of an object, as Arrow holds it."""
    return decoder(data_type)(Chunk(data, 0, 1)).column(0)


def problem_of(data: bytes, *types: str, **options) -> tuple[int | None, int | None, str]:
    """Line, byte and text of the problem that reading an object ends in."""
    try:
        got = read(data, *types, **options)
    except ObjectError as problem:
        return problem.line, problem.byte, problem.problem
    raise AssertionError(f"read without a problem: {got!r}")


def write(
    table: Iterable[Sequence[str | None]],
    dialect: SourceDialect = DIALECT,
    line_end: str = "\n",
) -> bytes:
    """The rows as PostgreSQL's COPY writes them."""
    return b"".join(record(row, dialect, line_end) for row in table)


def record(row: Sequence[str | None], dialect: SourceDialect, line_end: str = "\n") -> bytes:
    fields = (field(value, dialect) for value in row)
    return (dialect.delimiter.join(fields) + line_end).encode()


def field(value: str | None, dialect: SourceDialect) -> str:
    if value is None:
        return dialect.null
    special = (dialect.delimiter, dialect.quote, "\n", "\r")
    if value != dialect.null and not any(char in value for char in special):
        return value
    return dialect.quote + value.replace(dialect.quote, dialect.quote * 2) + dialect.quote


def text_of(action: Callable[[], object]) -> str:
    """The problem that an action ends in, without where it is."""
    try:
        action()
    except ConfigError as error:
        (problem,) = error.problems
        return problem
    except ObjectError as problem:
        return problem.problem
    except Mzs3Error as error:
        return str(error).removeprefix("lake.orders: ")
    raise AssertionError("no error")
