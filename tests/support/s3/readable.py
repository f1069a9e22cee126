"""An S3 in memory whose objects can be read from any byte, and whose connections can break."""

from __future__ import annotations

import hashlib
import io
import json
from typing import Any

from dbt.adapters.mzs3.export.commit.manifest import to_json
from dbt.adapters.mzs3.export.export import build_manifest
from dbt.adapters.mzs3.export.options import parse_options
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.store.prefix import Prefix
from dbt.adapters.mzs3.store.store import ListedObject
from dbt.adapters.mzs3.upload.pending import PendingFile
from support.export.committing import export_of
from support.s3.memory import MemoryS3, failure
from support.s3.opened import prefix_of

PREFIX = "exports/orders/"


class Body(io.BytesIO):
    """Ends with a broken connection after `whole` bytes; notes the largest read."""

    largest = 0

    def __init__(self, content: bytes, whole: int | None) -> None:
        super().__init__(content if whole is None else content[:whole])
        self._breaks = whole is not None

    def read(self, size: int | None = -1) -> bytes:
        Body.largest = max(Body.largest, size or len(self.getbuffer()))
        data = super().read(size)
        if self._breaks and not data:
            raise ConnectionResetError("the connection broke")
        return data


class ReadableS3(MemoryS3):
    """`breaks` has, by key, after how many bytes the next connections break, one after another."""

    def __init__(self) -> None:
        super().__init__()
        self.breaks: dict[str, list[int]] = {}
        self.honours_range = True
        self.asked: list[str] = []

    def etag(self, key: str) -> str:
        return str(self._listed(key)["ETag"])

    def get_object(
        self, *, Key: str, IfMatch: str = "", Range: str = "", **_: Any
    ) -> dict[str, Any]:
        self.before("GetObject", Key)
        if Key not in self.objects:
            raise failure("NoSuchKey", "GetObject")
        if IfMatch and IfMatch != self.etag(Key):
            raise failure("PreconditionFailed", "GetObject")
        self.asked.append(Range)
        start = int(Range.removeprefix("bytes=").partition("-")[0] or 0)
        start = start if self.honours_range else 0
        content = self.objects[Key][start:]
        breaks = self.breaks.get(Key)
        body = Body(content, breaks.pop(0) if breaks else None)
        answer = {"Body": body, "ETag": self.etag(Key), "ContentLength": len(content)}
        if start:
            size = len(self.objects[Key])
            answer["ContentRange"] = f"bytes {start}-{size - 1}/{size}"
        return answer

    @property
    def prefix(self) -> Prefix:
        return prefix_of(self, S3Location("b", PREFIX))  # type: ignore[arg-type]

    def listed(self, name: str) -> ListedObject:
        key = PREFIX + name
        return ListedObject(key, self.etag(key), len(self.objects[key]))

    def export(self, files: dict[str, tuple[bytes, int]], **options: Any) -> None:
        """Objects with their rows, and the manifest that a commit of them writes."""
        pending = []
        for number, (name, (content, rows)) in enumerate(files.items(), start=1):
            self.objects[PREFIX + name] = content
            digest = hashlib.sha256(content).hexdigest()
            pending.append(
                PendingFile(0, number, PREFIX + name, "id", (), rows, len(content), digest)
            )
        config = {"location": "s3://b/exports/orders", **options}
        self.objects[PREFIX + "_manifest.json"] = to_json(
            build_manifest(
                export_of("b", PREFIX, parse_options("m", config, ["default"])), pending, "r"
            )
        )

    def change_manifest(self, change: Any) -> None:
        key = PREFIX + "_manifest.json"
        manifest = json.loads(self.objects[key])
        change(manifest)
        self.objects[key] = to_json(manifest)
