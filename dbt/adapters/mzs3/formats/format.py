"""What a file format has to do, whichever it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import pyarrow as pa


class Sink(Protocol):
    """Takes the bytes of one file, in order."""

    @property
    def bytes(self) -> int:
        """How many it has taken."""

    def append(self, data: memoryview) -> None:
        """Take `data`, whose buffer must not change afterwards."""


class OpenFile(Protocol):
    """One file that is being written."""

    def take(self, piece: Any, start: int) -> int:
        """Write the piece's rows from `start` on, as many as fit; where the rows left begin.

        An end short of the piece's length means that the file is full. A file without rows takes
        at least one, whatever its size.
        """

    def close(self) -> None:
        """Write what is still held back, and the file's end."""


class FileFormat(Protocol):
    """Turns rows of one schema into files; the bytes depend on the rows alone.

    In particular they do not depend on how the rows were cut into batches.
    """

    @property
    def suffix(self) -> str:
        """The end of a file's name, such as `.csv`."""

    @property
    def content_type(self) -> str:
        """The media type of the objects."""

    def pieces(self, rows: pa.RecordBatch) -> Iterator[Any]:
        """The rows, prepared, in pieces small enough for a worker's memory; each has a length."""

    def open(self, sink: Sink) -> OpenFile:
        """Begin a file."""
