"""An object of a source as a file that can be read anywhere, for formats that begin at the end."""

from __future__ import annotations

from dbt.adapters.mzs3.csv_source.executor.formats.format import StoredObject
from dbt.adapters.mzs3.objects.random_access import RandomAccessFile

# What one request fetches at least; smaller objects are fetched whole.
WINDOW_BYTES = 1024 * 1024


def open_object(stored: StoredObject) -> RandomAccessFile:
    """The object; all parts of it are of the version that was listed, or reading it raises
    CsvProblem. Holds what was fetched last."""
    return RandomAccessFile(stored.size, stored.part, window=WINDOW_BYTES)
