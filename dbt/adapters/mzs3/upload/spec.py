"""What workers need to write files; it is sent to them with the Spark job."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dbt.adapters.mzs3.arrow.packed import PackedColumn
from dbt.adapters.mzs3.formats.write.format import ExportedColumn, Format
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.store.store import SHA256_AFTER, sha256_of
from dbt.adapters.mzs3.upload.progress import ProgressTarget

_MAX_PARTS_IN_FLIGHT = 4

NOTE_PART = 10_000
"""The number of an extra part with `note_of` the properties; completions leave it out."""


@dataclass(frozen=True)
class WriteSpec:
    """What to write, and where; sizes in bytes.

    `columns` are the query's, `partition_by` the indexes of those that name folders. Files are
    numbered from `first_number`; `single_file` is the name of the only file. With `packed`, the
    input has a hash, by which it is sorted, and packed columns. `max_batch_bytes` is set
    if Comet sends the input: a batch has no more. `reusable` has the uploads that interrupted
    runs left open, by key, those with most parts first. A `resumable` run leaves
    uploads that can be reused, and `with_sha256` the store keeps the SHA-256 of parts if it can.
    With `dry`, nothing is uploaded, but reports are made. Tasks report sums of the numbers in the
    column `summed`, an index.
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
    max_batch_bytes: int | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    reusable: Mapping[str, Sequence[OpenUpload]] = field(default_factory=dict)
    resumable: bool = False
    with_sha256: bool = False
    summed: int | None = None
    dry: bool = False
    progress: ProgressTarget | None = None

    @property
    def content(self) -> tuple[ExportedColumn, ...]:
        """The columns in the files: all except those that name folders."""
        return tuple(c for i, c in enumerate(self.columns) if i not in self.partition_by)

    @property
    def bytes_in_flight(self) -> int:
        """The most bytes that may be in flight to S3 at a time."""
        room = self.max_bytes_in_memory - 2 * self.part_size
        return min(room, _MAX_PARTS_IN_FLIGHT * self.part_size)


def note_of(properties: Mapping[str, str]) -> bytes:
    """The content of NOTE_PART: a hash of the properties, as S3 does not return ACL and tags."""
    document = json.dumps({**properties}, sort_keys=True).encode()
    return b"dbt-mzs3 " + hashlib.sha256(document).hexdigest().encode()


@dataclass(frozen=True)
class OpenUpload:
    """An open multipart upload and its uploaded parts: part number to (ETag, size in bytes)."""

    upload_id: str
    parts: Mapping[int, tuple[str, int]] = field(default_factory=dict)

    @property
    def has_sha256(self) -> bool:
        """Whether its parts have to be sent with their SHA-256."""
        return any(SHA256_AFTER in etag for etag, _ in self.parts.values())

    def etag_if_equal(self, number: int, body: bytes) -> str | None:
        """The ETag of the part, if S3 already has it with exactly these bytes; else None.

        Always None if the encryption makes ETags of parts that are not MD5s, unless S3 has the
        part's SHA-256.
        """
        etag, size = self.parts.get(number, ("", -1))
        if size != len(body):
            return None
        md5, _, sha256 = etag.partition(SHA256_AFTER)
        if sha256:
            return etag if sha256 == sha256_of(body) else None
        found = hashlib.md5(body, usedforsecurity=False).hexdigest()
        return etag if md5.strip('"') == found else None
