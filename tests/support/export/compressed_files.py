"""Compressed files as the writer of an export makes them, and lines to make them from."""

import random

import pyarrow as pa

from dbt.adapters.mzs3.formats.write.csv import files as csv_files
from dbt.adapters.mzs3.formats.write.csv.files import CompressedCsvFile


class Bytes:
    def __init__(self):
        self.data = b""

    @property
    def bytes(self):
        return len(self.data)

    def append(self, data):
        self.data += data


def lines_of(texts):
    return csv_files.lines_of(pa.array(texts, pa.large_string()))


def files_of(pieces, codec, limit, header=b""):
    """Every file's bytes, and how many lines each took; the loop is the writer's."""
    sink, files, rows = Bytes(), [], 0
    file = CompressedCsvFile(sink, codec, header, limit)
    for piece in pieces:
        start = 0
        while start < len(piece):
            end = file.take(piece, start)
            rows += end - start
            start = end
            if start < len(piece):
                file.close()
                files.append((sink.data, rows))
                sink, rows = Bytes(), 0
                file = CompressedCsvFile(sink, codec, header, limit)
    file.close()
    return [*files, (sink.data, rows)]


def flights(count, seed=1):
    chance = random.Random(seed)
    airports = ["JFK", "LGA", "EWR", "IAH", "MIA", "BQN"]
    return [
        f"2013-01-{1 + i % 28:02},{chance.randint(0, 2400)},{chance.choice(airports)},"
        f"{chance.random():.4f}\n"
        for i in range(count)
    ]


def cut(texts, size):
    return [lines_of(texts[i : i + size]) for i in range(0, len(texts), size)]
