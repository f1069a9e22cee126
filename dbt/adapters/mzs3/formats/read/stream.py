"""Bytes that are read from front to back, and a file of them."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, Protocol

ReadBytes = Callable[[int], bytes]
"""Reads up to that many bytes, at least one; b"" is the end."""

RAW_READ_BYTES = 256 * 1024


class ByteStream(Protocol):
    """An object that is being read."""

    def read(self, size: int) -> bytes:
        """As `ReadBytes`; raises ObjectError."""

    def close(self) -> None:
        """Free what reading holds; safe to repeat."""


class _RawFile(io.RawIOBase):
    def __init__(self, read: ReadBytes) -> None:
        super().__init__()
        self._read = read

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._read(min(len(buffer), RAW_READ_BYTES))
        buffer[: len(data)] = data
        return len(data)


def as_file(read: ReadBytes) -> io.BufferedReader:
    """A file of the bytes that `read` gives."""
    return io.BufferedReader(_RawFile(read), RAW_READ_BYTES)
