"""Files of a batch as its writer makes them, and reading them."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.mzs3.shard.batch.read import FileComparison, compare_encodings, read_batch
from dbt.adapters.mzs3.shard.batch.write import BatchFormat, BatchLayout
from dbt.adapters.mzs3.shard.types import Column, Type
from support.shard.values import wire_array


class Bytes:
    def __init__(self) -> None:
        self._data = io.BytesIO()

    @property
    def bytes(self) -> int:
        return self._data.tell()

    @property
    def data(self) -> bytes:
        return self._data.getvalue()

    def append(self, data: memoryview) -> None:
        self._data.write(data)


def tagged(*kinds: Type, first: int = 0) -> dict[int, Type]:
    return {first + place: kind for place, kind in enumerate(kinds)}


def wanted(tag: int, kind: Type, default: bytes = b"", name: str = "") -> Column:
    return Column(tag, name, kind, "", default)


def rows_of(kinds: list[Type], columns: list[list[Any]]) -> pa.RecordBatch:
    count = len(columns[0])
    arrays = [wire_array(values, kind) for values, kind in zip(columns, kinds, strict=True)]
    return batch_of(arrays, count)


def batch_of(arrays: list[pa.Array], count: int) -> pa.RecordBatch:
    t, d = pa.repeat(pa.scalar(5, pa.int64()), count), pa.array([1, -1] * count)[:count]
    names = [f"c{place}" for place in range(len(arrays))]
    return pa.RecordBatch.from_arrays([t, d, *arrays], ["t", "d", *names])


def written(
    layout: BatchLayout, batches: list[pa.RecordBatch], limit: int = 256 << 20
) -> list[bytes]:
    """Every file's bytes."""
    names = tuple(f"name of {tag}" for tag in layout.columns)
    form = BatchFormat(layout, names).writer(pa.schema([]), (), limit)
    sink, files = Bytes(), []
    file = form.open(sink)
    for batch in batches:
        for piece in form.pieces(batch):
            start = 0
            while start < len(piece):
                start = file.take(piece, start)
                if start < len(piece):
                    file.close()
                    files.append(sink.data)
                    sink = Bytes()
                    file = form.open(sink)
    file.close()
    return [*files, sink.data]


def read(data: bytes, columns: list[Column]) -> pa.Table:
    batches = list(read_batch(pa.BufferReader(data), columns))
    return pa.Table.from_batches(batches).combine_chunks()


def compared(data: bytes) -> FileComparison:
    return compare_encodings(pa.BufferReader(data))


def opened(data: bytes) -> pq.ParquetFile:
    return pq.ParquetFile(pa.BufferReader(data))


class Counting(io.BytesIO):
    """Counts the bytes that are read."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.count = 0

    def read(self, size: int | None = -1, /) -> bytes:
        found = super().read(size)
        self.count += len(found)
        return found


class Holding(Counting):
    """Knows how many of the bytes that were read were held at once, at most."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.held = self.most = 0

    def read(self, size: int | None = -1, /) -> bytes:
        found = _Held(super().read(size))
        found.holder = self
        self.held += len(found)
        self.most = max(self.most, self.held)
        return found


class _Held(bytes):
    holder: Holding

    def __del__(self) -> None:
        self.holder.held -= len(self)


def with_structure_of(data: bytes, other: bytes) -> bytes:
    """The first file, but `k_s` is that of the other."""
    table, of_other = (pq.read_table(pa.BufferReader(found)) for found in (data, other))
    place = table.schema.get_field_index("k_s")
    return file_of(table.set_column(place, table.schema.field("k_s"), of_other.column("k_s")))


def with_structure_of_other_rows(data: bytes) -> bytes:
    """The same file, but `k_s` has the rows the other way round."""
    table = pq.read_table(pa.BufferReader(data))
    turned = table.column("k_s").combine_chunks()[::-1]
    place = table.schema.get_field_index("k_s")
    return file_of(table.set_column(place, table.schema.field("k_s"), turned))


def file_of(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, use_compliant_nested_type=False)
    return sink.getvalue().to_pybytes()
