"""Tasks of a shard: files in, rows out; and what makes a batch's files of an export's tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from dbt.adapters.mzs3.aws.client import s3_client
from dbt.adapters.mzs3.aws.connection import AwsConnection
from dbt.adapters.mzs3.errors import ExecutorError
from dbt.adapters.mzs3.formats.format import LogicalType
from dbt.adapters.mzs3.formats.parquet import ParquetFormat
from dbt.adapters.mzs3.shard.executor.batch.read import (
    COMPARED,
    BatchError,
    ReadColumn,
    StoredFile,
    open_file,
    read_batch,
)
from dbt.adapters.mzs3.shard.executor.batch.write import BatchFormat, BatchLayout
from dbt.adapters.mzs3.shard.executor.wire import for_spark

FILES_DDL = "task int, key string, size bigint, etag string"


@dataclass(frozen=True)
class BatchSpec:
    """The format of a batch's files; `names` are what users call the columns."""

    layout: BatchLayout
    names: tuple[str, ...]

    suffix, content_type = ParquetFormat.stored_as["none"]

    def writer(self, _: pa.Schema, __: Sequence[LogicalType], max_file_size: int) -> BatchFormat:
        """What writes the files."""
        return BatchFormat(self.layout, self.names, max_file_size)


@dataclass(frozen=True)
class ReadSpec:
    """What a task needs to read files of a shard; it travels to the executors.

    Of each file it reads the first row and then every so-manieth one.
    """

    connection: AwsConnection = field(repr=False)
    bucket: str
    wanted: tuple[ReadColumn, ...]
    validate: bool = False
    every: int = 1


def read_files(
    spec: ReadSpec,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For `mapInArrow` over rows of FILES_DDL: their `t`, `d` and the wanted columns c0, c1, ….

    With `validate`, COMPARED is the last column, as `read_batch` has it.
    Raises ExecutorError, which names the file, and the column if it is one.
    """

    def read(listed: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        client = s3_client(spec.connection)
        names = ["t", "d", *(f"c{place}" for place in range(len(spec.wanted)))]
        if spec.validate:
            names.append(COMPARED)
        for batch in listed:
            for row in batch.to_pylist():
                file = StoredFile(row["key"], row["size"], row["etag"])
                source = open_file(client, spec.bucket, file)
                try:
                    found = read_batch(source, spec.wanted, validate=spec.validate)
                    for rows in _sampled(found, spec.every):
                        columns = map(for_spark, rows.columns)
                        yield pa.RecordBatch.from_arrays(list(columns), names)
                except BatchError as error:
                    raise ExecutorError(f"s3://{spec.bucket}/{file.key}: {error}") from error

    return read


def _sampled(batches: Iterator[pa.RecordBatch], every: int) -> Iterator[pa.RecordBatch]:
    if every == 1:
        yield from batches
        return
    start = 0  # of the next batch, the first row that is taken
    for batch in batches:
        taken = range(start, batch.num_rows, every)
        yield batch.take(pa.array(taken, pa.int64()))
        start += len(taken) * every - batch.num_rows
