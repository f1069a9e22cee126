"""A sink as the file that pyarrow's Parquet writer wants."""

from __future__ import annotations

from dbt.adapters.mzs3.formats.format import Sink


class SinkFile:
    """Passes on what is written to it, in buffers of their own, until it is shut."""

    def __init__(self, sink: Sink) -> None:
        self.closed = False
        self._sink = sink
        self._start = sink.bytes
        self._shut = False

    def write(self, data: bytes) -> int:
        """Take bytes, or a buffer that the writer may use again."""
        if not self._shut:
            self._sink.append(memoryview(bytes(data)))
        return len(data)

    def tell(self) -> int:
        """How many bytes were written."""
        return self._sink.bytes - self._start

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """The sink is its owner's to close."""
        self.closed = True

    def shut(self) -> None:
        """Take nothing more."""
        self._shut = True

    def writable(self) -> bool:
        """It is for writing only."""
        return True

    def readable(self) -> bool:
        """It is not for reading."""
        return False

    def seekable(self) -> bool:
        """It has no way back."""
        return False
