"""What workers need, sent to them with the job."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dbt.adapters.mzs3.arrow.packed import PackedColumn
from dbt.adapters.mzs3.formats.write.format import ExportedColumn, Format
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.upload.progress import ProgressTarget

_MAX_PARTS_IN_FLIGHT = 4

NOTE_PART = 10_000
"""The part number under which an upload's properties are noted; no completion lists it."""


@dataclass(frozen=True)
class WriteSpec:
    """What to write, and where to; sizes in bytes.

    `columns` are the query's, `partition_by` the indexes of those that become folders. Files are
    numbered from `first_number`; `single_file` is the name of the one file. With `packed`, rows
    come with their hash, in its order, and in packed columns. `reusable` has the uploads, by key,
    that interrupted runs left open, the fullest first; those of a `resumable` run can be reused
    after it. With `dry`, nothing is uploaded: the reports say what would have been.
    """

    connection: AwsConnection = field(repr=False)
    location: S3Location
    columns: tuple[ExportedColumn, ...]
    format: Format
    max_file_size: int
    part_size: int
    max_bytes_in_memory: int
    partition_by: tuple[int, ...] = ()
    first_number: int = 1
    single_file: str | None = None
    packed: tuple[PackedColumn, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    reusable: Mapping[str, Sequence[OpenUpload]] = field(default_factory=dict)
    resumable: bool = False
    dry: bool = False
    progress: ProgressTarget | None = None

    @property
    def content(self) -> tuple[ExportedColumn, ...]:
        """The columns in the files, without those of folders."""
        return tuple(c for i, c in enumerate(self.columns) if i not in self.partition_by)

    @property
    def bytes_in_flight(self) -> int:
        """How many bytes may wait for S3 at a time, beside one upload part."""
        room = self.max_bytes_in_memory - 2 * self.part_size
        return min(room, _MAX_PARTS_IN_FLIGHT * self.part_size)


def note_of(properties: Mapping[str, str]) -> bytes:
    """The content of that part, a hash: S3 can't be asked for an upload's ACL and tags."""
    document = json.dumps({**properties}, sort_keys=True).encode()
    return b"dbt-mzs3 " + hashlib.sha256(document).hexdigest().encode()


@dataclass(frozen=True)
class OpenUpload:
    """A multipart upload and the parts S3 has of it: part number to (ETag, size in bytes)."""

    upload_id: str
    parts: Mapping[int, tuple[str, int]] = field(default_factory=dict)

    def etag_if_equal(self, number: int, body: bytes) -> str | None:
        """The ETag of a part that S3 already has with exactly these bytes, or None.

        It is the MD5 of the bytes, but for some kinds of encryption: there None is returned.
        """
        etag, size = self.parts.get(number, ("", -1))
        if size != len(body):
            return None
        md5 = hashlib.md5(body, usedforsecurity=False).hexdigest()
        return etag if etag.strip('"') == md5 else None
