"""How the files of a batch are written, as tasks are told."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Protocol

from dbt.adapters.mzs3.formats.spec import ExportedColumn
from dbt.adapters.mzs3.shard.executor.batch.layout import BatchLayout, Encoding, TaggedColumn
from dbt.adapters.mzs3.shard.executor.batch.task import BatchSpec
from dbt.adapters.mzs3.shard.read.rows import Shelf
from dbt.adapters.mzs3.shard.state.schema import Column
from dbt.adapters.mzs3.upload.spec import WriteSpec

BATCHES = "batches/"


class Sizes(Protocol):
    """How large files, upload parts, and what a worker holds may be; in bytes."""

    @property
    def max_file_size(self) -> int:
        """Of each file."""

    @property
    def part_size(self) -> int:
        """Of each part of an upload."""

    @property
    def max_multi_part_bytes_in_memory(self) -> int:
        """Of what waits for S3 in one worker."""


def batch_spec(
    shelf: Shelf, columns: Sequence[Column], encoding: Encoding, moment: int, sizes: Sizes
) -> WriteSpec:
    """For rows `t`, `d`, c0, c1, … of these columns; in a folder that no other batch has."""
    tagged = tuple(TaggedColumn(column.tag, column.kind) for column in columns)
    names = tuple(column.name for column in columns)
    folder = f"{BATCHES}{moment}-{uuid.uuid4().hex[:12]}/"
    return WriteSpec(
        connection=shelf.connection,
        bucket=shelf.location.bucket,
        prefix=shelf.location.key(folder),
        columns=tuple(ExportedColumn(name) for name in ("t", "d", *names)),
        format=BatchSpec(BatchLayout(tagged, encoding), names),
        max_file_size=sizes.max_file_size,
        part_size=sizes.part_size,
        max_bytes_in_memory=sizes.max_multi_part_bytes_in_memory,
    )
