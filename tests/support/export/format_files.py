"""Files of every format that exports write, as a task writes them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from dbt.adapters.mzs3.formats.write import FORMATS
from dbt.adapters.mzs3.formats.write.format import PLAIN, ExportFormat, FileWriter

EACH = [
    pytest.param(each(compression), id=f"{name} {compression}")
    for name, each in FORMATS.items()
    for compression in each.file_types
]
ROWS = pa.record_batch(
    {
        "id": pa.array(range(20_000), pa.int64()),
        "note": pa.array([None if n % 7 == 0 else f"{n * n:x}" * (n % 5) for n in range(20_000)]),
        "price": pa.array([n * 1.37 for n in range(20_000)]),
        "items": pa.array([[f"{n}", None] * (n % 3) for n in range(20_000)]),
    }
)


class File:
    """A Sink that keeps what it takes."""

    def __init__(self) -> None:
        self.data = b""

    @property
    def bytes(self) -> int:
        return len(self.data)

    def append(self, data: memoryview) -> None:
        self.data += data


def writer(file_format: ExportFormat, limit: int = 1 << 30) -> FileWriter:
    """What writes ROWS."""
    return file_format.writer(ROWS.schema, [PLAIN] * ROWS.num_columns, limit)


def files(
    file_format: ExportFormat, batches: Sequence[pa.RecordBatch], limit: int = 1 << 30
) -> list[bytes]:
    """Every file of these batches, which have the columns of ROWS."""
    written = writer(file_format, limit)
    found = [File()]
    file = written.open(found[-1])
    for batch in batches:
        for piece in written.pieces(batch):
            row = 0
            while row < len(piece):
                row = file.take(piece, row)
                if row < len(piece):
                    file.close()
                    found.append(File())
                    file = written.open(found[-1])
    file.close()
    return [one.data for one in found]
