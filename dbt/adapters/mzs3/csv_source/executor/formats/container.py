"""Avro's object container files: the header, and the blocks of records behind it.

(Apache Avro's specification, section Object Container Files.) Read here rather than by a
library, so that a file that was cut off anywhere but between two blocks is an error.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from dbt.adapters.mzs3.csv_source.executor.formats.typed import FIX_FILE
from dbt.adapters.mzs3.csv_source.executor.object_error import ObjectError, shown
from dbt.adapters.mzs3.csv_source.executor.stream import Read, as_file

MAGIC = b"Obj\x01"
SYNC_BYTES = 16
# Of a block, as it is in the file and decompressed, and of a value in the header.
MAX_BLOCK_BYTES = 128 * 1024 * 1024
# Of records in which all fields are NULL, and so without a byte.
_MOST_EMPTY_RECORDS = 1 << 20
_LONGEST_NUMBER = 10
_CRC_BYTES = 4
_RAW_DEFLATE = -zlib.MAX_WBITS


class AvroContainer:
    """One container file, read from front to back; `schema` is the JSON in its header.

    Holds one block. Raises ObjectError for what is not such a file.
    """

    def __init__(self, read: Read) -> None:
        self._input = as_file(read)
        metadata = self._header()
        codec = metadata.get("avro.codec", b"null").decode("utf-8", "replace")
        if codec not in _CODECS:
            raise ObjectError(
                f"its codec is {shown(codec)}, which is not one of {', '.join(_CODECS)}",
                "Have the objects written with one of those",
            )
        self._decompress = _CODECS[codec]
        try:
            self.schema: Any = json.loads(metadata["avro.schema"])
        except (KeyError, ValueError, RecursionError) as exc:
            raise invalid("its header has no schema") from exc

    def blocks(self) -> Iterator[tuple[int, bytes]]:
        """Each block's number of records, and their bytes."""
        while self._input.peek(1):
            count, size = self._number(), self._size()
            if count < 0:
                raise invalid("a block of less than no records")
            raw = self._take(size)
            if self._take(SYNC_BYTES) != self._sync:
                raise invalid("a block does not end in the file's sync marker")
            data = self._decompress(raw)
            if count > max(len(data), _MOST_EMPTY_RECORDS):
                raise invalid(f"a block of {count} records in {len(data)} bytes")
            yield count, data

    def _header(self) -> dict[str, bytes]:
        if self._take(len(MAGIC)) != MAGIC:
            raise invalid("it does not begin as an object container file")
        metadata = {}
        while count := self._number():
            if count < 0:
                self._number()  # how many bytes these are
            for _ in range(abs(count)):
                key = self._take(self._size()).decode("utf-8", "replace")
                metadata[key] = self._take(self._size())
        self._sync = self._take(SYNC_BYTES)
        return metadata

    def _size(self) -> int:
        size = self._number()
        if not 0 <= size <= MAX_BLOCK_BYTES:
            raise invalid(f"a length of {size} bytes, where {MAX_BLOCK_BYTES} is the most")
        return size

    def _number(self) -> int:
        """A number in as many bytes as it needs, the lowest seven bits first, zigzag."""
        value = 0
        for position in range(_LONGEST_NUMBER):
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << 7 * position
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
        raise invalid("a number of more than 64 bits")

    def _take(self, size: int) -> bytes:
        data = self._input.read(size)
        if len(data) < size:
            raise ObjectError("its Avro file ends early", FIX_FILE)
        return data


def invalid(what: object) -> ObjectError:
    """The problem of an object that is not an Avro file as the specification has it."""
    return ObjectError(f"it is not valid Avro ({what})", FIX_FILE)


def _inflate(raw: bytes) -> bytes:
    stream = zlib.decompressobj(_RAW_DEFLATE)
    try:
        data = stream.decompress(raw, MAX_BLOCK_BYTES)
    except zlib.error as exc:
        raise invalid(exc) from exc
    # Some writers leave a part of zlib's checksum behind the end.
    if not stream.eof:
        raise invalid("a block that does not decompress as a whole")
    return data


def _unsnap(raw: bytes) -> bytes:
    """Snappy, and behind it the checksum of what it decompresses to."""
    size = 0
    for position, byte in enumerate(raw[:5]):
        size |= (byte & 0x7F) << 7 * position
        if byte < 0x80:
            break
    if size > MAX_BLOCK_BYTES:
        raise invalid(f"a block of {size} bytes, where {MAX_BLOCK_BYTES} is the most")
    try:
        body, crc = raw[:-_CRC_BYTES], raw[-_CRC_BYTES:]
        data: bytes = pa.decompress(body, size, codec="snappy", asbytes=True)
    except (pa.ArrowException, OSError) as exc:
        raise invalid(exc) from exc
    if zlib.crc32(data) != int.from_bytes(crc, "big"):
        raise invalid("a block whose checksum is another")
    return data


_CODECS: dict[str, Callable[[bytes], bytes]] = {
    "null": lambda raw: raw,
    "deflate": _inflate,
    "snappy": _unsnap,
}
