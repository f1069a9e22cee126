"""An object of S3 as a file, streamed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from botocore.exceptions import BotoCoreError

from dbt.adapters.mzs3.objects.content_range import begins_at
from dbt.adapters.mzs3.objects.prefix import Listed, Place

MAX_RESUMES = 4
_FIRST_PAUSE_S = 0.2


class ReplacedError(Exception):
    """The object is no longer the one that was listed."""


class ObjectFile:
    """The object as it was when it was listed, from any byte on; holds only what is asked for.

    One GET per stretch read in order. A connection that breaks is resumed at the byte reached,
    `MAX_RESUMES` times without progress at most. Raises ReplacedError, AwsFailure or OSError, and
    keeps it as `failure`, as those who read through others can't tell it from theirs.
    """

    closed = False  # to pyarrow; there is nothing to close but the connection

    def __init__(
        self, place: Place, listed: Listed, *, pause: Callable[[float], None] = time.sleep
    ) -> None:
        self._place = place
        self._listed = listed
        self._pause = pause
        self._position = 0
        self._body: Any = None
        self.failure: Exception | None = None

    def read(self, size: int = -1) -> bytes:
        """Exactly `size` bytes, or all up to the end; fewer only at the end."""
        left = self._listed.size - self._position
        missing = left if size < 0 else min(size, left)
        pieces = []
        try:
            while missing > 0:
                pieces.append(self._piece(missing))
                missing -= len(pieces[-1])
        except Exception as exc:
            self.failure = exc
            raise
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go on from another byte; as of any file."""
        self.close()
        self._position = offset + (0, self._position, self._listed.size)[whence]
        return self._position

    def tell(self) -> int:
        """The byte that is read next."""
        return self._position

    def seekable(self) -> bool:
        """It is."""
        return True

    def close(self) -> None:
        """Give the connection back; the next read opens another."""
        if self._body is not None:
            self._body.close()
            self._body = None

    def _piece(self, size: int) -> bytes:
        failures = 0
        while True:
            try:
                if self._body is None:
                    self._body = self._open()
                data: bytes = self._body.read(size)
                if not data:
                    raise ConnectionResetError("the connection ended early")
            except (BotoCoreError, OSError):
                self.close()
                failures += 1
                if failures > MAX_RESUMES:
                    raise
                self._pause(_FIRST_PAUSE_S * 2 ** (failures - 1))
            else:
                self._position += len(data)
                return data

    def _open(self) -> Any:
        request: dict[str, Any] = {"IfMatch": self._listed.etag}
        if self._position:
            request["Range"] = f"bytes={self._position}-"
        answer = self._place.client.get_object(
            Bucket=self._place.location.bucket, Key=self._listed.key, **request
        )
        body: Any = answer["Body"]
        # A store or a proxy may leave the conditions of a request out of account.
        if answer["ETag"].strip('"') != self._listed.etag.strip('"'):
            body.close()
            raise ReplacedError
        if not begins_at(answer, self._position, whole="Range" not in request):
            body.close()
            raise OSError(f"the store does not honour Range, asked for byte {self._position}")
        return body
