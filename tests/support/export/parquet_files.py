"""Files as the writer of an export makes them, and a table to make them from."""

import io

import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.mzs3.formats.write.format import PLAIN
from dbt.adapters.mzs3.formats.write.parquet import ParquetFormat


class Bytes:
    def __init__(self):
        self._data = io.BytesIO()

    @property
    def bytes(self):
        return self._data.tell()

    @property
    def data(self):
        return self._data.getvalue()

    def append(self, data):
        self._data.write(data)


def writer_of(schema, logical_types=None, limit=256 << 20, compression="snappy"):
    logical_types = logical_types or (PLAIN,) * len(schema)
    return ParquetFormat(compression).writer(schema, logical_types, limit)


def files_of(schema, batches, logical_types=None, limit=256 << 20, compression="snappy"):
    """Every file's bytes; the loop is the writer's."""
    writer = writer_of(schema, logical_types, limit, compression)
    sink, files = Bytes(), []
    file = writer.open(sink)
    for batch in batches:
        for piece in writer.pieces(batch):
            start = 0
            while start < len(piece):
                start = file.take(piece, start)
                if start < len(piece):
                    file.close()
                    files.append(sink.data)
                    sink = Bytes()
                    file = writer.open(sink)
    file.close()
    return [*files, sink.data]


def opened(data):
    return pq.ParquetFile(pa.BufferReader(data))


def read(files):
    return pa.concat_tables(pq.read_table(pa.BufferReader(data)) for data in files)


def cut(batch, size):
    return [batch.slice(start, size) for start in range(0, batch.num_rows, size)]


def orders(count):
    """Numbers, short and long texts, lists and NULLs; no two runs make others."""
    numbers = range(count)
    return pa.record_batch(
        {
            "id": pa.array(numbers, pa.int64()),
            "note": pa.array([None if n % 7 == 0 else f"{n * n:x}" * (n % 5) for n in numbers]),
            "price": pa.array([n * 1.37 for n in numbers]),
            "items": pa.array([[f"{n}-{i}" for i in range(n % 4)] for n in numbers]),
            "paid": pa.array([None if n % 3 == 0 else n % 2 == 0 for n in numbers]),
        }
    )
