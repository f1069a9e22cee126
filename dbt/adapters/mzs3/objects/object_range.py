"""A part of an object in S3, fetched however often the connection breaks."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError

from dbt.adapters.mzs3.objects.content_range import begins_at

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

MAX_RESUMES = 4
_FIRST_PAUSE_S = 0.2
_READ_BYTES = 1024 * 1024


class ReplacedError(Exception):
    """The object is no longer the one that was meant."""


@dataclass(frozen=True)
class ObjectVersion:
    """One object, as it was when it had this ETag: as another one it is not read."""

    client: S3Client
    bucket: str
    key: str
    etag: str
    pause: Callable[[float], None] = time.sleep

    def part(self, start: int, end: int) -> bytes:
        """The bytes from `start` to the one before `end`.

        A connection that breaks is resumed at the byte reached, `MAX_RESUMES` times without
        progress at most. Raises ReplacedError, AwsFailure or OSError.
        """
        pieces: list[bytes] = []
        position, failures = start, 0
        while position < end:
            try:
                with contextlib.closing(self._open(position, end)) as body:
                    while position < end:
                        data: bytes = body.read(min(end - position, _READ_BYTES))
                        if not data:
                            raise ConnectionResetError("the connection ended early")
                        pieces.append(data)
                        position += len(data)
                        failures = 0
            except (BotoCoreError, OSError):
                failures += 1
                if failures > MAX_RESUMES:
                    raise
                self.pause(_FIRST_PAUSE_S * 2 ** (failures - 1))
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _open(self, start: int, end: int) -> Any:
        answer = self.client.get_object(
            Bucket=self.bucket,
            Key=self.key,
            Range=f"bytes={start}-{end - 1}",
            IfMatch=f'"{self._tag()}"',
        )
        body: Any = answer["Body"]
        # A store or a proxy may leave the conditions and the range of a request out of account.
        if answer["ETag"].strip('"') != self._tag():
            body.close()
            raise ReplacedError
        if not begins_at(answer, start, whole=False):
            body.close()
            raise OSError(f"asked for it from byte {start} on, the store sent another part")
        return body

    def _tag(self) -> str:
        return self.etag.strip('"')
