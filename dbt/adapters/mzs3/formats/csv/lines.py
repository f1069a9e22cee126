"""Encoded lines as bytes and boundaries, without copying either."""

from __future__ import annotations

import pyarrow as pa


class Lines:
    """`data[offsets[i]:offsets[i + 1]]` is line i, its newline included."""

    def __init__(self, lines: pa.Array) -> None:
        _, offsets, data = lines.buffers()
        self.offsets = memoryview(offsets).cast("q")[: len(lines) + 1]
        self.data = memoryview(data) if data is not None else memoryview(b"")

    def __len__(self) -> int:
        return len(self.offsets) - 1
