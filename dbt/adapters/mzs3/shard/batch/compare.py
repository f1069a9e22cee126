"""Comparing the two encodings of a batch's files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.arrow.arrays import float_bits
from dbt.adapters.mzs3.arrow.version import require_version
from dbt.adapters.mzs3.shard.batch.read import (
    BatchReader,
    errors_of_file,
    opened_file,
)
from dbt.adapters.mzs3.shard.codec.encode import datums
from dbt.adapters.mzs3.shard.types import Type
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.store.opened import open_store

COMPARED_DDL = "key string, compared bigint, differing map<int, bigint>"
_SCHEMA = pa.schema(
    {
        "key": pa.string(),
        "compared": pa.int64(),
        "differing": pa.map_(pa.int32(), pa.int64()),
    }
)


@dataclass(frozen=True)
class FileComparison:
    """How many values of a file were compared, and how many differ by the tag of their column.

    Nothing is compared unless both encodings are there and may be read.
    """

    compared: int
    differing: dict[int, int]


def compare_encodings(source: Any) -> FileComparison:
    """Compare all columns of a file, floats by their bits; memory holds one row group.

    Raises BatchError for a file that can't be read, or a value that one encoding can't have.
    """
    with errors_of_file():
        reader = BatchReader(source, (), both=True)
        compared, differing = 0, Counter[int]()
        for structured, messages in reader.encodings():
            for tag, values in structured.items():
                compared += len(values)
                with reader.errors_of(tag):
                    count = _differing(values, messages[tag], reader.kind_of(tag))
                differing.update({tag: count} if count else {})
        return FileComparison(compared, dict(differing))


def _differing(values: pa.Array, others: pa.Array, kind: Type) -> int:
    # Floats are compared by their bits: to Arrow, 0.0 equals -0.0, and NaN does not equal NaN.
    if float_bits(values).equals(float_bits(others)):
        return 0
    # As messages, values of any type can be compared one by one; no value has an empty one.
    one, other = (pc.fill_null(datums(each, kind), b"") for each in (values, others))
    return int(pc.sum(pc.not_equal(one, other)).as_py())


def compare_files(
    connection: AwsConnection, location: S3Location
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For `mapInArrow` over rows of FILES_SCHEMA: a row of COMPARED_DDL for each file.

    Raises ExecutorError, which names the file and, for a wrong value, the column.
    """

    def compare(listed: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        require_version()
        store = open_store(connection, location)
        for row in (row for batch in listed for row in batch.to_pylist()):
            with opened_file(store, location, row) as source:
                found = compare_encodings(source)
            result = {**vars(found), "key": row["key"], "differing": [*found.differing.items()]}
            yield pa.RecordBatch.from_pylist([result], _SCHEMA)

    return compare
