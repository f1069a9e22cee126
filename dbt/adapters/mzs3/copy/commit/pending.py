"""Files that are uploaded but not completed, and so not visible: what a commit completes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class PendingFile:
    """One file's open multipart upload, all of whose parts are in S3; sizes in bytes."""

    part: int
    number: int
    key: str
    upload_id: str
    etags: tuple[str, ...]
    rows: int
    bytes: int
    sha256: str

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `from_dict` reads them back."""
        return {**asdict(self), "etags": list(self.etags)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PendingFile:
        """The file that `as_dict` wrote, or that a worker reported as a row."""
        return cls(**{**values, "etags": tuple(values["etags"])})
